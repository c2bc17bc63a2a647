"""Bayes' rule, posterior fields (App. A), Newton's boundary and the Gaussian theory (App. B)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from scorefield._jax.pytrees import pytree
from scorefield.fields.base import Field
from scorefield.fields.gaussian import fit_gaussian
from scorefield.fields.mixtures import mixture
from scorefield.inference.decisions import (
    LinearLogits,
    decide,
    log_softmax_gradient,
    newton_zeros,
    softmax_gradient,
)
from scorefield.inference.two_gaussians import (
    boundary_derivative,
    boundary_equation,
    boundary_roots_1d,
    log_constant,
    misclassification_probability,
)


def logistic_logits(coefficients, intercept):
    """Logits of p(1|x) = 1 / (1 + exp(-(intercept + coefficients' x)))."""
    columns = np.stack([np.zeros(len(coefficients)), coefficients], axis=1)
    return LinearLogits(jnp.asarray(columns, jnp.float32), jnp.array([0.0, intercept]))


@pytree
class LogRatio:
    """x -> log p1(x) - log p0(x) + log_odds - margin: the paper's gamma(x), zero on the boundary."""

    first: Field
    second: Field
    log_odds: float = 0.0
    margin: float = 0.0

    def __call__(self, x):
        return self.second.potential(x) - self.first.potential(x) + self.log_odds - self.margin


PAPER_1D = logistic_logits([3.5], -0.1)


def test_decide():
    proba = np.array([[0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.05, 0.95]])
    logs = np.log(proba)
    np.testing.assert_array_equal(decide(logs), [0, 1, 1, 1])
    # Margin gamma_0 on the log odds: log 4 < 2 < log 19.
    np.testing.assert_array_equal(decide(logs, margin=2.0), [0, 0, 0, 1])
    np.testing.assert_array_equal(decide(logs, margin=np.log(4) - 1e-9), [0, 0, 1, 1])
    # A missed positive costs three: predict 1 where 3 p1 >= p0.
    np.testing.assert_array_equal(decide(logs, costs=[[0, 1], [3, 0]]), [1, 1, 1, 1])
    np.testing.assert_array_equal(decide(logs, costs=[[0, 10], [1, 0]]), [0, 0, 0, 1])
    three = np.log([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])
    np.testing.assert_array_equal(decide(three), [0, 2])
    costs = np.array([[0, 1, 1], [1, 0, 1], [9, 9, 0]])
    np.testing.assert_array_equal(decide(three, costs=costs), np.argmin(np.exp(three) @ costs, axis=1))


def test_logistic_posterior_equals_appendix_a(key):
    """s0 = -t / (1 + e^-f), s1 = t e^-f / (1 + e^-f), and the sums, differences and ratios of App. A."""
    theta, intercept = np.array([1.73, 2.0]), -6.17
    logits = logistic_logits(theta, intercept)
    for x in np.asarray(jax.random.normal(key, (5, 2))) + 1.5:
        f = intercept + theta @ x
        point = jnp.asarray(x)
        s0, s1 = (np.asarray(log_softmax_gradient(logits, point, label)) for label in (0, 1))
        np.testing.assert_allclose(s0, -theta / (1 + np.exp(-f)), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(s1, theta * np.exp(-f) / (1 + np.exp(-f)), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(s0 - s1, -theta, rtol=1e-4)
        np.testing.assert_allclose(s0 + s1, -theta * (1 - np.exp(-f)) / (1 + np.exp(-f)), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(s0 / s1, -np.exp(f), rtol=1e-3)
        gradient = np.asarray(softmax_gradient(logits, point, 0))
        np.testing.assert_allclose(gradient, -theta / ((1 + np.exp(f)) * (1 + np.exp(-f))), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(softmax_gradient(logits, point, 1), -gradient, rtol=1e-4, atol=1e-6)


def test_general_binary_posterior_equals_appendix_a():
    """Eq:binary_density_score_func for nonlinear f0, f1 with p(y=j|x) proportional to exp(-f_j)."""

    def energies(x):
        return jnp.array([jnp.sum(x**2), jnp.sin(x[0]) + x[1]])

    x = jnp.array([0.3, -0.8])
    f0, f1 = np.asarray(energies(x))
    d0, d1 = np.asarray(jax.jacfwd(energies)(x))
    total = np.exp(-f0) + np.exp(-f1)
    logits = lambda z: -energies(z)  # noqa: E731
    np.testing.assert_allclose(log_softmax_gradient(logits, x, 0), (d1 - d0) * np.exp(-f1) / total, rtol=1e-5)
    np.testing.assert_allclose(log_softmax_gradient(logits, x, 1), (d0 - d1) * np.exp(-f0) / total, rtol=1e-5)
    expected = (d1 - d0) / ((1 + np.exp(f0 - f1)) * (1 + np.exp(f1 - f0)))
    np.testing.assert_allclose(softmax_gradient(logits, x, 0), expected, rtol=1e-5)


def test_softmax_posterior():
    """s_j = w_j - sum_k p_k w_k for softmax regression."""
    weights = jnp.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]])
    logits = LinearLogits(weights, jnp.array([0.1, -0.2, 0.0]))
    x = jnp.array([0.5, 1.5])
    proba = jax.nn.softmax(logits(x))
    for label in range(3):
        expected = weights[:, label] - weights @ proba
        np.testing.assert_allclose(log_softmax_gradient(logits, x, label), expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(softmax_gradient(logits, x, label), proba[label] * expected, rtol=1e-4, atol=1e-6)


@pytree
class LogitGap:
    logits: LinearLogits

    def __call__(self, x):
        values = self.logits(x)
        return values[1] - values[0]


def test_paper_logistic_1d_boundary():
    """theta = (-0.1, 3.5): the boundary is x = 0.1 / 3.5 = 0.03, one Newton step from anywhere."""
    found = newton_zeros(LogitGap(PAPER_1D), [[-3.0], [0.0], [5.0]])
    np.testing.assert_allclose(found.points[:, 0], 0.1 / 3.5, atol=1e-5)
    assert round(float(found.points[0, 0]), 2) == 0.03
    assert found.converged.all()
    assert found.n_iter.max() <= 3


def test_boundary_of_the_paper_classes(key, paper_classes):
    """Points on the quadratic boundary of the 2-D classes; App. B's equation vanishes there, elsewhere it does not."""
    class0, class1 = paper_classes
    ratio = LogRatio(class0, class1)
    starts = np.asarray(jax.random.uniform(key, (50, 2), minval=-2.0, maxval=6.0))
    found = newton_zeros(ratio, starts, tol=1e-4)
    assert found.converged.all()
    moments = (class0.means[0], class0.covariances[0], class1.means[0], class1.covariances[0])
    np.testing.assert_allclose(boundary_equation(found.points, *moments), 0, atol=1e-3)
    assert np.abs(boundary_equation(starts, *moments)).max() > 1
    shifted = newton_zeros(LogRatio(class0, class1, log_odds=1.0, margin=1.0), starts, tol=1e-4)
    np.testing.assert_allclose(shifted.points, found.points, atol=1e-3)  # odds and margin cancel


@pytree
class NoRoot:
    def __call__(self, x):
        return 1.0 + jnp.sum(x**2)


def test_boundary_that_does_not_exist_is_reported():
    found = newton_zeros(NoRoot(), [[1.0, 1.0], [0.0, 0.0]], max_iter=20)
    assert not found.converged.any()
    assert (found.residual >= 1).all()
    assert np.isfinite(found.points).all()
    assert found.n_iter[1] == 0  # a zero gradient gives no direction


@pytree
class Kink:
    """arctan: plain Newton overshoots from far away and diverges; halving brings it home."""

    def __call__(self, x):
        return jnp.arctan(x[0])


def test_damping():
    found = newton_zeros(Kink(), [[5.0], [-20.0]])
    assert found.converged.all()
    np.testing.assert_allclose(found.points, 0, atol=1e-5)


def test_boundary_equation_and_derivative(rng):
    m0, m1 = rng.normal(size=3), rng.normal(size=3) + 1
    factors = rng.normal(size=(2, 3, 3))
    s0, s1 = factors @ factors.transpose(0, 2, 1) + 0.5 * np.eye(3)
    rows = rng.normal(size=(6, 3))
    p0, p1 = mixture([1], [m0], [s0]), mixture([1], [m1], [s1])
    expected = [float(p1.potential(jnp.asarray(x)) - p0.potential(jnp.asarray(x))) for x in rows.astype(np.float32)]
    np.testing.assert_allclose(boundary_equation(rows, m0, s0, m1, s1), expected, rtol=1e-3, atol=1e-3)
    scores = [np.asarray(p1(jnp.asarray(x)) - p0(jnp.asarray(x))) for x in rows.astype(np.float32)]
    np.testing.assert_allclose(boundary_derivative(rows, m0, s0, m1, s1), scores, rtol=1e-3, atol=1e-3)
    zero = boundary_equation(np.zeros(3), m0, s0, m1, s1)[0]
    assert abs(zero - log_constant(m0, s0, m1, s1)) < 1e-9


def test_roots_1d():
    np.testing.assert_allclose(boundary_roots_1d(-2, 1, 2, 1), [0])
    roots = boundary_roots_1d(0, 1, 1, 2)
    densities = [norm(0, 1).pdf(roots), norm(1, 2).pdf(roots)]
    assert len(roots) == 2
    np.testing.assert_allclose(*densities, rtol=1e-9)
    # The paper's points leave out log(sd0 / sd1): there the densities differ.
    paper = np.array([(1 * 1 - 0 * 2) / (1 - 2), (1 * 1 + 0 * 2) / (1 + 2)])
    assert np.abs(norm(0, 1).pdf(paper) / norm(1, 2).pdf(paper) - 1).min() > 0.5
    assert len(boundary_roots_1d(0, 1, 0, 1)) == 0
    assert len(boundary_roots_1d(0, 2, 0, 1, log_odds=-10)) == 0
    np.testing.assert_allclose(boundary_roots_1d(0, 1, 0, 2)[0], -boundary_roots_1d(0, 1, 0, 2)[1])
    odds = boundary_roots_1d(-1, 1, 1, 1, log_odds=0.5)
    np.testing.assert_allclose(np.exp(0.5) * norm(1, 1).pdf(odds), norm(-1, 1).pdf(odds))


def test_misclassification_probability(rng):
    equal = misclassification_probability([-2], [[1]], [2], [[1]])
    np.testing.assert_allclose(equal, norm.cdf(-2), rtol=1e-6)
    covariance = np.array([[1.0, 0.5], [0.5, 2.0]])
    delta = np.array([1.0, 2.0])
    distance = np.sqrt(delta @ np.linalg.solve(covariance, delta))
    both = misclassification_probability([0, 0], covariance, delta, covariance)
    np.testing.assert_allclose(both, norm.cdf(-distance / 2), rtol=1e-6)
    low, high = boundary_roots_1d(0, 1, 1, 2)
    unequal = misclassification_probability(0, 1, 1, 4)
    expected = (1 - norm.cdf(high) + norm.cdf(low), norm(1, 2).cdf(high) - norm(1, 2).cdf(low))
    np.testing.assert_allclose(unequal, expected, atol=1e-6)
    m1, s0, s1 = [1.0, 1.0], np.array([[1.0, -0.5], [-0.5, 1.0]]), np.array([[1.0, 0.5], [0.5, 1.0]])
    exact = misclassification_probability([0, 0], s0, m1, s1, log_odds=-1.0)
    n = 200_000
    wrong0 = boundary_equation(rng.multivariate_normal([0, 0], s0, n), [0, 0], s0, m1, s1) - 1 >= 0
    wrong1 = boundary_equation(rng.multivariate_normal(m1, s1, n), [0, 0], s0, m1, s1) - 1 < 0
    for wrong, probability in zip((wrong0, wrong1), exact, strict=True):
        error = np.sqrt(probability * (1 - probability) / n)
        assert abs(wrong.mean() - probability) < 4 * error
        assert abs(wrong.mean() - 2 * probability) > 4 * error  # negative control


def test_linear_field_boundary_is_near_zero(rng):
    """The paper's linear 1-D example: two fitted Gaussians, Newton's boundary near 0 (the paper found 0.017)."""
    fields = [fit_gaussian(rng.normal(mean, 1, size=(1000, 1))) for mean in (-2, 2)]
    found = newton_zeros(LogRatio(*fields), [[1.0]], tol=1e-4)
    assert found.converged.all()
    # Errors of the two means move it by .022 and those of the two variances by .024: four standard errors are .13.
    assert abs(found.points[0, 0]) < 0.13


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decide(np.zeros(3)), "shape"),
        (lambda: decide(np.zeros((3, 2)), margin=-1), "margin >= 0"),
        (lambda: decide(np.zeros((3, 2)), costs=np.zeros((3, 3))), "costs of shape"),
        (lambda: decide(np.zeros((3, 2)), costs=[[1, 0], [0, 1]]), "transposed"),
        (lambda: newton_zeros(NoRoot(), [[0.0]], tol=0), "tol > 0"),
        (lambda: newton_zeros(NoRoot(), np.zeros((0, 2))), "starts"),
        (lambda: newton_zeros(NoRoot(), [[np.nan]]), "finite"),
        (lambda: boundary_roots_1d(0, -1, 0, 1), "positive"),
        (lambda: log_constant([0, 0], [[1, 2], [2, 1]], [0, 0], np.eye(2)), "positive definite"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
