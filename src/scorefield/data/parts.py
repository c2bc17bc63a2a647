"""Rows of tables that are read in parts, chosen by their class and their number within it.

What reads in parts (`ParquetTable`, `DaskTable`) has the attributes `classes`, `counts`, `names` and `is_mixed`, and a
method `rows_of` that returns some rows and the numbers of their classes.
"""

import numpy as np


def places_of(codes, ranks, before=None):
    """Sorted places of chosen rows of a part of a table.

    Parameters
    ----------
    codes : array (n,)
        Numbers of the rows' classes.
    ranks : list
        For each class which of its rows in the whole table are chosen, sorted; None for all.
    before : array (classes,), default=None
        Rows of each class in the parts before; None for none.
    """
    before = np.zeros(len(ranks), int) if before is None else before
    found = []
    for k, own in enumerate(ranks):
        places = np.flatnonzero(codes == k)
        if own is not None:
            first, last = np.searchsorted(own, [before[k], before[k] + len(places)])
            places = places[own[first:last] - before[k]]
        found.append(places)
    return np.sort(np.concatenate(found))
