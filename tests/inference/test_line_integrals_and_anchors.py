"""Integration rules, path gap, smoothing, anchors and normalisation, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from scorefield import ScoreDensity
from scorefield._jax import batching
from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method, pytree
from scorefield.fields.base import Field
from scorefield.fields.diffusion import DiffusionField, init_diffusion_field
from scorefield.fields.flow import FlowLogDensity
from scorefield.fields.gaussian import fit_gaussian, gaussian_from_covariance, standard_gaussian
from scorefield.fields.mixtures import mixture
from scorefield.fields.neural import init_energy_field, init_vector_field
from scorefield.fields.random_features import fit_kernel
from scorefield.inference import anchors
from scorefield.inference.anchors import (
    counting_anchor,
    gaussian_anchor,
    importance_anchor,
    importance_constant,
    importance_proposal,
    log_ball_volume,
)
from scorefield.inference.line_integrals import RULES, line_integral, path_gap, quadrature, smooth
from scorefield.training.loop import train
from scorefield.training.losses import ContrastiveDenoising, MultilevelDenoising

POTENTIAL = "potential"


def integral_2d(log_density, half_width=8.0, n=161):
    """Integral of exp(log_density) over a square, by the trapezoid rule on a grid."""
    axis = np.linspace(-half_width, half_width, n, dtype=np.float32)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return float(np.exp(map_rows(log_density, grid).astype(float)).sum() * (axis[1] - axis[0]) ** 2)


@pytree
class Swirl(Field):
    """-x plus a rotation: not a gradient. The gap between two paths is a known area."""

    spin: float

    def __call__(self, x):
        return -x + self.spin * jnp.array([-x[1], x[0]])


@pytest.mark.parametrize("rule", RULES)
def test_rules_recover_a_mixture(key, skewed_mixture, rule):
    """Algorithm 1: log p(x) - log p(x0) along a line, for each rule within its own accuracy."""
    rows = np.asarray(skewed_mixture.sample(key, 50))
    truth = map_rows(Method(skewed_mixture, POTENTIAL), rows)
    origin = rows[0]
    line = line_integral(skewed_mixture, origin, rule=rule, n_nodes=1025, key=key)
    tolerance = {"gauss-legendre": 1e-4, "simpson": 1e-4, "trapezoid": 1e-3, "taylor": 0.02, "monte-carlo": 0.5}[rule]
    np.testing.assert_allclose(map_rows(line, rows), truth - truth[0], atol=tolerance)


@pytest.mark.parametrize(("rule", "order"), [("trapezoid", 2), ("simpson", 4), ("taylor", 1)])
def test_quadrature_errors_fall_at_their_order(rule, order):
    """Integral of exp on [0, 1] in double precision: halving the pieces divides the error by 2^order."""
    errors = []
    for pieces in (8, 16, 32):
        nodes, weights = quadrature(rule, pieces + (rule != "taylor"))
        errors.append(abs(weights @ np.exp(nodes) - (np.e - 1)))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, order, atol=0.1)


def test_gauss_legendre_is_exact_for_polynomials():
    nodes, weights = quadrature("gauss-legendre", 4)
    for power in range(8):
        assert abs(weights @ nodes**power - 1 / (power + 1)) < 1e-12
    assert abs(weights @ nodes**8 - 1 / 9) > 1e-9  # negative control: one degree too many


def test_monte_carlo_error_is_its_standard_error(key):
    nodes, weights = quadrature("monte-carlo", 4000, key)
    deviation = np.sqrt((np.e**2 - 1) / 2 - (np.e - 1) ** 2)
    assert abs(weights @ np.exp(nodes) - (np.e - 1)) < 4 * deviation / np.sqrt(4000)


def test_paths_of_a_conservative_field_agree(key, skewed_mixture):
    rows = np.asarray(skewed_mixture.sample(key, 40))
    assert path_gap(skewed_mixture, [0.0, 0.0], rows).max() < 1e-3
    straight = line_integral(skewed_mixture, [0.0, 0.0])
    detour = line_integral(skewed_mixture, [0.0, 0.0], via=[[2.0, 1.0], [-1.0, 2.0]], n_nodes=64)
    np.testing.assert_allclose(map_rows(detour, rows), map_rows(straight, rows), atol=2e-3)


def test_path_gap_of_a_swirl_is_twice_the_area():
    """By Green's theorem the corner path differs from the straight line by spin * x * y."""
    rows = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 5.0]])
    np.testing.assert_allclose(path_gap(Swirl(0.5), [0.0, 0.0], rows), 0.5 * np.abs(rows[:, 0] * rows[:, 1]), atol=1e-4)


def test_path_gap_in_one_column_is_zero(key):
    field = init_vector_field(key, 1, hidden=(8, 8))
    np.testing.assert_allclose(path_gap(field, [0.0], [[1.0], [-2.0]]), 0, atol=1e-6)


@pytest.mark.parametrize("kernel", ["uniform", "epanechnikov"])
def test_smoothing(key, kernel):
    linear = gaussian_from_covariance([1.0, -1.0], [[2.0, 0.3], [0.3, 1.0]])
    x = jnp.array([0.4, 0.7])
    smoothed = smooth(key, linear, 2, 0.5, kernel=kernel)
    np.testing.assert_allclose(smoothed(x), linear(x), atol=1e-5)  # opposite pairs leave a linear field as it is
    assert np.linalg.norm(smoothed.offsets, axis=1).max() <= 0.5

    @pytree
    class Step(Field):
        def __call__(self, x):
            return jnp.sign(x)

    mean = smooth(key, Step(), 1, 1.0, kernel=kernel, n=4000)(jnp.array([0.2]))
    # The mean of sign(0.2 + u): 0.2 for uniform u in [-1, 1]; 3/2 (0.2 - 0.2^3 / 3) with Epanechnikov weights.
    assert abs(float(mean[0]) - {"uniform": 0.2, "epanechnikov": 0.296}[kernel]) < 0.04


def test_a_smoothed_potential_needs_no_integral(key, skewed_mixture):
    """Its gradient is the smoothed field, and its differences are the line integrals of that field."""
    smoothed = smooth(key, skewed_mixture, 2, 0.5)
    assert smoothed.conservative
    rows = jax.random.normal(key, (20, 2))
    scores = jax.vmap(smoothed)(rows)
    np.testing.assert_allclose(jax.vmap(jax.grad(smoothed.potential))(rows), scores, atol=1e-4)
    origin = jnp.array([0.3, -0.1])
    difference = jax.vmap(smoothed.potential)(rows) - smoothed.potential(origin)
    integrals = jax.vmap(line_integral(smoothed, origin))(rows)
    np.testing.assert_allclose(difference, integrals, atol=1e-4)
    plain = jax.vmap(skewed_mixture.potential)(rows) - skewed_mixture.potential(origin)
    assert np.abs(plain - integrals).max() > 0.01  # negative control: without smoothing
    assert not smooth(key, init_vector_field(key, 2, hidden=(4,)), 2, 0.5).conservative


@pytest.mark.parametrize(("model", "nodes"), [("kernel", 1), ("mlp", 32)])
def test_smoothing_is_counted_where_memory_and_work_are_bounded(key, rng, monkeypatch, model, nodes):
    """64 offsets a point, 32 nodes a line: rows per call and draws of the anchor fall accordingly."""
    rows, blocks, apply = rng.normal(size=(60, 2)), [], batching._apply

    def recorded(function, block):
        blocks.append((function, len(block)))
        return apply(function, block)

    monkeypatch.setattr(batching, "_apply", recorded)
    density = ScoreDensity(model=model, hidden=(8,), max_steps=100, smoothing=0.3, random_state=0).fit(rows)
    points = 64 * nodes
    heavy = [size for function, size in blocks if "SmoothedField" in repr(jax.tree.structure(function))]
    assert sum(heavy) * points <= 2 * anchors.MAX_POINTS
    assert max(heavy) <= batching.rows_per_call(points)
    blocks.clear()
    density.grad_log_density(rng.normal(size=(300, 2)))
    assert max(size for _, size in blocks) <= batching.rows_per_call(64)


def test_gaussian_anchor(rng):
    """The paper's p(mean): .40 for N(., 1) in 1-D and .18 for its 2-D classes; exact for a Gaussian field."""
    rows = rng.normal(-2, 1, size=(1000, 1))
    field = fit_gaussian(rows)
    anchor = gaussian_anchor(Method(field, POTENTIAL), rows)
    assert abs(anchor.offset) < 1e-3
    line = line_integral(field, rows.mean(axis=0))
    assert abs(np.exp(gaussian_anchor(line, rows).offset) - 0.40) < 4 * 0.40 / np.sqrt(2 * len(rows))
    two = rng.multivariate_normal([0, 0], [[1, -0.5], [-0.5, 1]], size=2000)
    line = line_integral(fit_gaussian(two), two.mean(axis=0))
    assert abs(np.exp(gaussian_anchor(line, two).offset) - 0.18) < 0.01


def test_counting_anchor(key, rng):
    """Share in a ball over its volume estimates the density at the mean, on rows and on samples."""
    rows = rng.normal(size=(20_000, 2))
    line = line_integral(standard_gaussian(2), np.zeros(2))
    radius = 0.3
    on_rows = counting_anchor(line, rows, radius=radius)
    exact = (1 - np.exp(-(radius**2) / 2)) / (np.pi * radius**2)  # mean density of the ball
    assert abs(np.exp(on_rows.offset) / exact - 1) < 4 / np.sqrt(on_rows.effective_size)
    samples = rng.normal(size=(50_000, 2))
    assert abs(np.exp(counting_anchor(line, rows[:100], radius=radius, samples=samples).offset) / exact - 1) < 0.15
    automatic = counting_anchor(line, rows)
    assert abs(np.exp(automatic.offset) * 2 * np.pi - 1) < 0.3
    assert automatic.effective_size >= 100
    np.testing.assert_allclose([log_ball_volume(d, 2.0) for d in (1, 2, 3)], np.log([4, 4 * np.pi, 32 / 3 * np.pi]))


def test_importance_anchor_normalises(key, skewed_mixture):
    """An unnormalised mixture gets its constant back within the error that the effective size promises."""

    @pytree
    class Shifted(Field):
        inner: Field
        conservative = True

        def potential(self, x):
            return self.inner.potential(x) + 3.0

    rows = np.asarray(skewed_mixture.sample(key, 500))
    anchor = importance_anchor(key, Method(Shifted(skewed_mixture), POTENTIAL), rows)
    assert abs(anchor.offset + 3.0) < 4 / np.sqrt(anchor.effective_size)
    assert 1000 < anchor.effective_size < 16384
    proposal = importance_proposal(rows)
    assert abs(integral_2d(Method(proposal, "log_density"), 12.0) - 1) < 1e-3


@pytree
class TwoBalls:
    """log of e^3 times the mixture .7 N(0, I) + .3 N(m, I), for one point."""

    mean: jax.Array

    def __call__(self, x):
        logs = jnp.stack([-0.5 * x @ x + jnp.log(0.7), -0.5 * (x - self.mean) @ (x - self.mean) + jnp.log(0.3)])
        return jax.scipy.special.logsumexp(logs) - 0.5 * x.shape[-1] * jnp.log(2 * jnp.pi) + 3.0


def test_annealing_normalises_in_many_columns(key):
    """A mixture in 40 columns with log Z = 3; plain importance sampling has a handful of effective draws."""
    rng = np.random.default_rng(0)
    mean = np.repeat([2.0, 0.0], [4, 36]).astype(np.float32)
    rows = rng.normal(size=(500, 40)) + mean * (rng.random((500, 1)) < 0.3)
    found = importance_anchor(key, TwoBalls(mean), rows)
    assert found.error < 0.1
    assert abs(found.offset + 3) < 4 * found.error
    plain = importance_constant(key, TwoBalls(mean), importance_proposal(rows), anneal=False)
    assert plain.effective_size < 50  # the control
    assert plain.error > 0.1


def test_standard_errors_of_anchors_are_those_of_repeated_draws(key):
    """Anchors of a Gaussian from 40 tables: importance draws, counts and the Gaussian at the mean."""
    d, n, found = 3, 300, {"importance": [], "counting": [], "gaussian": []}
    truth = Method(standard_gaussian(d), POTENTIAL)
    for seed in range(40):
        rows = np.random.default_rng(seed).normal(size=(n, d))
        found["importance"].append(importance_anchor(jax.random.key(seed), truth, rows, n_draws=2048))
        found["counting"].append(counting_anchor(truth, rows, radius=0.8))
        found["gaussian"].append(gaussian_anchor(truth, rows))
    for name, own in found.items():
        offsets, errors = np.array([(anchor.offset, anchor.error) for anchor in own]).T
        # A standard deviation of 40 values has a relative standard error of 1 / sqrt(78).
        assert abs(offsets.std() / errors.mean() - 1) < 4 / np.sqrt(78), name


def test_normalised_models_integrate_to_one(key, skewed_mixture):
    rows = np.asarray(skewed_mixture.sample(key, 400))
    assert abs(integral_2d(Method(skewed_mixture, POTENTIAL)) - 1) < 1e-4
    assert abs(integral_2d(Method(fit_gaussian(rows), POTENTIAL)) - 1) < 1e-4
    start = init_diffusion_field(key, rows, hidden=(32, 32), sigma_min=0.1)
    trained = train(key, start, rows, MultilevelDenoising(), max_steps=500).model
    assert abs(integral_2d(FlowLogDensity(trained), n=121) - 1) < 0.01
    few_steps = integral_2d(FlowLogDensity(trained, n_steps=2), n=121)
    assert abs(few_steps - 1) > 0.01  # negative control: two Runge-Kutta steps do not solve the equation
    kernel = fit_kernel(key, rows).field
    energy = train(
        key, init_energy_field(key, fit_gaussian(rows), hidden=(32, 32)), rows, ContrastiveDenoising(), max_steps=500
    ).model
    for field in (kernel, energy):
        anchor = importance_anchor(key, Method(field, POTENTIAL), rows)
        total = integral_2d(Method(field, POTENTIAL)) * np.exp(anchor.offset)
        assert abs(total - 1) < 4 / np.sqrt(anchor.effective_size)


def test_flow_gradient_is_the_field(key, skewed_mixture):
    """grad of the probability-flow log density is the score at sigma_min, for a field that is a true score."""
    rows = np.asarray(skewed_mixture.sample(key, 2000)) @ np.array([[1.0, 0.2], [0.0, 0.7]])
    field = init_diffusion_field(key, rows, hidden=(8,))  # the exact score of a Gaussian at every level
    assert isinstance(field, DiffusionField)
    x = jnp.array([0.4, -0.2])
    np.testing.assert_allclose(jax.grad(FlowLogDensity(field))(x), field(x), rtol=0.02, atol=0.01)


def test_recovered_density_of_the_paper_in_1d(key):
    """Anchor plus line integral of the true linear score give the density back: the paper's linear 1-D example."""
    for mean in (-2.0, 2.0):
        rows = np.asarray(mixture([1.0], [[mean]], [[[1.0]]]).sample(key, 1000))
        field = fit_gaussian(rows)
        line = line_integral(field, rows.mean(axis=0))
        grid = np.linspace(mean - 3, mean + 3, 61, dtype=np.float32)[:, None]
        recovered = map_rows(line, grid) + gaussian_anchor(line, rows).offset
        np.testing.assert_allclose(recovered, norm(rows.mean(), rows.std()).logpdf(grid[:, 0]), atol=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quadrature("romberg", 8), "integration rule"),
        (lambda: quadrature("simpson", 8), "odd"),
        (lambda: quadrature("trapezoid", 1), "n_nodes"),
        (lambda: quadrature("taylor", 0), "n_nodes"),
        (lambda: quadrature("monte-carlo", 8), "key"),
        (lambda: line_integral(standard_gaussian(2), [[0.0, 0.0]]), "origin"),
        (lambda: smooth(jax.random.key(0), standard_gaussian(2), 2, -1.0), "radius > 0"),
        (lambda: smooth(jax.random.key(0), standard_gaussian(2), 2, 1.0, kernel="box"), "kernel"),
        (
            lambda: counting_anchor(Method(standard_gaussian(2), POTENTIAL), [[0.0, 9.0], [9.0, 0.0]], radius=0.1),
            "got none",
        ),
        (
            lambda: counting_anchor(Method(standard_gaussian(2), POTENTIAL), [[0.0, 9.0], [9.0, 0.0]], radius=-1.0),
            "radius",
        ),
        (lambda: gaussian_anchor(Method(standard_gaussian(2), POTENTIAL), [[0.0, 9.0]]), "at least 2"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_anchors_refuse_a_field_of_nan(key):
    @pytree
    class Broken:
        def __call__(self, x):
            return jnp.sum(x) * jnp.nan

    rows = np.random.default_rng(0).normal(size=(50, 2))
    for anchor in (lambda f: gaussian_anchor(f, rows), lambda f: importance_anchor(key, f, rows)):
        with pytest.raises(ValueError, match="finite"):
            anchor(Broken())
