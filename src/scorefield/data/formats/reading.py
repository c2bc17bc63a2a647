"""How files of tables are read: options, text files in any encoding, and errors that name the remedy."""

import codecs
import contextlib
import dataclasses
import gzip
import pathlib
import zlib

from scorefield.data.formats.arrow_files import import_pyarrow

PART_ROWS = 1 << 16  # rows in memory while a table is read or written in parts: 52 MB with 100 columns of doubles


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a file is read; None is found from the file.

    `na` are texts that mean missing besides the usual ones, `drop` columns that are left out, and `columns` maps names
    to the kinds that they are read as. `forms` does the same for other columns, which the file need not have.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str | None = None
    na: tuple = ()
    drop: tuple = ()
    columns: dict = dataclasses.field(default_factory=dict)
    forms: dict = dataclasses.field(default_factory=dict)

    def kind(self, name):
        return self.columns.get(name, self.forms.get(name))


def opener(path):
    """The `open` of a plain or gzip file."""
    return gzip.open if pathlib.Path(path).suffix == ".gz" else open


def open_text(path, mode, encoding):
    """Open a plain or gzip text file; line ends stay as they are."""
    return opener(path)(path, mode, encoding=encoding, newline="")


def find_encoding(path, reading):
    """The encoding that was given, or UTF-8, with the mark at the start if the file has one."""
    try:
        name = codecs.lookup(reading.encoding or "utf-8").name
    except LookupError as error:
        raise ValueError(
            f"Expected a known --encoding, got {reading.encoding!r}; utf-8 and latin-1 are common."
        ) from error
    if name != "utf-8":
        return name
    with text_errors(path, "utf-8"), opener(path)(path, "rb") as stream:
        return "utf-8-sig" if stream.read(3) == codecs.BOM_UTF8 else "utf-8"


@contextlib.contextmanager
def text_errors(path, encoding):
    """Raise what goes wrong in a text file as ValueError with its path and the remedy."""
    pa = import_pyarrow()
    wrong_encoding = (
        f"Expected text in {encoding} in {path}, got other bytes; name its encoding, such as --encoding latin-1 or "
        "--encoding utf-16."
    )
    try:
        yield
    except UnicodeError as error:
        raise ValueError(wrong_encoding) from error
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())
        if "UTF8" in reason:
            raise ValueError(wrong_encoding) from error
        raise ValueError(f"Expected a table in {path}, got lines that do not fit ({reason}); correct them.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"Expected a readable file, got {path} ({error}); write or fetch it again.") from error
