"""Tables in files: CSV (plain or gzip) and Parquet, read whole or in parts, written whole or not at all."""

import contextlib
import csv
import gzip
import io
import os
import pathlib
import shutil
import tempfile
import warnings

from scorefield.data.parquet import parquet_files

KINDS = (".csv", ".csv.gz", ".parquet")
PART_ROWS = 50_000  # rows in memory while a table is streamed: 100 columns of them are 40 MB
SNIFFED = 1 << 16  # bytes from which the separator is told


def kind_of(path):
    """The format of a path by its ending."""
    for kind in KINDS:
        if pathlib.Path(path).name.endswith(kind):
            return kind
    raise ValueError(f"Expected a file that ends in {', '.join(KINDS)}, got {path}.")


@contextlib.contextmanager
def whole_file(path):
    """A temporary path beside `path` that takes its place if the block ends well, and vanishes if it does not."""
    path = pathlib.Path(path).resolve()  # through a link to the file itself
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    os.close(handle)
    try:
        yield pathlib.Path(partial)
        os.chmod(partial, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(partial, path)
    except BaseException:
        pathlib.Path(partial).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def whole_folder(path):
    """A temporary folder beside `path` that takes its name if the block ends well, and vanishes if it does not."""
    path = pathlib.Path(path).resolve()  # other processes may write into it from elsewhere
    if path.exists():
        raise FileExistsError(f"Expected a new folder, got {path}, which exists; choose another name or remove it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Expected an existing folder for the output, got {path.parent}; make it first.")
    partial = pathlib.Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial"))
    try:
        os.chmod(partial, 0o777 & ~_umask())
        yield partial
        os.rename(partial, path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_whole(path, content):
    """Write text or bytes so that the file is the old one or the new one, never a part; folders are made."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def check_output(path, *, force=False, kinds=KINDS):
    """Refuse, before any work is done, an output that could not be written or would overwrite something."""
    path = pathlib.Path(path)
    if not path.name.endswith(kinds):
        raise ValueError(f"Expected an output that ends in {', '.join(kinds)}, got {path}.")
    if path.is_dir():
        raise IsADirectoryError(f"Expected a file as output, got the folder {path}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Expected an existing folder for the output, got {path.parent}; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"Expected a writable folder for the output, got {path.parent}.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; give another output or --force.")
    return path


def _check_input(path):
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"Expected a file, got the folder {path}.")
    if not path.exists():
        raise FileNotFoundError(f"Expected a file, but {path} does not exist.")
    if path.stat().st_size == 0:
        raise ValueError(f"Expected a table in {path}, got an empty file.")
    return path, kind_of(path)


def _csv_format(path, kind):
    """The separator of a CSV file; its header is checked for duplicates, which readers would rename in silence."""
    opener = gzip.open if kind.endswith("gz") else open
    try:
        with opener(path, "rb") as stream:
            start = stream.read(SNIFFED)
    except (OSError, EOFError) as error:
        raise ValueError(f"Expected a readable file, got {path}: {error}.") from error
    try:
        text = start.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4:  # else a character cut in two
            raise ValueError(
                f"Expected UTF-8 text in {path}, got another byte at position {error.start}; save the file as UTF-8."
            ) from error
        text = start[: error.start].decode("utf-8-sig")
    if not text.strip() or not text.splitlines()[0].strip():
        raise ValueError(f"Expected a header in the first line of {path}, got an empty one.")
    # Parsed with each separator, so that one inside quotes does not count.
    headers = {mark: next(csv.reader(io.StringIO(text), delimiter=mark)) for mark in ",;\t|"}
    separator = max(headers, key=lambda mark: len(headers[mark]))
    names = headers[separator]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Expected unique column names in {path}, got {twice[0]!r} more than once; rename them.")
    return separator


def read_parts(path, rows=PART_ROWS):
    """DataFrames of at most `rows` rows, in order; at least one of them. A folder's Parquet files are one table."""
    empty = True
    for file in parquet_files(path) if pathlib.Path(path).is_dir() else [path]:
        file, kind = _check_input(file)
        for part in _parquet_parts(file, rows) if kind == ".parquet" else _csv_parts(file, kind, rows):
            if len(part):
                empty = False
                yield part
    if empty:
        raise ValueError(f"Expected rows in {path}, got a header alone.")


def _parquet_parts(path, rows):
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pa.parquet.ParquetFile(path) as stream:
            for batch in stream.iter_batches(batch_size=rows):
                yield batch.to_pandas()
    except pa.ArrowInvalid as error:
        raise ValueError(f"Expected a Parquet file, got {path}: {str(error).splitlines()[0]}") from error


def _csv_parts(path, kind, rows):
    """Parts of a CSV file, or with `rows` None the whole: then a column's dtype is that of all its values."""
    import pandas as pd

    options = {"sep": _csv_format(path, kind), "encoding": "utf-8-sig", "low_memory": False}
    try:
        with warnings.catch_warnings():
            # A line longer than the header would be cut; without index_col=False the columns would shift.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            read = pd.read_csv(path, chunksize=rows, index_col=False, **options)
            if rows is None:
                yield read
                return
            with read:
                yield from read
    except UnicodeDecodeError as error:
        raise ValueError(f"Expected UTF-8 text in {path}: {error.reason}; save the file as UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(f"Expected a table in {path}: {' '.join(str(error).split())}") from error


def read_table(path):
    """The whole table as a DataFrame with at least one row."""
    import pandas as pd

    path, kind = _check_input(path)
    return pd.concat(read_parts(path, PART_ROWS if kind == ".parquet" else None), ignore_index=True)


def write_parts(path, parts):
    """Write DataFrames one after the other into one file, whole or not at all; returns the number of rows."""
    kind, n_rows = kind_of(path), 0
    with whole_file(path) as partial, contextlib.ExitStack() as stack:
        writer = None
        for part in parts:
            if kind == ".parquet":
                import pyarrow as pa
                import pyarrow.parquet

                table = pa.Table.from_pandas(part, preserve_index=False)
                if writer is None:
                    writer = stack.enter_context(pa.parquet.ParquetWriter(partial, table.schema))
                writer.write_table(table)
            else:
                if writer is None:
                    opener = gzip.open if kind.endswith("gz") else open
                    writer = stack.enter_context(opener(partial, "wt", encoding="utf-8", newline=""))
                part.to_csv(writer, index=False, header=n_rows == 0)
            n_rows += len(part)
        stack.close()  # flushed before it takes its place
    return n_rows
