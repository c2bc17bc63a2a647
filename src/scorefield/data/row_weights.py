"""Weights of rows: a row of weight 2 counts as two rows, whatever is learned from them.

Whole weights become repeated rows, so that a fit with weights and one of a table with the rows repeated are the same
fit. What is left of other weights, at most 1 per row, enters the moments and the losses.
"""

import numpy as np

from scorefield.data.splits import same_rows

MOST_COPIES = 10  # rows per row of a table; weights that ask for more are not counts, and stay weights


def counted(weights):
    """Indices of rows, each as often as its weight says, and the weights that remain of them; None where all are 1.

    Rows of weight zero are left out.
    """
    weights = np.asarray(weights, np.float64)
    copies = np.ceil(weights).astype(int)
    n_positive = np.count_nonzero(copies)
    if n_positive == 0:
        raise ValueError("Expected a positive sample weight, got zero for all rows; leave sample_weight out.")
    if copies.sum() > MOST_COPIES * n_positive:
        copies = np.minimum(copies, 1)
    index = np.repeat(np.arange(len(weights)), copies)
    return index, uneven((weights / np.maximum(copies, 1))[index])


def uneven(weights):
    """Weights with a mean of 1, or None where all are equal."""
    if weights is None or len(weights) == 0 or np.ptp(weights) == 0:
        return None
    return weights / weights.mean()


def as_shares(weights):
    """Weights of at most 1, which make no row count as several; None where all are equal."""
    return None if np.ptp(weights) == 0 else weights / weights.max()


def in_fixed_order(rows, labels=None, weights=None):
    """The order of rows that does not depend on how they came, where some are repeated; None where none is."""
    groups = same_rows(rows)
    if len(rows) == 0 or groups.max() + 1 == len(rows):
        return None
    ties = [part for part in (weights, labels) if part is not None]
    return np.lexsort((*ties, groups))
