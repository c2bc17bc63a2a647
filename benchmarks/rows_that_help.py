"""Rows that help: learners alone, after over-samplers, and taught by ScoreClassifier (DistilledClassifier).

Folds of the development halves of tables, so that defaults can be chosen by them. One teacher is fitted for each fold.

    python benchmarks/rows_that_help.py [--quick] [--repeats 1] [--jobs 2] [--out results/rows_that_help]
"""

import sys
import warnings

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _mixed import load_mixed, parallel
from _timing import Rows, parse, with_jobs
from scorefield import DistilledClassifier, MixedEncoder, ScoreClassifier, ScoreOverSampler
from scorefield.data.splits import same_rows, stratified_folds
from scorefield.studies.benchmark import tables

NAMES = ("ecoli", "abalone", "yeast_ml8", "car_eval_34", "wine_quality", "yeast_me2", "oil", "letter_img")
MIXED = ("adult", "telco-churn")
MAX_ROWS = 1200
NOTHING, DISTILLED = "nothing", "distilled"
HALF = 0.5  # of the shortfall that over-samplers make up


def learners(seed):
    return {
        "boosting": HistGradientBoostingClassifier(random_state=seed),
        "forest": RandomForestClassifier(300, random_state=seed),
        "network": MLPClassifier((64,), max_iter=100, random_state=seed),
        "logistic": LogisticRegression(max_iter=2000),
        "neighbours": KNeighborsClassifier(),
    }


def over_samplers(y, teacher, seed):
    """Over-samplers by name, which make up half of the shortfall of the rare class."""
    rare, common = np.sum(y == 1), np.sum(y == 0)
    wanted = {"sampling_strategy": {1: int(rare + HALF * (common - rare))}, "random_state": seed}
    return {
        "noise": RandomOverSampler(**wanted, shrinkage=0.3),
        "SMOTE": SMOTE(**wanted, k_neighbors=int(min(5, rare - 1))),
        "sharing": ScoreOverSampler(**wanted, purpose="sharing"),
        "learning": ScoreOverSampler(**wanted, teacher=FrozenEstimator(teacher)),
    }


def arms(X, y, seed):
    """Tables and labels to fit learners to by arm, None for the taught ones, and the teacher."""
    teacher = ScoreClassifier(random_state=seed).fit(X, y)
    found = {NOTHING: (X, y), DISTILLED: None}
    for name, sampler in over_samplers(y, teacher, seed).items():
        if isinstance(X, pd.DataFrame) and name in ("noise", "SMOTE"):
            continue  # for numbers
        found[name] = sampler.fit_resample(X, y)
    return found, teacher


def scores(X, y, X_test, y_test, seed, numbers):
    """Rows of average precision and log loss, by arm and learner; tables become numbers by `numbers`."""
    found, teacher = arms(X, y, seed)
    rows = [("teacher", "teacher", *_judged(teacher, X_test, y_test))]
    for arm, table in found.items():
        for learner, model in learners(seed).items():
            if table is None:
                model = DistilledClassifier(numbers(model), FrozenEstimator(teacher), random_state=seed).fit(X, y)
            else:
                model = numbers(model).fit(*table)
            rows.append((arm, learner, *_judged(model, X_test, y_test)))
    return rows


def _judged(model, X, y):
    found = model.predict_proba(X)[:, 1]
    return average_precision_score(y, found), log_loss(y, found, labels=[0, 1])


def load(name):
    """The development half of a table, thinned, and what makes numbers of it before a learner."""
    rng = np.random.default_rng(0)
    if name in MIXED:
        X, y = load_mixed(name)
        half = tables.thin(np.arange(len(y)), y, MAX_ROWS, rng)
        X, y = X.iloc[half].reset_index(drop=True), y[half]
        return X, y, np.arange(len(y)), lambda model: make_pipeline(MixedEncoder("one-hot"), clone(model))
    X, y = tables.load(name)
    half = tables.thin(tables.development_half(X, y)[0], y, MAX_ROWS, rng)
    return X[half], y[half], same_rows(X[half]), lambda model: make_pipeline(StandardScaler(), clone(model))


def measure(task):
    """Rows of one table and repetition."""
    name, seed = task
    warnings.simplefilter("ignore")
    X, y, groups, numbers = load(name)
    found = []
    for train, test in stratified_folds(y, groups, 2, seed=seed):
        take = X.iloc if isinstance(X, pd.DataFrame) else X
        found += scores(take[train], y[train], take[test], y[test], seed, numbers)
    return [{"table": name, "seed": seed, "arm": arm, "learner": learner, "average_precision": float(ap),
             "log_loss": float(loss)} for arm, learner, ap, loss in found]  # fmt: skip


def main():
    options = parse(__doc__, repeats=1, extend=with_jobs, out="results/rows_that_help")
    rows = Rows("rows_that_help", options)
    names = NAMES[:1] if options.quick else (*NAMES, *MIXED)
    tasks = [(name, seed) for name in names for seed in range(options.repeats)]
    for found in parallel(measure, tasks, options.jobs):
        rows.rows += [{**rows.common, **row} for row in found]
        rows.write()
    table = pd.DataFrame(rows.rows)
    table["kind"] = np.where(table["table"].isin(MIXED), "mixed", "numbers")
    for measured in ("average_precision", "log_loss"):
        wide = table.pivot_table(measured, ["kind", "learner"], "arm")
        print(measured, wide.round(3).to_string(), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
