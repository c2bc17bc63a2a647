"""Seconds of a whole fit, 1,000 x 10 rows: in a fresh process from its start, and warm in a running one.

The difference is imports and compilation; the warm fit is training, held-out losses, the anchor and the path gap.

    python benchmarks/fit.py [--quick] [--out results/speed]
"""

import pathlib

import numpy as np

from _timing import Compilations, Rows, best_of, cold_seconds, parse
from scorefield import ScoreClassifier, ScoreDensity

N, D = 1000, 10
CASES = ("energy", "mlp", "diffusion", "auto", "classifier")
CODE = "import sys; sys.path.insert(0, sys.argv[1]); import fit; fit.estimator(*sys.argv[2:]).fit(*fit.table())"


def table():
    """Two Gaussian classes that overlap."""
    rng = np.random.default_rng(0)
    y = (np.arange(N) < N // 4).astype(int)
    return rng.normal(size=(N, D)) * np.where(y[:, None], 0.7, 1.0) + 1.5 * y[:, None], y


def estimator(case, max_steps):
    steps = {} if max_steps == "default" else {"max_steps": int(max_steps)}
    if case == "classifier":
        return ScoreClassifier(random_state=0, **steps)
    return ScoreDensity(model=case, random_state=0, **steps)


def main():
    options = parse(__doc__)
    rows = Rows("fit", options)
    steps = 100 if options.quick else "default"
    folder = str(pathlib.Path(__file__).parent)
    for case in CASES:
        cold = cold_seconds(CODE, min(options.repeats, 3), folder, case, steps)
        X, y = table()
        with Compilations() as first:
            model = estimator(case, steps).fit(X, y)
        warm = best_of(lambda case=case, X=X, y=y: estimator(case, steps).fit(X, y), options.repeats)
        histories = model.history_ if case == "classifier" else [model.history_]
        n_steps = max(int(history["steps"][-1]) if history else 0 for history in histories)
        rows.add(
            f"{case:<10} cold {cold:6.2f} s, warm {warm:6.3f} s, cold / warm {cold / warm:5.1f}; {n_steps} steps; "
            f"the first fit here compiled {first.compiled} programs in {first.seconds:.1f} s",
            job=case, n=N, d=D, cold_seconds=cold, warm_seconds=warm, ratio=cold / warm, steps=n_steps,
            compiled=first.compiled, compile_seconds=first.seconds,
        )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
