"""Tables as arrays of numbers and codes, and tables from such arrays, exactly."""

from typing import Any, NamedTuple

import numpy as np

from scorefield.data import kinds
from scorefield.data.coding import Column, decode_column, encode_column, fit_column, ready_to_write
from scorefield.data.containers import Table, write_table
from scorefield.data.likeness import like_fitted
from scorefield.data.new_keys import new_keys


class Encoded(NamedTuple):
    """Rows as arrays: `numbers` (n, p), NaN at gaps and spikes; `codes` (n, q), -1 at gaps and unseen levels."""

    numbers: np.ndarray
    codes: np.ndarray


class Variable(NamedTuple):
    """What a model sees of a column: its position among the numbers and among the codes, -1 where it has none."""

    name: Any
    kind: str
    number: int
    category: int
    n_levels: int


class TableEncoder:
    """Turns tables into numbers and codes, and back.

    Parameters
    ----------
    columns : dict or None, default=None
        Kinds of columns by name or position, in place of the inferred ones; see `scorefield.data.kinds.KINDS`.

    Attributes
    ----------
    variables : list of Variable
        The columns that a model sees, in the order of the table.
    level_values : list of (ndarray or None)
        Per category: positions of the levels of an ordered column, None for other kinds.
    set_aside : list
        Names of the identifiers and of free text; they are empty in decoded tables, unless new identifiers are made.
    constants : list
        Names of the columns with at most one known value.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield.data.encoding import TableEncoder
    >>> table = np.array([[1.5, "a"], [2.5, "b"], [None, "a"]], dtype=object)
    >>> encoder = TableEncoder().fit(table)
    >>> numbers, codes = encoder.encode(table)
    >>> numbers.ravel()
    array([1.5, 2.5, nan])
    >>> codes.ravel()
    array([0, 1, 0], dtype=int32)
    >>> encoder.decode((numbers, codes)).tolist()
    [[1.5, 'a'], [2.5, 'b'], [None, 'a']]
    """

    def __init__(self, columns=None):
        self.columns = columns

    def fit(self, table):
        """Learn what each column is.

        Parameters
        ----------
        table : array, DataFrame or Table of shape (n_rows, n_columns)
            numpy, pandas, polars or pyarrow.

        Returns
        -------
        self : TableEncoder
        """
        table = Table(table)
        if not table.n_rows or not table.names:
            raise ValueError(
                f"Expected a table with rows and columns, got {table.n_rows} rows and {len(table.names)} columns; "
                "check how it was read or filtered."
            )
        self.container_ = table.container
        self.columns_ = [fit_column(*column, table.is_plain) for column in kinds.classify(table, self.columns)]
        return self

    @property
    def variables(self):
        variables, n_numbers, n_categories = [], 0, 0
        for column in self.columns_:
            if column.has_number or column.has_codes:
                number = n_numbers if column.has_number else -1
                category = n_categories if column.has_codes else -1
                variables.append(Variable(column.name, column.kind, number, category, column.n_levels))
                n_numbers, n_categories = n_numbers + column.has_number, n_categories + column.has_codes
        return variables

    @property
    def level_values(self):
        return [column.level_values for column in self.columns_ if column.has_codes]

    @property
    def set_aside(self):
        return [column.name for column in self.columns_ if column.kind in kinds.SET_ASIDE]

    @property
    def identifiers(self):
        return [column.name for column in self.columns_ if column.kind == "identifier"]

    def set_keys(self, patterns):
        """Take the patterns of identifiers, by name, from a larger table than that of `fit`.

        Parameters
        ----------
        patterns : dict
        """
        for column in self.columns_:
            if column.keys is not None:
                column.keys = patterns.get(column.name)

    @property
    def constants(self):
        return [column.name for column in self.columns_ if column.kind == "constant"]

    def check(self, table):
        """The table, opened; one ValueError names all columns that are missing.

        Parameters
        ----------
        table : array, DataFrame or Table
            Frames may hold more columns, in any order; arrays have as many as in `fit`.

        Returns
        -------
        table : Table
        """
        table, names = Table(table), [column.name for column in self.columns_]
        if table.container["type"] == "numpy":
            if len(table.names) != len(names):
                raise ValueError(
                    f"Expected {len(names)} columns, as in fit, got {len(table.names)}; give the same ones."
                )
            return table
        missing = [name for name in names if name not in table.names]
        if missing:
            raise ValueError(
                f"Expected the columns of the fitted table, got none named {', '.join(map(repr, missing))}; add them, "
                "with gaps if they are not known."
            )
        return table

    def encode(self, table):
        """Rows as numbers and codes.

        Parameters
        ----------
        table : array, DataFrame or Table of shape (n_rows, n_columns)
            The columns of `fit`.

        Returns
        -------
        rows : Encoded
        """
        table = self.check(table)
        numbers, codes, problems = [], [], []
        for i, column in enumerate(self.columns_):
            if not column.has_number and not column.has_codes:
                continue
            cells, problem = like_fitted(table.cells(_name_in(table, column, i)), column)
            if problem is not None:
                problems.append(f"column {column.name!r}: {problem}")
                continue
            number, code = encode_column(cells, column)
            numbers += [number] if column.has_number else []
            codes += [code] if column.has_codes else []
        kinds.refuse(problems)
        return Encoded(
            np.column_stack(numbers) if numbers else np.zeros((table.n_rows, 0)),
            np.column_stack(codes) if codes else np.zeros((table.n_rows, 0), dtype=np.int32),
        )

    def unseen_levels(self, table):
        """Number of known cells per row whose level the fitted table does not have.

        Parameters
        ----------
        table : array, DataFrame or Table of shape (n_rows, n_columns)
            The columns of `fit`.

        Returns
        -------
        counts : ndarray of int, shape (n_rows,)
        """
        table = self.check(table)
        counts = np.zeros(table.n_rows, dtype=int)
        for i, column in enumerate(self.columns_):
            if column.has_codes:
                cells, _ = like_fitted(table.cells(_name_in(table, column, i)), column)
                counts += cells.known & (encode_column(cells, column)[1] < 0)
        return counts

    def decode(self, rows, like=None, rng=None, ids="blank"):
        """A table of encoded rows.

        Parameters
        ----------
        rows : Encoded or (numbers, codes)
            As `encode` returns them.
        like : array, DataFrame or Table, optional
            A table whose container and dtypes the result takes, in place of those of the fitted table.
        rng : numpy Generator, int or None
            Draws members of pooled levels, and new UUIDs.
        ids : {"blank", "new"}
            Whether identifiers are empty, or new keys that continue the pattern of their column, where it has one.

        Returns
        -------
        table : array, DataFrame or Table of shape (n_rows, n_columns)
            Free text is empty, constants are filled. Whole numbers with gaps take pandas' nullable
            dtype of the same width; in arrays they become float64.
        """
        numbers, codes = (np.asarray(part) for part in rows)
        if not np.isfinite(numbers[~np.isnan(numbers)]).all():
            raise ValueError("Expected finite numbers or NaN for gaps to decode, got infinity; clip them.")
        rng, where = np.random.default_rng(rng), {variable.name: variable for variable in self.variables}
        like = None if like is None else self.check(like)
        columns = []
        for i, column in enumerate(self.columns_):
            storage = column.storage if like is None else like.cells(_name_in(like, column, i)).storage
            if ids == "new" and column.keys is not None:
                cells = new_keys(column.keys, len(numbers), storage, rng)
            else:
                cells = decode_column(column, where.get(column.name), numbers, codes, rng)
            columns.append(ready_to_write(cells, column, storage))
        container = self.container_ if like is None else like.container
        return write_table(container, [column.name for column in self.columns_], columns)

    def to_plain(self):
        """The encoder as a dictionary of text, numbers, lists and arrays.

        Returns
        -------
        plain : dict
        """
        return {"container": self.container_, "columns": [column.to_plain() for column in self.columns_]}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`.

        Parameters
        ----------
        plain : dict

        Returns
        -------
        encoder : TableEncoder
        """
        encoder = cls()
        encoder.container_ = plain["container"]
        encoder.columns_ = [Column(**column) for column in plain["columns"]]
        return encoder


def _name_in(table, column, i):
    """Arrays are read by position, frames by name."""
    return i if table.container["type"] == "numpy" else column.name
