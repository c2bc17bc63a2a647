"""Time and quality of ScoreClassifier on large tables beside boosting: many rows, columns and classes.

The fraud data with 100,000 rows to learn; three made tables of 200,000 or 300,000 rows to learn, 30 columns and 2 %
rare rows in clusters; a simulated table of 500 columns, 20 of which tell of the label; the 26 letters of UCI's letter
recognition (`letter.csv` in SCOREFIELD_DATA, its first column the letter, else from OpenML); 26 simulated classes in as
many columns as the letters, each a mixture of two Gaussians, so that the log loss of the true posterior is known.
Choices were made on frauds that the first repetition does not use, on the made tables of 200,000 rows and on other
simulated tables. Where the letters cannot be had, the other tables are measured. Seconds are those of a first fit with
its prediction, compilation included; those of the processor add up all threads, and are fairer beside other programs.
Boosting has settings that suit rare classes: scikit-learn's a small rate, a penalty and all its trees (with its
defaults it diverges or stops at once), XGBoost 400 trees of depth 6 at a rate of .1 on the made tables, elsewhere a
start at even odds (its estimate of the start underflows on the frauds).

    python benchmarks/large_tables.py [--quick] [--repeats 1] [--out results/speed]
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
from scipy.special import log_softmax, logsumexp
from sklearn.datasets import fetch_openml, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, average_precision_score, log_loss
from sklearn.model_selection import train_test_split

from _timing import Rows, absent, parse
from scorefield import ScoreClassifier, fetch_creditcard
from scorefield.data.datasets import data_folder
from scorefield.evaluation.remedies import boosting

N_CLASSES, N_COLUMNS, SPREAD = 26, 16, 1.6
TRUTH = "the true posterior"


def frauds(seed, quick):
    X, y = fetch_creditcard(return_X_y=True)
    n = 2_000 if quick else 100_000
    return train_test_split(np.asarray(X), np.asarray(y), train_size=n, test_size=n // 2, stratify=y, random_state=seed)


def made(n, own):
    """A table of its own seed, whatever the repetition: 12 of 30 columns tell of the label, 4 are sums of these."""

    def load(seed, quick):
        n_learned = 2_000 if quick else n
        X, y = make_classification(
            n_learned + n_learned // 4, 30, n_informative=12, n_redundant=4, n_clusters_per_class=4, weights=[0.98],
            flip_y=0.005, random_state=own,
        )  # fmt: skip
        return X[:n_learned], X[n_learned:], y[:n_learned], y[n_learned:]

    return load


def many_columns(seed, quick):
    d = 50 if quick else 500
    X, y = make_classification(
        6_000, d, n_informative=20, n_redundant=0, weights=[0.9], class_sep=1.5, random_state=seed
    )
    return train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)


def letter(seed, quick):
    folder = data_folder()
    if folder is not None and (folder / "letter.csv").exists():
        table = pd.read_csv(folder / "letter.csv")
        X, names = table.iloc[:, 1:].to_numpy(float), table.iloc[:, 0]
    else:
        X, names = fetch_openml(data_id=6, return_X_y=True, as_frame=False)
    y = np.unique(names, return_inverse=True)[1]
    n = 2_000 if quick else len(y)
    return train_test_split(X[:n], y[:n], test_size=1 / 3, stratify=y[:n], random_state=seed)


def simulated_classes(seed, quick):
    n, centres = 2_000 if quick else 15_000, _centres(seed)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n)
    X = centres[y, rng.integers(0, 2, n)] + rng.normal(size=(n, N_COLUMNS))
    return train_test_split(X, y, test_size=1 / 3, random_state=seed)


def _centres(seed):
    """Two for each class."""
    return SPREAD * np.random.default_rng(1000 + seed).normal(size=(N_CLASSES, 2, N_COLUMNS))


def true_posterior(seed, X):
    """Of the simulated classes."""
    distances = ((X[:, None, None] - _centres(seed)) ** 2).sum(axis=-1)
    return np.exp(log_softmax(logsumexp(-distances / 2, axis=-1), axis=1))


MADE = {
    "made, 200,000 rows, seed 3": made(200_000, 3),
    "made, 200,000 rows, seed 5": made(200_000, 5),
    "made, 300,000 rows, seed 3": made(300_000, 3),
}
TABLES = {"fraud, 100,000 rows": frauds, **MADE, "500 columns": many_columns, "letter": letter,
          "26 simulated classes": simulated_classes}  # fmt: skip


def classifiers(seed, table):
    found = {
        "ScoreClassifier": ScoreClassifier(random_state=seed),
        "HistGradientBoosting": HistGradientBoostingClassifier(
            learning_rate=0.05, l2_regularization=1.0, early_stopping=False, random_state=seed
        ),
    }
    if not absent("xgboost", "pip install xgboost"):
        settings = {"n_estimators": 400, "learning_rate": 0.1, "max_depth": 6} if table in MADE else {"base_score": 0.5}
        found["XGBoost"] = boosting(seed, **settings).set_params(n_jobs=-1)
    return found


def quality(y, proba):
    """Log loss, accuracy and, for two classes, average precision."""
    precision = average_precision_score(y, proba[:, 1]) if proba.shape[1] == 2 else None
    return {"log_loss": log_loss(y, proba), "accuracy": accuracy_score(y, proba.argmax(axis=1)),
            "average_precision": precision}  # fmt: skip


def main():
    options = parse(__doc__, repeats=1)
    warnings.simplefilter("ignore")
    rows = Rows("large_tables", options)

    def add(table, method, seed, found):
        told = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in found.items() if value is not None)
        rows.add(f"{table:<26} {method:<22} {told}", table=table, method=method, seed=seed, **found)

    for table, load in TABLES.items():
        for seed in range(options.repeats):
            try:
                X, X_test, y, y_test = load(seed, options.quick)
            except OSError as error:
                print(f"{table:<26} left out: {error}")
                continue
            for method, model in classifiers(seed, table).items():
                begin, of_all = time.perf_counter(), time.process_time()
                proba = model.fit(X, y).predict_proba(X_test)
                seconds = {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - of_all}
                add(table, method, seed, seconds | quality(y_test, proba))
            if load is simulated_classes:
                add(table, TRUTH, seed, quality(y_test, true_posterior(seed, X_test)))
    rows.write()


if __name__ == "__main__":
    sys.exit(main())
