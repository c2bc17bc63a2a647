"""Flat rows, margins, ranking moves and constants of mixed rows, against sums that can be written out."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scorefield._jax.pytrees import pytree
from scorefield.data.row_space import flat_rows, regressed
from scorefield.fields.rows import ColumnMargins, RowLayout, fit_margins, pick
from scorefield.inference.row_constants import row_constant
from scorefield.sampling.row_chains import REDRAW_NORMALS, redraw

LAYOUT = RowLayout(0, (2, 3), ((-1, 0), (-1, 1)), (False, False))
TABLE = np.log(np.array([[0.3, 0.1, 0.05], [0.05, 0.1, 0.4]]))


@pytree
class Joint:
    base: ColumnMargins


@pytree
class KnownLaw:
    """The energy of a table of two categories, up to a constant of 2."""

    joint: Joint
    logs: jax.Array

    def potential(self, row):
        codes = row.astype(int)
        return self.logs[codes[0], codes[1]] + 2.0


def known_law():
    rows = np.array([[i, j] for i, j in itertools.product(range(2), range(3))], np.float32)
    return KnownLaw(Joint(fit_margins(rows, LAYOUT, np.zeros(0))), jnp.asarray(TABLE, jnp.float32))


def test_neighbours_of_an_ordered_category_look_alike():
    layout = RowLayout(1, (3, 4), ((0, -1), (-1, 0), (-1, 1)), (False, True))
    seen = {code: layout.indicators(jnp.array([0.5, 1.0, 1.0, code])).tolist() for code in (-1.0, 0.0, 2.0, 3.0)}
    assert seen == {
        -1.0: [0, 1, 0, 0, 0, 0, 0, 1],  # a gap
        0.0: [0, 1, 0, 1, 0, 0, 0, 1],
        2.0: [0, 1, 0, 1, 1, 1, 0, 1],
        3.0: [0, 1, 0, 1, 1, 1, 1, 1],
    }


def test_redrawn_columns_follow_the_energy():
    """Cells of a table of two categories, after many moves from one corner; the margins alone are the control."""
    law = known_law()

    def chain(key, temper):
        z = jax.random.normal(key, (60, REDRAW_NORMALS))
        free = jnp.array([True, True])
        step = lambda row, z: (redraw(z, law.potential, law.joint.base, row, free, temper), None)  # noqa: E731
        return jax.lax.scan(step, jnp.zeros(2), z)[0]

    shares = {}
    for temper in (1.0, 0.0):
        keys = jax.random.split(jax.random.key(0), 4000)
        rows = np.asarray(jax.jit(jax.vmap(lambda k: chain(k, temper)))(keys)).astype(int)  # noqa: B023
        shares[temper] = np.bincount(3 * rows[:, 0] + rows[:, 1], minlength=6) / 4000
    error = np.sqrt(np.exp(TABLE).ravel() * (1 - np.exp(TABLE).ravel()) / 4000)
    assert (np.abs(shares[1.0] - np.exp(TABLE).ravel()) < 4.5 * error).all()
    assert (np.abs(shares[0.0] - np.exp(TABLE).ravel()) > 4.5 * error).any()


def test_held_columns_stay():
    law = known_law()
    z = jax.random.normal(jax.random.key(1), (200, REDRAW_NORMALS))

    @jax.jit
    def redrawn(free):
        return jax.vmap(lambda z: redraw(z, law.potential, law.joint.base, jnp.ones(2), free))(z)

    second = np.asarray(redrawn(jnp.array([False, True])))
    assert (second[:, 0] == 1).all()
    assert (second[:, 1] != 1).any()
    np.testing.assert_array_equal(redrawn(jnp.array([False, False])), np.ones((200, 2)))


def test_the_constant_of_a_known_law():
    constant, error = row_constant(jax.random.key(0), known_law(), np.zeros(2, np.float32))
    assert constant == pytest.approx(-2, abs=4 * error + 1e-3)
    assert error < 0.05


def test_margins_are_normalised_and_leave_gaps_out():
    layout = RowLayout(1, (2,), ((0, 0),), (False,))  # a number with one spike
    rows = np.array([[0.5, 1, 0], [-0.5, 1, 0], [0.0, 0, 1], [0.0, 0, 1]], np.float32)
    margins = fit_margins(rows, layout, np.array([0.1]))
    grid = np.linspace(-8, 8, 2001)
    numbers = np.stack([grid, np.ones_like(grid), np.zeros_like(grid)], axis=1).astype(np.float32)
    density = np.exp(jax.vmap(margins.potential)(numbers))
    spike = float(np.exp(margins.potential(jnp.array([0.0, 0.0, 1.0]))))
    assert np.trapezoid(density, grid) + spike == pytest.approx(1, abs=1e-3)
    assert spike == pytest.approx(0.5)
    assert margins.potential(jnp.array([3.0, 0.0, -1.0])) == 0
    assert margins(jnp.array([3.0, 0.0, -1.0])) == pytest.approx(0)


def test_picks_have_the_weights_as_probabilities():
    z = np.random.default_rng(0).normal(size=40_000).astype(np.float32)
    weights = np.array([0.1, 0.2, 0.7])
    found = np.bincount(np.asarray(pick(jnp.asarray(z), jnp.log(weights))), minlength=3) / len(z)
    assert (np.abs(found - weights) < 4.5 * np.sqrt(weights * (1 - weights) / len(z))).all()


def test_gaps_are_regressed_on_the_known_numbers():
    covariance = np.array([[1.0, 0.9, 0.3], [0.9, 1.0, 0.2], [0.3, 0.2, 1.0]])
    z = np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, 1.0], [1.0, 2.0, 3.0]])
    filled = regressed(z, np.linalg.inv(covariance))
    known = covariance[np.ix_([0, 2], [0, 2])]
    assert filled[0, 1] == pytest.approx(covariance[1, [0, 2]] @ np.linalg.solve(known, [1.0, 2.0]))
    np.testing.assert_allclose(filled[1, :2], [0.3, 0.2])
    np.testing.assert_array_equal(filled[2], z[2])
    rows = flat_rows(z, np.zeros((3, 0)), np.linalg.inv(covariance))
    np.testing.assert_array_equal(rows[:, 3:], ~np.isnan(z))
