"""Where to keep generated rows: average precision of learners after each choice of ScoreOverSampler(where=).

Folds of the development halves of numeric tables, so that a default can be chosen by them; beside doing nothing and
SMOTE.

    python benchmarks/where.py [--quick] [--repeats 2] [--jobs 2] [--out results/where]
"""

import sys
import warnings

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from _mixed import parallel
from _timing import Rows, parse, with_jobs
from scorefield import ScoreOverSampler
from scorefield.data.splits import same_rows, stratified_folds
from scorefield.models.selection import WHERE
from scorefield.studies.benchmark import tables

NAMES = ("ecoli", "abalone", "yeast_ml8", "car_eval_34", "wine_quality", "yeast_me2", "oil", "letter_img")
MAX_ROWS = 1200
NOTHING = "nothing"


def learners(seed):
    return {
        "boosting": HistGradientBoostingClassifier(random_state=seed),
        "forest": RandomForestClassifier(300, random_state=seed),
        "logistic": LogisticRegression(max_iter=2000),
        "neighbours": KNeighborsClassifier(),
    }


def sampler(where, seed):
    return (
        SMOTE(random_state=seed, k_neighbors=3)
        if where == "SMOTE"
        else ScoreOverSampler(purpose="sharing", where=where, random_state=seed)
    )


def measure(task):
    """A row of average precisions for each learner, of one table, choice and repetition."""
    name, where, seed = task
    warnings.simplefilter("ignore")
    X, y = tables.load(name)
    half = tables.thin(tables.development_half(X, y)[0], y, MAX_ROWS, np.random.default_rng(0))
    X, y = X[half], y[half]
    found = []
    for train, test in stratified_folds(y, same_rows(X), 2, seed=seed):
        scaler = StandardScaler().fit(X[train])
        rows, labels = scaler.transform(X[train]), y[train]
        if where != NOTHING:
            rows, labels = sampler(where, seed).fit_resample(rows, labels)
        for learner, model in learners(seed).items():
            scores = model.fit(rows, labels).predict_proba(scaler.transform(X[test]))[:, 1]
            found.append((learner, average_precision_score(y[test], scores)))
    means = pd.DataFrame(found, columns=["learner", "ap"]).groupby("learner")["ap"].mean()
    return [{"table": name, "where": where, "seed": seed, "learner": learner, "average_precision": float(value)}
            for learner, value in means.items()]  # fmt: skip


def main():
    options = parse(__doc__, repeats=1, extend=with_jobs, out="results/where")
    rows = Rows("where", options)
    names = NAMES[:1] if options.quick else NAMES
    tasks = [(name, where, seed) for name in names for where in (NOTHING, "SMOTE", *WHERE)
             for seed in range(options.repeats)]  # fmt: skip
    for found in parallel(measure, tasks, options.jobs):
        rows.rows += [{**rows.common, **row} for row in found]
        rows.write()
    table = pd.DataFrame(rows.rows)
    wide = table.pivot_table("average_precision", ["table", "learner"], "where")
    print(wide.groupby("learner").mean().round(3).to_string())
    print(wide.rank(axis=1, ascending=False).groupby("learner").mean().round(2).to_string())


if __name__ == "__main__":
    sys.exit(main())
