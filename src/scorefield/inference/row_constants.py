"""Normalising constants of energies over mixed rows, by annealed importance sampling (Neal 2001)."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from scorefield._jax.pytrees import compiled
from scorefield.sampling.row_chains import REDRAW_NORMALS, redraw

CHAINS = 256
TEMPERATURES = 64  # from the margins, whose constant is known, to the energy
MOVES = 4  # redrawn columns at each temperature


@partial(compiled, static_argnames=("n_chains",))
def _log_weights(key: jax.Array, energy: Any, row: jax.Array, *, n_chains: int) -> jax.Array:
    margins = energy.joint.base
    free = margins.layout.present(row)

    def one_chain(key):
        key_start, key_moves = jax.random.split(key)

        def from_margin(row, step):
            column, z = step
            drawn = margins.draw(z, row, column)[0][1]
            return jnp.where(free[column], drawn, row), None

        columns = jnp.arange(len(margins.layout.variables))
        start, _ = jax.lax.scan(from_margin, row, (columns, jax.random.normal(key_start, (len(columns), 2, 2))))

        def warm(state, step):
            row, log_weight = state
            temper, key = step
            log_weight += (energy.potential(row) - margins.potential(row)) / TEMPERATURES

            def move(row, z):
                return redraw(z, energy.potential, margins, row, free, temper), None

            row, _ = jax.lax.scan(move, row, jax.random.normal(key, (MOVES, REDRAW_NORMALS)))
            return (row, log_weight), None

        tempers = jnp.arange(1, TEMPERATURES + 1) / TEMPERATURES
        keys = jax.random.split(key_moves, TEMPERATURES)
        return jax.lax.scan(warm, (start, jnp.zeros(())), (tempers, keys))[0][1]

    return jax.vmap(one_chain)(jax.random.split(key, n_chains))


def row_constant(key: jax.Array, energy: Any, row: np.ndarray) -> tuple[float, float]:
    """Minus the log of the integral of exp(energy) over the cells that a row has, and its standard error."""
    weights = np.asarray(_log_weights(key, energy, row, n_chains=CHAINS), np.float64)
    log_mean = logsumexp(weights) - np.log(len(weights))
    relative = np.exp(weights - log_mean)
    return float(-log_mean), float(relative.std(ddof=1) / np.sqrt(len(weights)))
