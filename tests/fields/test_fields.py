"""Fields, divergences and truths against closed forms and automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from scorefield._jax.batching import bucket, map_rows
from scorefield._jax.pytrees import Method, stack, unstack
from scorefield.fields.diffusion import init_diffusion_field
from scorefield.fields.divergence import forward_divergence, network_divergence, network_laplacian
from scorefield.fields.flow import FlowLogDensity
from scorefield.fields.gaussian import fit_gaussian, shrunk_covariance, standard_gaussian
from scorefield.fields.mixtures import mixture, random_mixture
from scorefield.fields.networks import ACTIVATIONS, Network, init_network
from scorefield.fields.neural import init_energy_field, init_vector_field
from scorefield.fields.random_features import fit_kernel

SMOOTH = sorted(set(ACTIVATIONS) - {"relu"})


def perturbed(model, key, scale=0.3):
    """The model with noise on every weight, so that zero-initialised layers take part in the comparison."""
    network = model.network
    leaves, tree = jax.tree.flatten(network)
    keys = jax.random.split(key, len(leaves))
    leaves = [
        leaf + scale * jax.random.normal(k, leaf.shape) / np.sqrt(leaf.shape[0])
        for k, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, leaves), model


def every_field(key, rows):
    base = fit_gaussian(rows)
    network, energy = perturbed(init_energy_field(key, base, hidden=(16, 16)), key)
    energy = type(energy)(network, base)
    diffusion = init_diffusion_field(key, rows, hidden=(16, 16))
    network, _ = perturbed(diffusion, key)
    diffusion = type(diffusion)(
        network, *(getattr(diffusion, n) for n in ("mean", "axes", "variances", "sigma_min", "sigma_max"))
    )
    return {
        "gaussian": base,
        "mlp": init_vector_field(key, rows.shape[1], hidden=(16, 16)),
        "deep mlp": init_vector_field(key, rows.shape[1], hidden=(8, 16, 8)),
        "energy": energy,
        "kernel": fit_kernel(key, rows, n_features=40).field,
        "diffusion": diffusion,
        "truth": random_mixture(key, rows.shape[1]),
    }  # fmt: skip


@pytest.mark.parametrize("d", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(5, marks=pytest.mark.slow)])
def test_every_field_keeps_the_contract(key, rng, d):
    """Shapes, the divergence is the Jacobian's trace, the potential's gradient is the field."""
    rows = rng.normal(size=(50, d)).astype(np.float32) * [1.0, 2.0, 0.5, 3.0, 1.0][:d]
    x = jnp.asarray(rows[3] + 0.1)
    for name, field in every_field(key, rows).items():
        found = jax.jit(lambda field, x: (*field.value_and_divergence(x), field(x), jax.jacfwd(field)(x)))(field, x)
        score, divergence, value, jacobian = found
        assert score.shape == (d,), name
        np.testing.assert_allclose(score, value, rtol=2e-4, atol=1e-4, err_msg=name)
        np.testing.assert_allclose(divergence, np.trace(jacobian), rtol=1e-3, atol=1e-3, err_msg=name)
        if field.conservative:
            gradient = jax.jit(lambda field, x: jax.grad(field.potential)(x))(field, x)
            np.testing.assert_allclose(gradient, score, rtol=1e-3, atol=1e-3, err_msg=name)
            np.testing.assert_allclose(jacobian, jacobian.T, rtol=1e-3, atol=1e-3, err_msg=name)
        else:
            with pytest.raises(ValueError, match="no potential"):
                field.potential(x)


def test_an_unconstrained_network_is_not_conservative(key):
    """The negative control of the symmetry above."""
    jacobian = jax.jacfwd(init_vector_field(key, 3, hidden=(16, 16)))(jnp.ones(3))
    assert np.abs(jacobian - jacobian.T).max() > 0.01


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("hidden", [(), (7,), (7, 9), (7, 9, 5), (6, 5, 4, 3)])
def test_network_divergence_is_the_trace(key, activation, hidden):
    d, n_context = 4, 2
    network = init_network(key, (d + n_context, *hidden, d), activation=activation)
    x, context = jax.random.normal(key, (d,)), jnp.array([0.3, -1.0])
    scales = jnp.arange(1.0, d + 1)
    plain = init_network(key, (d, *hidden, d), activation=activation)

    @jax.jit
    def both_ways(network, plain):
        of_x = lambda z: network(jnp.concatenate([z, context]))  # noqa: E731
        ours = *network_divergence(network, x, context, scales), network_divergence(plain, x)[1]
        return ours, (of_x(x), jnp.trace(jax.jacfwd(of_x)(x) * scales[:, None]), forward_divergence(plain, x)[1])

    (value, *divergences), (expected, *traces) = both_ways(network, plain)
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(divergences, traces, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", SMOOTH)
@pytest.mark.parametrize("hidden", [(), (7,), (7, 9), (7, 9, 5)])
def test_forward_laplacian(key, activation, hidden):
    network = init_network(key, (4, *hidden, 1), activation=activation)
    x = jax.random.normal(key, (4,))

    @jax.jit
    def both_ways(network):
        scalar = lambda z: network(z)[0]  # noqa: E731
        return network_laplacian(network, x), (scalar(x), jax.grad(scalar)(x), jnp.trace(jax.hessian(scalar)(x)))

    (value, gradient, laplacian), expected = both_ways(network)
    np.testing.assert_allclose(value, expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(laplacian, expected[2], rtol=1e-3, atol=1e-4)


def test_mixture_against_scipy(key):
    truth = random_mixture(key, 3)
    rows = np.asarray(truth.sample(key, 100))
    parts = zip(*(np.asarray(a, float) for a in (truth.weights, truth.means, truth.covariances)), strict=True)
    densities = sum(w * multivariate_normal(m, c).pdf(rows) for w, m, c in parts)
    np.testing.assert_allclose(map_rows(Method(truth, "potential"), rows), np.log(densities), rtol=1e-4, atol=1e-4)
    scores = map_rows(Method(truth, "__call__"), rows)
    np.testing.assert_allclose(scores, jax.vmap(jax.grad(truth.potential))(rows), rtol=1e-3, atol=1e-3)


def test_mixture_moments_and_samples(key):
    truth = random_mixture(key, 3)
    mean, covariance = truth.moments()
    n = 40_000
    rows = np.asarray(truth.sample(key, n))
    error = np.sqrt(np.diag(covariance) / n)
    assert (np.abs(rows.mean(axis=0) - mean) < 4 * error).all()
    assert (np.abs(rows.mean(axis=0) - truth.means[0]) > 4 * error).any()  # negative control: one part is not the mean
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=5 * np.abs(covariance).max() / np.sqrt(n))


def test_paper_linear_scores(paper_classes):
    """Linear fields equal -Sigma^-1 x + Sigma^-1 mu: the paper's theoretical A and b of its 2-D example."""
    expected = [([[-1.33, -0.67], [-0.67, -1.33]], [0, 0]), ([[-1.33, 0.67], [0.67, -1.33]], [2.67, 2.67])]
    for truth, (a, b) in zip(paper_classes, expected, strict=True):
        np.testing.assert_allclose(jax.jacfwd(truth)(jnp.zeros(2)), a, atol=0.005)
        np.testing.assert_allclose(truth(jnp.zeros(2)), b, atol=0.005)


def test_fit_gaussian_solves_score_matching(rng):
    """Mean and inverse covariance are the stationary point of the empirical score-matching loss over linear fields."""
    rows = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3)) + 1
    field = fit_gaussian(rows, shrinkage=0.0)
    np.testing.assert_allclose(field.precision, np.linalg.inv(np.cov(rows.T, bias=True)), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(field.mean, rows.mean(axis=0), rtol=1e-4, atol=1e-5)
    x = jnp.asarray(rows, jnp.float32)

    def loss(a, b):
        return 0.5 * jnp.mean(jnp.sum((x @ a + b) ** 2, axis=1)) + jnp.trace(a)

    for gradient in jax.grad(loss, argnums=(0, 1))(-field.precision, field.precision @ field.mean):
        assert np.abs(gradient).max() < 1e-3
    assert np.abs(jax.grad(loss)(-jnp.eye(3), jnp.zeros(3))).max() > 0.1  # negative control


def test_shrinkage(rng):
    few, many = rng.normal(size=(6, 5)), rng.normal(size=(5000, 5))
    assert np.linalg.cond(shrunk_covariance(few)) < np.linalg.cond(np.cov(few.T))
    np.testing.assert_allclose(shrunk_covariance(many), np.cov(many.T, bias=True), rtol=1e-6, atol=1e-9)
    units = np.array([1e-6, 1.0, 1e6, 1.0, 1e3])  # units of the columns do not change the correlations
    np.testing.assert_allclose(shrunk_covariance(few * units), shrunk_covariance(few) * np.outer(units, units))
    assert np.isfinite(fit_gaussian(rng.normal(size=(3, 10))).precision).all()
    assert np.isfinite(shrunk_covariance(rng.normal(size=(5, 1)))).all()


def test_gaussian_noise_and_samples(key, rng):
    rows = np.tile(rng.normal(size=(4, 1)), (1, 2))  # duplicated column: singular without noise
    with pytest.raises(ValueError, match="linearly independent"):
        fit_gaussian(rows, shrinkage=0.0)
    field = fit_gaussian(rows, shrinkage=0.0, noise=0.1)
    assert np.isfinite(field.precision).all()
    constant = fit_gaussian(np.ones((5, 2)), noise=0.5)
    np.testing.assert_allclose(constant.precision, np.eye(2) / 0.25, rtol=1e-5)
    draws = np.asarray(fit_gaussian(rng.normal(size=(500, 2)) @ [[2.0, 1.0], [0.0, 0.5]] + 3).sample(key, 50_000))
    np.testing.assert_allclose(draws.mean(axis=0), 3, atol=0.3)
    assert np.corrcoef(draws.T)[0, 1] > 0.5


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_kernel_solves_its_loss(key, rng, noise):
    """The sums behind the solution are those of the (denoising) score-matching loss, by automatic differentiation."""
    from scorefield.fields import random_features as kernel
    from scorefield.training.losses import Exact

    rows = rng.normal(size=(30, 2)).astype(np.float32)
    fit = fit_kernel(key, rows, noise=noise, n_features=12)
    field = fit.field
    w, phases = np.asarray(field.frequencies, float), np.asarray(field.phases, float)
    a, b = kernel._sums(rows, field.base, w, phases, noise)
    draws = noise * jax.random.normal(key, (4000 if noise else 1, *rows.shape))
    points = (jnp.asarray(rows) + draws).reshape(-1, 2)

    def loss(coefficients):
        model = type(field)(field.base, field.frequencies, field.phases, coefficients)
        return jnp.mean(jax.vmap(lambda x: Exact()(model, key, x))(points))

    coefficients = jax.random.normal(key, (12,))
    expected = (a @ np.asarray(coefficients) + b) / len(rows)
    np.testing.assert_allclose(jax.grad(loss)(coefficients), expected, atol=(0.05 if noise else 2e-4) * np.abs(b).max())
    np.testing.assert_allclose(
        (a / len(rows) + fit.ridge * np.eye(12)) @ np.asarray(field.coefficients, float), -b / len(rows), atol=1e-4
    )


def test_kernel_prefers_features_only_where_they_help(key, rng):
    bimodal = np.concatenate([rng.normal(-2, 0.5, size=(150, 1)), rng.normal(2, 0.5, size=(150, 1))])
    assert fit_kernel(key, bimodal).held_out_loss.min() < -0.5
    assert fit_kernel(key, rng.normal(size=(300, 1))).held_out_loss.min() > -0.1


def test_diffusion_of_gaussian_data_is_exact(key, rng):
    """An untrained diffusion field has a zero residual: for Gaussian rows it is the exact score at every level."""
    rows = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3)) + 2
    field = init_diffusion_field(key, rows, hidden=(8,))
    covariance = np.cov(rows.T, bias=True)
    x = np.array([0.5, 1.0, -1.0], np.float32)
    for sigma in (0.1, 1.0, 10.0):
        expected = np.linalg.solve(covariance + sigma**2 * np.eye(3), rows.mean(axis=0) - x)
        np.testing.assert_allclose(field.at(sigma)(jnp.asarray(x)), expected, rtol=2e-3, atol=1e-4)
    smoothed = multivariate_normal(rows.mean(axis=0), covariance + float(field.sigma_min) ** 2 * np.eye(3))
    log_density = map_rows(FlowLogDensity(field), rows[:20].astype(np.float32))
    np.testing.assert_allclose(log_density, smoothed.logpdf(rows[:20].astype(np.float32)), atol=5e-3)


def test_rank_deficient_tables(key, rng):
    rows = np.tile(rng.normal(size=(40, 1)), (1, 3))
    field = init_diffusion_field(key, rows, hidden=(8,))
    assert np.isfinite(map_rows(Method(field, "__call__"), rows.astype(np.float32))).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: init_network(k, (2, 4, 2), activation="swish"), "Expected an activation"),
        (lambda k: init_network(k, (2,)), "layer sizes"),
        (lambda k: init_energy_field(k, standard_gaussian(2), hidden=(4,), activation="relu"), "smooth activation"),
        (lambda k: fit_gaussian(np.zeros((0, 2))), "at least 2 rows, got 0"),
        (lambda k: fit_gaussian([[1.0, 2.0]]), "at least 2 rows, got 1"),
        (lambda k: fit_gaussian([1.0, 2.0]), "shape"),
        (lambda k: fit_gaussian([[1.0, np.nan], [0.0, 1.0]]), "finite"),
        (lambda k: fit_gaussian([[1e39, 1.0], [0.0, 1.0]]), "float32"),
        (lambda k: fit_gaussian([[1.0, 1.0], [1.0, 2.0]]), "constant column 0"),
        (lambda k: fit_gaussian([[1.0], [2.0]], noise=-1), "noise >= 0"),
        (lambda k: fit_gaussian([[1.0], [2.0]], shrinkage=2), "shrinkage"),
        (lambda k: init_diffusion_field(k, [[1.0], [2.0]], hidden=(4,), sigma_min=2, sigma_max=1), "sigma_min"),
        (lambda k: fit_kernel(k, [[1.0], [2.0]], noise=-0.1), "noise >= 0"),
        (lambda k: mixture([1.0], [[0.0, 0.0]], [[1.0]]), "covariances"),
        (lambda k: mixture([0.0], [[0.0]], [[[1.0]]]), "positive weights"),
    ],
)
def test_bad_arguments(key, call, message):
    with pytest.raises(ValueError, match=message):
        call(key)


def test_stack_and_chunks(key):
    models = [init_network(k, (2, 3, 1)) for k in jax.random.split(key, 2)]
    again = unstack(stack(models), 1)
    assert isinstance(again, Network)
    np.testing.assert_array_equal(again.weights[0], models[1].weights[0])
    assert [bucket(n) for n in (1, 256, 257, 950)] == [256, 256, 512, 1024]
    rows = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    np.testing.assert_array_equal(map_rows(models[0], rows, points=16), map_rows(models[0], rows))


def test_constant_column_with_noise_whatever_its_value(rng):
    rows = np.column_stack([rng.normal(size=7), np.full(7, 0.57735026), rng.normal(size=7)]).astype(np.float32)
    assert rows[:, 1].std() > 0  # rounding of the mean: the value must not matter
    field = fit_gaussian(rows, noise=0.3)
    covariance = np.asarray(field.color).T @ np.asarray(field.color)
    np.testing.assert_allclose(covariance[1], [0, 0.09, 0], atol=1e-6)
    with pytest.raises(ValueError, match="constant column 1"):
        fit_gaussian(rows)
