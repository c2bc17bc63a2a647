"""Gains of columns: those that go with the label keep their size, others shrink."""

import numpy as np

from scorefield.data.association import LEAST_GAIN, column_gains


def test_a_column_that_tells_the_label_stands_out_among_many():
    rng = np.random.default_rng(0)
    labels = (np.arange(600) % 10 == 0).astype(int)
    columns = rng.normal(size=(600, 100))
    columns[:, 7] += 2 * labels  # by its mean
    columns[:, 9] *= np.where(labels, 4.0, 1.0)  # by its spread, which means do not show
    gains = column_gains(columns, labels)
    assert gains[7] > 0.8
    assert gains[9] > 0.5
    others = np.delete(gains, [7, 9])
    assert np.mean(others == LEAST_GAIN) > 0.9
    assert others.mean() < 0.1


def test_with_many_rows_next_to_all_columns_that_matter_keep_their_size():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 4000)
    columns = rng.normal(size=(4000, 6)) + 0.5 * labels[:, None] * [1, 1, 1, 1, 1, 0]
    gains = column_gains(columns, labels)
    assert gains[:5].min() > 0.95
    assert gains[5] < 0.6


def test_gains_depend_neither_on_units_nor_on_the_order_of_columns():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 300)
    columns = rng.normal(size=(300, 5)) + labels[:, None] * np.arange(5) / 5
    gains = column_gains(columns, labels)
    np.testing.assert_allclose(column_gains(columns * [1e-6, 1e6, 1, 3, 7] + 5, labels), gains, rtol=1e-6)
    np.testing.assert_allclose(column_gains(columns[:, ::-1], labels), gains[::-1])


def test_weights_count_rows():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 400)
    columns = rng.normal(size=(400, 3))
    columns[:200, 0] += 2 * labels[:200]
    half = np.where(np.arange(400) < 200, 1.0, 1e-9)
    assert column_gains(columns, labels, half)[0] > column_gains(columns, labels, 1 - half)[0]


def test_degenerate_columns_and_labels():
    rng = np.random.default_rng(4)
    columns = np.column_stack([np.ones(20), np.arange(20) % 2, rng.normal(size=20)])
    labels = np.arange(20) % 2
    gains = column_gains(columns, labels)
    assert gains[0] == LEAST_GAIN
    assert gains[1] > 0.9  # the label itself
    np.testing.assert_array_equal(column_gains(columns, np.zeros(20, int)), np.ones(3))  # one class
    assert column_gains(columns[:, 2:], labels) == 1  # nothing to compare with
    assert np.isfinite(column_gains(columns[:2], labels[:2])).all()


def test_rare_rows_of_a_large_table_all_count():
    rng = np.random.default_rng(5)
    labels = (np.arange(40_000) % 1000 == 0).astype(int)  # 40 rare rows
    columns = rng.normal(size=(40_000, 50))
    columns[:, 4] += 1.5 * labels
    gains = column_gains(columns, labels)
    assert gains[4] > 0.8
    assert np.delete(gains, 4).mean() < 0.15
