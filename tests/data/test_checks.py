"""Errors about columns and labels: which column, which value, what to do."""

import numpy as np
import pandas as pd
import pytest

from scorefield import ScoreClassifier, ScoreDensity, ScoreFeatures, ScoreOverSampler
from scorefield.data.checks import check_numbers

GAUSSIAN = ScoreDensity(model="gaussian")
ESTIMATORS = [ScoreClassifier(GAUSSIAN), GAUSSIAN, ScoreFeatures(GAUSSIAN)]


@pytest.fixture
def table(rng):
    return pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_text_column_is_named(table, estimator):
    y = [0, 1] * 20
    bad = table.assign(b=["1.5"] * 30 + ["w"] * 10)
    message = "Expected numbers in column 'b', got 'w' in row 30; correct it, or encode the column as numbers"
    with pytest.raises(ValueError, match=r"columns that are not numbers \('b'\), got"):
        estimator.fit(bad, y)
    estimator.fit(table, y)
    method = next(name for name in ("predict", "score_samples", "transform") if hasattr(estimator, name))
    with pytest.raises(ValueError, match=message):
        getattr(estimator, method)(bad)


def test_numbers_of_any_dtype_are_numbers(table):
    check_numbers(table)
    check_numbers(table.astype(object))
    check_numbers(table.astype("Float64").mask(table > 1))
    check_numbers(table.astype(str))
    check_numbers(pd.DataFrame({"c": pd.Categorical([1, 2, None]), "b": [True, False, True], "o": [None, 1, np.nan]}))


@pytest.mark.parametrize("value", ["w", [1, 2], np.array([1.0]), {"x": 1}, pd.Timestamp("2020-01-01")])
def test_other_cells_are_not(value):
    with pytest.raises(ValueError, match=r"Expected numbers in column 'c', got .* in row 7"):
        check_numbers(pd.DataFrame({"c": [None, 1.5, value]}, dtype=object), first_row=5)


@pytest.mark.parametrize("kind", [np.array, pd.Series])
def test_labels_of_two_kinds(table, kind):
    y = kind([0, 1] * 10 + ["a", "b"] * 10, dtype=object)
    message = "Expected labels of one kind in y, got text such as 'a' and numbers such as 0; make all of them"
    with pytest.raises(ValueError, match=message):
        ScoreClassifier().fit(table, y)
    with pytest.raises(ValueError, match=message):
        ScoreOverSampler().fit_resample(table, y)
