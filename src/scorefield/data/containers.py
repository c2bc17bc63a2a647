"""Tables of numpy, pandas, polars and pyarrow: read column by column as `Cells`, and written in the same dtypes."""

from collections import Counter

import narwhals as nw
import numpy as np
from narwhals import dependencies

from scorefield.data import arrow, frames
from scorefield.data.cells import cast, in_stored_form
from scorefield.data.objects import read_numpy, to_objects

KNOWN_CONTAINERS = "a numpy array, a pandas or polars DataFrame or a pyarrow table"


def is_frame(X):
    """True for data frames and pyarrow tables that are in memory."""
    return hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__") or hasattr(X, "iloc")


class Table:
    """A table of any supported container, read column by column.

    Attributes
    ----------
    names : list
        Column names; positions for an array.
    container : dict
        Plain description of the container.
    """

    def __init__(self, native):
        self.native, self.container = _container(native)
        self.n_rows = len(self.native)
        if self.container["type"] == "numpy":
            self.names = list(range(self.native.shape[1]))
        else:
            self.names = _checked_names(list(_names_of(self.native)))

    @property
    def is_plain(self):
        """True for a numpy array of numbers or flags."""
        return self.container["type"] == "numpy" and np.dtype(self.container["dtype"]).kind in "biuf"

    def cells(self, name):
        """The cells of a column."""
        if self.container["type"] == "numpy":
            return read_numpy(self.native[:, name])
        if self.container["type"] == "pandas":
            return frames.read_pandas(self.native.iloc[:, self.names.index(name)])
        if self.container["type"] == "polars":
            return frames.read_polars(self.native.get_column(name))
        return arrow.read_arrow(self.native.column(name))


def _container(native):
    """The table, and what kind of container it is."""
    if isinstance(native, list | tuple):
        native = _array_of_lists(native)
    if isinstance(native, np.ma.MaskedArray):
        native = (
            native.astype(float).filled(np.nan) if native.dtype.kind in "biuf" else native.astype(object).filled(None)
        )
    if isinstance(native, np.ndarray):
        if native.ndim != 2:
            raise ValueError(
                f"Expected a table of two dimensions, got an array of shape {native.shape}; reshape it "
                "(reshape(-1, 1) for one column)."
            )
        return native, {"type": "numpy", "dtype": str(native.dtype)}
    if dependencies.is_pandas_dataframe(native):
        name = native.columns.name
        return native, {"type": "pandas", "columns_name": name if isinstance(name, str) else None}
    if dependencies.is_polars_dataframe(native):
        return native, {"type": "polars"}
    if dependencies.is_pyarrow_table(native):
        return native, {"type": "pyarrow"}
    remedy = next((f"call .{name}() first" for name in ("collect", "toarray") if hasattr(native, name)), "convert it")
    raise ValueError(f"Expected {KNOWN_CONTAINERS}, got {type(native).__name__}; {remedy}.")


def _array_of_lists(rows):
    """Lists of rows as an array of numbers, or of objects where a cell is not a number."""
    try:
        array = np.array(rows)
    except ValueError as error:
        raise ValueError("Expected rows of equal length, got lists of different lengths; fill them.") from error
    return array if array.dtype.kind in "biuf" else np.array(rows, dtype=object)


def _names_of(native):
    return native.column_names if hasattr(native, "column_names") else native.columns


def _checked_names(names):
    """Names as Python values; text or whole numbers that differ from each other."""
    names = [name.item() if isinstance(name, np.generic) else name for name in names]
    odd = [name for name in names if not isinstance(name, str | int)]
    if odd:
        raise ValueError(
            f"Expected text or whole numbers as column names, got {', '.join(map(repr, odd))}; rename the columns."
        )
    twice = [repr(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Expected unique column names, got {', '.join(twice)} more than once; rename them.")
    return names


def write_table(container, names, columns):
    """A table of a container.

    Parameters
    ----------
    container : dict
        As in `Table.container`.
    names : list
        Column names.
    columns : list of Cells
        Values, known cells and storage of each column.

    Returns
    -------
    table : ndarray, DataFrame or Table
    """
    kind = container["type"]
    columns = [in_stored_form(cells) for cells in columns]
    if kind == "numpy":
        return _write_numpy(np.dtype(container["dtype"]), columns)
    if kind == "pandas":
        import pandas as pd

        data = {i: frames.write_pandas(cells) for i, cells in enumerate(columns)}
        table = pd.DataFrame(data, index=pd.RangeIndex(len(columns[0].values) if columns else 0))
        table.columns = pd.Index(names, name=container["columns_name"])
        return table
    if kind == "polars":
        import polars as pl

        return pl.DataFrame([frames.write_polars(name, cells) for name, cells in zip(names, columns, strict=True)])
    import pyarrow as pa

    return pa.table([arrow.write_arrow(cells) for cells in columns], names=names)


def _write_numpy(dtype, columns):
    """An array of a dtype; whole numbers with gaps become float64, as numpy has no missing whole numbers."""
    n_rows = len(columns[0].values) if columns else 0
    complete = all(cells.known.all() for cells in columns)
    if dtype.kind in "OUT":
        array = np.full((n_rows, len(columns)), None, dtype=object)
        for i, cells in enumerate(columns):
            array[:, i] = to_objects(cells.values, cells.known, cells.storage)
        return array if dtype.kind == "O" else array.astype(dtype)
    if dtype.kind in "biu" and not complete:
        dtype = np.dtype(np.float64)
    array = np.zeros((n_rows, len(columns)), dtype=dtype)
    for i, cells in enumerate(columns):
        array[:, i] = cast(cells, dtype)
        if not cells.known.all():
            array[~cells.known, i] = np.nan if dtype.kind == "f" else "NaT"
    return array


def with_dense_columns(table):
    """The table, with the sparse columns of a pandas DataFrame as plain ones."""
    if not hasattr(table, "iloc"):
        return table
    sparse = {name: dtype.subtype for name, dtype in table.dtypes.items() if type(dtype).__name__ == "SparseDtype"}
    return table.astype(sparse) if sparse else table


def take_rows(table, index):
    """Some rows of a table, as a table of the same container.

    Parameters
    ----------
    table : ndarray, DataFrame or Table
    index : ndarray of int

    Returns
    -------
    table : ndarray, DataFrame or Table
    """
    if hasattr(table, "iloc"):
        return table.iloc[index]
    return table.take(index) if dependencies.is_pyarrow_table(table) else table[index]


def copy_cells(table, sources):
    """A table of cells of another one: each column holds the cells at its column of row numbers.

    Parameters
    ----------
    table : ndarray, DataFrame or Table
    sources : ndarray of int, shape (n_rows, n_columns)

    Returns
    -------
    table : ndarray, DataFrame or Table
    """
    whole = Table(table)
    kind, native = whole.container["type"], whole.native
    if kind == "numpy":
        return native[sources, np.arange(native.shape[1])]
    if kind == "pandas":
        import pandas as pd

        copied = {i: native.iloc[:, i].array.take(rows) for i, rows in enumerate(sources.T)}
        return pd.DataFrame(copied, index=pd.RangeIndex(len(sources))).set_axis(native.columns, axis=1)
    if kind == "polars":
        import polars as pl

        return pl.DataFrame([native.get_column(name).gather(sources[:, i]) for i, name in enumerate(whole.names)])
    import pyarrow as pa

    return pa.table([native.column(i).take(pa.array(rows)) for i, rows in enumerate(sources.T)], schema=native.schema)


def fill_gaps(table, values):
    """A table whose gaps are filled from another of the same columns; known cells and other columns stay as they are.

    Parameters
    ----------
    table, values : ndarray, DataFrame or Table
        Of the same container and length.

    Returns
    -------
    table : ndarray, DataFrame or Table
    """
    whole = Table(table)
    return replace_cells(whole.native, values, {name: ~whole.cells(name).known for name in Table(values).names})


def replace_cells(table, values, chosen):
    """A table with some cells taken from another one; the others stay as they are.

    Parameters
    ----------
    table, values : ndarray, DataFrame or Table
        Of the same container and length.
    chosen : dict
        For names of columns, an array of bool: True for cells that are taken from `values`.

    Returns
    -------
    table : ndarray, DataFrame or Table
    """
    whole, other = Table(table), Table(values)
    chosen = {name: mask for name, mask in chosen.items() if mask.any()}
    if whole.container["type"] == "numpy":
        result = whole.native.copy()
        for i, mask in chosen.items():
            result[mask, i] = other.native[mask, i]
        return result
    if whole.container["type"] == "pandas":
        result = whole.native.copy()
        for name, mask in chosen.items():
            i, own = whole.names.index(name), whole.native.iloc[:, whole.names.index(name)]
            new = other.native.iloc[:, other.names.index(name)].set_axis(own.index)
            result.isetitem(i, own.where(~mask, new))
        return result
    frame, new = (nw.from_native(each.native, eager_only=True) for each in (whole, other))
    for name, mask in chosen.items():
        kept = nw.new_series("kept", ~mask, backend=frame.implementation)
        frame = frame.with_columns(frame[name].zip_with(kept, new[name]).alias(name))
    return frame.to_native()


def append_column(table, name, values):
    """A table with one more column of numbers at its end.

    Parameters
    ----------
    table : ndarray, DataFrame or Table
    name : str or int
        Not used for arrays.
    values : ndarray of shape (n,)

    Returns
    -------
    table : ndarray, DataFrame or Table
    """
    kind = Table(table).container["type"]
    if kind == "numpy":
        return np.column_stack([table, values.astype(object) if table.dtype.kind in "OUT" else values])
    if kind == "pandas":
        table = table.copy()
        table[name] = values
        return table
    frame = nw.from_native(table, eager_only=True)
    return frame.with_columns(nw.new_series(name, values, backend=frame.implementation)).to_native()


def split_column(table, name):
    """A table without one column, and the numbers of that column; inverse of `append_column`."""
    whole = Table(table)
    position = whole.names.index(name)
    values = whole.cells(name).values.astype(np.float64)
    if whole.container["type"] == "numpy":
        return np.delete(whole.native, position, axis=1), values
    if whole.container["type"] == "pandas":
        return whole.native.drop(columns=whole.native.columns[position]), values
    return nw.from_native(whole.native, eager_only=True).drop(name).to_native(), values


def append_rows(table, rows):
    """Two tables of the same container and columns, one after the other, with a fresh index.

    Parameters
    ----------
    table, rows : ndarray, DataFrame or Table

    Returns
    -------
    table : ndarray, DataFrame or Table
        Cells of the first table are as they were. Whole numbers take pandas' nullable dtype where the second has gaps.
    """
    if isinstance(table, np.ndarray):
        return np.concatenate([table, rows])
    kind = Table(table).container["type"]
    if kind == "pandas":
        import pandas as pd

        both = pd.concat([table, rows], ignore_index=True)
        kept = {name: dtype for name, dtype in table.dtypes.items() if rows[name].dtype == dtype != both[name].dtype}
        return both.astype(kept) if kept else both
    if kind == "polars":
        import polars as pl

        return pl.concat([table, rows], how="vertical_relaxed")
    import pyarrow as pa

    return pa.concat_tables([table, rows], promote_options="permissive")
