"""What the benchmarks of mixed tables share: the tables, gaps, learners with and without imputation, parallel tasks."""

import multiprocessing
import os

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from scorefield.data.datasets import data_folder

# Target, rare label and training rows of each table of `mixed/`.
TABLES = {
    "adult": ("income", ">50K", 4000),
    "telco-churn": ("Churn", "Yes", 3000),
    "default": ("default", "Yes", 5000),
    "titanic": ("Survived", 1, 500),
    "penguins": ("species", "Chinstrap", 250),
}
SET_ASIDE = ("customerID", "PassengerId", "Name", "Ticket", "Cabin")  # for the peers; ours sets them aside itself


def load_mixed(name):
    """A raw table without its ids, and flags of its rare class."""
    folder = data_folder()
    if folder is None or not (folder / "mixed" / f"{name}.csv").exists():
        raise SystemExit("Expected the mixed tables in the folder mixed of SCOREFIELD_DATA, got none; set it.")
    table = pd.read_csv(folder / "mixed" / f"{name}.csv", skipinitialspace=True)
    if "TotalCharges" in table:  # blank where there are no charges yet
        table["TotalCharges"] = pd.to_numeric(table["TotalCharges"], errors="coerce")
    target, rare, _ = TABLES[name]
    y = (table[target] == rare).astype(int).to_numpy()
    return table.drop(columns=[target, *(name for name in SET_ASIDE if name in table)]), y


def is_text(frame):
    return [name for name in frame if frame[name].dtype.kind not in "iufb"]


def as_codes(frame, *more):
    """Frames with text as codes from the levels of all of them, for trees; gaps are NaN."""
    whole = pd.concat([frame, *more])
    result = []
    for part in (frame, *more):
        part = part.copy()
        for name in is_text(frame):
            levels = sorted(whole[name].dropna().unique())
            codes = pd.Categorical(part[name], categories=levels).codes.astype(float)
            part[name] = np.where(codes < 0, np.nan, codes)
        result.append(part.astype(float))
    return result


def boosting(frame, seed=0):
    """Gradient boosting that takes gaps as they are, and codes of text as categories."""
    return HistGradientBoostingClassifier(categorical_features=is_text(frame) or None, random_state=seed)


def with_imputation(learner, iterative):
    """A learner after imputation of numbers and one-hot columns of text."""
    numbers = IterativeImputer(max_iter=5, random_state=0) if iterative else SimpleImputer()
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer(
        (make_pipeline(numbers, StandardScaler()), make_column_selector(dtype_include="number")),
        (text, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, learner)


def forest(seed=0):
    return RandomForestClassifier(500, random_state=seed)


def logistic():
    return LogisticRegression(max_iter=2000)


def with_gaps(frame, y, share, by_label, rng):
    """The frame with a share of its cells removed: at random, or three times as often in rows of the rare class."""
    rate = np.full(len(frame), share)
    if by_label:
        rate = np.where(y == 1, 3.0, 1.0) * share / np.mean(np.where(y == 1, 3.0, 1.0))
    gone = rng.random(frame.shape) < np.minimum(rate, 0.9)[:, None]
    return frame.mask(gone)


def encode_ordinal(frame):
    """Codes for text and the most frequent level for its gaps; medians for gaps in numbers."""
    text = is_text(frame)
    filled = frame.copy()
    for name in frame:
        filled[name] = frame[name].fillna(frame[name].mode()[0] if name in text else frame[name].median())
    encoder = OrdinalEncoder()
    if text:
        filled[text] = encoder.fit_transform(filled[text])
    return filled.astype(float), encoder, text


def parallel(task, arguments, jobs):
    """Results of a task for each tuple of arguments, in processes of one thread each."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    if jobs == 1:
        yield from (task(argument) for argument in arguments)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(task, arguments)
