"""Mixtures fitted by EM against known mixtures, and on rows that have none."""

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from scorefield.fields.gaussian import fit_gaussian
from scorefield.fields.mixtures import mixture
from scorefield.models.mixture_fitting import fit_mixture, most_parts


def log_density(field, rows):
    return np.asarray(jax.vmap(field.potential)(rows.astype(np.float32)), float)


def two_parts():
    return mixture([0.7, 0.3], [[-2.0, 0.0], [2.0, 1.0]], [[[1.0, 0.8], [0.8, 1.0]], [[0.5, -0.3], [-0.3, 0.5]]])


@pytest.mark.parametrize("n", [60, 2000])
def test_the_number_of_parts_and_the_density_are_found(key, n):
    truth = two_parts()
    rng = np.random.default_rng(0)
    found = fit_mixture(rng, truth.exact_rows(rng, n))
    fresh = truth.exact_rows(rng, 4000)
    excess = np.mean(log_density(truth, fresh) - log_density(found, fresh))
    assert len(found.weights) == 2
    assert excess < (0.25 if n == 60 else 0.02)
    assert excess < 0.5 * np.mean(log_density(truth, fresh) - log_density(fit_gaussian(fresh), fresh))  # control


def test_gaussian_rows_have_one_part():
    rng = np.random.default_rng(1)
    for n, d in ((40, 2), (500, 5)):
        assert len(fit_mixture(rng, rng.normal(size=(n, d))).weights) == 1


def test_noise_is_added_to_all_parts():
    rows = two_parts().exact_rows(np.random.default_rng(2), 300)
    plain, noisy = (fit_mixture(np.random.default_rng(3), rows, noise=noise) for noise in (0.0, 0.5))
    np.testing.assert_allclose(noisy.covariances - plain.covariances, np.tile(0.25 * np.eye(2), (2, 1, 1)), atol=1e-4)


def test_units_of_columns_do_not_matter():
    rows = two_parts().exact_rows(np.random.default_rng(6), 300)
    units = np.array([1e-3, 1e5])
    plain, scaled = (fit_mixture(np.random.default_rng(7), rows * own) for own in (1.0, units))
    np.testing.assert_allclose(scaled.means, plain.means * units, rtol=1e-3)
    np.testing.assert_allclose(scaled.covariances, plain.covariances * np.outer(units, units), rtol=1e-2)


def test_exact_rows_follow_the_density():
    truth, rng = two_parts(), np.random.default_rng(4)
    rows, (mean, covariance) = truth.exact_rows(rng, 40_000), truth.moments()
    np.testing.assert_allclose(rows.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.1)
    parts = zip(truth.weights, truth.means, truth.covariances, strict=True)
    expected = sum(float(w) * multivariate_normal(m, c).pdf(rows[:50]) for w, m, c in parts)
    np.testing.assert_allclose(log_density(truth, rows[:50]), np.log(expected), atol=1e-4)


def test_rows_that_are_copies_or_too_few_give_a_regular_mixture():
    rng = np.random.default_rng(5)
    few = rng.normal(size=(12, 3))
    for rows in (few, np.repeat(few, 10, axis=0)):
        found = fit_mixture(rng, rows)
        assert np.isfinite(log_density(found, rows)).all()
        assert np.linalg.eigvalsh(np.asarray(found.covariances, float)).min() > 1e-3
    constant = fit_mixture(rng, np.column_stack([few, np.full(12, 5.0)]), noise=0.01)
    drawn = constant.exact_rows(rng, 200)[:, 3]
    assert np.abs(drawn - 5).max() < 0.06  # noise alone
    with pytest.raises(ValueError, match="constant column 3"):
        fit_mixture(rng, np.column_stack([few, np.full(12, 5.0)]))
    assert most_parts(12, 20) == 0
