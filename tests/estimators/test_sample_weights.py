"""A row's weight counts rows: in moments where a closed form exists, in the loss elsewhere, on both kinds of table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture as SklearnMixture
from sklearn.neighbors import KernelDensity
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data

from scorefield import ScoreClassifier, ScoreDensity
from scorefield.data.row_weights import MOST_COPIES, counted
from scorefield.models.mixture_fitting import fit_mixture

LIGHT = {"max_steps": 100, "hidden": (8, 8), "random_state": 0}
MODELS = ("gaussian", "mixture", "kernel", "energy", "mlp", "diffusion", "auto")
SLOW = [pytest.param(model, marks=pytest.mark.slow) for model in MODELS if model not in ("gaussian", "energy")]


@pytest.fixture
def table(rng):
    """Skewed rows, in which weights by the first column move every moment."""
    return np.column_stack([rng.gamma(2.0, size=60), rng.normal(size=60)])


def mixed_frame(rng, n=60):
    income = rng.gamma(2.0, size=n)
    income[::7] = np.nan
    return pd.DataFrame({"income": income, "town": rng.choice(["Oslo", "Rome", "Lima"], n)})


@pytest.mark.parametrize("model", ["gaussian", "energy", *SLOW])
def test_whole_weights_are_repeated_rows_in_any_order(rng, table, model):
    counts = rng.integers(0, 4, len(table))
    order = rng.permutation(len(table))
    weighted = ScoreDensity(model, **LIGHT).fit(table[order], sample_weight=counts[order])
    repeated = ScoreDensity(model, **LIGHT).fit(np.repeat(table, counts, axis=0))
    np.testing.assert_array_equal(weighted.score_samples(table), repeated.score_samples(table))
    np.testing.assert_array_equal(weighted.sample(5), repeated.sample(5))
    plain = ScoreDensity(model, **LIGHT).fit(table)
    assert not np.array_equal(plain.score_samples(table), weighted.score_samples(table))


@pytest.mark.slow
def test_whole_weights_are_repeated_rows_of_mixed_tables(rng):
    frame = mixed_frame(rng)
    counts = rng.integers(0, 4, len(frame))
    order = rng.permutation(len(frame))
    weighted = ScoreDensity(**LIGHT).fit(frame.iloc[order], sample_weight=counts[order])
    repeated = ScoreDensity(**LIGHT).fit(frame.iloc[np.repeat(np.arange(len(frame)), counts)])
    np.testing.assert_array_equal(weighted.score_samples(frame), repeated.score_samples(frame))


def test_a_gaussian_has_the_weighted_moments(rng, table):
    weights = rng.uniform(0.1, 1.0, len(table))
    density = ScoreDensity("gaussian", noise=0.0, **LIGHT).fit(table, sample_weight=weights)
    mean = np.average(table, axis=0, weights=weights)
    precision = np.linalg.inv(np.cov(table.T, aweights=weights, bias=True))
    np.testing.assert_allclose(density.grad_log_density(table), (mean - table) @ precision, rtol=1e-3, atol=1e-4)


def test_mixture_with_fractions_is_near_the_one_of_repeated_rows(rng):
    # A fraction of a third for each of three copies is the row itself: the likelihood has the same maximum.
    rows = np.concatenate([rng.normal(-3, 1, (80, 2)), rng.normal(3, 0.5, (40, 2))])
    weights = np.repeat([0.25, 1.0], [80, 40])
    found = fit_mixture(np.random.default_rng(0), rows, weights=weights)
    shares = np.sort(np.asarray(found.weights))
    np.testing.assert_allclose(shares, [1 / 3, 2 / 3], atol=1e-3)


@pytest.mark.parametrize("model", ["kernel", pytest.param("energy", marks=pytest.mark.slow)])
def test_fractions_move_the_density_where_they_are_large(rng, model):
    rows = rng.normal(size=(120, 1)) * 0.5 + np.repeat([[-2.0], [2.0]], 60, axis=0)
    weights = np.repeat([0.25, 0.75], 60)
    options = {**LIGHT, "max_steps": 600}
    plain, weighted = (ScoreDensity(model, **options).fit(rows, sample_weight=w) for w in (None, weights))

    def log_odds(density):
        return np.diff(density.score_samples([[-2.0], [2.0]]))[0]

    assert log_odds(weighted) - log_odds(plain) > np.log(3) / 2


@pytest.mark.parametrize("anchor", ["gaussian", "counting"])
def test_anchors_of_the_paper_count_weights(table, anchor):
    weights = np.where(table[:, 0] > np.median(table[:, 0]), 1.0, 0.3)
    options = {"model": "gaussian", "anchor": anchor, "anchor_radius": 1.0, **LIGHT}
    weighted = ScoreDensity(**options).fit(table, sample_weight=weights)
    at_weighted_mean = weighted.model_.mean
    np.testing.assert_allclose(at_weighted_mean, np.average(table, axis=0, weights=weights))
    if anchor == "counting":
        assert weighted.anchor_size_ < ScoreDensity(**options).fit(table).anchor_size_


def test_weights_become_copies_and_what_remains_of_them():
    index, remains = counted([0.0, 1.0, 3.0, 2.5])
    np.testing.assert_array_equal(index, [1, 2, 2, 2, 3, 3, 3])
    np.testing.assert_allclose(remains * 6.5 / 7, [1, 1, 1, 1, 2.5 / 3, 2.5 / 3, 2.5 / 3])
    assert counted([2, 1])[1] is None
    index, remains = counted(np.array([1.0, 3.0]) * MOST_COPIES)
    np.testing.assert_array_equal(index, [0, 1])
    np.testing.assert_allclose(remains, [0.5, 1.5])
    with pytest.raises(ValueError, match="positive sample weight"):
        counted(np.zeros(3))


def test_a_density_without_weights_of_its_own_sees_rows_drawn_by_them(rng):
    X = np.concatenate([rng.normal(-2, 1, (100, 2)), rng.normal(2, 1, (100, 2))])
    y = np.repeat(["left", "right"], 100)
    weights = rng.uniform(0.1, 1.0, 200)
    weights[X[:, 0] > 2.5] = 1e-9
    for density in (SklearnMixture(random_state=0), KernelDensity(), ScoreDensity("gaussian")):
        model = ScoreClassifier(density, calibration=None, random_state=0).fit(X, y, sample_weight=weights)
        right = model.densities_[1]
        plain = ScoreClassifier(density, calibration=None, random_state=0).fit(X, y).densities_[1]
        far = np.array([[4.0, 2.0]])
        assert right.score_samples(far) < plain.score_samples(far) - 0.5


def test_equivalence_holds_for_classifiers_of_mixtures():
    estimator = ScoreClassifier(ScoreDensity("mixture", **LIGHT), random_state=0)
    check_sample_weight_equivalence_on_dense_data("ScoreClassifier", estimator)
