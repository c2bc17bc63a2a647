"""Rows of numbers, categories and gaps as flat vectors, and the independent columns that their energies start from.

A row is [numbers (p), known (p), codes (q)]: `known` is 1 where a number has a value, and a code of -1 is a gap. A
column is a number, a category, or both: a number with spikes, whose code is 0 for a number and k for its k-th spike.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.pytrees import leaf, pytree, static

CANDIDATES = 8  # values of a column that are compared: the present one and draws from the column's margin
NO_SHARE = -1e9  # log share of levels that a column does not have; -inf would give NaN in averages of weights
SMOOTHING = 0.5  # rows added to the count of every level (Jeffreys' prior)


@pytree
class RowLayout:
    """Where the parts of a flat row are."""

    n_numbers: int = static()
    sizes: tuple[int, ...] = static()  # levels of each category
    variables: tuple[tuple[int, int], ...] = static()  # number and category of each column, -1 for none
    ordered: tuple[bool, ...] = static()  # whether the levels of each category have an order

    def split(self, row: Any) -> tuple[Any, Any, Any]:
        """Numbers, `known` and integer codes of a row, or of rows (..., 2 p + q) of numpy."""
        p = self.n_numbers
        return row[..., :p], row[..., p : 2 * p], row[..., 2 * p :].astype(int)

    def join(self, numbers: jax.Array, known: jax.Array, codes: jax.Array) -> jax.Array:
        """The flat row; inverse of `split`."""
        return jnp.concatenate([numbers, known, codes.astype(numbers.dtype)])

    def numbers(self, row: Any) -> Any:
        """The numbers that a network sees: zero at a spike, a filled-in value at a gap."""
        x, _, codes = self.split(row)
        spiked = [(j, k) for j, k in self.variables if j >= 0 and k >= 0]
        if not spiked:
            return x
        places, categories = (np.array(part) for part in zip(*spiked, strict=True))
        is_number = codes[..., categories] <= 0
        if isinstance(x, np.ndarray):
            x = x.copy()
            x[..., places] *= is_number
            return x
        return x.at[places].multiply(is_number)

    def indicators(self, row: Any) -> Any:
        """Zeros and ones for the level of each category, none of them at a gap, and for each known number.

        A level with an order has the ones of the levels below it too, so that neighbours look alike.
        """
        _, known, codes = self.split(row)
        if not self.sizes:
            return known
        categories = np.repeat(np.arange(len(self.sizes)), self.sizes)
        levels = np.concatenate([np.arange(size) for size in self.sizes])
        own = codes[..., categories]
        reached = own == levels
        if any(self.ordered):
            reached |= np.repeat(self.ordered, self.sizes) & (own > levels)
        return row.__array_namespace__().concatenate([reached.astype(known.dtype), known], axis=-1)

    @property
    def n_indicators(self) -> int:
        return sum(self.sizes) + self.n_numbers

    def inputs(self, row: Any) -> Any:
        """What a network sees of a row: `numbers` and `indicators`."""
        return row.__array_namespace__().concatenate([self.numbers(row), self.indicators(row)], axis=-1)

    @property
    def input_columns(self) -> np.ndarray:
        """The column that each of the `inputs` belongs to."""
        of_number, of_category = {}, {}
        for column, (number, category) in enumerate(self.variables):
            of_number[number], of_category[category] = column, column
        numbers = [of_number[j] for j in range(self.n_numbers)]
        levels = np.repeat([of_category[k] for k in range(len(self.sizes))], self.sizes)
        return np.array([*numbers, *levels, *numbers], int)

    def present(self, row: jax.Array) -> jax.Array:
        """True for every column that has a value."""
        _, known, codes = self.split(row)
        numbers, categories = np.array(self.variables).T
        has_level = codes[categories] >= 0 if self.sizes else False
        has_number = known[numbers] > 0 if self.n_numbers else False
        return jnp.where(categories >= 0, has_level, has_number)

    def moved(self, row: jax.Array, shift: jax.Array) -> jax.Array:
        """The row with its known numbers moved."""
        x, known, codes = self.split(row)
        return self.join(x + known * shift, known, codes)


@pytree
class ColumnMargins:
    """Independent columns: Gaussian numbers around zero, and levels with their shares.

    A gap is left out, so that the margins of any part of a row are those of the same law.
    """

    layout: RowLayout
    deviations: jax.Array  # (p,)
    log_shares: jax.Array  # (columns, most levels); a pure number has one level

    def potential(self, row: jax.Array) -> jax.Array:
        """Log density of the known cells, counting levels and spikes."""
        x, known, codes = self.layout.split(row)
        total = jnp.sum(known * self._log_normal(x, self.deviations))
        with_levels = [(v, k) for v, (_, k) in enumerate(self.layout.variables) if k >= 0]
        if not with_levels:
            return total
        columns, categories = (np.array(part) for part in zip(*with_levels, strict=True))
        own = codes[categories]
        return total + jnp.sum(jnp.where(own >= 0, jnp.asarray(self.log_shares)[columns, jnp.maximum(own, 0)], 0.0))

    def __call__(self, row: jax.Array) -> jax.Array:
        """Gradient in the numbers: (p,)."""
        x, known, _ = self.layout.split(row)
        return -known * x / self.deviations**2

    @staticmethod
    def _log_normal(x: jax.Array, deviation: jax.Array) -> jax.Array:
        return -0.5 * (x / deviation) ** 2 - jnp.log(deviation) - 0.5 * jnp.log(2 * jnp.pi)

    def draw(
        self, z: jax.Array, row: jax.Array, column: jax.Array, limits: tuple[jax.Array, jax.Array] | None = None
    ) -> tuple[jax.Array, jax.Array]:
        """n copies of a row, the first as it is, the others with one column drawn anew; and their log margins.

        Where the present value and draws from a law q compete in proportion to p / q, the chain that moves to the
        winner leaves p as it is, and the logarithm of the first one's share is a proper loss for p. `z` (2, n) are
        standard normal numbers: one call of a generator is quicker to compile than several. With `limits`, two arrays
        (p,), numbers are drawn between them.
        """
        layout, n = self.layout, z.shape[1]
        x, known, codes = layout.split(row)
        numbers, categories = (jnp.asarray(part) for part in np.array(layout.variables).T)
        number, category, log_shares = numbers[column], categories[column], jnp.asarray(self.log_shares)[column]
        levels = pick(z[0], log_shares)
        if layout.sizes:
            levels = levels.at[0].set(jnp.where(category >= 0, jnp.maximum(codes[category], 0), 0))
        else:
            levels = jnp.zeros(n, int)
        log_margin = log_shares[levels]
        own_number = jnp.arange(layout.n_numbers) == number
        own_category = jnp.arange(len(layout.sizes)) == category
        if layout.n_numbers:
            deviation = jnp.asarray(self.deviations)[number]
            values, log_mass = deviation * z[1], jnp.zeros(())
            if limits is not None:
                values, log_mass = _between(z[1], deviation, limits[0][number], limits[1][number])
            values = values.at[0].set(x[number])
            is_number = (number >= 0) & (levels == 0)
            log_margin += jnp.where(is_number, self._log_normal(values, deviation) - log_mass, 0.0)
            x = jnp.where(own_number & is_number[:, None], values[:, None], x)
            known = jnp.where(own_number, is_number[:, None].astype(known.dtype), known)
        else:
            x, known = (jnp.broadcast_to(part, (n, 0)) for part in (x, known))
        codes = jnp.where(own_category, levels[:, None], codes)
        return jax.vmap(layout.join)(x, known, codes), log_margin


def _between(z: jax.Array, deviation: Any, low: Any, high: Any) -> tuple[jax.Array, jax.Array]:
    """Gaussian numbers around zero between two limits, from standard normal ones; and the log of their share."""
    # Shares of the lower tail: those of the upper one would all be one in single precision.
    flipped = low + high > 0
    a, b = jnp.where(flipped, -high, low) / deviation, jnp.where(flipped, -low, high) / deviation
    below, above = jax.scipy.special.ndtr(a), jax.scipy.special.ndtr(b)
    share = jnp.maximum(above - below, jnp.finfo(jnp.float32).tiny)
    values = jnp.clip(jax.scipy.special.ndtri(below + share * jax.scipy.special.ndtr(z)), a, b) * deviation
    return jnp.where(flipped, -values, values), jnp.log(share)


def pick(z: jax.Array, log_weights: jax.Array) -> jax.Array:
    """Indices with probabilities in proportion to the weights, one for each standard normal number."""
    shares = jnp.cumsum(jax.nn.softmax(log_weights))
    below = jax.scipy.special.ndtr(jnp.atleast_1d(z))[:, None] > shares[:-1]  # the last index takes the rest
    return jnp.sum(below, axis=1).reshape(jnp.shape(z))


def fit_margins(rows: np.ndarray, layout: RowLayout, variances: np.ndarray) -> ColumnMargins:
    """Margins of flat rows; `variances` (p,) are those of the noise that is added to numbers."""
    p = layout.n_numbers
    x, known, codes = rows[:, :p].astype(float), rows[:, p : 2 * p] > 0, rows[:, 2 * p :].astype(int)
    spread = np.array([np.mean(x[own, j] ** 2) if own.any() else 1.0 for j, own in enumerate(known.T)])
    shares = np.full((len(layout.variables), max((*layout.sizes, 1))), NO_SHARE)
    for v, (_, category) in enumerate(layout.variables):
        if category < 0:
            shares[v, 0] = 0.0
            continue
        own = codes[:, category]
        counts = np.bincount(own[own >= 0], minlength=layout.sizes[category]) + SMOOTHING
        shares[v, : len(counts)] = np.log(counts / counts.sum())
    return ColumnMargins(layout, leaf(np.sqrt(spread + variances)), leaf(shares))
