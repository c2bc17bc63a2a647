"""Cells of generated rows: limits, whole numbers, and the values that columns repeat."""

import numpy as np
import pytest

from scorefield.data.possible_cells import PossibleCells, repeated_values


def cells_for(table, limits=None):
    return PossibleCells(limits, np.zeros(table.shape[1], bool), repeated_values(table))


@pytest.fixture
def table():
    """A standardised flag, an ordered level, a spike at zero among numbers, and plain numbers."""
    rng = np.random.default_rng(0)
    flag = np.where(rng.random(1000) < 0.1, 2.7, -0.3)
    spiked = np.where(rng.random(1000) < 0.6, 0.0, rng.gamma(2.0, size=1000))
    return np.column_stack([flag, rng.integers(0, 7, 1000) / 7, spiked, rng.normal(size=1000)])


def test_values_that_a_column_repeats(table):
    found = repeated_values(table)
    assert found[0].tolist() == [-0.3, 2.7]
    np.testing.assert_array_equal(found[1], np.arange(7) / 7)
    assert found[2].tolist() == [0.0]
    assert 3 not in found


def test_generated_cells_repeat_them_as_often_as_the_class(table):
    rng = np.random.default_rng(1)
    own = table[:200]
    drawn = own[rng.integers(0, 200, 5000)] + 0.4 * rng.normal(size=(5000, 4))
    made = cells_for(table).of(drawn, own, rng)
    assert set(np.unique(made[:, 0])) <= {-0.3, 2.7}
    assert np.isin(made[:, 1], np.arange(7) / 7).all()
    for i, value in ((0, 2.7), (1, 3 / 7), (2, 0.0)):  # a column's one random offset moves a share by less than a row
        assert np.mean(made[:, i] == value) == pytest.approx(np.mean(own[:, i] == value), abs=1.001 / 5000)
    np.testing.assert_array_equal(made[:, 3], drawn[:, 3])
    np.testing.assert_array_equal(made[made[:, 2] != 0, 2], drawn[made[:, 2] != 0, 2])


def test_the_order_of_draws_is_kept(table):
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=(300, 4))
    made = cells_for(table).of(drawn, table, rng)
    assert (np.diff(made[np.argsort(drawn[:, 1]), 1]) >= 0).all()


def test_shares_of_a_single_draw_are_right_on_average(table):
    """With the middle of its quantiles in place of a random offset, one draw would always be the commonest value."""
    cells, rng = cells_for(table), np.random.default_rng(0)
    drawn = np.zeros((1, 4))
    made = [cells.of(drawn, table, rng)[0, 0] for _ in range(2000)]
    share = np.mean(table[:, 0] == 2.7)
    assert abs(np.mean(np.array(made) == 2.7) - share) < 4 * np.sqrt(share * (1 - share) / 2000)


def test_given_limits_come_first(table):
    rng = np.random.default_rng(0)
    limits = (np.full(4, -1.0), np.full(4, 0.5))
    made = cells_for(table, limits).of(3 * rng.normal(size=(500, 4)), table, rng)
    assert made.min() >= -1.0
    assert made.max() <= 0.5
    assert np.mean(made[:, 0] == -0.3) == pytest.approx(np.mean(table[:, 0] == -0.3), abs=1.001 / 500)


def test_whole_numbers_reach_both_ends_of_their_range():
    drawn = np.random.default_rng(0).uniform(-0.5, 50.5, size=(20_000, 1))
    cells = PossibleCells((np.array([0.0]), np.array([50.0])), np.array([True]), {})
    counts = np.bincount(cells.of(drawn, drawn, None)[:, 0].astype(int))
    assert len(counts) == 51
    assert np.abs(counts - 20_000 / 51).max() < 5 * np.sqrt(20_000 / 51)  # all alike, none piled up at an end
