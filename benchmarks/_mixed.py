"""What the benchmarks of mixed tables share: the tables, gaps, learners with and without imputation, parallel tasks."""

import multiprocessing
import os

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from scorefield.studies.benchmark.mixed_tables import load_raw, one_hot, text_columns

# Rare label and training rows of each table of `mixed/`.
TABLES = {
    "adult": (">50K", 4000),
    "telco-churn": ("Yes", 3000),
    "default": ("Yes", 5000),
    "titanic": (1, 500),
    "penguins": ("Chinstrap", 250),
}


def load_mixed(name):
    """A raw table without its ids, and flags of its rare class."""
    frame, target = load_raw(name)
    return frame, (target == TABLES[name][0]).astype(int).to_numpy()


def as_codes(frame, *more):
    """Frames with text as codes from the levels of all of them, for trees; gaps are NaN."""
    whole = pd.concat([frame, *more])
    result = []
    for part in (frame, *more):
        part = part.copy()
        for name in text_columns(frame):
            levels = sorted(whole[name].dropna().unique())
            codes = pd.Categorical(part[name], categories=levels).codes.astype(float)
            part[name] = np.where(codes < 0, np.nan, codes)
        result.append(part.astype(float))
    return result


def boosting(frame, seed=0):
    """Gradient boosting that takes gaps as they are, and codes of text as categories."""
    return HistGradientBoostingClassifier(categorical_features=text_columns(frame) or None, random_state=seed)


def with_imputation(learner, iterative):
    """A learner after imputation of numbers and one-hot columns of text."""
    return make_pipeline(one_hot(IterativeImputer(max_iter=5, random_state=0) if iterative else None), learner)


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
