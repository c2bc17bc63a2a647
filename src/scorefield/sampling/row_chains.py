"""Chains over rows of numbers and categories: Langevin steps on the numbers, redrawn columns between them.

A column is redrawn by its own margin and accepted in competition with the present value, which leaves the law of the
energy unchanged for categories, spikes and numbers alike (Tjelmeland 2004).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import bucket, pad_rows, rows_per_call
from scorefield._jax.pytrees import compiled
from scorefield.fields.rows import CANDIDATES, NO_SHARE, ColumnMargins, pick
from scorefield.sampling.regions import Region, kept_within, penalty

REDRAW_NORMALS = 2 * CANDIDATES + 2
FURTHEST = 6.0  # standard deviations that numbers are kept within: a normal score beyond it has no row


def redraw(
    z: jax.Array, potential: Any, margins: ColumnMargins, row: jax.Array, free: jax.Array, temper: Any = 1.0,
    region: Region | None = None,
) -> jax.Array:  # fmt: skip
    """The row with one random free column drawn anew by the energy margins + temper (potential - margins).

    `z` are REDRAW_NORMALS standard normal numbers.
    """
    column = pick(z[0], jnp.where(free, 0.0, NO_SHARE))
    rows, log_margin = (margins if region is None else region).draw(z[2:].reshape(2, CANDIDATES), row, column)

    def log_weight(candidate: jax.Array) -> jax.Array:
        base = margins.potential(candidate)
        return base + temper * (potential(candidate) - base) - penalty(region, candidate)

    chosen = pick(z[1], jax.vmap(log_weight)(rows) - log_margin)
    return jnp.where(free.any(), rows[chosen], row)


def langevin(
    z: jax.Array, potential: Any, margins: ColumnMargins, color: jax.Array, row: jax.Array, free: jax.Array, step: Any
) -> jax.Array:
    """One Langevin step of the free numbers, in units of the noise that the energy was learned with."""
    layout = margins.layout
    x, known, codes = layout.split(row)
    slope = jax.grad(potential)(row)[: len(x)] * free
    shift = step * (slope @ color.T) @ color + jnp.sqrt(2 * step) * z @ color
    # Noise of other numbers must not reach held ones; `known` is zero at spikes.
    return layout.join(jnp.clip(x + known * free * shift, -FURTHEST, FURTHEST), known, codes)


def free_numbers(margins: ColumnMargins, free: jax.Array) -> jax.Array:
    """The mask of columns as one of numbers (p,)."""
    places = [(v, j) for v, (j, _) in enumerate(margins.layout.variables) if j >= 0]
    mask = jnp.zeros(margins.layout.n_numbers)
    return mask.at[jnp.asarray([j for _, j in places], int)].set(free[jnp.asarray([v for v, _ in places], int)])


@partial(compiled, loops=True, static_argnames=("n_steps",))
def _walk(
    keys: jax.Array, energy: Any, margins: ColumnMargins, color: jax.Array, rows: jax.Array, free: jax.Array,
    step: jax.Array, region: Region | None, redrawn_only: jax.Array | None, *, n_steps: int,
) -> jax.Array:  # fmt: skip
    def one_row(key, row, free):
        numbers = free_numbers(margins, free if redrawn_only is None else free & ~redrawn_only)

        def advance(row, key):
            z = jax.random.normal(key, (REDRAW_NORMALS + len(numbers),))
            if margins.layout.n_numbers:
                moved = langevin(z[REDRAW_NORMALS:], energy.potential, margins, color, row, numbers, step)
                row = kept_within(region, moved, row)
            return redraw(z[:REDRAW_NORMALS], energy.potential, margins, row, free, region=region), None

        row = jax.lax.scan(advance, row, jax.random.split(key, n_steps))[0]
        if not margins.layout.n_numbers:
            return row
        # The energy is that of rows with noise: this is the mean of the row without it (Tweedie's formula).
        slope = jax.grad(energy.potential)(row)[: len(numbers)] * numbers
        return kept_within(region, margins.layout.moved(row, numbers * ((slope @ color.T) @ color)), row)

    return jax.vmap(one_row)(keys, rows, free)


def walk(
    key: jax.Array, energy: Any, margins: ColumnMargins, color: np.ndarray, rows: np.ndarray, free: np.ndarray, *,
    step: float, n_steps: int, region: Region | None = None, redrawn_only: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Run one chain of the energy, which has a potential of mixed rows, from each row; columns not free are held.

    `color` (p, p) is that of the noise z color that the energy was learned with, and a step is in its units. The last
    numbers are denoised. Chains stay within a `region`; columns of the mask `redrawn_only`, such as those of narrow
    bounds, which steps would leave, are neither moved by steps nor denoised.
    """
    size = min(rows_per_call(CANDIDATES), bucket(len(rows)))
    parts = []
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        keys = jax.random.split(jax.random.fold_in(key, start), size)
        moved = _walk(
            keys, energy, margins, color, pad_rows(rows[block], size), pad_rows(free[block], size), np.float32(step),
            region, redrawn_only, n_steps=n_steps,
        )  # fmt: skip
        parts.append(np.asarray(moved)[: len(rows[block])])
    return np.concatenate(parts) if parts else rows[:0]
