"""Typed columns from the cells of a file: which are numbers, which are text, which are gaps, and what is wrong."""

import contextlib
import csv
import io
import json
import shlex
from typing import NamedTuple

from scorefield.data.formats.arrow_files import cast_column, decimals_as_numbers, import_pyarrow

GAPS = ("NA", "N/A", "NaN", "nan", "null", "None", "?", "-")  # gaps among numbers, levels among text
NUMBER_KINDS = ("number", "whole number", "spiked number")  # read as numbers, whatever their zeros
TEXT_KINDS = ("category", "identifier", "text")  # read as text, whatever their cells
MOSTLY = 0.9  # share of numbers in a column from which a text in it is taken for a mistake
FEW_WORDS = 3  # different texts among numbers that may all mean a gap
INT64_END = 2.0**63
WHOLE = r"^[+-]?\d+$"
LEADING_ZERO = r"^[+-]?0\d"
THOUSANDS, BELOW_THOUSAND = r"^[+-]?[1-9]\d{0,2}\.\d{3}$", r"^[+-]?(0|[1-9]\d{0,2})$"
MANY_THOUSANDS = 44  # of so many fractions none ends with a zero once in a hundred columns
INFINITE = r"(?i)^[+-]?inf(inity)?$"


class Problem(NamedTuple):
    """What is wrong with a table, in one line with its remedy, and the options that would remove it, if any."""

    text: str
    fix: tuple = ()


class How(NamedTuple):
    """How a column is read: the kind that it was given, texts that mean missing, and rows read before its cells.

    In a `target` only empty cells are missing. `decimal` is the mark of numbers that are written as text.
    """

    kind: str | None = None
    na: tuple = ()
    target: bool = False
    start: int = 0
    decimal: str | None = None

    @property
    def gaps(self):
        return [""] if self.target else ["", *self.na]


class Column(NamedTuple):
    """A typed column: "text", "whole", "wide" (whole numbers beyond 64 bits), "float", "bool" or "arrow", and cells."""

    kind: str
    cells: object

    def to_pandas(self):
        """The column as a Series; whole numbers and booleans with gaps are in pandas' nullable types."""
        import pandas as pd

        pa = import_pyarrow()
        if self.kind == "wide":
            return pd.Series([None if cell is None else int(cell) for cell in self.cells.to_pylist()], dtype=object)
        types, name = pa.types, str(self.cells.type)
        if self.cells.null_count and (types.is_integer(self.cells.type) or types.is_boolean(self.cells.type)):
            nullable = {"bool": "boolean"}.get(name) or name.replace("int", "Int").replace("uI", "UI")
            return self.cells.to_pandas(types_mapper=lambda _: pd.api.types.pandas_dtype(nullable))
        if types.is_date(self.cells.type):
            return self.cells.cast(pa.timestamp("s")).to_pandas()
        return self.cells.to_pandas()


def number_pattern(decimal):
    """Pattern of a number with the given decimal mark."""
    mark = "," if decimal == "," else r"\."
    return rf"^[+-]?(\d+{mark}?\d*|{mark}\d+)([eE][+-]?\d+)?$|{INFINITE}"


def _place(mask, how):
    """The row of the first true cell, in words."""
    row = import_pyarrow().compute.index(mask, True).as_py() + 1 + how.start
    return f"row {row} below the header"


def option(name, *words):
    """An option with a list of words, as the command line reads it: separated by commas, and quoted where needed."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(words)
    return name, text.getvalue()


def read_text(name, cells, how):
    """The typed column of CSV cells, and its problems.

    Blanks around a cell are no part of its value, and an empty cell is a gap.
    """
    pc = import_pyarrow().compute
    text = _without(pc.utf8_trim_whitespace(cells), how.gaps)
    if how.kind is None and not how.target and how.decimal == "." and _may_be_thousands(text):
        return Column("text", text), []
    if how.decimal == "." and _are_numbers(text):
        numeric = pc.if_else(pc.is_valid(text), True, None)
    else:
        numeric = pc.match_substring_regex(text, number_pattern(how.decimal))
    if how.kind is None and pc.any(pc.match_substring_regex(text, LEADING_ZERO)).as_py():
        how = how._replace(kind="text")
    return _typed(name, text, numeric, how)


def read_tokens(name, cells, how):
    """The typed column of JSON values, and its problems. Text in quotes is text, also if it looks like a number."""
    pa = import_pyarrow()
    pc = pa.compute
    cells = _without(cells, ["null", "NaN"])
    structured = pc.match_substring_regex(cells, r"^[\[{]")
    if pc.any(structured).as_py():
        return None, [_nested(name, f"a list or object in {_place(structured, how)}")]
    flags = pc.all(pc.is_in(cells.drop_null(), pa.array(["true", "false"]))).as_py()
    if flags and how.kind not in TEXT_KINDS and cells.null_count < len(cells):
        return Column("bool", cells.cast(pa.bool_())), []
    text = pa.array([json.loads(c) if c is not None and c[0] == '"' else c for c in cells.to_pylist()], pa.string())
    numeric = pc.match_substring_regex(cells, number_pattern("."))
    text = _without(text, how.gaps)
    return _typed(name, text, pc.if_else(pc.is_null(text), None, numeric), how)


def read_arrow(name, cells, how):
    """The typed column of a Parquet or Feather file, and its problems: decimals are numbers, the rest stays."""
    pa = import_pyarrow()
    types = pa.types
    if types.is_nested(cells.type) or types.is_binary(cells.type) or types.is_large_binary(cells.type):
        return None, [_nested(name, cells.type)]
    if types.is_null(cells.type):
        return _empty(cells), []
    field = decimals_as_numbers(pa.schema([pa.field(name, cells.type)])).field(0)
    column = cast_column(cells, field.type)
    if how.na and not how.target:
        column = column.dictionary_decode() if types.is_dictionary(column.type) else column
        column = _without(column, [word for word in map(_as_type(column.type), how.na) if word is not None])
    if types.is_floating(column.type):
        return Column("arrow", column), _infinite(name, column, column.cast(pa.string()), how)
    return Column("arrow", column), []


def _as_type(kind):
    """A function from a word of `na` to a value of an arrow type, or None if it has none."""
    pa = import_pyarrow()

    def convert(word):
        try:
            return pa.scalar(word).cast(kind).as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None

    return convert


def _nested(name, found):
    return Problem(
        f"Expected numbers or text in column {name!r}, got {found}; flatten it into several columns, or --drop it.",
        option("--drop", name),
    )


def _without(text, words):
    """The cells with null in the place of `words`."""
    pa = import_pyarrow()
    return pa.compute.if_else(pa.compute.is_in(text, pa.array(words, text.type)), None, text)


def _empty(cells):
    pa = import_pyarrow()
    return Column("float", pa.nulls(len(cells), pa.float64()))


def _typed(name, text, numeric, how):
    """The typed column of `text`, of which the cells `numeric` are numbers."""
    pa = import_pyarrow()
    pc = pa.compute
    if how.kind in TEXT_KINDS or (how.kind or "").partition(":")[1]:  # a kind such as number:comma reads text itself
        return Column("text", text), []
    n_known, n_numbers = len(text) - text.null_count, pc.sum(numeric).as_py() or 0
    if not n_known or (how.kind is None and not how.target and _is_one_gap(text)):
        return _empty(text), []
    words = pa.array([] if how.target else GAPS, pa.string())
    odd = pc.fill_null(pc.and_(pc.invert(numeric), pc.invert(pc.is_in(text, words))), False)
    n_odd = pc.sum(odd).as_py()
    as_numbers = how.kind in NUMBER_KINDS
    if not n_odd and (n_numbers or as_numbers):
        return _numbers(name, pc.if_else(numeric, text, None), how)
    if as_numbers or (how.kind is None and n_odd and n_numbers >= MOSTLY * (n_numbers + n_odd)):
        return Column("text", text), [_odd_cells(name, text, odd, n_numbers, how)]
    return Column("text", text), []


def _is_one_gap(text):
    """True if all known cells are one and the same word for missing."""
    found = import_pyarrow().compute.unique(text.drop_null())
    return len(found) == 1 and found[0].as_py() in GAPS


def _may_be_thousands(text):
    """True for whole numbers of which all above 999, and no others, have marks such as 1.234."""
    pc = import_pyarrow().compute
    marked, plain = (pc.match_substring_regex(text, pattern) for pattern in (THOUSANDS, BELOW_THOUSAND))
    if not pc.all(pc.or_(marked, plain)).as_py():
        return False
    # Of fractions with three decimals one in ten would end with a zero, which is not written beside whole numbers.
    return pc.sum(marked).as_py() >= MANY_THOUSANDS and len(pc.unique(text.filter(plain))) >= FEW_WORDS


def _are_numbers(text):
    """True if arrow reads all known cells as numbers: a quick look that spares most columns the patterns."""
    pa = import_pyarrow()
    try:
        return not pa.compute.any(pa.compute.is_nan(text.cast(pa.float64()))).as_py()
    except pa.ArrowInvalid:
        return False


def _numbers(name, text, how):
    pa = import_pyarrow()
    pc = pa.compute
    plain = pc.replace_substring(text, ",", ".") if how.decimal == "," else text
    if pc.any(pc.starts_with(plain, "+")).as_py():
        plain = pc.replace_substring_regex(plain, r"^\+", "")
    numbers = plain.cast(pa.float64())
    problems = _infinite(name, numbers, text, how)
    with contextlib.suppress(pa.ArrowInvalid):
        return Column("whole", plain.cast(pa.int64())), problems
    beyond = (pc.max(pc.abs(numbers)).as_py() or 0) >= INT64_END
    wide = beyond and pc.all(pc.match_substring_regex(text, WHOLE)).as_py()
    return (Column("wide", plain) if wide else Column("float", numbers)), problems


def _odd_cells(name, text, odd, n_numbers, how):
    pc = import_pyarrow().compute
    found = pc.unique(text.filter(odd)).to_pylist()
    n, remedies = pc.sum(odd).as_py(), {}
    if len(found) <= FEW_WORDS and not how.target:
        remedies[option("--na", *found)] = "if they mean missing"
    if how.kind is None:
        remedies[option("--as", f"{name}=category")] = "if the column holds categories"
    more = f" and {n - 1} more such cell{'s' * (n > 2)}" if n > 1 else ""
    said = ["correct them", *(f"{shlex.join(fix)} {reason}" for fix, reason in remedies.items())]
    return Problem(
        f"Expected numbers in column {name!r}, as in {n_numbers} of its cells, got {found[0]!r} in "
        f"{_place(odd, how)}{more}; {', or '.join(said)}.",
        next(iter(remedies), ()),
    )


def _infinite(name, numbers, text, how):
    pc = import_pyarrow().compute
    infinite = pc.fill_null(pc.is_inf(numbers), False)
    if not pc.any(infinite).as_py():
        return []
    found = pc.unique(text.filter(infinite)).to_pylist()
    fix = option("--na", *found) if len(found) <= FEW_WORDS else option("--drop", name)
    said = f"Expected finite numbers in column {name!r}, got {found[0]} in {_place(infinite, how)}"
    return [Problem(f"{said}; correct them, or {shlex.join(fix)}.", fix)]
