"""Units of columns."""

import numpy as np

from scorefield.data.scaling import NormalScores, safe_deviation


def test_deviations_have_the_bits_of_numpy(rng):
    rows = rng.normal(size=(200, 5)) * [1e-8, 1.0, 3.0, 1e5, 1e9] + [0.0, 1e3, -2.0, 0.0, 1.0]
    np.testing.assert_array_equal(safe_deviation(rows), rows.std(axis=0))


def test_large_values_do_not_overflow(rng):
    values = rng.normal(size=(50, 1))
    np.testing.assert_allclose(safe_deviation(1e300 * values), 1e300 * values.std(axis=0), rtol=1e-12)


def test_constant_columns_have_a_unit_of_one():
    assert safe_deviation(np.array([[0.0, 3.0], [0.0, 3.0]])).tolist() == [1.0, 1.0]


def test_long_tails_tell_an_extreme_from_a_maximum(rng):
    column = rng.normal(size=(1000, 1))
    column[0] = 50.0
    by_rank = NormalScores.fit(column)
    long = by_rank.with_long_tails()
    highest = by_rank.transform(column[:1])
    assert highest < 4  # its rank makes it an ordinary maximum
    np.testing.assert_allclose(long.transform(column[:1]), highest + np.log1p(50 - highest), rtol=0.05)
    inside = np.abs(column) < 1.9
    np.testing.assert_array_equal(long.transform(column)[inside], by_rank.transform(column)[inside])
    assert np.isnan(long.transform([[np.nan]])).all()
    usual = NormalScores.fit(column[1:])
    moved = usual.with_long_tails().transform(column[1:]) - usual.transform(column[1:])
    assert np.abs(moved).max() < 0.6  # of a Gaussian the map is nearly the identity


def test_an_end_that_many_rows_share_is_no_extreme(rng):
    column = np.minimum(rng.exponential(size=(400, 1)), 2.0)
    np.testing.assert_array_equal(
        NormalScores.fit(column).with_long_tails().transform([[2.0]]), NormalScores.fit(column).transform([[2.0]])
    )


def test_two_close_values_do_not_make_a_steep_tail():
    column = np.repeat([0.0, 1.0, 2.0, 3.0, 3.0001, 4.0], [20, 20, 20, 20, 20, 1])[:, None]
    assert NormalScores.fit(column).with_long_tails().transform([[4.0]]) < 3.5
