"""Donors: copied cells are values of the table, near rows count by what they tell, and rare levels stay rare."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, chisquare, energy_distance, ttest_rel

from scorefield.data.row_space import RowSpace
from scorefield.models import donors
from scorefield.models.donors import Cells, Pool, cells_of, table_of, with_donors

METHODS = ("neighbours", "leaves", "matching")


def mixed(n, rng):
    x = rng.normal(size=n).round(6)
    return pd.DataFrame(
        {
            "x": x,
            "spike": np.where(rng.random(n) < 0.4, 0.0, rng.gamma(2, 2, n).round(3)),
            "whole": rng.integers(0, 60, n),
            "city": np.where(x > 0, "a", rng.choice(list("bc"), n)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "grade": rng.integers(1, 5, n),
        }
    )


def drawn_from_margins(rng, space, table):
    """Complete flat rows whose missing cells are those of random rows that know them, and the missing cells."""
    rows, layout = space.rows(table), space.layout
    p, free = layout.n_numbers, np.zeros((len(rows), len(layout.variables)), bool)
    for v, (number, category) in enumerate(layout.variables):
        free[:, v] = rows[:, 2 * p + category] < 0 if category >= 0 else rows[:, p + number] == 0
        places, known = donors._places(layout, v), np.flatnonzero(~free[:, v])
        at = np.flatnonzero(free[:, v])
        rows[np.ix_(at, places)] = rows[np.ix_(rng.choice(known, len(at)), places)]
    return rows, free


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    whole = mixed(90, rng)
    return whole.mask(rng.random(whole.shape) < 0.25)


@pytest.mark.parametrize("method", METHODS)
def test_copied_cells_are_values_of_the_table_and_known_ones_stay(table, method):
    rng, space = np.random.default_rng(1), RowSpace.fit(table)
    rows, free = drawn_from_margins(rng, space, table)
    numbers = space.encoder.encode(table).numbers
    rows[:, : space.layout.n_numbers] += 0.01 * free[:, : space.layout.n_numbers]  # blurred, as draws of an energy are
    cells = cells_of(space, rows, numbers)
    before = cells.raw.copy()
    found = with_donors(rng, space.layout, method, Pool(cells, ~free), cells, free)
    filled = table_of(space, found.raw, table, rng)
    known = table.notna()
    assert filled.where(known).equals(table.where(known))
    for name in table:
        assert set(filled[name]) <= set(table[name].dropna()), name
    np.testing.assert_array_equal(cells.raw, before)  # nothing is changed in place
    blurred = table_of(space, cells.raw, table, rng)  # the control
    assert not set(blurred["x"]) <= set(table["x"].dropna())


@pytest.mark.parametrize("method", METHODS)
def test_what_no_row_knows_is_left_as_it_was_drawn(table, method):
    rng, space = np.random.default_rng(1), RowSpace.fit(table)
    rows, free = drawn_from_margins(rng, space, table)
    free[:, 2] = True
    cells = cells_of(space, rows)
    found = with_donors(rng, space.layout, method, Pool(cells, ~free), cells, free)
    np.testing.assert_array_equal(found.seen[2], cells.seen[2])


def numeric_cells(X):
    return Cells(np.hstack([X, np.ones_like(X)]), [column[:, None] for column in X.T])


def plain_layout(d):
    return RowSpace.fit(np.random.default_rng(0).normal(size=(50, d))).layout


@pytest.mark.parametrize("method", METHODS)
def test_donors_resemble_the_row_in_the_columns_that_tell(method, monkeypatch):
    """y is a function of the first of six columns: errors are far below those of random donors."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 6))
    X[:, 0] = 3 * X[:, 1]
    free = np.zeros(X.shape, bool)
    free[:100, 0] = True
    start = X.copy()
    start[:100, 0] = rng.permutation(X[100:, 0])[:100]
    cells = numeric_cells(start)

    def error():
        drawn = with_donors(np.random.default_rng(3), plain_layout(6), method, Pool(cells, ~free), cells, free)
        return np.abs(drawn.raw[:100, 0] - X[:100, 0])

    assert error().mean() < 0.2 * np.abs(start[:100, 0] - X[:100, 0]).mean()
    if method == "neighbours":  # the control: columns that tell nothing count as much
        weighted = error()
        monkeypatch.setattr(donors, "_told", lambda others, own: np.ones(others.shape[1]))
        assert ttest_rel(error(), weighted, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_single_columns_and_few_rows(method):
    rng = np.random.default_rng(0)
    for X in (np.array([[1.0], [2.0], [5.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])):
        free = np.zeros(X.shape, bool)
        free[0, 0] = True
        cells = numeric_cells(X)
        found = with_donors(rng, plain_layout(X.shape[1]), method, Pool(cells, ~free), cells, free)
        assert found.raw[0, 0] in X[1:, 0]
        np.testing.assert_array_equal(found.raw[1:], cells.raw[1:])


def test_equal_predictions_are_broken_at_random():
    """All known rows have the same prediction: each is the donor equally often."""
    chosen = donors._matched(np.random.default_rng(0), np.zeros(20), np.zeros(4000))
    assert chisquare(np.bincount(chosen, minlength=20)).pvalue > 1e-4
    distinct = donors._matched(np.random.default_rng(0), np.arange(20.0), np.full(4000, 10.2))
    assert set(distinct) == {8, 9, 10, 11, 12}  # the control: the nearest five


def test_rare_levels_are_drawn_as_often_as_they_are():
    rng = np.random.default_rng(0)
    codes = (rng.random(500) < 0.03).astype(int)
    drawn = donors._drawn_levels(rng, rng.normal(size=(500, 1)) * 1e-9, codes, np.zeros((2000, 1)))
    assert binomtest(int(drawn.sum()), 2000, codes.mean()).pvalue > 1e-4
    assert donors._drawn_levels(rng, np.zeros((3, 1)), np.array([2, 2, 2]), np.zeros((4, 1))).tolist() == [2] * 4


def test_energy_distance_has_its_known_form_and_prefers_the_law():
    """Of one column beside scipy's; of two that go together, cells from their law beside means and wrong laws."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 80, 1))
    found = donors.energy_distance(numeric_cells(a), numeric_cells(b), np.ones(a.shape, bool))
    assert found == pytest.approx(energy_distance(a[:, 0], b[:, 0]) ** 2)
    n = 300
    known = rng.normal(size=n)
    judged = np.column_stack([np.zeros(n, bool), rng.random(n) < 0.5])

    def rows(mean=0.8, spread=0.6):
        return numeric_cells(np.column_stack([known, mean * known + spread * rng.normal(size=n)]))

    true = rows()
    law = [donors.energy_distance(true, rows(), judged) for _ in range(8)]
    for worse in ((0.8, 0.0), (0.0, 1.0), (0.8, 1.2)):  # means, margins alone, too wide
        assert min(donors.energy_distance(true, rows(*worse), judged) for _ in range(8)) > max(law)
