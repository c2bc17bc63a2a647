"""Classifiers on tables with gaps: ours beside boosting with native gaps, and forest and logistic after imputation.

The five mixed tables as they are, and the 22 numeric ones with 0, 10 and 30 % of their cells removed, at random or
three times as often in rows of the rare class. Average precision, log loss and Brier score of the rare class on
held-out rows; means, and mean ranks over tables.

    python benchmarks/mixed_tables.py [--quick] [--repeats 1] [--jobs 2] [--out results/mixed]
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss
from sklearn.model_selection import StratifiedShuffleSplit

import _mixed
from _mixed import as_codes, boosting, forest, load_mixed, logistic, parallel, with_gaps, with_imputation
from _timing import Rows, parse, with_jobs
from scorefield import ScoreClassifier
from scorefield.studies.benchmark import tables

MAX_ROWS = 2000
GAPS = {"none": (0.0, False), "30 %": (0.3, False), "30 % by label": (0.3, True), "10 %": (0.1, False),
        "10 % by label": (0.1, True)}  # fmt: skip


def ours(train, y, test, seed):
    return ScoreClassifier(random_state=seed).fit(train, y).predict_proba(test)[:, 1]


def native_boosting(train, y, test, seed):
    train, test = as_codes(train, test)
    return boosting(train, seed).fit(train, y).predict_proba(test)[:, 1]


def imputed(make, iterative):
    return lambda train, y, test, seed: (
        with_imputation(make(), iterative).fit(train, y).predict_proba(test)[:, 1]
    )  # fmt: skip


ARMS = {
    "ScoreClassifier": ours,
    "boosting": native_boosting,
    "forest, mean": imputed(forest, False),
    "forest, iterative": imputed(forest, True),
    "logistic, mean": imputed(logistic, False),
    "logistic, iterative": imputed(logistic, True),
}


def load(name):
    if name in _mixed.TABLES:
        return load_mixed(name)
    X, y = tables.load(name)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]), y


def measure(task):
    """Scores of one arm on one split."""
    name, gaps, arm, seed = task
    warnings.simplefilter("ignore")
    frame, y = load(name)
    rng = np.random.default_rng(seed)
    if len(y) > MAX_ROWS:
        kept = tables.thin(np.arange(len(y)), y, MAX_ROWS, rng)
        frame, y = frame.iloc[kept].reset_index(drop=True), y[kept]
    frame = with_gaps(frame, y, *GAPS[gaps], rng)
    frame = frame.loc[:, frame.notna().sum() > 1]
    kept, held = next(StratifiedShuffleSplit(1, test_size=0.4, random_state=seed).split(frame, y))
    train = frame.iloc[kept].reset_index(drop=True)
    begin = time.perf_counter()
    p = ARMS[arm](train, y[kept], frame.iloc[held].reset_index(drop=True), seed).clip(1e-7, 1 - 1e-7)
    scores = {"average_precision": average_precision_score, "log_loss": log_loss, "brier": brier_score_loss}
    found = {key: float(score(y[held], p)) for key, score in scores.items()}
    return {"table": name, "gaps": gaps, "arm": arm, "seed": seed, "seconds": time.perf_counter() - begin, **found}


def show(found, title):
    """Means and mean ranks of the arms over tables and seeds."""
    print(f"\n{title}")
    frame = pd.DataFrame(found)
    result = {}
    for score, best_is_high in (("average_precision", True), ("log_loss", False), ("brier", False)):
        wide = frame.pivot_table(index=["table", "seed"], columns="arm", values=score)
        result[score] = wide.mean()
        result[f"rank {score}"] = wide.rank(axis=1, ascending=not best_is_high).mean()
    print(pd.DataFrame(result).loc[[arm for arm in ARMS if arm in set(frame["arm"])]].round(3).to_string())


def main():
    options = parse(__doc__, repeats=1, extend=with_jobs, out="results/mixed")
    results = Rows("mixed_tables", options)
    names = ("ecoli", "yeast_me2") if options.quick else tables.TABLES
    tasks = [(name, gaps, arm, seed) for gaps in GAPS for name in names for arm in ARMS
             for seed in range(options.repeats)]  # fmt: skip
    mixed = ("titanic",) if options.quick else tuple(_mixed.TABLES)
    tasks = [(name, "none", arm, seed) for name in mixed for arm in ARMS for seed in range(options.repeats)] + tasks
    found = []
    for row in parallel(measure, tasks, options.jobs):
        found.append(row)
        results.rows.append({**results.common, **row})
        if len(found) % 100 == 0:  # a stopped run keeps what it has
            results.write()
    show([row for row in found if row["table"] in _mixed.TABLES], "mixed tables")
    for gaps in GAPS:
        own = [row for row in found if row["table"] not in _mixed.TABLES and row["gaps"] == gaps]
        show(own, f"numeric tables, gaps: {gaps}")
    print(pd.DataFrame(found).pivot_table(index="table", columns="arm", values="log_loss").loc[list(mixed)].round(3))
    results.write()


if __name__ == "__main__":
    sys.exit(main())
