"""The rows that a table is for a model: plain numbers in units of their columns, or flat rows of a mixed table.

`NumberSpace` and `RowSpace` have the same methods: a table of numbers is one without categories and missing cells.
"""

import numpy as np
from scipy.sparse import issparse

from scorefield._jax.batching import standardized
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.cells import NUMERIC
from scorefield.data.containers import Table, is_frame
from scorefield.data.encoding import Encoded, TableEncoder
from scorefield.data.kinds import classify
from scorefield.data.row_space import RowSpace
from scorefield.data.scaling import column_units, raw_rows

PLAIN_KINDS = ("number", "whole number", "constant")


@stored_by_public_name
class NumberSpace:
    """A table of numbers: its rows are the numbers themselves, which models see in units of their columns."""

    is_mixed = False
    layout = None  # of categories and missing cells: there are none

    def __init__(self, dtype, encoder=None, mean=None, scale=None):
        self.dtype, self.encoder, self.mean, self.scale = dtype, encoder, mean, scale

    @property
    def units(self):
        """Mean and scale of each column."""
        return self.mean, self.scale

    def in_units_of(self, rows):
        """The same space with the units of some rows (n, d)."""
        return NumberSpace(self.dtype, self.encoder, *column_units(rows))

    def model_rows(self, rows):
        """Rows as a model sees them."""
        return standardized(rows, *self.units)

    def raw_rows(self, rows):
        """Inverse of `model_rows`."""
        return raw_rows(rows, *self.units)

    def numbers(self, rows):
        """The numbers of a model's rows, and None: all are known."""
        return rows, None

    def hidden_copies(self, rng, rows):
        """None: rows without missing cells are learned as they are."""
        return None

    def n_gaps(self, rows):
        """Missing cells of each row (n,)."""
        return np.zeros(len(rows), int)

    def log_volume(self, rows):
        """Log of the volume by which standardising shrinks or stretches rows."""
        return -np.log(self.scale).sum()

    def table(self, rows):
        """Numbers (n, d) as a table like the fitted one."""
        rows = rows.astype(self.dtype)
        return rows if self.encoder is None else numbers_as_table(self.encoder, rows)

    def to_plain(self):
        """A dictionary of plain values and arrays."""
        encoder = None if self.encoder is None else self.encoder.to_plain()
        return {"dtype": self.dtype, "encoder": encoder, "mean": self.mean, "scale": self.scale}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`."""
        encoder = None if plain["encoder"] is None else TableEncoder.from_plain(plain["encoder"])
        return cls(plain["dtype"], encoder, plain["mean"], plain["scale"])

    def __getstate__(self):
        return self.to_plain()

    def __setstate__(self, plain):
        vars(self).update(vars(self.from_plain(plain)))


def space_from_plain(plain):
    """The `NumberSpace` or `RowSpace` of its `to_plain`."""
    return (RowSpace if "knots" in plain else NumberSpace).from_plain(plain)


def numbers_as_table(encoder, numbers, like=None):
    """Numbers (n, d) of all columns as a table of a fitted encoder, or like another one."""
    varying = [i for i, column in enumerate(encoder.columns_) if column.kind != "constant"]
    return encoder.decode(Encoded(numbers[:, varying].astype(float), np.zeros((len(numbers), 0), np.int32)), like)


def as_numbers(X):
    """The columns of an array or frame of numbers as an array (n, d) in double precision."""
    if isinstance(X, np.ndarray) or hasattr(X, "iloc"):
        return np.asarray(X, dtype=np.float64)
    table = Table(X)
    return np.column_stack([table.cells(name).values for name in table.names]).astype(np.float64)


def is_mixed(X, columns=None):
    """True for a table with missing values or with columns that are not plain numbers."""
    if issparse(X):
        return False
    if is_frame(X):
        table = Table(X)
        found = classify(table, columns)
        plain = [
            kind in PLAIN_KINDS and cells.form in NUMERIC and cells.text is None and cells.known.all()
            for _, kind, cells in found
        ]
        return not all(plain)
    array = X if isinstance(X, np.ndarray) else np.asarray(Table(X).native) if isinstance(X, list | tuple) else None
    if array is None or array.ndim != 2:
        return False
    if columns:
        return True
    if array.dtype.kind == "f":
        return bool(np.isnan(array).any())
    return array.dtype.kind == "O" and any(_is_label(cell) for cell in array.ravel())


def _is_label(cell):
    """True for cells of object arrays that are gaps, text, flags or dates."""
    return cell is None or isinstance(cell, str | bool | np.datetime64) or hasattr(cell, "isoformat") or cell != cell


def refuse_mixed(space, expected, got):
    """Raise an error that names the columns for which something else is expected."""
    raise ValueError(
        f"Expected {expected} for a table with {what_is_mixed(space)}, got {got}; fill missing values with "
        "ScoreImputer, and encode text as numbers."
    )


def what_is_mixed(space):
    """What makes a table mixed, in words that name its columns."""
    odd = [column.name for column in space.encoder.columns_ if column.kind not in PLAIN_KINDS]
    names = list(dict.fromkeys([*odd, *space.encoder.set_aside]))
    return f"columns that are not numbers ({', '.join(map(repr, names))})" if names else "missing values (NaN)"
