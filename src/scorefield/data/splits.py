"""Splits that keep equal rows together: copies on both sides of a split would leak from one to the other."""

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import check_random_state

from scorefield.data.cells import level_keys, positions

MANY_GROUPS = 10_000  # scikit-learn takes half a minute for 100,000


def same_rows(X):
    """A number for each row, the same for equal rows; gaps (NaN) are equal to each other."""
    gaps = np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, bool)
    if gaps.any():
        X = np.hstack([np.where(gaps, 0, X), gaps])
    return np.unique(X, axis=0, return_inverse=True)[1].ravel()


def same_cells(columns):
    """A number for each row of a list of `Cells`, the same for equal rows; missing cells are equal to each other."""
    groups = np.zeros(len(columns[0].known), dtype=np.int64)
    for cells in columns:
        if cells.values.dtype == object:
            codes = positions(cells.values, cells.known, list(dict.fromkeys(level_keys(cells.values[cells.known]))))
        else:
            codes = np.unique(cells.values, return_inverse=True)[1]
        codes = np.where(cells.known, codes + 1, 0)
        groups = np.unique(groups * (codes.max() + 1) + codes, return_inverse=True)[1]
        if groups.max() + 1 == len(groups):
            break
    return groups


def split_distinct(rng, rows, fraction):
    """Shuffled indices of the rows to keep and of about a `fraction` to hold out, with equal rows on one side.

    There is at least one distinct row on each side, unless all rows are equal: then both sides have them all.
    """
    groups = same_rows(rows)
    order = rng.permutation(len(rows))
    n_groups = groups.max() + 1
    if not fraction or n_groups == 1:
        return order, order
    n_held = min(max(1, round(fraction * n_groups)), n_groups - 1)
    ranks = np.full(n_groups, len(rows))
    np.minimum.at(ranks, groups[order], np.arange(len(rows)))  # of the first of each group in the shuffled order
    held = np.isin(groups[order], np.argsort(ranks)[:n_held])
    return order[~held], order[held]


def stratified_folds(labels, groups, n_folds, seed):
    """Pairs of kept and held-out indices, one for each of the shuffled folds: class shares agree, groups stay together.

    Groups are shuffled here because scikit-learn before 1.8 gives folds to other groups than it has balanced.
    """
    groups = np.unique(groups, return_inverse=True)[1]
    order = check_random_state(seed).permutation(groups.max() + 1)
    shuffled = np.argsort(order)[groups]
    if len(order) <= MANY_GROUPS:
        return list(StratifiedGroupKFold(n_folds).split(labels, labels, shuffled))
    folds = _fold_of_each(np.unique(labels, return_inverse=True)[1], shuffled, n_folds)[shuffled]
    return [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in range(n_folds)]


def _fold_of_each(labels, groups, n_folds):
    """A fold for each group, the largest first: the one with the fewest rows of the group's commonest class."""
    n_groups, n_classes = groups.max() + 1, labels.max() + 1
    counts = np.bincount(groups * n_classes + labels, minlength=n_groups * n_classes).reshape(n_groups, n_classes)
    sizes, commonest = counts.sum(axis=1), counts.argmax(axis=1).tolist()
    filled, folds = [[0] * n_folds for _ in range(n_classes)], np.empty(n_groups, int)
    for group in np.argsort(-sizes, kind="stable").tolist():
        own = filled[commonest[group]]
        folds[group] = own.index(min(own))
        own[folds[group]] += int(sizes[group])
    return folds
