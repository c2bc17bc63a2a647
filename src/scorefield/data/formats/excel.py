"""Excel files: the first sheet; cells are JSON values, and dates without quotes."""

import contextlib
import dataclasses
import datetime
import json
import pathlib
import zipfile

from scorefield.data.formats.arrow_files import import_pyarrow
from scorefield.data.formats.plain import plain_tokens
from scorefield.data.formats.typed import read_tokens

SHEET_ROWS = (1 << 20) - 1  # of a sheet, below the header


def _import_openpyxl():
    try:
        import openpyxl
    except ImportError as error:
        raise ValueError(
            "Expected openpyxl to read and write Excel files, but it is not installed; pip install 'scorefield[excel]'."
        ) from error
    return openpyxl


def _token(value):
    if value is None or isinstance(value, datetime.datetime | datetime.date):
        return value and value.isoformat().removesuffix("T00:00:00")
    return json.dumps(value if isinstance(value, str | bool | int | float) else str(value), ensure_ascii=False)


def _value(token):
    try:
        return None if token is None else json.loads(token)
    except json.JSONDecodeError:
        return datetime.datetime.fromisoformat(token)


def _cell(sheet, value):
    """A value to append; text that starts with an equals sign stays text."""
    if not (isinstance(value, str) and value.startswith("=")):
        return value
    cell = _import_openpyxl().cell.WriteOnlyCell(sheet, value)
    cell.data_type = "s"
    return cell


def _sheet(path):
    """The rows of the first sheet, all as long as the header; empty rows and columns after the table are left out."""
    openpyxl = _import_openpyxl()
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = list(book.worksheets[0].iter_rows(values_only=True))
        book.close()
    except (zipfile.BadZipFile, KeyError, IndexError, ValueError, OSError) as error:
        raise ValueError(f"Expected an Excel file, got {path} ({error}); write or fetch it again.") from error
    lengths = [max((i for i, value in enumerate(row, 1) if value is not None), default=0) for row in rows]
    rows = rows[: max((i for i, length in enumerate(lengths, 1) if length), default=0)]
    if not rows or not lengths[0]:
        raise ValueError(f"Expected a header in the first row of {path}, got an empty one; add the column names.")
    width = lengths[0]
    longer = next((i for i, length in enumerate(lengths, 1) if length > width), None)
    if longer is not None:
        raise ValueError(f"Expected {width} columns in {path}, as in its header, got more in row {longer}; name them.")
    return [(*row[:width], *[None] * (width - len(row))) for row in rows]


@dataclasses.dataclass(frozen=True)
class Excel:
    """The first sheet of an Excel file. `dates` are the columns in which some cell is a date."""

    path: pathlib.Path
    header: tuple = ()
    rows: tuple = ()
    dates: frozenset = frozenset()
    family = "excel"

    @classmethod
    def open(cls, path, reading):
        header, *rows = _sheet(path)
        header = tuple("" if name is None else str(name) for name in header)
        columns = zip(header, zip(*rows, strict=True), strict=True) if rows else ()
        dates = {name.strip() for name, cells in columns if any(isinstance(cell, datetime.date) for cell in cells)}
        return cls(path, header, tuple(rows), frozenset(dates))

    @property
    def names(self):
        return [name.strip() for name in self.header]

    def parts(self, rows):
        pa = import_pyarrow()
        for start in range(0, len(self.rows), rows):
            columns = zip(*self.rows[start : start + rows], strict=True)
            arrays = [pa.array([_token(value) for value in column], pa.string()) for column in columns]
            yield pa.Table.from_arrays(arrays, names=self.names)

    def read(self, name, cells, how):
        return read_tokens(name, cells, how)

    def encode(self, column, kind=None):
        tokens = plain_tokens(column)
        if column.name in self.dates or column.dtype.kind == "M":
            tokens = [token and token.strip('"') for token in tokens]
        return import_pyarrow().array(tokens, import_pyarrow().string())

    @contextlib.contextmanager
    def writer(self, path, schema):
        written = dict(zip(self.names, self.header, strict=True))
        book = _import_openpyxl().Workbook(write_only=True)
        sheet, n_rows = book.create_sheet("Sheet1"), 0
        sheet.append([written.get(name, name) for name in schema.names])

        def write(table):
            nonlocal n_rows
            n_rows += len(table)
            if n_rows > SHEET_ROWS:
                raise ValueError(
                    f"Expected at most {SHEET_ROWS:,} rows for Excel, got more; write a .csv or .parquet file."
                )
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                sheet.append([_cell(sheet, _value(token)) for token in row])

        try:
            yield write
            with open(path, "wb") as stream:  # openpyxl refuses the ending of unfinished content
                book.save(stream)
        finally:
            book.close()
