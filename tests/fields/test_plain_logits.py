"""Logits in numpy are those of the compiled function, and the same bits whatever rows stand beside a row."""

import dataclasses

import jax
import numpy as np
import pytest

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method, leaf
from scorefield.fields.gaussian import standard_gaussian
from scorefield.fields.joint import ColumnNetwork, JointEnergies, columns_of, init_joint
from scorefield.fields.networks import Network
from scorefield.fields.plain_logits import BLOCK_ROWS, PlainLogits
from scorefield.fields.rows import RowLayout, fit_margins

# Two numbers, the second of which has spikes; a category, and one with an order.
LAYOUT = RowLayout(2, (3, 4, 3), ((0, -1), (1, 0), (-1, 1), (-1, 2)), (False, False, True))
N = 90


def numbers(rng):
    return np.vstack([rng.normal(size=(N - 1, 3)), [[1e16, -1e16, 0.0]]]).astype(np.float32), None


def mixed(rng):
    known = rng.integers(0, 2, (N, 2))
    codes = np.column_stack([rng.integers(-1, size, N) for size in LAYOUT.sizes])
    return np.hstack([rng.normal(size=(N, 2)), known, codes]).astype(np.float32), LAYOUT


def categories(rng):
    return rng.integers(-1, 3, (N, 2)).astype(np.float32), RowLayout(0, (3, 3), ((-1, 0), (-1, 1)), (False, True))


def random_weights(rng, network):
    """A network with random weights and biases in all layers."""
    return dataclasses.replace(
        network,
        weights=tuple(leaf(rng.normal(size=np.shape(each)) / np.sqrt(len(each))) for each in network.weights),
        biases=tuple(leaf(rng.normal(size=np.shape(each))) for each in network.biases),
    )


def sparse_rules(rng, layout, d, n_classes):
    """A network as `mean_network` makes it: copies of columns with one step each, few weights, units without use."""
    n_steps, n_units, n_indicators = 16 if d else 0, 8, layout.n_indicators if layout else 0
    columns = tuple(range(d, d + n_steps))
    copies = np.eye(d)[:, rng.integers(0, max(d, 1), n_steps)]
    first = rng.normal(size=(d + 2 * n_steps + n_indicators, n_units))
    first[rng.uniform(size=first.shape) < 0.8] = 0.0
    first[d : d + n_steps] = 0.0
    last = rng.normal(size=(n_units, n_classes))
    last[-2:] = 0.0
    network = Network((leaf(first), leaf(last)), (leaf(rng.normal(size=n_units)), leaf(rng.normal(size=n_classes))))
    thresholds, slopes = leaf(rng.normal(size=(n_steps, 1))), leaf(np.full((n_steps, 1), 50.0))
    return ColumnNetwork(thresholds, slopes, leaf(copies), network, columns, layout)


def energies(rng, rows, layout, n_classes, *, n_layers=2, with_rules=True):
    """Members of two views, and rules."""
    d = layout.n_numbers if layout else rows.shape[1]
    base = fit_margins(rows, layout, np.ones(d)) if layout else standard_gaussian(d)
    seen = np.clip(rows[:, :d], -3, 3)
    views = [columns_of(seen), columns_of(seen, rng.normal(size=(d, d)))]
    members = []
    for m in range(4):
        key = jax.random.key(m)
        (member,) = init_joint(key, base, views[m % 2], n_classes, hidden=(8,) * n_layers).members
        members.append(dataclasses.replace(member, network=random_weights(rng, member.network)))
    joint = JointEnergies(tuple(members), base)
    if not with_rules:
        return joint
    return dataclasses.replace(joint, rules=sparse_rules(rng, layout, d, n_classes), share=np.float32(0.3))


@pytest.mark.parametrize("table", [numbers, mixed, categories])
@pytest.mark.parametrize(
    ("n_classes", "options"), [(2, {}), (3, {"with_rules": False}), (3, {"n_layers": 1}), (2, {"n_layers": 0})]
)
def test_they_are_those_of_the_compiled_function(rng, table, n_classes, options):
    rows, layout = table(rng)
    joint = energies(rng, rows, layout, n_classes, **options)
    expected = map_rows(Method(joint, "logits"), rows)
    found = PlainLogits(joint)(rows)
    assert found.dtype == expected.dtype == np.float32
    # Sums of at most a hundred terms, in three layers, are uncertain by some 3 sqrt(100) = 30 roundings of their size.
    np.testing.assert_allclose(found, expected, rtol=0, atol=30 * np.finfo(np.float32).eps * np.abs(expected).max())
    one_less = dataclasses.replace(joint, members=joint.members[1:])
    assert np.abs(PlainLogits(one_less)(rows) - expected).max() > 0.01  # negative control


@pytest.mark.parametrize("table", [numbers, mixed, categories])
def test_a_row_has_the_same_bits_beside_any_others(rng, table):
    rows, layout = table(rng)
    logits = PlainLogits(energies(rng, rows, layout, 3))
    expected = logits(rows)
    for n in (1, 2, BLOCK_ROWS, BLOCK_ROWS + 1, N):
        for _ in range(5):
            chosen = rng.permutation(N)[:n]
            np.testing.assert_array_equal(logits(rows[chosen]), expected[chosen])
    logits.rows_at_once = 7
    np.testing.assert_array_equal(logits(rows), expected)
    assert logits(rows[:0]).shape == (0, 3)


def test_inputs_of_many_rows_are_those_of_each(rng):
    rows, layout = mixed(rng)
    given = rows.copy()
    np.testing.assert_array_equal(layout.inputs(rows), map_rows(Method(layout, "inputs"), rows))
    np.testing.assert_array_equal(rows, given)
