"""Warnings point at the user's line, through other packages and threads."""

import concurrent.futures
import pathlib
import warnings

import joblib
import numpy as np
import pytest
from imblearn.pipeline import make_pipeline
from sklearn.model_selection import cross_validate
from sklearn.tree import DecisionTreeClassifier

from scorefield import ScoreOverSampler
from scorefield._jax.errors import warn_caller


def over_sample(X, y):
    ScoreOverSampler(purpose="sharing", random_state=0).fit_resample(X, y)


def in_a_pipeline(X, y):
    make_pipeline(ScoreOverSampler(purpose="sharing", random_state=0), DecisionTreeClassifier()).fit(X, y)


def in_cross_validation(X, y):
    cross_validate(
        make_pipeline(ScoreOverSampler(purpose="sharing", random_state=0), DecisionTreeClassifier()), X, y, cv=2
    )


def in_joblib(X, y):
    joblib.Parallel(n_jobs=1)(
        joblib.delayed(ScoreOverSampler(purpose="sharing", random_state=0).fit_resample)(X, y) for _ in range(1)
    )


@pytest.mark.parametrize("call", [over_sample, in_a_pipeline, in_cross_validation, in_joblib])
def test_a_warning_names_the_line_of_the_user(call):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], [34, 6])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(X, y)
    places = {(warning.filename, warning.lineno) for warning in caught if "rows; a Gaussian" in str(warning.message)}
    first = call.__code__.co_firstlineno
    assert len(places) == 1
    (filename, line), *_ = places
    assert (filename, line) == (__file__, first + 1)


def test_without_a_line_of_the_user_the_library_is_named():
    with warnings.catch_warnings(record=True) as caught, concurrent.futures.ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("always")
        pool.submit(eval, "warn_caller('here')", {"warn_caller": warn_caller, "__name__": "scorefield.x"}).result()
    assert [str(warning.message) for warning in caught] == ["here"]
    assert pathlib.Path(caught[0].filename).name == "<string>"
