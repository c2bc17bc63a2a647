"""Chains within regions have the law that is left of an energy there; a control that clips instead has not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

from scorefield._jax.pytrees import leaf, pytree
from scorefield.fields.mixtures import mixture
from scorefield.fields.rows import NO_SHARE, ColumnMargins, RowLayout
from scorefield.sampling.number_chains import Moves, NumberRegion, walk_numbers
from scorefield.sampling.regions import Inequalities, Region
from scorefield.sampling.row_chains import walk

N = 3000
# A number, a number with one spike (code 1), and a category of three levels.
LAYOUT = RowLayout(2, (2, 3), ((0, -1), (1, 0), (-1, 1)), (False, False))
MARGINS = ColumnMargins(
    LAYOUT, leaf([1.1, 0.9]), leaf([[0, NO_SHARE, NO_SHARE], np.log([0.6, 0.4, 1e-9]), np.log([0.2, 0.3, 0.5])])
)


@pytree
class Coupled:
    """Columns that depend on each other: numbers on the level and on one another."""

    margins: ColumnMargins

    def potential(self, row):
        x, known, codes = LAYOUT.split(row)
        level = codes[1].astype(float)
        pairs = 0.8 * known[1] * x[0] * x[1] + (level - 1) * x[0] + 0.5 * (codes[0] == 1) * (level == 2)
        return self.margins.potential(row) - 0.2 * x[0] ** 2 - known[1] * x[1] ** 2 + pairs


ENERGY = Coupled(MARGINS)
GRID = np.linspace(-6, 6, 401)


def exact(allowed):
    """Probabilities of (spike, level), and the distribution of the first number, over rows (x, y, code, level)."""
    width, masses, first = GRID[1] - GRID[0], {}, 0.0
    for code in (0, 1):
        for level in (0, 1, 2):
            of_y = [0.0] if code else GRID
            xs, ys = np.meshgrid(GRID, of_y, indexing="ij")
            flat = [xs.ravel(), ys.ravel(), np.ones(xs.size), np.full(xs.size, 1.0 - code)]
            rows = np.column_stack([*flat, np.full(xs.size, code), np.full(xs.size, level)]).astype(np.float32)
            density = np.exp(np.asarray(jax.vmap(ENERGY.potential)(rows)).astype(float)).reshape(xs.shape)
            density = np.where(allowed(xs, None if code else ys, level), density, 0.0) * (1 if code else width)
            masses[code, level] = density.sum() * width
            first = first + density.sum(axis=1)
    total = sum(masses.values())
    cumulated = np.cumsum(first) / np.sum(first)
    return {cell: mass / total for cell, mass in masses.items()}, lambda v: np.interp(v, GRID + width / 2, cumulated)


def starts(level=1):
    return np.tile(np.array([0.5, 0.0, 1, 1, 0, level], np.float32), (N, 1))


def drawn(region, rows, held=(), n_steps=150):
    free = np.ones((len(rows), 3), bool)
    free[:, list(held)] = False
    color = 1e-3 * np.eye(2, dtype=np.float32)  # redraws alone move: they are exact whatever the step
    bounded = np.array([True, True, False])
    return walk(jax.random.key(0), ENERGY, MARGINS, color, rows, free, step=0.1, n_steps=n_steps, region=region,
                redrawn_only=bounded)  # fmt: skip


def errors(rows, masses):
    """Differences of the shares of all cells (spike, level) in standard errors."""
    shares = {cell: ((rows[:, 4] == cell[0]) & (rows[:, 5] == cell[1])).mean() for cell in masses}
    return [abs(shares[c] - p) / np.sqrt(p * (1 - p) / len(rows)) for c, p in masses.items() if p > 0]


def shares_without(levels):
    shares = np.array(MARGINS.log_shares)
    shares[2, list(levels)] = NO_SHARE
    return shares


INTERVAL = (leaf([0.2, -np.inf]), leaf([1.5, 0.4]))


def test_bounds_and_levels_leave_the_law_of_the_energy():
    region = Region(ColumnMargins(LAYOUT, MARGINS.deviations, leaf(shares_without([0]))), *INTERVAL)
    rows = drawn(region, starts())
    masses, first = exact(
        lambda x, y, level: (x >= 0.2) & (x <= 1.5) & (True if y is None else y <= 0.4) & (level != 0)
    )
    assert max(errors(rows, masses)) < 4
    assert kstest(rows[:, 0], first).pvalue > 1e-3
    # The controls: rows of the whole law that are clipped to the bounds, and those that ignore them.
    free = drawn(None, starts())
    assert kstest(np.clip(free[:, 0], 0.2, 1.5), first).pvalue < 1e-6
    assert max(errors(free, masses)) > 8


def test_a_held_number_leaves_its_conditional_law():
    rows = starts()
    rows[:, 0] = 1.2
    found = drawn(Region(MARGINS, leaf([-6, -6]), leaf([6, 6])), rows, held=[0])
    assert (found[:, 0] == np.float32(1.2)).all()
    nearest = GRID[np.abs(GRID - 1.2).argmin()]
    assert nearest == pytest.approx(1.2)
    masses, _ = exact(lambda x, y, level: np.isclose(x, nearest))
    assert max(errors(found, masses)) < 4
    assert max(errors(drawn(None, starts()), masses)) > 8  # the control


def identity_terms(signs, limit):
    """signs @ (x, y) <= limit, where y is 0.7 at its spike."""
    ends = np.array([-6.0, 6.0])
    numbers, categories = np.array([0, 1]), np.array([-1, 0])
    values = np.array(signs)[:, None] * ends
    levels = np.array(signs)[:, None] * np.array([[0.0, 0.0], [0.0, 0.7]])
    return Inequalities(
        numbers, categories, leaf([ends, ends]), leaf(values), leaf(levels), leaf([[1, 1]]), leaf([-limit])
    )


def test_an_inequality_between_columns_leaves_the_law_of_the_energy():
    region = Region(MARGINS, leaf([-6, -6]), leaf([6, 6]), identity_terms([1, -1], 0.0))
    rows = starts()
    rows[:, 0] = 3.0  # outside: chains are drawn in
    found = drawn(region, rows)
    y = np.where(found[:, 4] == 1, 0.7, found[:, 1])
    assert (found[:, 0] <= y).all()
    masses, first = exact(lambda x, y, level: x <= (0.7 if y is None else y))
    assert max(errors(found, masses)) < 4
    assert kstest(found[:, 0], first).pvalue > 1e-3
    assert max(errors(drawn(None, starts()), masses)) > 6  # the control


def test_a_missing_cell_keeps_an_inequality():
    terms = identity_terms([1, -1], 0.0)
    x, codes = jnp.array([3.0, 1.0]), jnp.array([0])
    assert terms.excess(x, jnp.array([1.0, 1.0]), codes) == pytest.approx(2.0)
    assert terms.excess(x, jnp.array([0.0, 1.0]), codes) == 0
    assert terms.excess(x, jnp.array([1.0, 0.0]), jnp.array([-1])) == 0
    assert terms.excess(x, jnp.array([1.0, 0.0]), jnp.array([1])) == pytest.approx(3 - 0.7)


MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[1.0, 0.8, 0.3], [0.8, 1.5, -0.2], [0.3, -0.2, 0.7]])


@pytree
class Potential:
    field: object

    def __call__(self, x):
        return self.field.potential(x)


def test_adjusted_chains_of_numbers_within_bounds_have_the_truncated_law():
    """A Gaussian on x0 <= x1 + 2.5 with x2 held, against draws of its closed form given x2 that are inside."""
    truth = mixture([1.0], [MEAN], [COVARIANCE])
    region = NumberRegion(leaf([-np.inf] * 3), leaf([np.inf] * 3), leaf([[1, -1, 0]]), leaf([-2.5]))
    spread = np.zeros((3, 3))
    spread[:2, :2] = np.linalg.cholesky(COVARIANCE[:2, :2])
    moves = Moves(leaf(spread), leaf(np.zeros((3, 0))))
    rows = np.tile(leaf([0.0, 1.0, 1.4]), (N, 1))
    found, _ = walk_numbers(jax.random.key(1), Potential(truth), region, moves, rows, step=0.8, n_steps=200)
    assert (found[:, 2] == np.float32(1.4)).all()
    slope = COVARIANCE[:2, 2] / COVARIANCE[2, 2]
    mean = MEAN[:2] + slope * (1.4 - MEAN[2])
    rest = COVARIANCE[:2, :2] - np.outer(slope, COVARIANCE[2, :2])
    sign = np.array([1.0, -1.0])
    draws = np.random.default_rng(0).multivariate_normal(mean, rest, 1_000_000)
    inside = draws[draws @ sign <= 2.5]
    assert (found[:, :2] @ sign <= 2.5 + 1e-6).all()
    for column in (0, 1):
        assert ks_2samp(found[:, column], inside[:, column]).pvalue > 1e-3
    assert ks_2samp(draws[:N, 1], inside[:, 1]).pvalue < 1e-6  # the control: without the relation
