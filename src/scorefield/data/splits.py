"""Splits that keep equal rows together: copies on both sides of a split would leak from one to the other."""

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.utils import check_random_state


def same_rows(X):
    """A number for each row, the same for equal rows; gaps (NaN) are equal to each other."""
    gaps = np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, bool)
    if gaps.any():
        X = np.hstack([np.where(gaps, 0, X), gaps])
    return np.unique(X, axis=0, return_inverse=True)[1].ravel()


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
    return list(StratifiedGroupKFold(n_folds).split(labels, labels, shuffled))
