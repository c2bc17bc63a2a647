"""Formats of tables: cells as a file has them, read in parts and written, and typed values as such cells.

Cells are arrow tables: text for CSV and TSV, JSON values for JSONL and Excel, typed columns for Parquet and Feather.
"""

import dataclasses
import pathlib

from scorefield.data.formats.binary import Feather, Parquet
from scorefield.data.formats.delimited import Delimited, usual_separator
from scorefield.data.formats.excel import Excel
from scorefield.data.formats.json_lines import JsonLines
from scorefield.data.formats.reading import PART_ROWS, Reading

FORMATS = {
    ".csv": Delimited,
    ".csv.gz": Delimited,
    ".tsv": Delimited,
    ".tsv.gz": Delimited,
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".parquet": Parquet,
    ".feather": Feather,
    ".arrow": Feather,
    ".xlsx": Excel,
}
KINDS = tuple(FORMATS)

__all__ = ["KINDS", "PART_ROWS", "Reading", "open_file", "output_file"]


def _format(path):
    kind = next((kind for kind in KINDS if path.name.endswith(kind)), None)
    if kind is None:
        raise ValueError(f"Expected a file that ends in {', '.join(KINDS)}, got {path}; convert or rename it.")
    return FORMATS[kind]


def open_file(path, reading=None):
    """The format of an existing file, with its column names."""
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"Expected a file, got the folder {path}; name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"Expected a file, but {path} does not exist.")
    if path.stat().st_size == 0:
        raise ValueError(f"Expected a table in {path}, got an empty file.")
    return _format(path).open(path, reading or Reading())


def output_file(path, like=None):
    """The format of a file to write; one of the same kind as `like` follows its separator, line ends and encoding."""
    path = pathlib.Path(path)
    output = _format(path)
    if type(like) is not output:
        return output(path, separator=usual_separator(path)) if output is Delimited else output(path)
    if output is Delimited and usual_separator(path) != usual_separator(like.path):
        return dataclasses.replace(like, path=path, separator=usual_separator(path))
    return dataclasses.replace(like, path=path)
