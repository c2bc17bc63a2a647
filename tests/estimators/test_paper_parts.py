"""Parts of the paper as parameters of ScoreDensity and public functions, against closed forms."""

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from scorefield import ScoreClassifier, ScoreDensity, find_boundary
from scorefield._jax.batching import map_rows
from scorefield.fields.mixtures import mixture
from scorefield.inference.decisions import expected_costs
from scorefield.inference.line_integrals import line_integral, smooth
from scorefield.paper import TwoGaussians, fisher_divergence


@pytest.fixture
def rows(rng):
    return rng.normal(size=(400, 2))


def test_nodes_of_the_line_integral(rows):
    """Taylor's error falls with the number of nodes; the field is the same in all three fits."""
    quick = {"max_steps": 30, "anchor": "gaussian", "random_state": 0}
    exact, coarse, fine = (
        ScoreDensity("mlp", integrator=rule, n_nodes=n, **quick).fit(rows).score_samples(rows)
        for rule, n in (("gauss-legendre", None), ("taylor", 4), ("taylor", 64))
    )
    errors = [np.abs(found - exact).max() for found in (coarse, fine)]
    assert errors[1] == pytest.approx(errors[0] / 16, rel=0.3)


def test_projections_reach_the_objective(rows):
    losses = [
        ScoreDensity("mlp", objective="sliced", n_projections=n, max_steps=1, random_state=0)
        .fit(rows)
        .history_["held_out_loss"]
        for n in (1, 2)
    ]
    assert losses[0] != losses[1]
    with pytest.raises(ValueError, match="n_projections"):
        ScoreDensity("mlp", objective="sliced", n_projections=0).fit(rows)


def test_monte_carlo_nodes_belong_to_a_row(key):
    """Their errors are those of one node per interval, independent between rows that lie side by side."""
    truth = mixture([0.6, 0.4], [[-2.0, 0.0], [2.0, 1.0]], [0.3 * np.eye(2)] * 2)
    far = np.array([[6.0, 4.0]]) + 1e-4 * np.random.default_rng(0).normal(size=(200, 2))
    origin = np.zeros(2)
    exact = map_rows(line_integral(truth, origin, n_nodes=256), far)
    errors = map_rows(line_integral(truth, origin, rule="monte-carlo", key=key), far) - exact
    slope = np.gradient([float(truth(t * far[0]) @ far[0]) for t in np.linspace(0, 1, 257)], 1 / 256)
    deviation = np.sqrt(np.mean(slope**2) / 12) * 32**-1.5  # of one uniform node in each of 32 intervals
    assert np.std(errors) == pytest.approx(deviation, rel=0.25)
    assert abs(errors.mean()) < 4 * deviation / np.sqrt(200)
    again = map_rows(line_integral(truth, origin, rule="monte-carlo", key=key), far) - exact
    np.testing.assert_array_equal(errors, again)
    shared = [float(truth(t * far[0]) @ far[0]) for t in np.random.default_rng(1).random(32)]
    assert np.std(shared) / np.sqrt(32) > 10 * deviation  # the control: 32 nodes anywhere


@pytest.mark.parametrize("anchor", ["counting", "langevin"])
def test_counting_in_a_ball_of_a_given_radius(rows, anchor):
    """The log density of a Gaussian at its mean, within the error of a count and the curvature in the ball."""
    radius = 0.4
    density = ScoreDensity("gaussian", anchor=anchor, anchor_radius=radius, random_state=0).fit(rows)
    centre = density.score_samples(rows.mean(axis=0, keepdims=True))[0]
    exact = ScoreDensity("gaussian").fit(rows).score_samples(rows.mean(axis=0, keepdims=True))[0]
    assert abs(centre - exact) < 4 / np.sqrt(density.anchor_size_) + radius**2 / 4
    n = 400 if anchor == "counting" else 4096
    share = 1 - np.exp(-(radius**2) / 2)  # of a standard Gaussian in two dimensions
    assert abs(density.anchor_size_ - n * share) < 5 * np.sqrt(n * share)
    other = ScoreDensity("gaussian", anchor=anchor, random_state=0).fit(rows)
    assert other.anchor_size_ != density.anchor_size_


@pytest.mark.parametrize(("kernel", "second_moment"), [("uniform", 5 / 7), ("epanechnikov", 5 / 9)])
def test_smoothing_draws_from_its_kernel(key, kernel, second_moment):
    """E r^2 in five dimensions is d / (d + 2) for equal weights and d / (d + 4) for Epanechnikov's."""
    field = mixture([1.0], [np.zeros(5)], [np.eye(5)])
    squares = np.sum(np.asarray(smooth(key, field, 5, 2.0, kernel=kernel, n=4000).offsets) ** 2, axis=1) / 4
    assert abs(squares.mean() - second_moment) < 4 * squares.std() / np.sqrt(2000)
    density = ScoreDensity("gaussian", smoothing=0.5, smoothing_kernel=kernel).fit(
        np.random.default_rng(0).normal(size=(50, 5))
    )
    assert density.grad_log_density(np.zeros((1, 5))).shape == (1, 5)


def test_the_gaussian_anchor_is_the_papers(rng):
    """(2 pi)^-d/2 |S|^-1/2 of the sample covariance; shrinkage was .9 nats off at 128 rows of 10 columns."""
    mixing = np.linalg.cholesky(np.full((10, 10), 0.8) + 0.2 * np.eye(10))
    X = rng.normal(size=(128, 10)) @ mixing.T
    density = ScoreDensity("gaussian", anchor="gaussian", standardize=False, noise=0.0).fit(X)
    centre = X.mean(axis=0)
    formula = multivariate_normal(centre, np.cov(X, rowvar=False, bias=True)).logpdf(centre)
    assert density.score_samples(centre[None])[0] == pytest.approx(formula, abs=1e-3)


def test_the_boundary_honours_costs_and_margin(rng):
    X = np.concatenate([rng.normal(k, 1, (80, 2)) for k in (0, 2, 4)])
    y = np.repeat([0, 1, 2], 80)
    costs = np.array([[0, 1, 2.0], [5, 0, 1], [9, 2, 0]])
    gaussian = {"density": ScoreDensity("gaussian"), "calibration": None}
    plain = find_boundary(ScoreClassifier(**gaussian).fit(X[:160], y[:160]), X[:5])
    for options in ({"margin": 1.5}, {"margin": 0.5, "costs": costs[:2, :2]}):
        model = ScoreClassifier(**gaussian, **options).fit(X[:160], y[:160])
        found = find_boundary(model, X[:5])
        assert found.converged.all()
        np.testing.assert_allclose(model.decision_function(found.points), 0, atol=1e-3)
        assert np.abs(found.points - plain.points).max() > 0.1
    model = ScoreClassifier(**gaussian, costs=costs, margin=0.5).fit(X, y)
    found = find_boundary(model, X[160:165], classes=(1, 2))
    risks = expected_costs(model.predict_log_proba(found.points), costs=costs, margin=0.5)
    np.testing.assert_allclose(risks[:, 1], risks[:, 2], rtol=1e-3)


def test_two_gaussians_and_fisher_divergence(rng):
    same = TwoGaussians([1.0, 2.0], np.eye(2), [1.0, 2.0], np.eye(2))
    assert same.errors() == (0.5, 0.5)
    assert TwoGaussians(0.0, 1.0, 0.0, 1.0, log_odds=1.0).errors() == (1.0, 0.0)
    unequal = TwoGaussians(0.0, 1.0, 1.0, 4.0, log_odds=-0.5)
    np.testing.assert_allclose(unequal.decision_function(unequal.roots()[:, None]), 0, atol=1e-9)
    assert unequal.decision_function([[0.0]])[0] == pytest.approx(unequal.log_constant)
    gradient = jax.grad(lambda x: -((x - 1) ** 2) / 8 + x**2 / 2)(0.3)
    assert unequal.gradient([[0.3]])[0, 0] == pytest.approx(float(gradient))
    with pytest.raises(ValueError, match="one dimension"):
        same.roots()
    X = rng.normal(size=(2000, 2))
    density = ScoreDensity("gaussian").fit(X)
    assert fisher_divergence(density, -X + [1.0, 2.0], X) == pytest.approx(
        2.5, abs=0.2
    )  # 1/2 |shift|^2, four standard errors
    assert fisher_divergence(density, density.grad_log_density(X), X) == 0
    with pytest.raises(ValueError, match="true score"):
        fisher_divergence(density, -X[:5], X)
