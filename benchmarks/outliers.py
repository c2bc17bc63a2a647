"""Outlier detection on open tables: ours beside forests, neighbours, support vectors and tail probabilities.

The rows of the rare class are the outliers of numeric tables, at most 800 rows to learn from and 2,000 to judge on:

- novelty: learned from half of the common class, judged on the other half and the rare class
- contaminated: learned from half of all rows, rare ones included, judged on the other half

ROC AUC and average precision of the scores. All methods get standardised columns and have their default settings.
PyOD's ECOD and KNN are left out where `pyod` is not installed; PyOD has no DTE.

    python benchmarks/outliers.py [--quick] [--repeats 1] [--jobs 2] [--out results/outliers]
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from _mixed import parallel
from _timing import Rows, absent, parse, with_jobs
from scorefield import ScoreDensity, ScoreOutlierDetector
from scorefield.studies.benchmark import tables

# Numeric tables of several sizes and widths, without those of categories as numbers and of hundreds of columns.
NAMES = ("ecoli", "optical_digits", "satimage", "pen_digits", "abalone", "sick_euthyroid", "us_crime", "oil",
         "wine_quality", "mammography")  # fmt: skip
SETTINGS = ("novelty", "contaminated")
MAX_TRAINING, MAX_TEST = 800, 2000


def scores_of(detector):
    """A function from a seed, training rows and test rows to scores, greater for odder rows."""

    def found(seed, train, test):
        model = detector(seed).fit(train)
        return -model.score_samples(test)

    return found


def pyod_scores(name):
    def found(seed, train, test):
        from pyod.models import ecod, knn

        model = {"ECOD": ecod.ECOD, "KNN": knn.KNN}[name]()
        return model.fit(train).decision_function(test)

    return found


METHODS = {
    "ours": scores_of(lambda seed: ScoreOutlierDetector(random_state=seed)),
    "ours, model='gaussian'": scores_of(lambda seed: ScoreOutlierDetector(ScoreDensity("gaussian"))),
    "IsolationForest": scores_of(lambda seed: IsolationForest(random_state=seed)),
    "LocalOutlierFactor": scores_of(lambda seed: LocalOutlierFactor(novelty=True)),
    "OneClassSVM": scores_of(lambda seed: OneClassSVM()),
    "PyOD ECOD": pyod_scores("ECOD"),
    "PyOD KNN": pyod_scores("KNN"),
}


def halves(y, setting, rng):
    """Indices of training and test rows."""
    train = np.zeros(len(y), bool)
    for label in (0, 1):
        own = rng.permutation(np.flatnonzero(y == label))
        if label == 0 or setting == "contaminated":
            train[own[: len(own) // 2]] = True
    train, test = np.flatnonzero(train), np.flatnonzero(~train)
    return tables.thin(train, y, MAX_TRAINING, rng), tables.thin(test, y, MAX_TEST, rng)


def measure(task):
    """Measures of one method on one table."""
    name, setting, method, seed = task
    warnings.simplefilter("ignore")
    X, y = tables.load(name)
    train, test = halves(y, setting, np.random.default_rng(seed))
    X = StandardScaler().fit(X[train]).transform(X)
    begin = time.perf_counter()
    scores = METHODS[method](seed, X[train], X[test])
    return {
        "table": name, "setting": setting, "method": method, "seed": seed, "n_training": len(train),
        "roc_auc": float(roc_auc_score(y[test], scores)), "seconds": time.perf_counter() - begin,
        "average_precision": float(average_precision_score(y[test], scores)),
    }  # fmt: skip


def show(rows):
    """Means of each method, and mean ranks among the methods, by setting."""
    for setting, own in rows.groupby("setting", sort=False):
        print(f"\n{setting}")
        columns = {}
        for measure in ("roc_auc", "average_precision"):
            wide = own.pivot_table(index="table", columns="method", values=measure)
            columns[measure], columns[f"{measure} rank"] = wide.mean(), wide.rank(axis=1, ascending=False).mean()
        columns["seconds"] = own.groupby("method")["seconds"].mean()
        print(pd.DataFrame(columns).sort_values("roc_auc rank").round(3).to_string())


def main():
    options = parse(__doc__, repeats=1, extend=with_jobs, out="results/outliers")
    results = Rows("outliers", options)
    without = absent("pyod", "pip install pyod")
    methods = [method for method in METHODS if not (without and method.startswith("PyOD"))]
    names = NAMES[:1] if options.quick else NAMES
    tasks = [(name, setting, method, seed) for name in names for setting in SETTINGS for method in methods
             for seed in range(options.repeats)]  # fmt: skip
    for row in parallel(measure, tasks, options.jobs):
        results.rows.append({**results.common, **row})
        if len(results.rows) % len(methods) == 0:  # a stopped run keeps what it has
            results.write()
    show(pd.DataFrame(results.rows))
    results.write()


if __name__ == "__main__":
    sys.exit(main())
