"""Samplers: moments on an asymmetric truth with a control that must fail, the paper's bookkeeping, divergence."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scorefield import HMC, MALA, AnnealedLangevin, Langevin, ReverseDiffusion, ScoreDensity
from scorefield._jax.errors import DivergedError
from scorefield._jax.pytrees import pytree
from scorefield.fields.base import Field
from scorefield.fields.diffusion import DiffusionField, NoisyField, init_diffusion_field
from scorefield.fields.gaussian import standard_gaussian
from scorefield.fields.mixtures import mixture
from scorefield.fields.neural import EnergyField, init_vector_field
from scorefield.sampling import kernels as chains
from scorefield.sampling.samplers import Samples


@pytree
class DoubledDrift(Field):
    """A wrong field: its Langevin target is p^2, too narrow."""

    inner: Field
    conservative = True

    def __call__(self, x):
        return 2 * self.inner(x)

    def potential(self, x):
        return 2 * self.inner.potential(x)


def moment_errors(samples: Samples, truth, n_chains):
    """|mean - truth| and |second moment - truth| in Monte-Carlo standard errors taken between independent chains."""
    mean, covariance = (np.asarray(a) for a in truth.moments())
    # Rows come slot by slot over the chains: a chain is every n_chains-th row.
    by_chain = samples.rows.reshape(-1, n_chains, samples.rows.shape[1])
    errors = []
    for values, target in [(by_chain, mean), ((by_chain - mean) ** 2, np.diag(covariance))]:
        chain_means = values.mean(axis=0)
        standard_error = chain_means.std(axis=0, ddof=1) / np.sqrt(n_chains)
        errors.append(np.abs(chain_means.mean(axis=0) - target) / standard_error)
    return np.concatenate(errors)


SAMPLERS = [
    Langevin(step_size=0.01, chain_length=1000, discard=0.5),
    MALA(step_size=0.3, chain_length=400, discard=0.5),
    HMC(step_size=0.25, n_leapfrog=6, chain_length=100, discard=0.5),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_moments_of_an_asymmetric_mixture(key, skewed_mixture, sampler):
    n_chains = 400
    n_keep = sampler._schedule()[0] - sampler._schedule()[1]
    rows = np.asarray(skewed_mixture.sample(key, 300))
    good = sampler.sample(key, skewed_mixture, n_chains * n_keep, rows)
    assert moment_errors(good, skewed_mixture, n_chains).max() < 4.5
    bad = sampler.sample(key, DoubledDrift(skewed_mixture), n_chains * n_keep, rows)
    assert moment_errors(bad, skewed_mixture, n_chains).max() > 8  # negative control
    assert good.n_diverged == 0
    assert (good.acceptance is None) == (type(sampler) is Langevin)


def test_diagnostics_tell_mixed_chains_from_stuck_ones(key, skewed_mixture):
    rows = np.asarray(skewed_mixture.sample(key, 50))
    mixed = HMC(step_size=0.3, n_leapfrog=10, chain_length=200).sample(key, skewed_mixture, 5000, rows)
    stuck = Langevin(step_size=1e-5, chain_length=200, discard=0.5).sample(key, skewed_mixture, 5000, rows)
    assert (mixed.r_hat < 1.05).all()
    assert (stuck.r_hat > 1.5).all()
    assert (mixed.ess > 10 * stuck.ess).all()
    short = Langevin(chain_length=4).sample(key, skewed_mixture, 100, rows)
    assert short.r_hat is None  # too short to say


def test_adjusted_samplers_are_exact_at_steps_where_langevin_is_biased(key):
    """Unadjusted Langevin on N(0, 1) with step e has variance 1 / (1 - e/4): a closed form for its bias."""
    truth = mixture([1.0], [[0.0]], [[[1.0]]])
    rows = np.asarray(truth.sample(key, 200))
    step, n_chains, length = 1.0, 500, 200
    variance = {}
    for sampler in (Langevin(step, length, 0.5), MALA(step, length, 0.5)):
        drawn = sampler.sample(key, truth, n_chains * length // 2, rows).rows
        variance[type(sampler).__name__] = drawn.var()
    assert abs(variance["Langevin"] - 1 / (1 - step / 4)) < 0.03
    assert abs(variance["MALA"] - 1) < 0.03


def test_half_precision_agrees_with_single(key, skewed_mixture):
    """The noise is the same, so chains can be compared one by one; a network of two digits fails the same test."""
    rows = np.asarray(skewed_mixture.sample(key, 500))
    energy = ScoreDensity(model="energy", hidden=(32, 32), max_steps=600, random_state=0).fit(rows)
    field = energy.model_.field
    assert np.abs(jax.vmap(field)(rows) - jax.vmap(field.base)(rows)).max() > 1  # the network has something to say

    def drawn(field, precision):
        return Langevin(0.02, 300, 0.99, precision=precision).sample(key, field, 6000, rows).rows

    def distance(a, b):
        return np.sqrt(np.mean((a - b) ** 2, axis=0)) / rows.std(axis=0)

    single, half = drawn(field, "single"), drawn(field, "half")
    rounded = jax.tree.map(lambda w: jnp.round(w * 4) / 4, field.network)
    coarse = drawn(EnergyField(rounded, field.base), "single")
    other = Langevin(0.02, 300, 0.99).sample(jax.random.key(9), field, 6000, rows).rows
    assert half.dtype == single.dtype
    assert 0 < distance(single, half).max() < 0.05
    assert distance(single, coarse).max() > 0.1
    # Far below what another draw of the same size changes in the means and spreads.
    for moment in (np.mean, np.std):
        change = np.abs(moment(half, axis=0) - moment(single, axis=0)).max()
        assert change < 0.25 * np.abs(moment(other, axis=0) - moment(single, axis=0)).max()
    with pytest.raises(ValueError, match="Expected precision"):
        drawn(field, "double")


def test_paper_bookkeeping(key, paper_classes):
    """100 chains of 1000 steps with 200 discarded are 80,000 rows; small cases are those of the paper's tables."""
    truth = paper_classes[0]
    rows = np.asarray(truth.sample(key, 200))
    drawn = Langevin(step_size=0.003, chain_length=1000, discard=0.2).sample(key, truth, 80_000, rows)
    assert drawn.rows.shape == (80_000, 2)
    assert len(set(drawn.parents)) == 100
    for length, discard, kept in [
        (10, 0.2, 8),
        (20, 0.9, 2),
        (40, 0.9, 4),
        (300, 0.1, 270),
        (100, 0.3, 70),
        (100, 0.29, 71),
        (1, 0.99, 1),
    ]:
        n_steps, n_discard = Langevin(chain_length=length, discard=discard)._schedule()
        assert n_steps - n_discard == kept


def test_one_langevin_step_is_the_equation(key):
    """x + eps/2 s + sqrt(eps) z: from one point, mean and variance of a single step are known."""
    field = standard_gaussian(2)
    start, step = np.array([[3.0, -2.0]]), 0.4
    rows = Langevin(step, chain_length=1, discard=0.0).sample(key, field, 20_000, start).rows
    error = np.sqrt(step / len(rows))
    np.testing.assert_allclose(rows.mean(axis=0), start[0] * (1 - step / 2), atol=4 * error)
    np.testing.assert_allclose(rows.var(axis=0), step, rtol=0.05)


def test_discarded_states_are_the_first(key):
    """Far from the mode a chain drifts towards it: what is kept with discard is nearer than what is kept without."""
    field, start = standard_gaussian(1), [[50.0]]
    early = Langevin(0.1, 10, 0.0).sample(key, field, 10, start).rows
    late = Langevin(0.1, 10, 0.5).sample(key, field, 5, start).rows
    np.testing.assert_array_equal(late, early[5:])
    assert late.max() < early.max()


def test_start_rules(key):
    truth = mixture([1.0], [[0.0, 0.0]], np.eye(2)[None])
    rows = np.array([[0.05, 0.0], [5.0, 0.0]], np.float32)  # |s| is .05 and 5: odds of 100 to 1
    parents = Langevin(1e-4, 1, 0.0, "inverse-score").sample(key, truth, 5000, rows).parents
    share = (parents == 1).mean()
    assert abs(share - 1 / 101) < 4 * np.sqrt(0.01 / 5000)
    uniform = Langevin(1e-4, 1, 0.0).sample(key, truth, 5000, rows).parents
    assert (uniform == 1).sum() == 2500
    near = Langevin(1e-6, 1, 0.0).sample(key, truth, 100, rows)
    assert np.abs(near.rows - rows[near.parents]).max() < 0.01  # parents name the rows that chains started from


def test_starts_are_even_and_the_extra_ones_are_random():
    """Each row starts k or k + 1 chains; over many seeds every row is among the extra ones equally often."""
    n_rows, n_chains, n_seeds = 100, 150, 400
    rows = np.arange(n_rows, dtype=np.float32)[:, None]
    extra = np.zeros(n_rows)
    for seed in range(n_seeds):
        starts, parents = Langevin()._starts(np.random.default_rng(seed), None, rows, n_chains)
        counts = np.bincount(parents, minlength=n_rows)
        assert set(counts) == {1, 2}
        np.testing.assert_array_equal(starts[:, 0], parents)
        extra += counts - 1
    error = np.sqrt(0.5 * 0.5 / n_seeds)
    assert np.abs(extra / n_seeds - 0.5).max() < 4.5 * error
    for n in (40, 100, 300):
        _, parents = Langevin()._starts(np.random.default_rng(0), None, rows, n)
        assert np.ptp(np.bincount(parents, minlength=n_rows)) == (n == 40)


def test_chunks_do_not_change_the_draws(key, monkeypatch):
    field = standard_gaussian(2)  # products with ones and zeros are exact in chunks of any size
    rows = np.asarray(field.sample(key, 50))
    whole = Langevin(chain_length=5).sample(key, field, 600, rows).rows
    monkeypatch.setattr(chains, "CHUNK_VALUES", 1)
    np.testing.assert_array_equal(Langevin(chain_length=5).sample(key, field, 600, rows).rows, whole)


def test_too_large_a_step_is_flagged_and_retried(key, skewed_mixture):
    rows = np.asarray(skewed_mixture.sample(key, 50))
    drawn = Langevin(step_size=1e3, chain_length=50).sample(key, skewed_mixture, 200, rows)
    assert drawn.n_diverged > 0
    assert drawn.step_size < 1e3
    assert np.abs(drawn.rows).max() < 1e4
    calm = Langevin(step_size=0.01, chain_length=50).sample(key, skewed_mixture, 200, rows)
    assert calm.n_diverged == 0
    assert calm.step_size == 0.01


@pytree
class NaNField(Field):
    conservative = True

    def __call__(self, x):
        return x * jnp.nan

    def potential(self, x):
        return jnp.sum(x) * jnp.nan


def test_a_field_of_nan_never_returns(key):
    with pytest.raises(DivergedError, match="not finite"):
        Langevin().sample(key, NaNField(), 10, [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="finite scores"):
        Langevin(start="inverse-score").sample(key, NaNField(), 10, [[0.0, 1.0], [1.0, 0.0]])


def test_diffusion_samplers_reach_a_known_gaussian(key):
    """An untrained diffusion field is exact for Gaussian rows, so both samplers must return its moments."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 2)) @ [[1.0, 0.6], [0.0, 0.5]] + [3.0, -1.0]
    field = init_diffusion_field(key, rows, hidden=(8,))
    target = np.cov(rows.T) + float(field.sigma_min) ** 2 * np.eye(2)
    n = 8000
    for sampler in (ReverseDiffusion(), AnnealedLangevin()):
        drawn = sampler.sample(key, field, n, rows)
        assert (drawn.parents == -1).all()
        error = np.sqrt(np.diag(target) / n)
        assert (np.abs(drawn.rows.mean(axis=0) - rows.mean(axis=0)) < 4.5 * error).all()
        np.testing.assert_allclose(np.cov(drawn.rows.T), target, atol=0.08)
    hasty = AnnealedLangevin(steps_per_level=1).sample(key, field, n, rows)
    assert np.abs(np.cov(hasty.rows.T) - target).max() > 0.3  # negative control: chains lag behind the levels
    coarse = ReverseDiffusion(n_levels=2).sample(key, field, n, rows)
    assert np.abs(np.cov(coarse.rows.T) - target).max() > 0.3  # negative control: two steps are too few


@pytree
class FragileField(DiffusionField):
    """A diffusion field that is NaN beyond `reach` standard deviations of the first column."""

    reach: float

    def at(self, sigma):
        return FragileNoisyField(self, jnp.asarray(sigma, jnp.float32))


@pytree
class FragileNoisyField(NoisyField):
    def __call__(self, x):
        inputs = self.parent.inputs(x, self.sigma)[1]
        return super().__call__(x) + jnp.where(jnp.abs(inputs[0]) > self.parent.reach, jnp.nan, 0.0)


def test_reverse_diffusion_redraws_the_chains_that_diverged(key, rng):
    """Chains start from N(0, 1) in units of the field: 1 % are lost at 2.58 of them, and 62 % at half a unit."""
    rows = rng.normal(size=(500, 2)).astype(np.float32)
    field = init_diffusion_field(key, rows, hidden=(8,))
    values = [getattr(field, f.name) for f in dataclasses.fields(field)]
    drawn = ReverseDiffusion().sample(key, FragileField(*values, 2.58), 2000, rows)
    assert drawn.rows.shape == (2000, 2)
    assert np.isfinite(drawn.rows).all()
    assert len(np.unique(drawn.rows, axis=0)) == 2000
    assert abs(drawn.n_diverged / 2000 - 0.01) < 4.5 * np.sqrt(0.01 / 2000)
    whole = ReverseDiffusion().sample(key, field, 2000, rows)
    assert whole.n_diverged == 0
    np.testing.assert_allclose(whole.rows[:5], drawn.rows[:5], rtol=1e-4)  # the chains that were kept are the same
    with pytest.raises(DivergedError, match=r"diverged ones in 3 runs"):
        ReverseDiffusion().sample(key, FragileField(*values, 0.5), 2000, rows)


def test_samplers_say_what_they_need(key):
    network, rows = init_vector_field(key, 2, hidden=(4,)), [[0.0, 0.0], [1.0, 1.0]]
    for sampler in (MALA(), HMC()):
        with pytest.raises(ValueError, match="needs a field with a potential"):
            sampler.sample(key, network, 5, rows)
    for sampler in (AnnealedLangevin(), ReverseDiffusion()):
        with pytest.raises(ValueError, match="needs a noise-conditional field"):
            sampler.sample(key, network, 5, rows)


@pytest.mark.parametrize(
    "sampler",
    [
        Langevin(step_size=-1), Langevin(step_size=0.0),
        Langevin(step_size=float("nan")), Langevin(discard=1.0), Langevin(discard=-0.1),
        Langevin(chain_length=0), Langevin(chain_length=2.5), Langevin(start="noise"), HMC(n_leapfrog=0),
    ],
    ids=repr,
)  # fmt: skip
def test_bad_settings(key, sampler):
    with pytest.raises(ValueError, match="Expected"):
        sampler.sample(key, standard_gaussian(2), 5, [[0.0, 0.0], [1.0, 1.0]])


def test_bad_requests(key):
    with pytest.raises(ValueError, match="n >= 1"):
        Langevin().sample(key, standard_gaussian(2), 0, [[0.0, 0.0]])
    with pytest.raises(ValueError, match="at least 1 rows"):
        Langevin().sample(key, standard_gaussian(2), 5, np.zeros((0, 2)))
    for sampler in (AnnealedLangevin(n_levels=0), ReverseDiffusion(n_levels=0)):
        field = init_diffusion_field(key, [[0.0], [1.0]], hidden=(4,))
        with pytest.raises(ValueError, match="n_levels"):
            sampler.sample(key, field, 5, [[0.0]])


def test_parameters_as_scikit_learn_expects_them():
    sampler = HMC(step_size=0.5)
    assert sampler.get_params() == {
        "step_size": 0.5,
        "n_leapfrog": 10,
        "chain_length": 100,
        "discard": 0.5,
        "start": "data",
    }
    assert sampler.set_params(n_leapfrog=3).n_leapfrog == 3
    shown = "step_size=0.01, chain_length=100, discard=0.2, start='data', precision='auto', temperature=1.0"
    assert repr(Langevin()) == f"Langevin({shown})"
    assert Langevin() == Langevin()
    assert Langevin() != MALA()
    with pytest.raises(ValueError, match="'epsilon'"):
        sampler.set_params(epsilon=1)


@pytest.mark.parametrize("sampler", [Langevin(0.05, 400, 0.5, temperature=4.0), MALA(0.5, 200, 0.5, temperature=4.0)])
def test_a_temperature_widens_the_law(sampler, key):
    """p^(1/4) of a standard Gaussian has twice its deviation."""
    rows = sampler.sample(key, standard_gaussian(2), 20_000, np.zeros((1, 2))).rows
    np.testing.assert_allclose(rows.std(axis=0), 2.0, rtol=0.1)
    with pytest.raises(ValueError, match="temperature > 0"):
        type(sampler)(temperature=0.0).sample(key, standard_gaussian(2), 10, np.zeros((1, 2)))
