"""Imputation of open tables: ours beside the column mean, neighbours, chained regressions and trees, miceforest.

A fifth of the cells of numeric tables is removed at random. On columns scaled to [0, 1] by their range, with five draws
of each method that has draws:

- AvgMAE: mean absolute error of a draw; MinMAE: of the best of the five draws at each cell
- coverage: share of removed cells within the range of the five draws; 2/3 is right for five draws and a sixth value
- energy: energy distance of the completed table to the true one, times 1,000
- average precision of boosting that is trained on one half of the completed table and tested on the other half, true

    python benchmarks/impute.py [--quick] [--repeats 1] [--jobs 2] [--out results/mixed]

miceforest is run where it is installed. Means are over the tables that every method filled.
"""

import importlib.util
import sys
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
MAX_ROWS, DRAWS = 1000, 5


def ours(X, seed):
    return ScoreImputer(random_state=seed).fit(X).draws(X, DRAWS)


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
    "ours, draws": ours,
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


def measure(task):
    """Measures of one method on one table."""
    name, method, seed = task
    warnings.simplefilter("ignore")
    X, y = tables.load(name)
    rng = np.random.default_rng(seed)
    kept = tables.thin(np.arange(len(y)), y, MAX_ROWS, rng)
    X, y = X[kept], y[kept]
    X = X[:, np.ptp(X, axis=0) > 0]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    gone = rng.random(X.shape) < 0.2
    draws = [filled.clip(-1, 2) for filled in METHODS[method](np.where(gone, np.nan, X), seed)]
    errors = np.array([np.abs(filled - X)[gone] for filled in draws])
    cells = np.array([filled[gone] for filled in draws])
    inside = (cells.min(axis=0) <= X[gone]) & (X[gone] <= cells.max(axis=0))
    first, second = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=seed).split(X, y))
    learner = HistGradientBoostingClassifier(random_state=seed).fit(draws[0][first], y[first])
    scale = X.std(axis=0)
    return {
        "table": name, "method": method, "seed": seed, "avg_mae": float(errors.mean()),
        "min_mae": float(errors.min(axis=0).mean()), "coverage": float(inside.mean()),
        "energy": 1000 * float(np.mean([energy_distance(filled / scale, X / scale) for filled in draws])),
        "average_precision": float(average_precision_score(y[second], learner.predict_proba(X[second])[:, 1])),
    }  # fmt: skip


def main():
    options = parse(__doc__, repeats=1, extend=with_jobs, out="results/mixed")
    results = Rows("impute", options)
    names = NAMES[:1] if options.quick else NAMES
    tasks = [(name, method, seed) for name in names for method in METHODS for seed in range(options.repeats)]
    found = []
    for row in parallel(measure, tasks, options.jobs):
        found.append(row)
        results.rows.append({**results.common, **row})
        if len(found) % len(METHODS) == 0:  # a stopped run keeps what it has
            results.write()
    columns = ["avg_mae", "min_mae", "coverage", "energy", "average_precision"]
    table = pd.DataFrame(found)
    by_all = table.groupby("table").filter(lambda own: own["method"].nunique() == len(METHODS))
    print(by_all.groupby("method")[columns].mean().loc[list(METHODS)].round(3).to_string())
    results.write()


if __name__ == "__main__":
    sys.exit(main())
