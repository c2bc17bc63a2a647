"""CSV and TSV files: cells are text."""

import contextlib
import csv
import dataclasses
import io
import pathlib
import re

from scorefield.data.formats.arrow_files import import_pyarrow
from scorefield.data.formats.plain import plain_text
from scorefield.data.formats.reading import PART_ROWS, find_encoding, open_text, opener, text_errors
from scorefield.data.formats.spelling import Spelling
from scorefield.data.formats.typed import read_text

AS_WRITTEN = b"columns as written"  # in the metadata of a table: how many of its first columns have their quotes
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


def n_as_written(schema):
    """How many of the first columns of a table are cells with the quotes that they are written with."""
    return int((schema.metadata or {}).get(AS_WRITTEN, 0))


def _records(text, separator, n_columns):
    """The records of a CSV text, as lists of cells with their quotes; empty lines are none if there are columns."""
    mark = re.escape(separator)
    # A quote opens a cell only at its start; two of them within are one, so quoted pieces follow each other.
    cell = re.compile(rf'((?:"[^"]*")*[^{mark}\r\n]*)({mark}|\r\n|\r|\n|\Z)')
    records, record = [], []
    for match in cell.finditer(text):
        record.append(match[1])
        if match[2] != separator:
            if record != [""] or (n_columns == 1 and match.end() > match.start()):
                records.append(record)
            record = []
    return records


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

    def as_written(self, cells):
        """The cells of the whole file with the quotes that they are written with, some of which need none.

        They come back as they are where they are not those of the whole file, and where no quotes can be needless.
        """
        pa = import_pyarrow()
        with text_errors(self.path, self.encoding), open_text(self.path, "rt", self.encoding) as stream:
            text = stream.read()
        if '"' not in text:
            return cells
        records = _records(text, self.separator, len(self.header))[1:]
        if len(records) != len(cells) or any(len(record) != len(self.header) for record in records):
            return cells
        written = dict(zip(self.names, zip(*records, strict=True), strict=True))
        columns = {name: pa.array(written[name], pa.string()) for name in cells.column_names}
        return pa.table(columns).replace_schema_metadata({AS_WRITTEN: str(len(columns))})

    def quoted(self, cells):
        """Text of cells with the quotes that it needs, as a list."""
        marks = re.compile(f'[{re.escape(self.separator)}"\r\n]')
        return ['"' + cell.replace('"', '""') + '"' if marks.search(cell) else cell for cell in cells]

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
                n_quoted = n_as_written(table.schema)
                for batch in table.to_batches(max_chunksize=PART_ROWS):
                    columns = [column.to_pylist() for column in batch.columns]
                    if not n_quoted:
                        rows.writerows(zip(*columns, strict=True))
                        continue
                    columns[n_quoted:] = map(self.quoted, columns[n_quoted:])
                    stream.writelines(self.separator.join(row) + self.line_end for row in zip(*columns, strict=True))

            yield write
