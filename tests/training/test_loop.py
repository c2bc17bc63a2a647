"""Objectives against each other and their optimum; the trainer's promises."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from scorefield._jax.errors import DivergedError
from scorefield._jax.pytrees import pytree
from scorefield.fields.base import Field
from scorefield.fields.diffusion import init_diffusion_field
from scorefield.fields.gaussian import fit_gaussian
from scorefield.fields.mixtures import mixture, random_mixture
from scorefield.fields.neural import VectorField, init_energy_field, init_vector_field
from scorefield.training import minibatches
from scorefield.training.loop import train, train_many
from scorefield.training.losses import (
    ContrastiveDenoising,
    Denoising,
    Exact,
    MultilevelDenoising,
    NoisyRows,
    Sliced,
    default_noise,
    fisher_divergence,
    mean_loss,
)
from scorefield.training.minibatches import split_held_out


@pytest.fixture(scope="module")
def gaussian_10d():
    rng = np.random.default_rng(3)
    factor = rng.normal(size=(10, 10)) / np.sqrt(10)
    return mixture([1.0], [rng.normal(size=10)], [factor @ factor.T + 0.5 * np.eye(10)])


def test_exact_loss_differs_from_fisher_by_a_constant(key, skewed_mixture):
    """E[1/2|s|^2 + div s] = Fisher divergence - 1/2 E|s_true|^2 for any s: Hyvarinen's identity."""
    rows = np.asarray(skewed_mixture.sample(key, 100_000))
    constant = 0.5 * np.mean(np.sum(np.asarray(jax.vmap(skewed_mixture)(rows)) ** 2, axis=1))
    for field in (skewed_mixture, fit_gaussian(rows), init_vector_field(key, 2, hidden=(16, 16))):
        losses = np.asarray(jax.vmap(lambda x, f=field: Exact()(f, key, x))(jnp.asarray(rows)))
        error = 5 * (losses.std() + 1) / np.sqrt(len(rows))
        assert abs(losses.mean() - (fisher_divergence(field, skewed_mixture, rows) - constant)) < error


@pytest.mark.parametrize("projection", ["gaussian", "rademacher"])
@pytest.mark.parametrize("n_projections", [1, 5])
def test_sliced_is_exact_in_the_mean(key, projection, n_projections):
    field = init_vector_field(key, 3, hidden=(8, 8))
    x = jnp.array([0.3, -1.0, 0.7])
    keys = jax.random.split(key, 20_000)
    sliced = Sliced(n_projections=n_projections, projection=projection)
    losses = np.asarray(jax.vmap(lambda k: sliced(field, k, x))(keys))
    error = losses.std() / np.sqrt(len(losses))
    assert abs(losses.mean() - Exact()(field, key, x)) < 4 * error
    assert abs(losses.mean() - 2 * Exact()(field, key, x)) > 4 * error  # negative control


def test_denoising_optimum_is_the_smoothed_score(key):
    """Among c * s_smoothed, c = 1 minimises the denoising loss; the unsmoothed truth does not."""
    sigma, truth = 0.7, mixture([1.0], [[0.0, 0.0]], np.eye(2)[None] * 0.5)
    smoothed = mixture([1.0], [[0.0, 0.0]], np.eye(2)[None] * (0.5 + sigma**2))
    rows = np.asarray(truth.sample(key, 100_000))

    @pytree
    class Scaled(Field):
        inner: Field
        factor: float

        def __call__(self, x):
            return self.factor * self.inner(x)

    losses = {c: mean_loss(key, Scaled(smoothed, c), Denoising(sigma), rows) for c in (0.8, 1.0, 1.2)}
    assert min(losses, key=losses.get) == 1.0
    assert mean_loss(key, truth, Denoising(sigma), rows) > losses[1.0] + 0.05


def test_noisy_rows_match_the_smoothed_density(key):
    truth = mixture([1.0], [[1.0]], [[[0.5]]])
    rows = np.asarray(truth.sample(key, 200_000))
    loss = mean_loss(key, mixture([1.0], [[1.0]], [[[0.75]]]), NoisyRows(Exact(), 0.5), rows)
    assert abs(loss - -0.5 / 0.75) < 0.02
    assert mean_loss(key, truth, NoisyRows(Exact(), 0.5), rows) > loss + 0.02


@pytest.mark.parametrize("name", ["mlp", pytest.param("energy", marks=pytest.mark.slow)])
def test_default_budget_reaches_the_optimum_in_10d(key, gaussian_10d, name):
    """Exact score matching on N(mu, Sigma) ends within 3 % of -tr(Sigma^-1) / 2 on fresh rows."""
    rows = np.asarray(gaussian_10d.sample(key, 10_000))
    start = (
        init_vector_field(key, 10, hidden=(128, 128))
        if name == "mlp"
        else init_energy_field(key, fit_gaussian(rows * 1.0), hidden=(128, 128))
    )
    fit = train(key, start, rows, Exact())
    optimum = -0.5 * float(np.trace(np.linalg.inv(gaussian_10d.covariances[0])))
    fresh = np.asarray(gaussian_10d.sample(jax.random.key(1), 20_000))
    # The optimum of these very rows: it removes the sampling error that the field cannot help.
    reached = mean_loss(key, fit.model, Exact(), fresh) - mean_loss(key, gaussian_10d, Exact(), fresh) + optimum
    assert reached < 0.97 * optimum
    if name == "mlp":
        assert mean_loss(key, start, Exact(), fresh) > 0.97 * optimum  # negative control: before training


def test_contrast_repairs_the_mass_of_modes(key):
    """Two far modes of masses .8 and .2: denoising alone cannot see them, the contrast can."""
    truth = mixture([0.8, 0.2], [[-4.0], [4.0]], [[[1.0]], [[1.0]]])
    rows = np.asarray(truth.sample(key, 2000)) / 3
    start = init_energy_field(key, fit_gaussian(rows), hidden=(64, 64))
    grid = np.linspace(-4, 4, 4001, dtype=np.float32)[:, None]

    def right_mass(objective):
        field = train(key, start, rows, objective, max_steps=2000).model
        density = np.exp(np.asarray(jax.vmap(field.potential)(grid), float))
        return density[grid[:, 0] > 0].sum() / density.sum(), density.sum() * (grid[1, 0] - grid[0, 0])

    mass, integral = right_mass(ContrastiveDenoising(0.1))
    assert abs(mass - (rows > 0).mean()) < 0.05
    assert abs(integral - 1) < 0.1
    blind, _ = right_mass(ContrastiveDenoising(0.1, 0.0))
    assert abs(blind - (rows > 0).mean()) > abs(mass - (rows > 0).mean())


def test_diffusion_learns_a_mixture(key):
    truth = random_mixture(key, 2)
    rows = np.asarray(truth.sample(key, 2000))
    start = init_diffusion_field(key, rows, hidden=(64, 64), sigma_min=0.1)
    fit = train(key, start, rows, MultilevelDenoising(), max_steps=1500)
    for index in (0, 1):
        sigma = (0.3, 2.0)[index]
        smoothed = mixture(truth.weights, truth.means, truth.covariances + sigma**2 * np.eye(2))
        points = rows + sigma * np.random.default_rng(0).normal(size=rows.shape)
        assert fisher_divergence(fit.model.at(sigma), smoothed, points) < 0.3 * fisher_divergence(
            start.at(sigma), smoothed, points
        )
    np.testing.assert_array_equal(fit.model.variances, start.variances)  # frozen parts stay as they are
    np.testing.assert_array_equal(fit.model.sigma_min, start.sigma_min)


class Counting:
    """Exact matching that counts how often jax traces it."""

    traces = 0

    def __call__(self, field, key, x):
        Counting.traces += 1
        return Exact()(field, key, x)


jax.tree_util.register_static(Counting)


def test_compiles_once_for_all_row_counts_and_steps(key, rng):
    """200, 317 and 950 rows, 3 classes, other step counts, rates and a fold of its own size: one trace in all."""
    objective = Counting()

    def fit(counts, steps, rate):
        tables = [rng.normal(size=(n, 4)).astype(np.float32) for n in counts]
        models = [init_vector_field(key, 4, hidden=(8, 8)) for _ in counts]
        train_many(key, models, tables, objective, max_steps=steps, learning_rate=rate)

    fit((200, 317, 950), 200, 1e-3)
    once = Counting.traces
    assert once > 0
    for counts, steps, rate in [
        ((210, 300, 700), 500, 1e-2),
        ((950, 950, 950), 300, 1e-3),
        ((20, 30, 4000), 100, 1e-4),
        ((200, 317, 950), 37, 1e-3),
        ((200, 317, 950), 250, 1e-3),
    ]:
        fit(counts, steps, rate)
    assert Counting.traces == once
    train(key, init_vector_field(key, 4, hidden=(9, 8)), rng.normal(size=(50, 4)), objective, max_steps=100)
    assert Counting.traces > once  # negative control: another architecture is another program


def test_same_key_same_bits_and_models_do_not_mix(key, rng):
    tables = [rng.normal(size=(100, 2)), rng.normal(size=(80, 2))]
    models = [init_vector_field(k, 2, hidden=(8,)) for k in jax.random.split(key, 2)]
    first, again = (train_many(key, models, tables, Exact(), max_steps=300) for _ in range(2))
    np.testing.assert_array_equal(first[1].model.network.weights[0], again[1].model.network.weights[0])
    other = train_many(jax.random.key(5), models, tables, Exact(), max_steps=300)
    assert (first[1].model.network.weights[0] != other[1].model.network.weights[0]).any()
    changed = train_many(key, models, [tables[0] + 1, tables[1]], Exact(), max_steps=300)
    np.testing.assert_array_equal(first[1].model.network.weights[0], changed[1].model.network.weights[0])


def test_learning_rate_per_model(key, rng):
    model = init_vector_field(key, 2, hidden=(8,))
    table = rng.normal(size=(100, 2))
    slow, fast = train_many(
        key, [model, model], [table, table], Exact(), learning_rate=[1e-6, 1e-2], max_steps=200, patience=None
    )
    move = [float(jnp.abs(f.model.network.weights[0] - model.network.weights[0]).max()) for f in (slow, fast)]
    assert move[0] < 1e-3 < move[1]


def test_early_stopping_keeps_the_best(key, rng):
    """Forty rows in 10-D are memorised: the held-out loss turns, and the model of its minimum is returned."""
    rows = rng.normal(size=(40, 10))
    start = init_vector_field(key, 10, hidden=(64, 64))
    fit = train(key, start, rows, Exact(), max_steps=3000, patience=5)
    assert fit.steps[-1] < 3000
    assert fit.best_step == fit.steps[np.argmin(fit.held_out_loss)]
    to_the_end = train(key, start, rows, Exact(), max_steps=1500, patience=None)
    assert to_the_end.best_step == 1500
    fresh = rng.normal(size=(5000, 10))
    assert mean_loss(key, fit.model, Exact(), fresh) < mean_loss(key, to_the_end.model, Exact(), fresh)


def test_callback_sees_progress_and_stops(key, rng):
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.step >= 200

    fit = train(key, init_vector_field(key, 2, hidden=(4,)), rng.normal(size=(50, 2)), Exact(), callback=callback)
    assert [p.step for p in seen] == [100, 200] == list(fit.steps)
    assert seen[0].loss.shape == (1,)
    assert np.isfinite(seen[0].held_out_loss).all()


def test_held_out_rows_are_apart_and_weighted(rng):
    rows = np.arange(10.0)[:, None]
    kept, held = split_held_out(rng, rows, 0.3)
    assert len(held) == 3
    assert set(kept[:, 0]) | set(held[:, 0]) == set(range(10))
    assert not set(kept[:, 0]) & set(held[:, 0])
    block, weights = minibatches._fixed_block(rng, held[:, 0], 256)
    assert len(block) == 256
    np.testing.assert_allclose(np.average(block, weights=weights), held.mean(), rtol=1e-5)
    kept, held = split_held_out(rng, rows[:2], 0.01)
    assert len(kept) == len(held) == 1


@pytree
class BrokenField(VectorField):
    def value_and_divergence(self, x):
        score, divergence = super().value_and_divergence(x)
        return score * jnp.nan, divergence


def test_classes_of_one_shape_have_different_structures(key):
    start = init_vector_field(key, 2, hidden=(4,))
    assert jax.tree.structure(start) == jax.tree.structure(init_vector_field(jax.random.key(1), 2, hidden=(4,)))
    assert jax.tree.structure(start) != jax.tree.structure(BrokenField(start.network))
    assert jax.tree.structure(start) != jax.tree.structure(init_vector_field(key, 2, hidden=(4,), activation="relu"))


def test_non_finite_loss_names_its_cause(key, rng):
    rows = rng.normal(size=(50, 2))
    start = init_vector_field(key, 2, hidden=(4,))
    with pytest.raises(DivergedError, match="before the first update"):
        train(key, BrokenField(start.network), rows, Exact())
    with pytest.raises(ValueError, match="lower the learning rate"):
        train(key, start, rows, Exact(), learning_rate=1e30)


@pytree
class NaNLoss:
    """A held-out loss that is NaN for models with a negative `sign`."""

    sign: float

    def __call__(self, field, key, x):
        return Exact()(field, key, x) + jnp.where(self.sign < 0, jnp.nan, 0.0)


@pytest.mark.parametrize("patience", [3, None])
def test_non_finite_held_out_loss_is_noticed(key, rng, patience):
    """Training goes well, yet nothing says which weights are the best: not even the first ones."""
    tables = [rng.normal(size=(50, 2)) for _ in range(3)]
    models = [init_vector_field(key, 2, hidden=(4,)) for _ in tables]
    losses = [NaNLoss(1.0), NaNLoss(1.0), NaNLoss(-1.0)]
    with pytest.raises(DivergedError, match="finite held-out loss, got nan at step 100") as caught:
        train_many(key, models, tables, Exact(), held_out_objective=losses, max_steps=300, patience=patience)
    assert caught.value.model == 2
    fits = train_many(key, models[:2], tables[:2], Exact(), held_out_objective=losses[:2], max_steps=300)
    assert all(fit.best_step > 0 for fit in fits)


@pytest.mark.parametrize("max_steps", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (50, 100)), 250])
def test_the_number_of_steps_is_exact(key, rng, max_steps):
    """Plain Adam, written out on the same batches and keys, gives the same weights after as many steps."""
    rows, start = rng.normal(size=(60, 2)).astype(np.float32), init_vector_field(key, 2, hidden=(4,))
    seen = []
    fit = train(key, start, rows, Exact(), max_steps=max_steps, patience=None, callback=lambda p: seen.append(p.step))
    assert fit.best_step == fit.steps[-1] == seen[-1] == max_steps
    assert len(fit.steps) == len(fit.loss) == -(-max_steps // 100)
    split = minibatches._split(minibatches.host_rng(key, minibatches.Stream.HELD_OUT_ROWS, 0), len(rows), 0.2)
    optimizer = optax.chain(optax.clip_by_global_norm(10.0), optax.scale_by_adam())
    model, state, average, losses = start, optimizer.init(start), start, []

    @jax.jit
    def gradient(model, batch):
        return jax.value_and_grad(lambda m: jnp.mean(jax.vmap(lambda x: Exact()(m, key, x))(batch)))(model)

    for t in range(max_steps):
        if t % 100 == 0:
            chunk_key = jax.random.split(jax.random.fold_in(key, 2 * (t // 100) + 1), 1)[0]
            places = jax.random.randint(chunk_key, (100, 128), 0, len(split.kept))
        loss, slopes = gradient(model, rows[split.kept[np.asarray(places[t % 100])]])
        losses.append(float(loss))
        update, state = optimizer.update(slopes, state)
        rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * t / max_steps))
        model = jax.tree.map(lambda p, u, rate=rate: p - rate * u, model, update)
        decay = min(0.99, t / (t + 1))
        average = jax.tree.map(lambda a, p, decay=decay: decay * a + (1 - decay) * p, average, model)
    np.testing.assert_allclose(fit.model.network.weights[0], average.network.weights[0], atol=1e-4)
    np.testing.assert_allclose(fit.loss[-1], np.mean(losses[(max_steps - 1) // 100 * 100 :]), rtol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate > 0"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_steps": 0}, "max_steps"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
    ],
)
def test_bad_settings(key, rng, options, message):
    with pytest.raises(ValueError, match=message):
        train(key, init_vector_field(key, 2, hidden=(4,)), rng.normal(size=(50, 2)), Exact(), **options)


@pytest.mark.parametrize(
    "rows", [np.zeros((0, 2)), np.zeros((1, 2)), np.full((5, 2), np.nan), np.zeros(5), np.zeros((3, 0))]
)
def test_bad_rows(key, rows):
    with pytest.raises(ValueError, match="Expected"):
        train(key, init_vector_field(key, 2, hidden=(4,)), rows, Exact())


def test_bad_objectives(key, rng):
    with pytest.raises(ValueError, match="n_projections"):
        Sliced(n_projections=0)
    with pytest.raises(ValueError, match="projection"):
        Sliced(projection="uniform")
    model = init_vector_field(key, 2, hidden=(4,))
    with pytest.raises(ValueError, match="as many models"):
        train_many(key, [model], [], Exact())
    with pytest.raises(ValueError, match="one length"):
        train(key, model, (rng.normal(size=(5, 2)), np.zeros(4)), Exact())
    assert default_noise(100, 2) > default_noise(10_000, 2)
