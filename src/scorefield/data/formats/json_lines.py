"""JSONL files: one JSON object per line; cells are JSON values as they are written."""

import contextlib
import dataclasses
import itertools
import json
import pathlib

from scorefield.data.formats.arrow_files import import_pyarrow
from scorefield.data.formats.plain import plain_tokens
from scorefield.data.formats.reading import PART_ROWS, find_encoding, open_text, text_errors
from scorefield.data.formats.typed import read_tokens


class _Number(str):
    """The text of a JSON number, which stays as it is written."""


def _token(row, name):
    """A JSON value as text; None if the row has none."""
    if name not in row:
        return None
    value = row[name]
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


@dataclasses.dataclass(frozen=True)
class JsonLines:
    """One JSON object per line. Absent keys are gaps, and stay absent."""

    path: pathlib.Path
    encoding: str = "utf-8"
    line_end: str = "\n"
    names: tuple = ()
    family = "json"

    @classmethod
    def open(cls, path, reading):
        encoding = find_encoding(path, reading)
        file, names = cls(path, encoding), {}
        with text_errors(path, encoding), open_text(path, "rt", encoding) as stream:
            first = next(iter(stream), "")
        for row in file._rows():
            names.update(dict.fromkeys(row))
        return dataclasses.replace(file, names=tuple(names), line_end="\r\n" if first.endswith("\r\n") else "\n")

    def _rows(self):
        with text_errors(self.path, self.encoding), open_text(self.path, "rt", self.encoding) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield self._row(line, number)

    def _row(self, line, number):
        try:
            row = json.loads(line, parse_float=_Number, parse_int=_Number, parse_constant=_Number)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"Expected a JSON object in each line of {self.path}, got {error.msg} in line {number}; correct it."
            ) from error
        if not isinstance(row, dict):
            raise ValueError(
                f"Expected a JSON object in each line of {self.path}, got {line.strip()[:40]} in line {number}; write "
                "one object per row."
            )
        return row

    def parts(self, rows):
        """Yield tables of JSON values."""
        pa, stream = import_pyarrow(), self._rows()
        while block := list(itertools.islice(stream, rows)):
            columns = {name: [_token(row, name) for row in block] for name in self.names}
            yield pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})

    def read(self, name, cells, how):
        return read_tokens(name, cells, how)

    def encode(self, column, kind=None):
        return import_pyarrow().array(plain_tokens(column), import_pyarrow().string())

    @contextlib.contextmanager
    def writer(self, path, schema):
        keys = [json.dumps(name, ensure_ascii=False) for name in schema.names]
        with open(path, "w", encoding=self.encoding, newline="") as stream:

            def write(table):
                for batch in table.to_batches(max_chunksize=PART_ROWS):
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        cells = (f"{key}: {cell}" for key, cell in zip(keys, row, strict=True) if cell is not None)
                        stream.write("{" + ", ".join(cells) + "}" + self.line_end)

            yield write
