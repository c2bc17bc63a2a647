"""pyarrow as tables need it: Parquet and Feather files opened with plain errors, decimals read as numbers."""

import contextlib
import pathlib
from collections import Counter

READ_BYTES = 1 << 20  # read ahead per Parquet column; without a bound pyarrow reads the whole column of a row group
INT64_DIGITS = 18  # decimal digits that always fit


def import_pyarrow():
    """pyarrow with the parts that tables need, or an error with the remedy."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(
            "Expected pyarrow to read tables, but it is not installed; pip install 'scorefield[cli]'."
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
def arrow_errors(file, kind):
    """Raise what pyarrow finds wrong with a file as ValueError with its path."""
    pa = import_pyarrow()
    try:
        yield pa
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"Expected a {kind} file, got {file} ({reason}); write or fetch it again.") from error


@contextlib.contextmanager
def open_parquet(file):
    """Open a Parquet file; damaged files are refused."""
    with (
        arrow_errors(file, "Parquet") as pa,
        pa.parquet.ParquetFile(file, buffer_size=READ_BYTES, pre_buffer=False) as stream,
    ):
        yield stream


def duplicates(names):
    """The names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def check_unique(names, path):
    """Refuse duplicate column names."""
    twice = duplicates(names)
    if twice:
        raise ValueError(f"Expected unique column names in {path}, got {twice[0]!r} more than once; rename them.")


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
