"""Resident memory and cached programs over fits of varied shapes: columns, rows and hidden layers change with each fit.

python benchmarks/memory_growth.py [--quick] [--unbounded]
"""

import argparse
import gc
import os

import numpy as np

from scorefield import ScoreClassifier, ScoreDensity
from scorefield._jax import pytrees


def resident():
    """Resident megabytes of this process (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def fit(rng, number):
    """One fit whose shapes no other fit has."""
    n, d, width = int(rng.integers(60, 2000)), int(rng.integers(2, 30)), int(rng.integers(8, 64))
    X = rng.normal(size=(n, d))
    if number % 2:
        y = X[:, 0] > 0.5
        ScoreClassifier(hidden=(width, width), n_members=2, max_steps=100, random_state=0).fit(X, y).predict_proba(X)
    else:
        density = ScoreDensity("energy", hidden=(width, width), max_steps=100, random_state=0).fit(X)
        density.score_samples(X)
        density.sample(10)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="30 fits instead of 200")
    parser.add_argument("--unbounded", action="store_true", help="keep all compiled programs")
    options = parser.parse_args()
    if options.unbounded:
        pytrees.MAX_PROGRAMS = np.inf
    rng = np.random.default_rng(0)
    for number in range(30 if options.quick else 200):
        fit(rng, number)
        if number % 10 == 9:
            gc.collect()
            print(f"{number + 1:4d} fits: {resident():6.0f} MB resident, {pytrees.cached_programs():4d} programs")


if __name__ == "__main__":
    main()
