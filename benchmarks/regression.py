"""Rare ranges of a continuous target: errors of a forest after over-sampling, weights, noise, or nothing.

Targets with rare extremes of open tables: the fare in titanic.csv, the hours a week in adult.csv, the weight of the
shell of abalones. The mean absolute error, in deviations of the target, is given for rare and for common targets, and
as the mean of both, so that they count alike.

    python benchmarks/regression.py [--quick] [--repeats 5] [--jobs 2] [--out results/regression]
"""

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from _mixed import as_codes, parallel
from _timing import Rows, parse, with_jobs
from scorefield import ScoreRegressionOverSampler
from scorefield.data.datasets import data_folder
from scorefield.estimators.regression_oversampling import box_plot_relevance
from scorefield.studies.benchmark import tables

MAX_ROWS = 1500
TARGETS = {"fare": "titanic", "hours-per-week": "adult", "shell": "abalone"}
THRESHOLD = 0.8


def load(name, rng):
    """Columns as numbers (text as codes, gaps as medians), and the target."""
    if TARGETS[name] == "abalone":
        X, _ = tables.load("abalone")
        kept = rng.permutation(len(X))[:MAX_ROWS]
        return X[kept, :-1], X[kept, -1]
    table = pd.read_csv(data_folder() / "mixed" / f"{TARGETS[name]}.csv", skipinitialspace=True)
    target = table.pop(next(column for column in table if column.lower() == name))
    known = np.flatnonzero(target.notna())
    kept = rng.permutation(known)[:MAX_ROWS]
    [X] = as_codes(table.iloc[kept].loc[:, table.nunique() < len(table) / 2])
    return X.fillna(X.median()).to_numpy(), target.iloc[kept].to_numpy(float)


def nothing(X, y, seed):
    return X, y, None


def weights(X, y, seed):
    """Rare and common rows with equal sums of weights."""
    rare = box_plot_relevance(y)(y) >= THRESHOLD
    return X, y, np.where(rare, (~rare).sum() / rare.sum(), 1.0)


def noise(X, y, seed):
    """Rare rows repeated with noise of a tenth of each column's deviation, as many as common ones."""
    rng, rare = np.random.default_rng(seed), np.flatnonzero(box_plot_relevance(y)(y) >= THRESHOLD)
    drawn = rng.choice(rare, max(0, len(y) - 2 * len(rare)))
    return (
        np.concatenate([X, X[drawn] + 0.1 * X.std(axis=0) * rng.normal(size=X[drawn].shape)]),
        np.concatenate([y, y[drawn] + 0.1 * y[rare].std() * rng.normal(size=len(drawn))]),
        None,
    )


def ours(X, y, seed):
    return *ScoreRegressionOverSampler(random_state=seed).fit_resample(X, y), None


METHODS = {"nothing": nothing, "weights": weights, "noise": noise, "ours": ours}


def measure(task):
    """Errors of one method on one split of a table."""
    name, method, seed = task
    warnings.simplefilter("ignore")
    X, y = load(name, np.random.default_rng(seed))
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
    rows, target, weight = METHODS[method](X_train, y_train, seed)
    forest = RandomForestRegressor(300, min_samples_leaf=2, random_state=seed).fit(rows, target, weight)
    errors = np.abs(forest.predict(X_test) - y_test) / y_train.std()
    relevance = box_plot_relevance(y_train)(y_test)
    rare = relevance >= THRESHOLD
    return {
        "target": name, "method": method, "seed": seed, "error_rare": float(errors[rare].mean()),
        "error_common": float(errors[~rare].mean()),
        "error": float((errors[rare].mean() + errors[~rare].mean()) / 2), "n_rare": int(rare.sum()),
    }  # fmt: skip


def main():
    options = parse(__doc__, repeats=5, extend=with_jobs, out="results/regression")
    rows = Rows("regression", options)
    names = list(TARGETS)[:1] if options.quick else TARGETS
    tasks = [(name, method, seed) for name in names for method in METHODS for seed in range(options.repeats)]
    rows.rows = [{**rows.common, **row} for row in parallel(measure, tasks, options.jobs)]
    table = pd.DataFrame(rows.rows)
    columns = ["error", "error_rare", "error_common"]
    print(table.groupby(["target", "method"], sort=False)[columns].mean().round(3).to_string())
    rows.write()


if __name__ == "__main__":
    sys.exit(main())
