"""Columns whose order alone tells the label; a random order, and a measurement that tells it, do not count."""

import numpy as np
import pandas as pd
import pytest

from scorefield.data.containers import Table
from scorefield.data.leaks import leaks, order_tells

N = 200
RNG = np.random.default_rng(1)


def test_the_mean_and_deviation_of_runs_are_those_of_random_orders():
    """One in a billion random orders is told from them; labels in blocks are, and labels in turn are not."""
    labels = np.repeat([0, 1, 2], [120, 60, 20])
    assert order_tells(labels)
    assert not any(order_tells(RNG.permutation(labels)) for _ in range(2000))
    assert not order_tells(np.arange(N) % 2)
    assert not order_tells(np.zeros(N))
    assert order_tells(np.arange(N) // 4)
    assert not order_tells(np.repeat([0, 1], 5))
    drifting = (RNG.random(N) < np.linspace(0.2, 0.8, N)).astype(int)
    assert not order_tells(drifting)


def sorted_by(labels):
    x = RNG.normal(size=N)
    return pd.DataFrame({"x": x, "id": np.arange(N), "code": [f"C-{i:04d}" for i in range(N)]}), labels


@pytest.mark.parametrize("shuffle", [False, True])
def test_keys_are_named_however_the_rows_stand(shuffle):
    table, labels = sorted_by(np.repeat([0, 1], [150, 50]))
    order = RNG.permutation(N) if shuffle else np.arange(N)
    said = leaks(Table(table.iloc[order].reset_index(drop=True)), labels[order])
    assert [sentence.split("'")[1] for sentence in said] == ["id", "code"]
    assert not leaks(Table(table), RNG.permutation(labels))


def test_columns_that_are_modelled_are_named_where_they_follow_the_rows():
    labels = np.repeat([0, 1], [150, 50])
    table = pd.DataFrame({"Time": np.arange(N) * 7, "x": RNG.normal(size=N) + 9 * labels})
    (said,) = leaks(Table(table), labels)
    assert "'Time'" in said
    assert "columns={'Time': 'identifier'}" in said
    order = RNG.permutation(N)  # nothing tells a measurement that explains the label from a leak
    assert not leaks(Table(table.iloc[order]), labels[order])
    assert leaks(Table(table.to_numpy()), labels)


def test_a_key_that_is_asked_to_be_a_number_is_named_in_every_order():
    table, labels = sorted_by(np.repeat([0, 1], [150, 50]))
    order = RNG.permutation(N)
    (_, said) = sorted(leaks(Table(table.iloc[order]), labels[order], {"id": "whole number"}))
    assert "columns={'id': 'identifier'}" in said
