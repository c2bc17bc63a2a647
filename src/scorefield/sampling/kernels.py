"""Markov kernels of one chain, and the driver that runs them over blocks of chains.

The transition of Eq:Langevin_dynamics, its annealed and Metropolis-adjusted forms, and the probability-flow step.
"""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import bucket, rows_per_call
from scorefield._jax.pytrees import compiled, pytree, static
from scorefield.fields.base import Field
from scorefield.fields.diffusion import DiffusionField

CHUNK_VALUES = 1 << 24  # floats of kept samples per compiled call (64 MiB)


@pytree
class LangevinKernel:
    """x + epsilon/2 s(x) + sqrt(epsilon) z."""

    field: Field
    step_size: jax.Array

    def init(self, x):
        return x

    def step(self, key, x, t):
        noise = jax.random.normal(key, x.shape)
        return x + 0.5 * self.step_size * self.field(x) + jnp.sqrt(self.step_size) * noise, jnp.ones(())

    def position(self, state):
        return state


@cache
def _blackjax(name: str) -> tuple[Any, Any]:
    """A module of blackjax and its kernel, imported late because importing blackjax starts JAX's backend."""
    with jax.ensure_compile_time_eval():  # the first use may be inside a trace
        import blackjax

        module = getattr(blackjax, name)
        return module, module.build_kernel()


@pytree
class AdjustedKernel:
    """A Metropolis-adjusted kernel of blackjax on the potential of a field."""

    field: Field
    step_size: jax.Array
    n_leapfrog: int | None = static(default=None)

    def init(self, x):
        return _blackjax("hmc" if self.n_leapfrog else "mala")[0].init(x, self.field.potential)

    def step(self, key, state, t):
        if self.n_leapfrog:
            mass = jnp.ones_like(state.position)
            _, kernel = _blackjax("hmc")
            state, info = kernel(key, state, self.field.potential, self.step_size, mass, self.n_leapfrog)
        else:  # blackjax moves by step * gradient, the paper by epsilon / 2 * gradient
            _, kernel = _blackjax("mala")
            state, info = kernel(key, state, self.field.potential, self.step_size / 2)
        return state, info.acceptance_rate

    def position(self, state):
        return state.position


@pytree
class AnnealedKernel:
    """Langevin steps of size epsilon sigma^2 at geometrically decreasing noise levels sigma."""

    field: DiffusionField
    step_size: jax.Array
    n_levels: int = static()
    steps_per_level: int = static()

    def init(self, x):
        return x

    def step(self, key, x, t):
        low, high = self.field.sigma_min, self.field.sigma_max
        sigma = high * (low / high) ** ((t // self.steps_per_level) / max(self.n_levels - 1, 1))
        return LangevinKernel(self.field.at(sigma), self.step_size * sigma**2).step(key, x, t)

    def position(self, state):
        return state


@pytree
class ReverseKernel:
    """Heun's second-order step of the probability-flow equation dx/dsigma = -sigma s(x, sigma), towards small sigma."""

    field: DiffusionField
    n_levels: int = static()

    def init(self, x):
        return x

    def step(self, key, x, t):
        low, high = self.field.sigma_min, self.field.sigma_max
        level = lambda i: high * (low / high) ** (i / self.n_levels)  # noqa: E731
        now, then = level(t), level(t + 1)
        slope = -now * self.field.at(now)(x)
        euler = x + (then - now) * slope
        return x + (then - now) * 0.5 * (slope - then * self.field.at(then)(euler)), jnp.ones(())

    def position(self, state):
        return state


@partial(compiled, static_argnames=("n_keep",))
def _run(key, kernel, index, starts, centre, limit, n_steps, n_discard, *, n_keep):
    """Run a block of chains; returns kept samples (chains, n_keep, d), divergence flags and mean acceptance."""

    def one_chain(i, start):
        chain_key = jax.random.fold_in(key, i)

        def body(t, carry):
            state, kept, ok, acceptance = carry
            state, accepted = kernel.step(jax.random.fold_in(chain_key, t), state, t)
            x = kernel.position(state)
            ok &= jnp.all(jnp.abs(x - centre) < limit)  # false for NaN too
            # Discarded steps write to slot 0, which the first kept step overwrites.
            kept = kept.at[jnp.maximum(t - n_discard, 0)].set(x)
            return state, kept, ok, acceptance + accepted

        carry = (kernel.init(start), jnp.zeros((n_keep, start.shape[0])), jnp.bool_(True), jnp.zeros(()))
        _, kept, ok, acceptance = jax.lax.fori_loop(0, n_steps, body, carry)
        return kept, ok, acceptance / n_steps

    return jax.vmap(one_chain)(index, starts)


def run_chains(key, kernel, starts, centre, limit, n_steps, n_discard):
    """Run all chains in blocks, which bound memory and have padded sizes so that few programs are compiled."""
    n_chains, d = starts.shape
    n_keep = n_steps - n_discard
    slots = bucket(n_keep, smallest=1)
    size = min(bucket(n_chains, smallest=64), rows_per_call(kernel.field.points), max(64, CHUNK_VALUES // (slots * d)))
    blocks = []
    for begin in range(0, n_chains, size):
        index = np.minimum(np.arange(begin, begin + size), n_chains - 1)
        chains, ok, rate = _run(key, kernel, index, starts[index], centre, limit, n_steps, n_discard, n_keep=slots)
        used = min(size, n_chains - begin)
        blocks.append((np.asarray(chains)[:used, :n_keep], np.asarray(ok)[:used], np.asarray(rate)[:used]))
    return tuple(np.concatenate(block) for block in zip(*blocks, strict=True))
