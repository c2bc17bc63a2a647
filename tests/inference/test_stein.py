"""The kernel Stein test and the gains of denoising, on Gaussians whose fields are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

from scorefield.inference.score_gain import denoising_gains, fit_gaussian_scores
from scorefield.inference.stein import overlap_kernel, stein_kernel, stein_test


def p_values(rng, scores, n_rows=60, n_tables=200, d=2, n_bootstrap=200):
    """p-values of tables of N(0, I) against a field."""
    tables = rng.normal(size=(n_tables, n_rows, d))
    return np.array([
        stein_test(rng, stein_kernel(rows, scores(rows)), n_bootstrap=n_bootstrap).p_value for rows in tables
    ])  # fmt: skip


def test_a_true_field_is_rejected_one_time_in_twenty(rng):
    rejected = int((p_values(rng, lambda rows: -rows) < 0.05).sum())
    low, high = binom.ppf([0.001, 0.999], 200, 0.05)
    assert low <= rejected <= high


@pytest.mark.parametrize(
    "wrong",
    [lambda rows: 0.5 - rows, lambda rows: -2 * rows, lambda rows: -rows @ np.linalg.inv([[1, 0.7], [0.7, 1]])],
    ids=["mean", "variance", "correlation"],
)
def test_a_wrong_field_is_rejected(rng, wrong):
    assert (p_values(rng, wrong, n_rows=150, n_tables=20) < 0.05).mean() > 0.9


def test_few_rows_have_little_power(rng):
    """A mean that is off by a quarter of the deviation: found in 500 rows, mostly missed in 30."""
    powers = [(p_values(rng, lambda x: 0.25 - x, n, 40, d=1) < 0.05).mean() for n in (30, 500)]
    assert powers[0] < 0.5 < 0.9 < powers[1]


def test_the_kernel_agrees_with_automatic_differentiation(rng):
    """Each pair by its definition, with unknown numbers and codes."""
    x, s = rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    known, codes = rng.random((7, 3)) < 0.7, rng.integers(0, 2, (7, 2))
    found = stein_kernel(x, s, known=known, codes=codes)
    filled, scores = np.where(known, x, 0.0), np.where(known, s, 0.0)
    squares = np.sum((filled[:, None] - filled) ** 2, axis=2)
    scale = np.median(squares[~np.eye(7, dtype=bool)])
    kernel = lambda a, b: (1 + jnp.sum((a - b) ** 2) / scale) ** -0.5  # noqa: E731

    def pair(a, b, s_a, s_b, both):
        ahead, behind = jax.grad(kernel, 0)(a, b) * both, jax.grad(kernel, 1)(a, b) * both
        cross = jnp.sum(jnp.diag(jax.jacfwd(jax.grad(kernel, 0), 1)(a, b)) * both)
        return s_a @ s_b * kernel(a, b) + s_a @ behind + s_b @ ahead + cross

    i, j = np.indices((7, 7)).reshape(2, -1)
    with jax.enable_x64(True):
        pairs = np.asarray(jax.jit(jax.vmap(pair))(filled[i], filled[j], scores[i], scores[j], known[i] & known[j]))
    np.testing.assert_allclose(found, pairs.reshape(7, 7) * overlap_kernel(codes), atol=1e-10)


def mixed_rows(rng, n):
    """A number whose mean is that of its category, with gaps, and a second one that goes with it."""
    codes = rng.integers(0, 2, (n, 1))
    first = 2.0 * codes[:, 0] + rng.normal(size=n)
    numbers = np.column_stack([first, 0.8 * first + 0.6 * rng.normal(size=n)])
    return numbers, rng.random((n, 2)) < 0.8, codes


def mixed_scores(numbers, known, codes, shift=2.0):
    """The field given the category and the known numbers, in closed form; the covariance is (1, .8; .8, 1)."""
    mean = shift * codes[:, 0]
    gaussian = fit_gaussian_scores(np.zeros((2, 2)), np.ones((2, 2), bool), np.zeros(2, int), 1, [[1, 0.8], [0.8, 1.0]])
    return gaussian(numbers - np.column_stack([mean, 0.8 * mean]), known, np.zeros(len(numbers), int))


def test_mixed_rows_with_gaps(rng):
    """Level of the true field; a field that ignores the category is rejected."""
    rejected = {"true": 0, "wrong": 0}
    for _ in range(60):
        numbers, known, codes = mixed_rows(rng, 100)
        for name, shift in (("true", 2.0), ("wrong", 0.0)):
            scores = mixed_scores(numbers - (1.0 if name == "wrong" else 0.0), known, codes, shift)
            kernel = stein_kernel(numbers, scores, known=known, codes=codes)
            rejected[name] += stein_test(rng, kernel, n_bootstrap=200).p_value < 0.05
    assert rejected["true"] <= binom.ppf(0.999, 60, 0.05)
    assert rejected["wrong"] > 54


def test_gains_of_gaussian_fields_have_a_closed_form(rng):
    """N(0, S) with noise C = sigma^2 I: the best field gains tr(C (S + C)^-1) / 2, half of it a quarter less."""
    truth, sigma = np.array([[1.0, 0.6], [0.6, 0.5]]), 0.4
    numbers = rng.multivariate_normal([0, 0], truth, size=20000)
    precision = np.linalg.inv(truth + sigma**2 * np.eye(2))
    fields = [lambda x: -x @ precision, lambda x: -0.5 * x @ precision, np.zeros_like]
    known = np.ones(numbers.shape, bool)
    gains = denoising_gains(rng, fields, numbers, known, sigma * np.eye(2))
    best = 0.5 * sigma**2 * np.trace(precision)
    errors = gains.std(axis=0) / np.sqrt(len(gains))
    np.testing.assert_allclose(gains.mean(axis=0)[:2], [best, 0.75 * best], atol=4 * errors[:2].max())
    assert np.all(gains[:, 2] == 0)
    fitted = fit_gaussian_scores(numbers, known, np.zeros(len(numbers), int), 1, sigma**2 * np.eye(2))
    own = fitted(numbers[:50], known[:50], np.zeros(50, int))
    np.testing.assert_allclose(own, -numbers[:50] @ precision, atol=0.15)


def test_gains_are_found_with_next_to_no_noise(rng):
    """In units of the noise's variance; the loss of no field would swallow them in single precision."""
    numbers = rng.normal(size=(4000, 3))
    gains = denoising_gains(rng, [lambda x: -x], numbers, np.ones(numbers.shape, bool), 1e-3 * np.eye(3))[:, 0] / 1e-6
    assert abs(gains.mean() - 1.5) < 4 * gains.std() / np.sqrt(len(gains))


def test_columns_that_nearly_agree_and_have_gaps(rng):
    """The variance across them is a hundredth of that along them; the field of complete rows is found all the same."""
    truth = np.array([[1.0, 0.98], [0.98, 1.0]])
    numbers = rng.multivariate_normal([0, 0], truth, size=2000)
    known = rng.random(numbers.shape) < 0.7
    found = fit_gaussian_scores(numbers, known, np.zeros(len(numbers), int), 1, np.zeros((2, 2))).covariance
    across, along = np.linalg.eigvalsh(found)
    n = known.all(axis=1).sum()
    assert abs(across / 0.02 - 1) < 4 * np.sqrt(2 / n)
    assert abs(along / 1.98 - 1) < 4 * np.sqrt(2 / n)


def test_a_field_that_was_learned_from_as_many_rows_is_not_rejected(rng):
    """Without the allowance for their sampling error, it is rejected too often."""
    rejected = {"with": 0, "without": 0}
    for _ in range(150):
        learned, rows = rng.normal(size=(2, 80, 2))
        mean, covariance = learned.mean(axis=0), np.cov(learned.T)
        kernel = stein_kernel(rows, (mean - rows) @ np.linalg.inv(covariance))
        rejected["with"] += stein_test(rng, kernel, n_learned=80, n_bootstrap=200).p_value < 0.05
        rejected["without"] += stein_test(rng, kernel, n_bootstrap=200).p_value < 0.05
    most = binom.ppf(0.999, 150, 0.05)
    assert rejected["with"] <= most < rejected["without"]
