"""Imputation of open tables: ours beside the column mean, neighbours, chained regressions and trees, miceforest.

A fifth of the cells of numeric tables is removed: completely at random, and at random given other columns (a third of
the columns stays known, and cells of the others are missing more often the greater a sum of the known ones is). On
columns scaled to [0, 1] by their range, with five draws of each method that has draws:

- AvgMAE: mean absolute error of a draw; MinMAE: of the best of the five draws at each cell
- coverage: share of removed cells that are neither least nor greatest among themselves and the five draws, with ties
  broken at random; 2/3 is right, also for columns that repeat values
- energy: energy distance of the completed table to the true one, times 1,000
- average precision of boosting that is trained on one half of the completed table and tested on the other half, true
- seconds: processor time of the fit and the draws, on one thread

    python benchmarks/impute.py [--quick] [--repeats 1] [--jobs 2] [--methods NAME NAME] [--tables NAME NAME]
        [--out results/mixed]

miceforest is run where it is installed. Means are over the tables that every method filled.
"""

import importlib.util
import sys
import time
import warnings

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedShuffleSplit

from _mixed import parallel
from _timing import Rows, parse, with_jobs
from scorefield import ScoreImputer
from scorefield.studies.benchmark import tables

NAMES = ("ecoli", "pen_digits", "abalone", "sick_euthyroid", "yeast_ml8", "wine_quality", "letter_img", "yeast_me2",
         "mammography", "oil", "satimage", "thyroid_sick")  # fmt: skip
MAX_ROWS, DRAWS, SHARE = 500, 5, 0.2
GAPS = ("at random", "by others")


def ours(method):
    return lambda X, seed: ScoreImputer(method=method, random_state=seed).fit(X).draws(X, DRAWS)


def our_median(X, seed):
    return [ScoreImputer(n_draws=9, random_state=seed).fit_transform(X)]


def chained_regressions(X, seed):
    return [IterativeImputer(sample_posterior=True, max_iter=10, random_state=seed + draw).fit_transform(X)
            for draw in range(DRAWS)]  # fmt: skip


def chained_trees(X, seed):
    trees = ExtraTreesRegressor(20, min_samples_leaf=3, random_state=seed)
    return [IterativeImputer(trees, max_iter=3, random_state=seed).fit_transform(X)]


def miceforest(X, seed):
    """Chained boosted trees with predictive mean matching."""
    from miceforest import ImputationKernel

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    kernel = ImputationKernel(frame, num_datasets=DRAWS, random_state=seed)
    kernel.mice(5, num_threads=1)
    return [kernel.complete_data(dataset=draw).to_numpy() for draw in range(DRAWS)]


METHODS = {
    "ours": ours("auto"),
    **{f"ours, {method}": ours(method) for method in ("draws", "neighbours", "leaves", "matching")},
    "ours, median of 9": our_median,
    "column mean": lambda X, seed: [SimpleImputer().fit_transform(X)],
    "neighbours": lambda X, seed: [KNNImputer().fit_transform(X)],
    "chained regressions, draws": chained_regressions,
    "chained trees": chained_trees,
}
if importlib.util.find_spec("miceforest"):
    METHODS["miceforest, draws"] = miceforest


def energy_distance(a, b):
    return float(2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean())


def removed(X, how, rng):
    """Mask of the cells that are removed."""
    if how == "at random":
        return rng.random(X.shape) < SHARE
    known = rng.permutation(X.shape[1])[: max(1, X.shape[1] // 3)]
    order = (X[:, known] / X[:, known].std(axis=0)).sum(axis=1).argsort().argsort() / len(X)
    gone = rng.random(X.shape) < 2 * SHARE * X.shape[1] / (X.shape[1] - len(known)) * order[:, None]
    gone[:, known] = False
    return gone


def coverage(true, drawn, rng):
    """Share of values that are neither least nor greatest among themselves and their draws; ties are random."""
    below = (drawn < true) | ((drawn == true) & (rng.random(drawn.shape) < rng.random(true.shape)))
    return float(np.mean(below.any(axis=0) & ~below.all(axis=0)))


def measure(task):
    """Measures of one method on one table, None where the method fails."""
    name, gaps, method, seed = task
    warnings.simplefilter("ignore")
    X, y = tables.load(name)
    rng = np.random.default_rng(seed)
    kept = tables.thin(np.arange(len(y)), y, MAX_ROWS, rng)
    X, y = X[kept], y[kept]
    X = X[:, np.ptp(X, axis=0) > 0]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    gone = removed(X, gaps, rng)
    start = time.process_time()
    try:
        draws = [filled.clip(-1, 2) for filled in METHODS[method](np.where(gone, np.nan, X), seed)]
    except Exception as error:  # a peer that fails on a table is no failure of the benchmark
        print(f"{method} on {name}, {gaps}: {error!r}", flush=True)
        return None
    seconds = time.process_time() - start
    errors = np.array([np.abs(filled - X)[gone] for filled in draws])
    cells = np.array([filled[gone] for filled in draws])
    first, second = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=seed).split(X, y))
    learner = HistGradientBoostingClassifier(random_state=seed).fit(draws[0][first], y[first])
    scale = X.std(axis=0)
    return {
        "table": name, "gaps": gaps, "method": method, "seed": seed, "avg_mae": float(errors.mean()),
        "min_mae": float(errors.min(axis=0).mean()), "coverage": coverage(X[gone], cells, rng),
        "energy": 1000 * float(np.mean([energy_distance(filled / scale, X / scale) for filled in draws])),
        "average_precision": float(average_precision_score(y[second], learner.predict_proba(X[second])[:, 1])),
        "seconds": seconds,
    }  # fmt: skip


def options_of(parser):
    """Options beside those that all benchmarks have."""
    with_jobs(parser)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--tables", nargs="+", default=list(NAMES))


def main():
    options = parse(__doc__, repeats=1, extend=options_of, out="results/mixed")
    results = Rows("impute", options)
    names = options.tables[:1] if options.quick else options.tables
    tasks = [(name, gaps, method, seed) for gaps in GAPS for name in names for method in options.methods
             for seed in range(options.repeats)]  # fmt: skip
    for n_done, row in enumerate(parallel(measure, tasks, options.jobs), 1):
        if row is not None:
            results.rows.append({**results.common, **row})
        if n_done % len(options.methods) == 0:  # a stopped run keeps what it has
            results.write()
    columns = ["avg_mae", "min_mae", "coverage", "energy", "average_precision", "seconds"]
    for gaps, table in pd.DataFrame(results.rows).groupby("gaps"):
        by_all = table.groupby("table").filter(lambda own: own["method"].nunique() == len(options.methods))
        print(gaps, by_all.groupby("method")[columns].mean().loc[options.methods].round(3).to_string(), sep="\n")
    results.write()


if __name__ == "__main__":
    sys.exit(main())
