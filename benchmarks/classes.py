"""Several models at once: one program for all of them side by side, against one program that serves them in turn.

python benchmarks/classes.py [--quick] [--out results/speed]

The trainer chooses by `training.MODELS_PER_PROGRAM`; both ways draw the same random numbers. A model that stopped
before its neighbours costs nothing in turn, and as much as ever side by side.
"""

from functools import partial

import jax
import numpy as np
from sklearn.datasets import make_classification

from _timing import Rows, best_of, parse
from scorefield import ScoreClassifier, ScoreDensity
from scorefield.training import loop as training

COUNTS = {"2 classes": (4500, 500), "4 balanced classes": (2000,) * 4, "10 balanced classes": (1000,) * 10}


def table(counts):
    """Rows of 10 columns, with exactly these class counts."""
    n, k = max(counts) * len(counts) * 2, len(counts)
    X, y = make_classification(n, 10, n_informative=8, n_classes=k, flip_y=0.0, random_state=0)
    chosen = np.concatenate([np.flatnonzero(y == c)[:count] for c, count in enumerate(counts)])
    return X[chosen], y[chosen]


def model(case, steps):
    if case == "8 joint members":
        return ScoreClassifier(random_state=0, max_steps=steps or 2000)
    return ScoreClassifier(ScoreDensity("energy", max_steps=steps or "auto"), random_state=0)


def steps_of(fitted):
    """Steps that each network trained for."""
    if hasattr(fitted, "densities_"):
        return [int(density.history_["steps"][-1]) for density in fitted.densities_]
    return [int(history["steps"][-1]) for history in fitted.history_]


def main():
    options = parse(__doc__)
    backend = jax.default_backend()
    rows = Rows("classes" if backend == "cpu" else f"classes-{backend}", options)
    steps = 100 if options.quick else None
    for case, counts in {**COUNTS, "8 joint members": (4500, 500)}.items():
        X, y = table(counts)
        seconds, log_likelihood = {}, {}
        for way, size in (("in turn", 1), ("side by side", 100)):
            training.MODELS_PER_PROGRAM = {backend: size}
            seconds[way] = best_of(partial(model(case, steps).fit, X, y), min(options.repeats, 3))
            fitted = model(case, steps).fit(X, y)
            log_likelihood[way] = float(np.mean(fitted.score_samples(X)))
        trained = steps_of(fitted)
        ratio = seconds["side by side"] / seconds["in turn"]
        gap = abs(log_likelihood["in turn"] - log_likelihood["side by side"])
        rows.add(
            f"{case:<20} in turn {seconds['in turn']:6.3f} s, side by side {seconds['side by side']:6.3f} s, "
            f"side by side / in turn {ratio:5.2f}; {sum(trained)} steps of all, {max(trained)} of the longest; "
            f"mean log densities differ by {gap:.1e}",
            job=case, in_turn=seconds["in turn"], side_by_side=seconds["side by side"],
            ratio=ratio, steps=trained, gap=gap,
        )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
