"""25 fits of 25 different row counts, against 25 warm fits of the median count, and what jax traced for them.

Folds, grids and learning curves fit tables of many sizes: none of them should compile anything again.

    python benchmarks/cross_validation.py [--quick] [--out results/speed]
"""

import time

import numpy as np

from _timing import Compilations, Rows, parse
from scorefield import ScoreClassifier, ScoreDensity

D = 10


def main():
    options = parse(__doc__, repeats=1)
    rows = Rows("cross_validation", options)
    n_fits, steps = (5, 100) if options.quick else (25, 500)
    counts = np.unique(np.linspace(300, 3000, n_fits).astype(int))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(counts.max(), D))
    y = (rng.random(len(X)) < 0.3).astype(int)
    cases = {
        # Without early stopping, so that every fit takes the same steps.
        "energy": ScoreDensity(model="energy", max_steps=steps, early_stopping=False, random_state=0),
        "mlp": ScoreDensity(model="mlp", max_steps=steps, early_stopping=False, random_state=0),
        "classifier": ScoreClassifier(max_steps=min(steps, 600), random_state=0),  # 600: before it may stop early
    }

    def timed(model, sizes):
        with Compilations() as seen:
            begin = time.perf_counter()
            for n in sizes:
                model.fit(X[:n], y[:n])
            return time.perf_counter() - begin, seen

    median = int(np.median(counts))
    for name, model in cases.items():
        cold, _ = timed(model, [median])
        different, seen = timed(model, counts)
        same, again = timed(model, [median] * len(counts))
        rows.add(
            f"{name:<10} {len(counts)} fits of {counts.min()} to {counts.max()} rows {different:6.2f} s, of {median} "
            f"each {same:6.2f} s: {different / same:.2f} x; first fit {cold:.2f} s; after it {seen.traced} traces and "
            f"{seen.compiled} compilations in {seen.seconds:.2f} s (same size: {again.traced} and {again.compiled})",
            job=name, fits=len(counts), different_seconds=different, same_seconds=same, ratio=different / same,
            first_seconds=cold, traced=seen.traced, compiled=seen.compiled, compile_seconds=seen.seconds,
            traced_same=again.traced, compiled_same=again.compiled,
        )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
