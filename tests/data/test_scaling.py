"""Units of columns."""

import numpy as np

from scorefield.data.scaling import safe_deviation


def test_deviations_have_the_bits_of_numpy(rng):
    rows = rng.normal(size=(200, 5)) * [1e-8, 1.0, 3.0, 1e5, 1e9] + [0.0, 1e3, -2.0, 0.0, 1.0]
    np.testing.assert_array_equal(safe_deviation(rows), rows.std(axis=0))


def test_large_values_do_not_overflow(rng):
    values = rng.normal(size=(50, 1))
    np.testing.assert_allclose(safe_deviation(1e300 * values), 1e300 * values.std(axis=0), rtol=1e-12)


def test_constant_columns_have_a_unit_of_one():
    assert safe_deviation(np.array([[0.0, 3.0], [0.0, 3.0]])).tolist() == [1.0, 1.0]
