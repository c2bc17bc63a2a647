"""Tables from CSV (plain or gzip) and Parquet files: read whole or in parts, with columns, cells and labels checked."""

import contextlib
import csv
import gzip
import numbers
import pathlib
import warnings
import zlib
from collections import Counter

KINDS = (".csv", ".csv.gz", ".parquet")
PART_ROWS = 1 << 16  # rows in memory while a table is read or written in parts: 52 MB with 100 columns of doubles
READ_BYTES = 1 << 20  # read ahead per Parquet column; without a bound pyarrow reads the whole column of a row group
INT64_DIGITS = 18  # decimal digits that always fit
SEPARATORS = ",;\t|"
MAX_CATEGORIES = 100  # distinct texts that a column of categories may have
MOSTLY = 0.9  # share of numbers in a column from which a text in it is taken for a mistake
LOOKED_AT = 200  # values that decide whether a column of text holds dates or decimal commas
DATE = r".*\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b.*|.*\b\d{1,2}[-/.]\d{1,2}[-/.]\d{4}\b.*"
DECIMAL_COMMA = r"\s*-?\d+,\d+\s*"


def read_labelled(path, target):
    """A whole table with a column of labels; columns of text become categories, and dates are refused."""
    table = read_table(path)
    check_target(target, table.columns, path)
    check_labels(table[target].dropna().unique().tolist(), int(table[target].isna().sum()), target)
    for name in table.columns:
        if name != target and _is_text(table[name]):
            table[name] = _as_category(table[name])
    return table


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


def _check_input(path):
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"Expected a file, got the folder {path}; name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"Expected a file, but {path} does not exist.")
    if path.stat().st_size == 0:
        raise ValueError(f"Expected a table in {path}, got an empty file.")
    kind = next((kind for kind in KINDS if path.name.endswith(kind)), None)
    if kind is None:
        raise ValueError(f"Expected a file that ends in {', '.join(KINDS)}, got {path}; convert or rename it.")
    return path, kind


def _csv_parts(path, kind, rows):
    """Parts of a CSV file, or all of it if `rows` is None: the dtype of a column is then that of all its values."""
    import pandas as pd

    with _csv_errors(path):
        separator, _ = csv_header(path, kind)
        # A line longer than the header would be cut; without index_col=False the columns would shift.
        options = {"sep": separator, "index_col": False, "encoding": "utf-8-sig", "low_memory": False}
        read = pd.read_csv(path, chunksize=rows, **options)
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


def _parquet_parts(path, rows):
    import pyarrow as pa

    with open_parquet(path) as stream:
        schema = decimals_as_numbers(stream.schema_arrow)
        for batch in stream.iter_batches(batch_size=rows):
            columns = map(cast_column, batch.columns, schema.types)
            yield pa.RecordBatch.from_arrays(list(columns), schema=schema).to_pandas()


def import_pyarrow():
    """pyarrow with the parts that tables need, or an error with the remedy."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(
            "Expected pyarrow to read Parquet files, but it is not installed; pip install 'scorefield[cli]'."
        ) from error
    return pyarrow


def parquet_files(path):
    """The Parquet files of a path: the file itself, or those of a folder, sorted by name."""
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"Expected a Parquet file or a folder of them, but {path} does not exist.")
    if not path.is_dir():
        if path.suffix != ".parquet":
            raise ValueError(f"Expected a file that ends in .parquet or a folder of them, got {path}; convert it.")
        return [path]
    nested = next(path.glob("*/**/*.parquet"), None)
    if nested is not None:
        raise ValueError(
            f"Expected Parquet files directly in {path}, got one in its folder {nested.parent.name}; columns that are "
            "folder names are not read: write the table without partitions."
        )
    files = sorted(file for file in path.glob("*.parquet") if not file.name.startswith(("_", ".")))
    if not files:
        raise ValueError(f"Expected Parquet files in the folder {path}, got none that ends in .parquet; name another.")
    return files


@contextlib.contextmanager
def open_parquet(file):
    """Open a Parquet file; damaged files and duplicate column names are refused."""
    pa = import_pyarrow()
    try:
        with pa.parquet.ParquetFile(file, buffer_size=READ_BYTES, pre_buffer=False) as stream:
            check_unique(stream.schema_arrow.names, file)
            yield stream
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"Expected a Parquet file, got {file} ({reason}); write or fetch it again.") from error


def _number_type(kind):
    """The type that a column of decimals is read as: whole numbers where they fit, else double precision."""
    pa = import_pyarrow()
    return pa.int64() if kind.scale == 0 and kind.precision <= INT64_DIGITS else pa.float64()


def decimals_as_numbers(schema):
    """The schema with numbers in place of decimals, which pandas would read as objects."""
    for i, field in enumerate(schema):
        if import_pyarrow().types.is_decimal(field.type):
            schema = schema.set(i, field.with_type(_number_type(field.type)))
    return schema


def cast_column(column, kind):
    """An arrow column in another type; decimals by way of text, as arrow's own cast to double is not exact."""
    pa = import_pyarrow()
    if column.type == kind:
        return column
    if pa.types.is_decimal(column.type) and pa.types.is_floating(kind):
        column = column.cast(pa.string())
    return column.cast(kind)


def refuse_nested(file):
    """Refuse a file with columns of lists or structs."""
    with open_parquet(file) as stream:
        for field in stream.schema_arrow:
            if import_pyarrow().types.is_nested(field.type):
                raise ValueError(
                    f"Expected numbers or text in column {field.name!r} of {file}, got {field.type}; flatten it into "
                    "several columns or drop it."
                )


def check_unique(names, path):
    """Refuse duplicate column names."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"Expected unique column names in {path}, got {twice!r} more than once; rename them.")


def check_target(target, columns, path):
    """Refuse a table without the column of labels, or with no other column."""
    if target not in columns:
        names = ", ".join(map(str, list(columns)[:10])) + (", ..." if len(columns) > 10 else "")
        raise ValueError(f"Expected a target among the columns of {path} ({names}), got {target!r}.")
    if len(columns) == 1:
        raise ValueError(f"Expected columns beside the target in {path}, got none.")


def check_labels(labels, n_missing, target):
    """Refuse labels that are missing, fractions, or neither numbers nor text."""
    if n_missing:
        raise ValueError(f"Expected a label in every row, got {n_missing} missing in {target!r}; drop those rows.")
    for label in labels:
        if not isinstance(label, str | numbers.Real):
            raise ValueError(f"Expected whole numbers or text as labels in {target!r}, got {label!r}; convert them.")
        if isinstance(label, float) and not label.is_integer():
            raise ValueError(
                f"Expected labels in {target!r}, got fractions such as {label}; use whole numbers or text as classes."
            )


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
