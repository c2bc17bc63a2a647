"""Which rows each member of an ensemble is trained on and stopped by."""

import numpy as np

from scorefield.data.splits import same_rows
from scorefield.training.minibatches import Split

ROWS_PER_CELL = 5  # of a table of categories, on average, from which equal rows are taken for draws of its cells


def count_folds(n_members):
    """Folds of which each member is stopped by one."""
    return min(max(n_members, 5), 10)


def member_splits(rng, rows, labels, n_members, *, layout=None, groups=None):
    """The rows that each member trains on and those that stop it: stratified folds, equal rows in one of them.

    Given `groups` (n,), numbers from 0 on, take the place of equal rows.

    Rows of a few categories, as their `layout` tells, are equal by chance and no copies: without the fold that all rows
    of one cell are in, a member would never see that cell.
    """
    n_folds = count_folds(n_members)
    groups, group_labels = (
        _labelled_groups(rows, labels, layout) if groups is None else (groups, _rarest(groups, labels))
    )
    splits = []
    for member in range(n_members):
        if member % n_folds == 0:
            fold = np.empty(len(group_labels), int)
            for label in np.unique(group_labels):
                own = np.flatnonzero(group_labels == label)
                fold[own] = (rng.permutation(len(own)) + rng.integers(n_folds)) % n_folds
                if len(own) == 1:
                    fold[own] = -1  # the only row of a class trains every member
        held = fold == member % n_folds
        for label in np.unique(group_labels):
            own = np.flatnonzero(group_labels == label)
            if len(own) > 1 and not held[own].any():  # a rare class: one of its rows is held out too
                held[rng.choice(own)] = True
        for label in np.setdiff1d(labels, labels[~held[groups]]):  # all its rows are in groups of rarer classes
            held[groups[labels == label]] = False
        kept, stop = np.flatnonzero(~held[groups]), np.flatnonzero(held[groups])
        everything = np.arange(len(labels))
        splits.append(Split(kept, stop) if len(stop) else Split(everything, everything))
    return splits


def _labelled_groups(rows, labels, layout):
    """Groups of equal rows, or of single ones, and the label of one row of each."""
    groups = same_rows(rows)
    if layout is not None and layout.n_numbers == 0 and ROWS_PER_CELL * (groups.max() + 1) <= len(rows):
        groups = np.arange(len(rows))
    return groups, labels[np.unique(groups, return_index=True)[1]]


def _rarest(groups, labels):
    """The rarest label of each group."""
    rarity = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))[labels]
    order = np.lexsort((-rarity, groups))
    return labels[order][np.unique(groups[order], return_index=True)[1]]
