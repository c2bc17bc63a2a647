"""Normalisers by annealed importance sampling (Neal 2001), for laws that plain importance sampling cannot reach."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.pytrees import compiled

TARGET_ACCEPTANCE = 0.57  # of Metropolis-adjusted Langevin steps in many dimensions (Roberts & Rosenthal 1998)


def _finite(values: jax.Array, instead: float) -> jax.Array:
    return jnp.where(jnp.isfinite(values), values, instead)


@compiled
def _annealed(key: jax.Array, log_density: Any, proposal: Any, starts: jax.Array, n_levels: jax.Array) -> jax.Array:
    base, d = proposal.base, starts.shape[-1]

    def ends(z):
        """Logs of the proposal and of the target at points of whitened coordinates, and their gradients."""
        first, second = (
            jax.vmap(jax.value_and_grad(lambda u, end=end: end(base.mean + u @ base.color)))(z)
            for end in (proposal.log_density, log_density)
        )
        values = jnp.stack([first[0], _finite(second[0], -1e6)])
        return values, jnp.stack([first[1], _finite(second[1], 0.0)])

    def cut(drift, size):
        """Steep drifts far out are cut to the length of the noise, which Metropolis' rule corrects for."""
        length = jnp.linalg.norm(drift, axis=-1, keepdims=True)
        return drift * jnp.minimum(1.0, jnp.sqrt(size * d) / jnp.maximum(length, 1e-9))

    def step(level, carry):
        z, values, slopes, log_weights, log_step = carry
        mix = jnp.stack([1 - (level + 1) / n_levels, (level + 1) / n_levels])
        log_weights = log_weights + (values[1] - values[0]) / n_levels
        noise_key, accept_key = jax.random.split(jax.random.fold_in(key, level))
        size = jnp.exp(log_step)
        noise = jax.random.normal(noise_key, z.shape)
        moved = z + cut(0.5 * size * jnp.tensordot(mix, slopes, 1), size) + jnp.sqrt(size) * noise
        new_values, new_slopes = ends(moved)
        back = z - moved - cut(0.5 * size * jnp.tensordot(mix, new_slopes, 1), size)
        odds = mix @ (new_values - values) + 0.5 * jnp.sum(noise**2 - back**2 / size, axis=-1)
        accept = jnp.log(jax.random.uniform(accept_key, odds.shape)) < odds
        log_step = log_step + 0.2 * (jnp.mean(accept) - TARGET_ACCEPTANCE)
        return (
            jnp.where(accept[:, None], moved, z),
            jnp.where(accept, new_values, values),
            jnp.where(accept[:, None], new_slopes, slopes),
            log_weights,
            log_step,
        )

    begin = (starts, *ends(starts), jnp.zeros(len(starts)), jnp.log(1.4 * d ** (-1 / 3)))
    return jax.lax.fori_loop(0, n_levels, step, begin)[3]


def annealed_log_weights(
    key: jax.Array, log_density: Any, proposal: Any, draws: np.ndarray, n_levels: int
) -> np.ndarray:
    """Log weights (n,) whose exponentials have the mean Z, from draws of the proposal.

    The draws are moved through `n_levels` laws proposal^(1 - b) density^b with b from 0 to 1, each time by one
    Metropolis-adjusted Langevin step whose size is adapted to the acceptance of all draws.
    """
    whitened = proposal.base.whitened(draws).astype(np.float32)
    return np.asarray(_annealed(key, log_density, proposal, whitened, np.int32(n_levels)), np.float64)
