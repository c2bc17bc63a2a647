"""CSV and TSV files: cells are text."""

import contextlib
import csv
import dataclasses
import io
import pathlib

from scorefield.data.formats.arrow_files import import_pyarrow
from scorefield.data.formats.plain import plain_text
from scorefield.data.formats.reading import PART_ROWS, find_encoding, open_text, opener, text_errors
from scorefield.data.formats.spelling import Spelling
from scorefield.data.formats.typed import read_text

BLOCK_BYTES = 1 << 24  # of a CSV file in memory; a row and the header must fit into it
SEPARATORS = ",;\t|"


def usual_separator(path):
    return "\t" if path.name.endswith((".tsv", ".tsv.gz")) else ","


def _first_row(stream, separator):
    """Names in the header, and the end of its last line."""
    lines = []

    def recorded():
        for line in stream:
            lines.append(line)
            yield line

    names = next(csv.reader(recorded(), delimiter=separator), [])
    return names, next((end for end in ("\r\n", "\r", "\n") if lines and lines[-1].endswith(end)), "\n")


def csv_header(path, *, separators=SEPARATORS, encoding="utf-8-sig"):
    """Separator, column names and line end of a CSV file. The separator is the one that gives the most columns."""
    headers = {}
    for mark in separators:
        # csv.Error: a long header that another mark separates is one field, larger than the limit of csv.
        with open_text(path, "rt", encoding) as stream, contextlib.suppress(csv.Error):
            headers[mark] = _first_row(stream, mark)
    if not headers:
        raise ValueError(
            f"Expected a header of column names in {path}, got a name of more than {csv.field_size_limit():,} "
            "characters; check its quotes and separators."
        )
    separator, (names, line_end) = max(headers.items(), key=lambda header: len(header[1][0]))
    if not any(name.strip() for name in names):
        raise ValueError(f"Expected a header in the first line of {path}, got an empty one; add the column names.")
    return separator, names, line_end


class _Tail(io.RawIOBase):
    """A binary stream that remembers the end of what was read."""

    def __init__(self, stream):
        self.stream, self.tail = stream, b""

    def readable(self):
        return True

    def read(self, size=-1):
        block = self.stream.read(size)
        self.tail = (self.tail + block[-16:])[-16:]
        return block


@dataclasses.dataclass(frozen=True)
class Delimited:
    """CSV and TSV files. `header` holds the column names as they are written, `names` without blanks around them.

    `spellings` tell for names of columns how typed values are written.
    """

    path: pathlib.Path
    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    line_end: str = "\n"
    header: tuple = ()
    spellings: dict = dataclasses.field(default_factory=dict)
    family = "text"

    @classmethod
    def open(cls, path, reading):
        encoding = find_encoding(path, reading)
        with text_errors(path, encoding):
            marks = reading.separator or (SEPARATORS if usual_separator(path) == "," else usual_separator(path))
            separator, header, line_end = csv_header(path, separators=marks, encoding=encoding)
        return cls(path, separator, reading.decimal, encoding, line_end, tuple(header))

    @property
    def names(self):
        return [name.strip() for name in self.header]

    def parts(self, rows):
        """Yield tables of text."""
        pa = import_pyarrow()
        columns = [str(i) for i in range(len(self.header))]
        options = {
            "read_options": pa.csv.ReadOptions(
                use_threads=False, block_size=BLOCK_BYTES, column_names=columns, skip_rows_after_names=1,
                encoding="utf8" if self.encoding.startswith("utf-8") else self.encoding,
            ),
            "parse_options": pa.csv.ParseOptions(
                delimiter=self.separator, newlines_in_values=True, ignore_empty_lines=len(columns) > 1
            ),
            "convert_options": pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False
            ),
        }  # fmt: skip
        last = None
        with text_errors(self.path, self.encoding), opener(self.path)(self.path, "rb") as stream:
            stream = _Tail(stream)
            for batch in pa.csv.open_csv(stream, **options):
                table = pa.Table.from_batches([batch]).rename_columns(self.names)
                for start in range(0, len(table), rows):
                    yield (last := table.slice(start, rows))
        if last is not None and len(last):
            self._check_last(last.column(last.num_columns - 1)[-1].as_py(), stream.tail)

    def _check_last(self, cell, tail):
        # A cell of several lines is quoted: either the file ends in its quote, or the quote was never closed.
        if "\n" in cell and not tail.replace(b"\0", b"").rstrip().endswith(b'"'):
            raise ValueError(
                f"Expected a table in {self.path}, got a quote that is not closed before {cell[:20]!r}; correct it."
            )

    def read(self, name, cells, how):
        return read_text(name, cells, how._replace(decimal=self.decimal))

    def encode(self, column, kind=None):
        """Text of typed values, as the column spells them; gaps are empty unless it marks them."""
        cells, spelling = plain_text(column, self.decimal), self.spellings.get(column.name)
        return import_pyarrow().array(cells if spelling is None else spelling.write(cells, self.decimal))

    def to_plain(self):
        """How the file is written, in plain values."""
        spellings = {name: spelling.to_plain() for name, spelling in self.spellings.items()}
        form = {name: getattr(self, name) for name in ("separator", "decimal", "encoding", "line_end")}
        return {
            "path": self.path.name,
            **form,
            "header": self.header,
            "spellings": {name: plain for name, plain in spellings.items() if plain},
        }

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`, for other files that are written like it."""
        spellings = {name: Spelling(**spelling) for name, spelling in plain["spellings"].items()}
        return cls(**{**plain, "path": pathlib.Path(plain["path"]), "spellings": spellings})

    @contextlib.contextmanager
    def writer(self, path, schema):
        written = dict(zip(self.names, self.header, strict=True))
        # Unfinished content has another ending: the format follows from the output's own name.
        with opener(self.path)(path, "wt", encoding=self.encoding, newline="") as stream:
            rows = csv.writer(stream, delimiter=self.separator, lineterminator=self.line_end)
            rows.writerow([written.get(name, name) for name in schema.names])

            def write(table):
                for batch in table.to_batches(max_chunksize=PART_ROWS):
                    rows.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))

            yield write
