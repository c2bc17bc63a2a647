"""Which rows each member of an ensemble is trained on and stopped by."""

import numpy as np

from scorefield.training.minibatches import Split


def count_folds(n_members):
    """Folds of which each member is stopped by one."""
    return min(max(n_members, 5), 10)


def member_splits(rng, labels, n_members):
    """(rows to train on, rows to stop by) of each member: stratified folds, so that all rows train most members."""
    n_folds = count_folds(n_members)
    splits = []
    for member in range(n_members):
        if member % n_folds == 0:
            fold = np.empty(len(labels), int)
            for label in np.unique(labels):
                own = np.flatnonzero(labels == label)
                fold[own] = (rng.permutation(len(own)) + rng.integers(n_folds)) % n_folds
                if len(own) == 1:
                    fold[own] = -1  # the only row of a class trains every member
        held = fold == member % n_folds
        for label, count in enumerate(np.bincount(labels)):
            if count > 1 and not held[labels == label].any():  # a rare class: one of its rows is held out too
                held[rng.choice(np.flatnonzero(labels == label))] = True
        rows = np.arange(len(labels))
        splits.append(Split(rows[~held], rows[held]) if held.any() else Split(rows, rows))
    return splits


def splits_of_folds(folds, n_members):
    """The same where the folds of the rows are given."""
    held = [folds == member % count_folds(n_members) for member in range(n_members)]
    return [Split(np.flatnonzero(~own), np.flatnonzero(own)) for own in held]
