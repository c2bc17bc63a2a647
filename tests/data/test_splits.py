"""Splits in which equal rows stay together."""

import numpy as np
import pandas as pd
import pytest

from scorefield.data.containers import Table
from scorefield.data.splits import same_cells, same_rows, split_distinct, stratified_folds
from scorefield.models.ensemble import member_splits


def repeated(n_distinct, times, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.normal(size=(n_distinct, 3)), times, axis=0)[rng.permutation(n_distinct * times)]


def shared(rows, kept, held):
    groups = same_rows(rows)
    return set(groups[kept]) & set(groups[held])


@pytest.mark.parametrize(("n", "times"), [(50, 1), (40, 5), (2, 30)])
def test_held_out_rows_have_no_copies_among_the_others(n, times):
    rows = repeated(n, times)
    kept, held = split_distinct(np.random.default_rng(0), rows, 0.2)
    assert sorted([*kept, *held]) == list(range(len(rows)))
    assert not shared(rows, kept, held)
    assert len(held) / len(rows) == pytest.approx(max(0.2, 1 / n), abs=0.3 if n == 2 else 1e-9)
    if times > 1:  # the control: a split by rows leaks
        order = np.random.default_rng(0).permutation(len(rows))
        assert shared(rows, order[len(rows) // 5 :], order[: len(rows) // 5])


def test_without_anything_to_hold_out_both_sides_have_all_rows():
    for rows, fraction in ((np.zeros((5, 2)), 0.2), (repeated(9, 2), 0.0)):
        kept, held = split_distinct(np.random.default_rng(0), rows, fraction)
        assert sorted(kept) == sorted(held) == list(range(len(rows)))


def test_members_hold_out_rows_without_copies():
    rows = repeated(60, 4)
    labels = (rows[:, 0] > 1).astype(int)
    splits = member_splits(np.random.default_rng(0), rows, labels, 8)
    held = np.concatenate([split.held for split in splits])
    assert set(held.tolist()) == set(range(len(rows)))
    for split in splits:
        assert not shared(rows, split.kept, split.held)
        assert set(labels[split.held]) == set(labels[split.kept]) == {0, 1}


def test_members_hold_out_whole_groups_of_several_classes():
    """Every class is on the training side, also one whose rows are all in groups with rarer ones."""
    rng = np.random.default_rng(0)
    rows, groups = rng.normal(size=(120, 2)), np.repeat(np.arange(12), 10)
    labels = np.where(rng.random(120) < 0.2, 1, 0)
    labels[groups > 0] = np.where(rng.random(110) < 0.2, 1, 2)  # the first group has all rows of class 0
    for kept, held in member_splits(np.random.default_rng(0), rows, labels, 12, groups=groups):
        assert not set(groups[kept]) & set(groups[held])
        assert set(labels[kept]) == {0, 1, 2}
        assert set(kept) | set(held) == set(range(120))


@pytest.mark.parametrize("many", [10_000, 0], ids=["few groups", "many groups"])
def test_folds_are_stratified_and_keep_groups_together(monkeypatch, many):
    """Every fold has the shares of all rows; scikit-learn's shuffle before 1.8 loses them."""
    monkeypatch.setattr("scorefield.data.splits.MANY_GROUPS", many)
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [90, 9])
    groups = rng.permutation(len(labels))
    groups[:30] = groups[30:60]  # pairs of equal rows
    seen = set()
    for seed in range(5):
        splits = stratified_folds(labels, groups, 3, seed)
        assert sorted(np.concatenate([held for _, held in splits])) == list(range(len(labels)))
        for kept, held in splits:
            assert not set(groups[kept]) & set(groups[held])
            assert np.bincount(labels[held]).tolist() == [30, 3]
        seen.add(tuple(splits[0][1]))
    assert len(seen) == 5  # seeds give folds of their own


def test_equal_rows_of_cells_have_one_number():
    table = pd.DataFrame({"a": ["x", None, "x", None, "x"], "b": [1.5, np.nan, 1.5, np.nan, np.nan]})
    numbers = same_cells([Table(table).cells(name) for name in table])
    assert [numbers[0] == numbers[2], numbers[1] == numbers[3], len(set(numbers))] == [True, True, 3]
