"""Dask dataframes as tables that are read in parts: a pass for classes and counts, a pass for chosen rows."""

import functools
from collections import Counter

import numpy as np

from scorefield.data.checks import is_missing
from scorefield.data.dask import is_lazy
from scorefield.data.parts import places_of
from scorefield.data.tables import check_labels


class DaskTable:
    """Rows of a dask dataframe and their labels, which are one of its columns or a dask Series beside it.

    Nothing but counts and chosen rows leaves the workers. A partition that is lost with its worker is made again, with
    the same rows chosen.
    """

    def __init__(self, frame, target):
        if not (hasattr(frame, "npartitions") and hasattr(frame, "columns")):
            raise ValueError(
                f"Expected a dask dataframe, got a dask {type(frame).__name__}; make one with "
                "dask.dataframe.from_dask_array."
            )
        self.parts, self.target = _parts(frame, target)
        names = [name for name in frame.columns if not (isinstance(target, str) and name == target)]
        if not names:
            raise ValueError(f"Expected columns beside the target {self.target!r}, got none.")
        self.names, dtypes = names, frame.dtypes
        self.only_numbers = all(getattr(dtypes[name], "kind", "O") in "iuf" for name in names)

    @functools.cached_property
    def _told(self):
        """For each partition the counts of its labels, and whether it has missing values."""
        import dask

        return dask.compute(*(dask.delayed(_tell)(*part) for part in self.parts))

    @functools.cached_property
    def classes(self):
        """The sorted classes."""
        counts = sum((told[0] for told in self._told), Counter())
        if not counts:
            raise ValueError("Expected rows in the dask dataframe, got empty partitions alone.")
        n_missing = sum(count for label, count in counts.items() if is_missing(label))
        check_labels(counts, n_missing, self.target)
        ordered = sorted(counts)
        return np.array(ordered, dtype=object if isinstance(ordered[0], str) else None)  # as of a column in memory

    @functools.cached_property
    def counts_of_parts(self):
        """Rows of each class in each partition (parts, classes)."""
        labels = self.classes.tolist()
        return np.array([[told[0][label] for label in labels] for told in self._told])

    @property
    def counts(self):
        """Rows of each class."""
        return self.counts_of_parts.sum(axis=0)

    @property
    def is_mixed(self):
        """Whether some column is none of numbers, or has missing values, be it in rows that are not chosen."""
        return not self.only_numbers or any(told[1] for told in self._told)

    def rows_of(self, ranks):
        """Rows of these ranks of each class, see `places_of`, as a DataFrame; and the numbers of their classes."""
        import dask
        import pandas as pd

        counts = self.counts_of_parts
        before = np.cumsum(counts, axis=0) - counts
        tasks = []
        for part, first, n_rows in zip(self.parts, before, counts, strict=True):
            # Ranks within the partition: no task carries those of the others.
            own = [
                None if chosen is None else chosen[slice(*np.searchsorted(chosen, [low, low + n]))] - low
                for chosen, low, n in zip(ranks, first, n_rows, strict=True)
            ]
            if any(n and (chosen is None or len(chosen)) for chosen, n in zip(own, n_rows, strict=True)):
                tasks.append(dask.delayed(_chosen)(*part, self.classes, own))
        frames, codes = zip(*dask.compute(*tasks), strict=True)
        return pd.concat(frames, ignore_index=True), np.concatenate(codes)


def _parts(frame, target):
    """Pairs of delayed rows and labels, one for each partition, and the name of the labels."""
    if isinstance(target, str):
        if target not in frame.columns:
            raise ValueError(f"Expected the label column among {list(frame.columns)}, got {target!r}.")
        # Split in the task: dask may fuse partitions of some columns in another way than those of others.
        return [(part.drop(columns=target), part[target]) for part in frame.to_delayed()], target
    if not (is_lazy(target) and hasattr(target, "npartitions") and getattr(target, "ndim", 0) == 1):
        raise ValueError(
            f"Expected y as the name of a column or a dask Series beside a dask dataframe, got {type(target).__name__}."
        )
    if target.npartitions != frame.npartitions:
        raise ValueError(
            f"Expected as many partitions in y as in X, got {target.npartitions} and {frame.npartitions}; make one "
            "from the other, or join them and name the column."
        )
    parts, labels = (part.to_delayed(optimize_graph=False) for part in (frame, target))  # unfused, they stay paired
    return list(zip(parts, np.ravel(labels).tolist(), strict=True)), getattr(target, "name", None) or "y"


def _labels_of(rows, labels):
    if len(rows) != len(labels):
        raise ValueError(
            f"Expected as many labels as rows in each partition, got {len(labels)} and {len(rows)}; make y from X."
        )
    return np.asarray(labels, dtype=object)


def _tell(rows, labels):
    """Counts of the labels of a partition, and whether it has missing values."""
    counts = Counter()
    for label in _labels_of(rows, labels).tolist():
        counts[None if is_missing(label) else label] += 1
    return counts, bool(rows.isna().to_numpy().any())


def _chosen(rows, labels, classes, ranks):
    """Rows of a partition of these ranks of each class, and the numbers of their classes."""
    codes = np.searchsorted(classes, _labels_of(rows, labels).astype(classes.dtype))
    places = places_of(codes, ranks)
    return rows.iloc[places], codes[places]
