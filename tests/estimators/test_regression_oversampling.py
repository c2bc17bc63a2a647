"""Rare ranges of a continuous target: the relevance function, rows that follow their law, containers and errors."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from scorefield import ScoreDensity, ScoreRegressionOverSampler
from scorefield.estimators.regression_oversampling import box_plot_relevance

GAUSSIAN = ScoreDensity("gaussian")


def over(**options):
    return ScoreRegressionOverSampler(**{"density": GAUSSIAN, "random_state": 0, **options})


@pytest.fixture(scope="module")
def linear():
    """y = 3 x0 - x1 + noise, with a long upper tail."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.gamma(0.5, 1, 600), rng.normal(size=600)])
    return X, 3 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=600)


def test_relevance_is_that_of_a_box_plot():
    y = np.concatenate([np.arange(101.0), [300.0, 400.0]])
    relevance = box_plot_relevance(y)
    assert relevance(np.median(y)) == 0
    assert relevance(0.0) == 0  # nothing lies below the lower whisker
    np.testing.assert_allclose(relevance(np.array([100.0, 400.0])), 1)
    steps = relevance(np.linspace(51, 100, 50))
    assert (np.diff(steps) >= 0).all()
    both = box_plot_relevance(np.concatenate([y, [-300.0]]))
    np.testing.assert_allclose(both(np.array([-300.0, 400.0])), 1)
    assert not box_plot_relevance(np.arange(10.0))(np.arange(10.0)).any()


def test_generated_rows_are_rare_and_keep_the_relation(linear):
    X, y = linear
    sampler = over()
    X_more, y_more = sampler.fit_resample(X, y)
    np.testing.assert_array_equal(X_more[:600], X)
    np.testing.assert_array_equal(y_more[:600], y)
    new, target = X_more[sampler.is_synthetic_], y_more[sampler.is_synthetic_]
    rare = y[(sampler.relevance_ >= 0.8) & (y > np.median(y))]
    assert target.min() >= rare.min() - 1e-6
    assert target.max() <= rare.max() + 1e-6
    assert 0.45 < np.mean(y_more > rare.min()) < 0.55
    # The relation holds in rows that no one has seen; columns drawn apart from the target would not keep it.
    residual = target - (3 * new[:, 0] - new[:, 1])
    assert residual.std() < 0.8
    apart = np.random.default_rng(1).permutation(target) - (3 * new[:, 0] - new[:, 1])
    assert apart.std() > 3 * residual.std()


def test_the_share_of_rare_rows_is_as_asked(linear):
    X, y = linear
    sampler = over(sampling_strategy=0.3)
    sampler.fit_resample(X, y)
    rare = sampler.relevance_ >= 0.8
    assert sampler.is_synthetic_.sum() == round(0.3 * (~rare).sum()) - rare.sum()
    low = over(relevance=lambda y: (y < np.quantile(y, 0.1)).astype(float))
    _, y_more = low.fit_resample(X, y)
    assert (y_more[low.is_synthetic_] <= np.quantile(y, 0.1)).all()


@pytest.mark.parametrize("container", [pd.DataFrame, pytest.param(pl.DataFrame, marks=pytest.mark.slow)])
def test_mixed_tables_come_back_as_they_are(linear, container):
    X, y = linear
    rng = np.random.default_rng(0)
    table = container({"x": X[:, 0], "n": rng.integers(0, 40, 600), "c": rng.choice(["u", "v"], 600)})
    sampler = over(density=ScoreDensity(hidden=(16, 16), max_steps=50))
    more, y_more = sampler.fit_resample(table, pd.Series(y, name="price"))
    assert type(more) is container
    assert list(more.columns) == ["x", "n", "c"]
    assert y_more.name == "price"
    assert len(more) == len(y_more)
    assert set(np.unique(np.asarray(more["n"]))) <= set(range(40))


@pytest.mark.slow
def test_whole_numbers_of_an_array_stay_whole(linear):
    X, y = linear
    whole = np.rint(10 * X).astype(np.int32)
    more, _ = over(density=ScoreDensity(hidden=(16, 16), max_steps=50)).fit_resample(whole, y)
    assert more.dtype == np.int32
    assert len(more) > 600


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({}, np.arange(600.0), "none whose relevance"),
        ({"relevance": np.ones_like}, None, "only rare ones"),
        ({"relevance": lambda y: y}, None, r"in \[0, 1\]"),
        ({"relevance": "smart"}, None, "'auto' or a function"),
        ({"sampling_strategy": "all"}, None, "'auto' or a number"),
        ({"threshold": 0.0}, None, "threshold"),
        ({}, np.full(600, np.nan), "target y, got 600 missing"),
        ({}, np.arange(5.0), "inconsistent"),
    ],
)
def test_what_cannot_be_resampled_is_refused(linear, options, y, message):
    with pytest.raises(ValueError, match=message):
        over(**options).fit_resample(linear[0], linear[1] if y is None else y)
