"""Regions that chains over rows are kept within: bounds of numbers, levels, and inequalities between columns.

Proposals from the margins are drawn within the bounds, and steps that leave a region are not taken: inside of it the
law of the energy is the same as without one. A chain that starts outside is drawn in by a penalty.
"""

from typing import Any

import jax
import jax.numpy as jnp

from scorefield._jax.pytrees import pytree
from scorefield.fields.rows import NO_SHARE, ColumnMargins

PENALTY = 1e4  # log odds per violation, and per unit of it: more than any energy gives


@pytree
class Inequalities:
    """Sums of columns that are at most zero: a missing cell keeps them.

    A term is a number, which a piecewise linear map takes to the units of its column, or a level of a category, or
    either where a number has spikes.
    """

    numbers: jax.Array  # (terms,) indices; -1 for none
    categories: jax.Array  # (terms,)
    scores: jax.Array  # (terms, knots) of numbers
    values: jax.Array  # (terms, knots) times the sign of the term, in units of the relation's spread
    levels: jax.Array  # (terms, most levels) likewise
    members: jax.Array  # (relations, terms): 1 where a term belongs to a relation
    constants: jax.Array  # (relations,)

    def excess(self, x: jax.Array, known: jax.Array, codes: jax.Array) -> jax.Array:
        """By how much each of them is violated, (relations,)."""
        at = jax.vmap(jnp.interp)(_at(x, self.numbers), self.scores, self.values)
        own = jnp.where(self.categories >= 0, _at(codes, self.categories), 0)
        of_level = jnp.take_along_axis(self.levels, jnp.maximum(own, 0)[:, None], axis=1)[:, 0]
        is_number = (self.numbers >= 0) & (own == 0)
        present = jnp.where(is_number, _at(known, self.numbers) > 0, own >= 0)
        total = self.members @ jnp.where(is_number, at, of_level) + self.constants
        missing = self.members @ ~present > 0
        return jnp.where(missing, 0.0, jnp.maximum(total, 0.0))


def _at(values: jax.Array, places: jax.Array) -> jax.Array:
    """Values at the places, zero where there is none."""
    if not values.shape[0]:
        return jnp.zeros(places.shape, values.dtype)
    return jnp.where(places >= 0, values[jnp.maximum(places, 0)], 0)


@pytree
class Region:
    """Where rows may be: between `low` and `high` (p,), at levels with a share, and within inequalities."""

    margins: ColumnMargins  # shares of NO_SHARE for levels that are not allowed
    low: jax.Array
    high: jax.Array
    inequalities: Inequalities | None = None

    def draw(self, z: jax.Array, row: jax.Array, column: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`ColumnMargins.draw` within the bounds."""
        rows, log_margin = self.margins.draw(z, row, column, (self.low, self.high))
        # A row outside of the region must not stay for being improbable by the margins.
        return rows, jnp.where(log_margin > NO_SHARE / 2, log_margin, 0.0)

    def excess(self, row: jax.Array) -> jax.Array:
        """Number of violations and their sizes; 0 inside."""
        x, known, codes = self.margins.layout.split(row)
        beyond = known * (jnp.maximum(self.low - x, 0.0) + jnp.maximum(x - self.high, 0.0))
        parts = [beyond, self._forbidden(codes)]
        if self.inequalities is not None:
            parts.append(self.inequalities.excess(x, known, codes))
        found = jnp.concatenate(parts)
        return jnp.sum(found + (found > 0))

    def _forbidden(self, codes: jax.Array) -> jax.Array:
        """1 for columns whose level is not allowed."""
        columns, categories = [], []
        for column, (_, category) in enumerate(self.margins.layout.variables):
            if category >= 0:
                columns.append(column)
                categories.append(category)
        if not columns:
            return jnp.zeros(0)
        own = codes[jnp.asarray(categories)]
        shares = jnp.asarray(self.margins.log_shares)[jnp.asarray(columns), jnp.maximum(own, 0)]
        return jnp.where((own >= 0) & (shares <= NO_SHARE / 2), 1.0, 0.0)


def kept_within(region: Region | None, moved: jax.Array, row: jax.Array) -> jax.Array:
    """The moved row, or the row before where the move leads out of a region or further away from it."""
    if region is None:
        return moved
    return jnp.where(region.excess(moved) <= region.excess(row), moved, row)


def penalty(region: Region | None, row: jax.Array) -> Any:
    """What is taken from the log weight of a row outside of a region."""
    return 0.0 if region is None else PENALTY * region.excess(row)
