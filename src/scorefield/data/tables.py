"""Tables from CSV (plain or gzip) and Parquet files: read whole or in parts, with labels and cells checked."""

import contextlib
import csv
import gzip
import pathlib
import warnings
import zlib

from scorefield.data.columns import check_labels, check_target, check_unique
from scorefield.data.files import kind_of
from scorefield.data.parquet import (
    PART_ROWS,
    cast_column,
    decimals_as_numbers,
    open_parquet,
    parquet_files,
    refuse_nested,
)

SEPARATORS = ",;\t|"
MAX_CATEGORIES = 100  # distinct texts that a column of categories may have
MOSTLY = 0.9  # share of numbers in a column from which a text in it is taken for a mistake
LOOKED_AT = 200  # values that decide whether a column of text holds dates or decimal commas
DATE = r".*\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b.*|.*\b\d{1,2}[-/.]\d{1,2}[-/.]\d{4}\b.*"
DECIMAL_COMMA = r"\s*-?\d+,\d+\s*"


def _check_input(path):
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"Expected a file, got the folder {path}; name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"Expected a file, but {path} does not exist.")
    if path.stat().st_size == 0:
        raise ValueError(f"Expected a table in {path}, got an empty file.")
    return path, kind_of(path)


def read_parts(path, rows=PART_ROWS):
    """Yield DataFrames of at most `rows` rows, in order, at least one. Their index continues from part to part.

    The Parquet files of a folder are read as one table.
    """
    import pandas as pd

    n_rows = 0
    for file in parquet_files(path) if pathlib.Path(path).is_dir() else [path]:
        file, kind = _check_input(file)
        for part in _parquet_parts(file, rows) if kind == ".parquet" else _csv_parts(file, kind, rows):
            if len(part):
                part.index = pd.RangeIndex(n_rows, n_rows + len(part))
                n_rows += len(part)
                yield part
    if not n_rows:
        raise ValueError(f"Expected rows in {path}, got a header alone.")


def _parquet_parts(path, rows):
    import pyarrow as pa

    with open_parquet(path) as stream:
        schema = decimals_as_numbers(stream.schema_arrow)
        for batch in stream.iter_batches(batch_size=rows):
            columns = map(cast_column, batch.columns, schema.types)
            yield pa.RecordBatch.from_arrays(list(columns), schema=schema).to_pandas()


def _csv_parts(path, kind, rows):
    """Parts of a CSV file, or all of it if `rows` is None: the dtype of a column is then that of all its values."""
    import pandas as pd

    with _csv_errors(path):
        separator, _ = csv_header(path, kind)
        # A line longer than the header would be cut; without index_col=False the columns would shift.
        read = pd.read_csv(
            path, chunksize=rows, sep=separator, index_col=False, encoding="utf-8-sig", low_memory=False
        )  # fmt: skip
    if rows is None:
        yield read
        return
    with read:
        while True:
            with _csv_errors(path):  # closed before each yield: its filter of warnings is global
                part = next(read, None)
            if part is None:
                return
            yield part


@contextlib.contextmanager
def _csv_errors(path):
    """Raise what goes wrong in a CSV file, and what pandas only warns of, as ValueError with the path."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except UnicodeDecodeError as error:
        raise ValueError(f"Expected UTF-8 text in {path}, got {error.reason}; save the file as UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"Expected a table in {path}, got lines that do not fit ({reason}); correct them.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"Expected a readable file, got {path} ({error}); write or fetch it again.") from error


def csv_header(path, kind):
    """Separator and column names of a CSV file. The separator is the one that gives the most columns."""
    opener, headers = gzip.open if kind.endswith("gz") else open, {}
    for mark in SEPARATORS:
        # csv.Error: a long header that another mark separates is one field, larger than the limit of csv.
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream, contextlib.suppress(csv.Error):
            headers[mark] = next(csv.reader(stream, delimiter=mark), [])
    if not headers:
        raise ValueError(
            f"Expected a header of column names in {path}, got a name of more than {csv.field_size_limit():,} "
            "characters; check its quotes and separators."
        )
    separator, names = max(headers.items(), key=lambda header: len(header[1]))
    if not any(name.strip() for name in names):
        raise ValueError(f"Expected a header in the first line of {path}, got an empty one; add the column names.")
    check_unique(names, path)  # pandas would rename duplicates silently
    return separator, names


def read_table(path):
    """The whole table as a DataFrame with at least one row; columns hold numbers, text or dates."""
    import pandas as pd

    path, kind = _check_input(path)
    if kind == ".parquet":
        refuse_nested(path)
        return pd.concat(read_parts(path), ignore_index=True)
    table = pd.concat(read_parts(path, None), ignore_index=True)
    for name in table.columns:
        if _is_text(table[name]):
            _check_cells(table[name])
    return table


def _is_text(column):
    import pandas as pd

    return not (pd.api.types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype))


def _check_cells(column):
    """Refuse single texts among the numbers of a CSV column: pandas reads the whole column as text."""
    import pandas as pd

    values = column.dropna()
    odd = values[pd.to_numeric(values, errors="coerce").isna()]
    if MOSTLY * len(values) <= len(values) - len(odd) < len(values):
        more = f" and {len(odd) - 1} more such cells" if len(odd) > 1 else ""
        raise ValueError(
            f"Expected numbers in column {column.name!r}, as in {len(values) - len(odd)} of its cells, got "
            f"{odd.iloc[0]!r} in row {odd.index[0] + 1} below the header{more}; correct or empty them, or write all "
            "cells as text if they are categories."
        )


def read_labelled(path, target):
    """A whole table with a column of labels; columns of text become categories, and dates are refused."""
    table = read_table(path)
    check_target(target, table.columns, path)
    check_labels(table[target].value_counts(dropna=False).to_dict(), target)
    for name in table.columns:
        if name != target and _is_text(table[name]):
            table[name] = _as_category(table[name])
    return table


def _as_category(column):
    values = column.dropna().astype(str)
    looked_at = values.iloc[:LOOKED_AT]
    if len(values) and looked_at.str.fullmatch(DATE).all():
        raise ValueError(
            f"Expected numbers or categories in column {column.name!r}, got dates such as {values.iloc[0]!r}; replace "
            "it by numbers (days since a date, hour, weekday) or drop it."
        )
    if len(values) and looked_at.str.fullmatch(DECIMAL_COMMA).all():
        raise ValueError(
            f"Expected a decimal point in the numbers of column {column.name!r}, got {values.iloc[0]!r}; replace the "
            "decimal commas."
        )
    if values.nunique() > MAX_CATEGORIES:
        raise ValueError(
            f"Expected numbers or at most {MAX_CATEGORIES} categories in column {column.name!r}, got "
            f"{values.nunique()} different texts such as {values.iloc[0]!r}; drop it or group them."
        )
    return column.astype("category")
