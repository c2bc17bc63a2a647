"""Cells of generated rows: limits, whole numbers, and the values that columns repeat."""

import numpy as np
import pytest
from scipy.stats import kstest

from scorefield.data.possible_cells import PossibleCells


def ranges(table):
    return table.min(axis=0), table.max(axis=0)


@pytest.fixture
def table():
    """A standardised flag, an ordered level, a spike at zero among numbers, and plain numbers."""
    rng = np.random.default_rng(0)
    flag = np.where(rng.random(1000) < 0.1, 2.7, -0.3)
    spiked = np.where(rng.random(1000) < 0.6, 0.0, rng.gamma(2.0, size=1000))
    return np.column_stack([flag, rng.integers(0, 7, 1000) / 7, spiked, rng.normal(size=1000)])


def test_values_that_a_column_repeats(table):
    found = PossibleCells.of_array(table, None).repeated
    assert found[0].tolist() == [-0.3, 2.7]
    np.testing.assert_array_equal(found[1], np.arange(7) / 7)
    assert found[2].tolist() == [0.0]
    assert 3 not in found
    mostly_zero = np.repeat([0.0, *np.arange(20) + 0.5], [950, *[3] * 20])[:, None]  # 21 values are no levels
    assert PossibleCells.of_array(mostly_zero, None).repeated[0].tolist() == [0.0]


@pytest.mark.parametrize("bounded", [False, True])
def test_generated_cells_repeat_them_as_often_as_the_class(table, bounded):
    rng = np.random.default_rng(1)
    own = table[:200]
    drawn = own[rng.integers(0, 200, 5000)] + 0.4 * rng.normal(size=(5000, 4))
    made = PossibleCells.of_array(table, ranges(table) if bounded else None).applied_to(drawn, own, rng)
    assert set(np.unique(made[:, 0])) <= {-0.3, 2.7}
    assert np.isin(made[:, 1], np.arange(7) / 7).all()
    for i, value in ((0, 2.7), (1, 3 / 7), (2, 0.0)):  # a column's one random offset moves a share by less than a row
        assert np.mean(made[:, i] == value) == pytest.approx(np.mean(own[:, i] == value), abs=1.001 / 5000)
    if not bounded:
        np.testing.assert_array_equal(made[:, 3], drawn[:, 3])


@pytest.mark.parametrize("bounded", [False, True])
def test_the_order_of_draws_is_kept(table, bounded):
    """Half of the draws of an end level are beyond the limits, where reflection would turn them around."""
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=(300, 4))
    made = PossibleCells.of_array(table, ranges(table) if bounded else None).applied_to(drawn, table, rng)
    for i in range(3):
        assert (np.diff(made[np.argsort(drawn[:, i]), i]) >= 0).all()


def test_numbers_beside_a_spike_follow_those_of_the_class(table):
    """Draws are smeared over the spike; what lies near it in the class is near it in generated rows too."""
    rng = np.random.default_rng(1)
    drawn = table[rng.integers(0, 1000, 4000)] + 0.5 * rng.normal(size=(4000, 4))
    made = PossibleCells.of_array(table, None).applied_to(drawn, table, rng)
    known, drawn_kept = table[table[:, 2] > 0, 2], made[made[:, 2] != 0, 2]
    assert kstest(drawn_kept, known).statistic < 2 / np.sqrt(len(known))
    assert np.mean(drawn_kept < 0.35) == pytest.approx(np.mean(known < 0.35), abs=0.01)
    left_as_drawn = drawn[made[:, 2] != 0, 2]  # the control: a hole beside the spike
    assert np.mean(np.abs(left_as_drawn) < 0.35) < 0.3 * np.mean(known < 0.35)


def test_few_draws_are_ranked_among_many(table):
    """One draw has no rank of its own, and the flag of its row would be drawn by chance."""
    cells = PossibleCells.of_array(table, None)
    assert cells.rows_to_draw(3) == 256
    assert cells.rows_to_draw(1000) == 1000
    assert PossibleCells(None, np.zeros(4, bool)).rows_to_draw(3) == 3


def test_a_table_of_levels_is_told_from_one_of_numbers(table):
    cells = PossibleCells.of_array(table, None)
    assert not cells.repeats_most(table)
    assert cells.repeats_most(table[:, :3])  # two of three columns hold levels, the third a spike among numbers
    assert not cells.repeats_most(np.ones((5, 4)))


def test_given_limits_come_first(table):
    rng = np.random.default_rng(0)
    limits = (np.full(4, -1.0), np.full(4, 0.5))
    made = PossibleCells.of_array(table, limits).applied_to(3 * rng.normal(size=(500, 4)), table, rng)
    assert made.min() >= -1.0
    assert made.max() <= 0.5
    assert (made[:, 0] == -0.3).all()  # its only value within the limits


def test_whole_numbers_reach_both_ends_of_their_range():
    drawn = np.random.default_rng(0).uniform(-0.5, 50.5, size=(20_000, 1))
    cells = PossibleCells((np.array([0.0]), np.array([50.0])), np.array([True]), {})
    counts = np.bincount(cells.applied_to(drawn, drawn, None)[:, 0].astype(int))
    assert len(counts) == 51
    assert np.abs(counts - 20_000 / 51).max() < 5 * np.sqrt(20_000 / 51)  # all alike, none piled up at an end
