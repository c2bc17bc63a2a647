"""Columns whose order alone tells the label: keys, or rows' places, in a table that is sorted by label."""

import numpy as np

from scorefield.data.cells import NUMERIC, positions
from scorefield.data.keys import key_reason
from scorefield.data.kinds import NUMBER_KINDS, SET_ASIDE, classify, is_whole, tally

FEWEST = 20  # rows
CERTAIN = 6.0  # standard errors by which labels change more seldom than in random order
SELDOM = 0.5  # share of the changes that a random order has


def order_tells(labels):
    """True if labels change so seldom from row to row that a row's place tells its label.

    The number of runs is compared with that in random order (Wald & Wolfowitz 1940, for several labels Mood 1940).
    """
    codes = np.unique(labels, return_inverse=True)[1]
    n, counts = len(codes), np.bincount(codes).astype(float)
    if n < FEWEST or len(counts) < 2:
        return False
    runs, squares, cubes = 1 + np.count_nonzero(np.diff(codes)), (counts**2).sum(), (counts**3).sum()
    mean = (n * (n + 1) - squares) / n
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1.0))
    return bool(runs - mean < -CERTAIN * np.sqrt(variance) and runs - 1 < SELDOM * (mean - 1))


def leaks(table, labels, columns=None):
    """What to warn of, one sentence for each column whose order alone tells the labels.

    Parameters
    ----------
    table : Table
    labels : array of shape (n_rows,)
    columns : dict or None
        Kinds by name or position, in place of the inferred ones.

    Returns
    -------
    sentences : list of str
    """
    labels, said, classified = np.asarray(labels), [], classify(table, columns)
    sorted_by_label = order_tells(labels)
    for name, kind, cells in classified:
        if kind == "identifier" and cells.form != "unknown" and _tells(cells, labels):
            said.append(
                f"The order of {name!r} alone predicts the label, as in a table that is sorted by label. It is set "
                "aside here; keep it from other models too."
            )
        elif kind in NUMBER_KINDS and (
            (sorted_by_label and _follows_rows(cells)) or (_is_key(name, cells, classified) and _tells(cells, labels))
        ):
            said.append(
                f"The order of {name!r} alone predicts the label, as in a table that is sorted by label. If it will "
                f"not do so for new rows, set it aside: columns={{{name!r}: 'identifier'}}."
            )
    return said


def _is_key(name, cells, classified):
    """True for whole numbers that would be taken for a key."""
    levels = tally(cells)[0]
    if cells.form not in NUMERIC or not is_whole(levels):
        return False
    others = (own for other, kind, own in classified if other != name and kind not in SET_ASIDE)
    return key_reason(name, cells, levels, others) is not None


def _tells(cells, labels):
    """True if the labels of rows in the order of a column's values do not change as in random order."""
    return order_tells(labels[_order(cells)])


def _order(cells):
    """Known cells from the least to the greatest value; equal ones as they stand."""
    places = np.flatnonzero(cells.known)
    ranks = positions(cells.values, cells.known, tally(cells)[0])
    return places[np.argsort(ranks[places], kind="stable")]


def _follows_rows(cells):
    """True if nearly all values are different, and rise or fall from row to row."""
    values = cells.values[cells.known]
    if len(values) < FEWEST or 2 * len(tally(cells)[0]) < len(values):
        return False
    return bool((values[1:] >= values[:-1]).all() or (values[1:] <= values[:-1]).all())
