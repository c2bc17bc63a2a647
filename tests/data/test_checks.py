"""Errors about columns and labels: which column, which value, what to do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from scorefield import (
    PriorCorrectedClassifier,
    ScoreClassifier,
    ScoreDensity,
    ScoreFeatures,
    ScoreOverSampler,
    ScoreRegressionOverSampler,
    advise,
)
from scorefield.data.checks import check_labels, check_numbers
from scorefield.paper import LabellingClassifier

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


def targets(values):
    """The same target in each container; None is a missing value."""
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    made = {
        "list": values,
        "objects": np.array(values, dtype=object),
        "pandas": pd.Series(values),
        "category": pd.Series(values, dtype="category"),
        "nullable": pd.Series(values).convert_dtypes(),
        "polars": pl.Series(values),
        "pyarrow": pa.array(values),
        "chunks": pa.chunked_array([values[:7], values[7:]]),
    }
    return made if isinstance(values[0], str) else {**made, "floats": np.array(values, dtype=float)}


@pytest.mark.parametrize("values", [["a", "b"] * 20, [0, 1] * 20], ids=["text", "numbers"])
def test_missing_values_of_the_target_are_called_so(table, values):
    mixed = table.assign(c=["x", "y"] * 20)
    fits = [
        ScoreClassifier().fit,
        ScoreOverSampler().fit_resample,
        ScoreFeatures(per_class=True).fit,
        LabellingClassifier().fit,
        PriorCorrectedClassifier(LogisticRegression()).fit,
        advise,
    ]
    if not isinstance(values[0], str):
        fits.append(ScoreRegressionOverSampler().fit_resample)
    holes = [*values[:12], None, *values[13:30], None, *values[31:]]
    message = "every row of the target y, got 2 missing in 40 rows, the first in row 12; drop these rows or label them"
    for y in targets(holes).values():
        for fit in fits:
            with pytest.raises(ValueError, match=message):
                fit(table, y)
    for fit in (ScoreClassifier().fit, ScoreOverSampler().fit_resample, ScoreFeatures(per_class=True).fit, advise):
        with pytest.raises(ValueError, match=message):
            fit(mixed, holes)
    for y in targets(values).values():
        check_labels(y)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, np.ndarray.tolist], ids=["array", "frame", "lists"])
def test_several_labels_per_row_are_refused(table, form):
    """The error names the way round, which works."""
    several = form(np.column_stack([np.tile([0, 1], 20), np.tile([0, 0, 1, 1], 10)]))
    for fit in (
        ScoreClassifier(GAUSSIAN).fit,
        ScoreOverSampler().fit_resample,
        PriorCorrectedClassifier(LogisticRegression()).fit,
        advise,
    ):
        with pytest.raises(ValueError, match="Expected one label for each row in y, got several"):
            fit(table, several)
    one_each = MultiOutputClassifier(ScoreClassifier(ScoreDensity("gaussian"))).fit(table, np.asarray(several))
    assert one_each.predict(table).shape == (40, 2)


def test_one_column_per_class_passes():
    check_labels(np.eye(3)[[0, 1, 2, 0]])
    check_labels(np.zeros((4, 1)))
    with pytest.raises(ValueError, match="got several"):
        check_labels(np.ones((4, 2)))


@pytest.mark.parametrize("name", ["sample_weight", "groups"])
def test_an_over_sampler_refuses_what_it_would_ignore(table, name):
    with pytest.raises(ValueError, match=f"Expected no {name} in fit_resample.*teacher=FrozenEstimator"):
        ScoreOverSampler().fit_resample(table, [0, 1] * 20, **{name: np.ones(40)})
