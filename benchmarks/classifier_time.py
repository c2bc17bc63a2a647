"""Seconds of fit and predict_proba of ScoreClassifier beside a forest, boosting and tuned XGBoost, warm and cold.

Two thirds of each table are learned and the rest is predicted. Warm is the least of several runs in one process, after
one that compiles; cold is a process of its own, from its start to its end, without and with programs that an earlier
process kept (`cache_programs`). The ratios to the tuned XGBoost are what is compared; seconds depend on the machine.
Log loss and accuracy stand beside the time.

    python benchmarks/classifier_time.py [--quick] [--repeats 2] [--before SRC] [--out results/speed]

`--before` is the folder `src` of an older version of this library, which is then run in the same way.
"""

import os
import pathlib
import sys
import tempfile
import time
import warnings

import numpy as np
from scipy.stats import gmean
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from _timing import Rows, absent, fresh_process, parse
from scorefield import ScoreClassifier, load_penguins
from scorefield.studies.benchmark import tables
from scorefield.studies.benchmark.classifiers import tuned_boosting


def penguins(return_X_y=True):
    """The numbers of the penguins without gaps, and their species."""
    table = load_penguins().dropna()
    return table.select_dtypes("number").to_numpy(float), np.unique(table["species"], return_inverse=True)[1]


BUNDLED = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits,
           "penguins": penguins}  # fmt: skip
OPEN = ("ecoli", "car_eval_34", "yeast_me2", "oil", "abalone")
OURS, BEFORE, REFERENCE = "ScoreClassifier", "version before", "XGBoost, tuned"
COLD = """
import sys
from sklearn.datasets import load_iris
from scorefield import ScoreClassifier, cache_programs
if sys.argv[1]:
    cache_programs(sys.argv[1])
X, y = load_iris(return_X_y=True)
ScoreClassifier(random_state=0).fit(X, y).predict_proba(X)
"""
WARM = """
import json, sys, time
import numpy as np
from scorefield import ScoreClassifier
given, times = np.load(sys.argv[1]), []
for _ in range(int(sys.argv[2])):
    begin = time.perf_counter()
    proba = ScoreClassifier(random_state=int(sys.argv[3])).fit(given["X"], given["y"]).predict_proba(given["X_test"])
    times.append(time.perf_counter() - begin)
print(json.dumps({"times": times, "proba": proba.tolist()}))
"""


def run_before(source, seed, repeats, **given):
    """Times and probabilities of an older version in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table.npz"
        np.savez(path, **given)
        usual, os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", ""), str(source)
        try:
            found = fresh_process(WARM, path, repeats + 1, seed)[2]
        finally:
            os.environ["PYTHONPATH"] = usual
    return found["times"], np.array(found["proba"])


def classifiers(seed):
    found = {
        OURS: ScoreClassifier(random_state=seed),
        "forest of 500": RandomForestClassifier(500, random_state=seed, n_jobs=-1),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=seed),
    }
    if not absent("xgboost", "pip install xgboost"):
        found[REFERENCE] = tuned_boosting(seed, cv=3, n_jobs=-1)
    return found


def load(name):
    return BUNDLED[name](return_X_y=True) if name in BUNDLED else tables.load(name)


def with_before(parser):
    parser.add_argument("--before", type=pathlib.Path, help="folder src of an older version")


def measure(name, seed, repeats, before=None):
    """Yield a row for each classifier on one table."""
    X, y = load(name)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    found = {}
    for method, model in classifiers(seed).items():
        times = []
        for _ in range(repeats + (method == OURS)):  # one more, which compiles
            begin = time.perf_counter()
            proba = model.fit(X_train, y_train).predict_proba(X_test)
            times.append(time.perf_counter() - begin)
        found[method] = times, proba
    if before:
        found[BEFORE] = run_before(before, seed, repeats, X=X_train, y=y_train, X_test=X_test)
    for method, (times, proba) in found.items():
        yield {
            "table": name, "method": method, "first_seconds": times[0], "seconds": min(times[-repeats:]),
            "log_loss": log_loss(y_test, proba), "accuracy": accuracy_score(y_test, proba.argmax(axis=1)),
        }  # fmt: skip


def main():
    options = parse(__doc__, repeats=2, extend=with_before)
    warnings.simplefilter("ignore")
    rows = Rows("classifier_time", options)
    for name in ["iris"] if options.quick else [*BUNDLED, *OPEN]:
        for row in measure(name, 0, options.repeats, options.before):
            rows.add(
                f"{name:<14} {row['method']:<22} {row['seconds']:7.2f} s (first {row['first_seconds']:6.2f}), log loss "
                f"{row['log_loss']:.3f}, accuracy {row['accuracy']:.3f}",
                **row,
            )
    seconds = {(row["table"], row["method"]): row["seconds"] for row in rows.rows}
    for method in dict.fromkeys(row["method"] for row in rows.rows):
        pairs = [(own, seconds.get((name, REFERENCE))) for (name, other), own in seconds.items() if other == method]
        if all(reference for _, reference in pairs):
            print(f"{method:<22} {gmean([a / b for a, b in pairs]):.2f} times {REFERENCE}, in the geometric mean")
    with tempfile.TemporaryDirectory() as folder:
        for label, kept in (("nothing kept", ""), ("programs being kept", folder), ("programs kept", folder)):
            seconds = min(fresh_process(COLD, kept)[0] for _ in range(1 if kept else options.repeats))
            rows.add(f"iris, a process of its own, {label}: {seconds:.1f} s", table="iris", method="cold", kept=label,
                     seconds=seconds)  # fmt: skip
    rows.write()


if __name__ == "__main__":
    sys.exit(main())
