"""How a learner is taught: where its weights go, and what to do where it splits its rows itself.

New rows are children of real ones, and stand there once for each class: a split at random would have relatives on both
sides. Learners are given splits whose test parts are real rows without relatives in the training part.
"""

import inspect
from numbers import Real

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import (
    StratifiedShuffleSplit,
    TunedThresholdClassifierCV,
    check_cv,
    train_test_split,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from scorefield._jax.errors import warn_caller

BY_SPLITS = (LogisticRegressionCV, TunedThresholdClassifierCV, CalibratedClassifierCV)
STOPS_ABOVE = 10_000  # rows from which HistGradientBoostingClassifier(early_stopping="auto") stops early


def is_search(estimator):
    """True for scikit-learn's searches over parameters, whose common base has no public name."""
    return _has_base(estimator, "BaseSearchCV")


def _has_base(estimator, name):
    return any(base.__name__ == name for base in type(estimator).__mro__)


def last_step(estimator):
    """The estimator, or the last one of a pipeline."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def weight_argument(estimator):
    """The name by which `fit` of an estimator or a pipeline takes weights; None where it takes none."""
    prefix = ""
    while isinstance(estimator, Pipeline) or is_search(estimator):
        if isinstance(estimator, Pipeline):
            name, estimator = estimator.steps[-1]
            prefix += f"{name}__"
        else:
            estimator = estimator.estimator
    return f"{prefix}sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def is_linear(estimator):
    """True for scikit-learn's linear classifiers, also at the end of a pipeline or within a search."""
    inner = last_step(estimator)
    while is_search(inner) or isinstance(inner, CalibratedClassifierCV | TunedThresholdClassifierCV):
        inner = last_step(inner.estimator)
    return _has_base(inner, "LinearClassifierMixin")


def weight_of_new(estimator, n_real, lesson):
    """Weight of a new row of a `Lesson` beside a real one.

    The new rows of a linear learner weigh as much in all as the real ones at most: it has one surface for all rows, and
    would give up rows that are there for rows that may be.
    """
    return min(1.0, n_real / (lesson.rows[-1] + 1)) if is_linear(estimator) else 1.0


def _stops_early(learner, n_rows):
    """Whether a learner holds out rows of its own to stop by."""
    params = learner.get_params(deep=False) if hasattr(learner, "get_params") else {}
    if params.get("validation_fraction") is None:
        return False
    if "early_stopping" not in params:
        return params.get("n_iter_no_change") is not None
    asked = params["early_stopping"]
    return n_rows > STOPS_ABOVE if isinstance(asked, str) else bool(asked)


def held_out_rows(student, codes, seed):
    """Places of real rows that a boosted student stops early by instead of rows of its own; none where it does not.

    The student is set to what it would have done with the real rows alone; others that stop early are warned of.
    """
    learner, none = last_step(student), np.zeros(0, np.intp)
    stops = _stops_early(learner, len(codes))
    if not isinstance(learner, HistGradientBoostingClassifier):
        if stops:
            warn_caller(
                f"{type(learner).__name__} holds out rows to stop early, among them children of rows that it learns "
                "from, so that it may stop late; switch its early stopping off."
            )
        return none
    takes_rows = learner is student and "X_val" in inspect.signature(learner.fit).parameters
    learner.set_params(early_stopping=bool(stops and takes_rows))
    if stops and not takes_rows:
        warn_caller(
            "Early stopping of HistGradientBoostingClassifier is switched off within a pipeline and before "
            "scikit-learn 1.7: it would hold out children of rows that it learns from. Choose its max_iter."
        )
    if not (stops and takes_rows):
        return none
    stratify = codes if np.bincount(codes).min() > 1 else None
    share = learner.validation_fraction
    return np.sort(train_test_split(np.arange(len(codes)), test_size=share, stratify=stratify, random_state=seed)[1])


def give_own_splits(student, y, parents, n_real, seed):
    """Replace the cross-validation of a student by splits into real rows and rows without relatives among them.

    `y` are the labels of the real rows, `parents` the place of the real row that each row of its table comes from; the
    first `n_real` rows of the table are real.
    """
    learner = last_step(student)
    if not hasattr(learner, "get_params"):
        return
    cv = learner.get_params(deep=False).get("cv", "none")
    inner = [name for name in student.get_params() if name.endswith("__cv") and _part(student, name) is not learner]
    calibrated = isinstance(learner, CalibratedClassifierCV)
    by_splits = is_search(learner) or isinstance(learner, BY_SPLITS)
    if inner or (cv != "none" and (not by_splits or (calibrated and learner.ensemble is False))):
        warn_caller(
            f"{type(learner).__name__} splits the rows that it is taught, and children of one row may lie on both "
            "sides, which flatters what it is tuned or calibrated by; teach the learner itself, and tune outside."
        )
        return
    if isinstance(cv, str):
        return
    n = len(y)
    if isinstance(cv, Real) and not isinstance(cv, int):
        splitter = StratifiedShuffleSplit(1, test_size=cv, random_state=seed)
    else:
        splitter = check_cv(cv, y, classifier=True)
    splits = []
    for kept, held in splitter.split(np.zeros((n, 1)), y):
        splits.append((np.flatnonzero(np.isin(parents, kept)), np.flatnonzero(np.isin(parents[:n_real], held))))
    learner.set_params(cv=splits)


def _part(estimator, name):
    """The estimator that a nested parameter belongs to."""
    owner = name.rpartition("__")[0]
    return estimator.get_params()[owner]
