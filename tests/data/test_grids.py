"""Generated numbers lie on the grid of their column: its step, and last digits as frequent as where they fall."""

import numpy as np
import pandas as pd
import pytest

from scorefield.data.encoding import Encoded, TableEncoder
from scorefield.data.grids import Grid
from scorefield.data.scaling import NormalScores


def regenerated(values, seed=0, noise=0.15):
    """Noisy copies of a column, and what they are once decoded."""
    frame = pd.DataFrame({"x": values, "flag": np.arange(len(values)) % 2})
    encoder = TableEncoder().fit(frame)
    rows = encoder.encode(frame)
    scores = NormalScores.fit(rows.numbers)
    z = scores.transform(rows.numbers)
    z = np.sqrt(1 - noise**2) * z + noise * np.random.default_rng(seed).normal(size=z.shape)
    blurred = scores.inverse_transform(z.astype(np.float32))
    return blurred[:, 0], encoder.decode(Encoded(blurred, rows.codes))["x"].to_numpy(float)


def masses(n=400):
    rng = np.random.default_rng(1)
    return np.where(rng.random(n) < 0.7, 50, 25) * np.rint(rng.normal(100, 15, n))


def ages(n=700):
    """Whole years, halves where they were estimated, months below one year."""
    rng = np.random.default_rng(2)
    years = np.floor(np.abs(rng.normal(0, 30, n))) + 1
    years[: n // 30] += 0.5
    years[-n // 70 :] = np.round(rng.integers(4, 12, len(years[-n // 70 :])) / 12, 2)
    return years


@pytest.mark.parametrize("noise", [0.15, 0.5])
def test_multiples_stay_multiples_with_their_shares(noise):
    seen = masses()
    blurred, found = regenerated(seen, noise=noise)
    assert np.mean(np.rint(blurred) % 25 != 0) > 0.2  # what rounding alone would leave
    assert not (found % 25).any()
    share = np.mean(seen % 50 == 0)
    assert abs(np.mean(found % 50 == 0) - share) < 3 * np.sqrt(2 * share * (1 - share) / len(seen))


def test_fractions_occur_where_real_ones_do():
    seen = ages()
    blurred, found = regenerated(seen)
    share = np.mean(seen % 1 != 0)
    assert np.mean(np.round(blurred, 2) % 1 != 0) > 2 * share
    assert abs(np.mean(found % 1 != 0) - share) < 3 * np.sqrt(2 * share * (1 - share) / len(seen))
    assert set(found[(found > 1) & (found % 1 != 0)] % 1) == {0.5}
    assert np.isin(found[found < 1], seen).mean() > 0.9


def test_numbers_move_by_less_than_their_last_digits_reach():
    seen = masses()
    blurred, found = regenerated(seen)
    grid = Grid.fit(*np.unique(seen, return_counts=True), 0)
    assert (grid.step, grid.period) == (25, 100)
    assert np.abs(found - blurred).max() <= grid.period / 2
    assert abs(found.mean() - blurred.mean()) < 3 * grid.period / np.sqrt(12 * len(seen))


@pytest.mark.parametrize("values", [masses(), ages()])
def test_observed_numbers_stay(values):
    frame = pd.DataFrame({"x": values, "flag": np.arange(len(values)) % 2})
    encoder = TableEncoder().fit(frame)
    pd.testing.assert_series_equal(encoder.decode(encoder.encode(frame))["x"], frame["x"])


def test_the_same_numbers_become_the_same_cells_in_any_order():
    seen = np.unique(ages(), return_counts=True)
    grid = Grid.fit(*seen, 2)
    numbers = np.random.default_rng(0).uniform(0, 80, 500)
    order = np.random.default_rng(1).permutation(500)
    np.testing.assert_array_equal(grid.snapped(numbers)[order], grid.snapped(numbers[order]))
    np.testing.assert_array_equal(Grid(**grid.to_plain()).snapped(numbers), grid.snapped(numbers))


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        (np.arange(40.0, 90.0), 0),  # every whole number
        (np.array([1.25, 2.5, 3.0]), 2),  # too few to tell a step
        (np.round(np.random.default_rng(0).normal(40, 5, 300), 1), 1),  # even last digits
        (np.array([1e300, 2e300]), 3),
        (np.zeros(1), 0),
    ],
)
def test_columns_without_a_grid_are_only_rounded(values, decimals):
    assert Grid.fit(*np.unique(values, return_counts=True), decimals).is_plain


def test_quarters_are_a_step_of_their_own():
    levels, counts = np.unique(np.rint(np.random.default_rng(0).normal(0, 40, 300)) / 4, return_counts=True)
    grid = Grid.fit(levels, counts, 2)
    assert (grid.step, len(grid.values)) == (25, 0)
    np.testing.assert_array_equal(grid.snapped(np.array([0.3, -7.9, 1e6 + 0.1])), [0.25, -8.0, 1e6])
