"""Chains over numbers of which some are held or bounded: Metropolis-adjusted, so that their law is exact.

Free numbers move by preconditioned Langevin steps. A bounded one takes random steps that the others follow along their
regression on it, which keeps correlated columns together where a step of one alone would be refused.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import bucket, pad_rows, rows_per_call
from scorefield._jax.pytrees import compiled, pytree
from scorefield.sampling.regions import PENALTY


@pytree
class NumberRegion:
    """Where numbers may be: between `low` and `high` (d,), and where slopes @ x + offsets are at most zero."""

    low: jax.Array
    high: jax.Array
    slopes: jax.Array  # (relations, d)
    offsets: jax.Array  # (relations,)

    def excess(self, x: jax.Array) -> jax.Array:
        """Number of violations and their sizes; 0 inside."""
        beyond = jnp.maximum(self.low - x, 0.0) + jnp.maximum(x - self.high, 0.0)
        found = jnp.concatenate([beyond, jnp.maximum(self.slopes @ x + self.offsets, 0.0)])
        return jnp.sum(found + (found > 0))


@pytree
class Moves:
    """How numbers are moved: `spread` (d, d) z is a step of the free ones, `along` (d, k) are those of bounded ones."""

    spread: jax.Array  # zero in the rows and columns of numbers that are not free
    along: jax.Array  # a bounded number's step, with what the free ones follow


@partial(compiled, static_argnames=("n_steps",))
def _walk(
    keys: jax.Array, potential: Any, region: NumberRegion, moves: Moves, rows: jax.Array, step: jax.Array,
    *, n_steps: int,
) -> tuple[jax.Array, jax.Array]:  # fmt: skip
    spread, n_bounded = moves.spread, moves.along.shape[1]
    is_free = (jnp.diagonal(spread) > 0).astype(spread.dtype)

    def log_weight(x):
        return potential(x) - PENALTY * region.excess(x)

    def one_row(key, row):
        def advance(state, key):
            x, log_p, slope = state
            keys = jax.random.split(key, 4)
            z = jax.random.normal(keys[0], x.shape) * is_free
            drift = 0.5 * step * slope @ spread
            moved = x + spread @ (drift + jnp.sqrt(step) * z)
            log_moved, slope_moved = _value_and_slope(potential, log_weight, moved)
            back = -(drift + 0.5 * step * slope_moved @ spread) / jnp.sqrt(step) - z
            gain = log_moved - log_p + 0.5 * (z @ z - back @ back)
            accepted = jnp.log(jax.random.uniform(keys[1])) < gain
            x, log_p, slope = jax.tree.map(
                partial(jnp.where, accepted), (moved, log_moved, slope_moved), (x, log_p, slope)
            )
            if n_bounded:
                place = jax.random.randint(keys[2], (), 0, n_bounded)
                draws = jax.random.normal(keys[3], (2,))
                moved = x + moves.along[:, place] * draws[0]
                log_moved, slope_moved = _value_and_slope(potential, log_weight, moved)
                taken = jnp.log(jax.scipy.special.ndtr(draws[1])) < log_moved - log_p
                x, log_p, slope = jax.tree.map(
                    partial(jnp.where, taken), (moved, log_moved, slope_moved), (x, log_p, slope)
                )
            return (x, log_p, slope), accepted

        start = (row, *_value_and_slope(potential, log_weight, row))
        (x, _, _), accepted = jax.lax.scan(advance, start, jax.random.split(key, n_steps))
        return x, jnp.mean(accepted)

    return jax.vmap(one_row)(keys, rows)


def _value_and_slope(potential, log_weight, x):
    """The penalised potential and the gradient of the potential itself: a penalty has none that is of use."""
    return log_weight(x), jax.grad(potential)(x)


def walk_numbers(
    key: jax.Array, potential: Any, region: NumberRegion, moves: Moves, rows: np.ndarray, *, step: float, n_steps: int,
    points: int = 1,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Run one chain from each row; the ends of the chains, and the share of Langevin steps that were accepted."""
    size = min(rows_per_call(2 * points), bucket(len(rows)))
    ends, rates = [], []
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        keys = jax.random.split(jax.random.fold_in(key, start), size)
        moved, rate = _walk(keys, potential, region, moves, pad_rows(block, size), np.float32(step), n_steps=n_steps)
        ends.append(np.asarray(moved)[: len(block)])
        rates.append(np.asarray(rate)[: len(block)])
    return np.concatenate(ends), float(np.concatenate(rates).mean())
