"""Cells of new tables in the form that the columns of the fitted table have."""

import dataclasses

import numpy as np

from scorefield.data.cells import FORM_WORDS, NUMERIC, Cells, convert_ticks, empty_cells
from scorefield.data.everyday_dates import COMPACT, read_compact_dates
from scorefield.data.kinds import infinity_in
from scorefield.data.texts import TICK, date_style, is_missing_word, read_dates, read_numbers


def like_fitted(cells, column):
    """Cells of a table in the form of the fitted column, and the problem if they cannot have it."""
    known, form = cells.known, cells.form
    if not known.any():
        return empty_cells({"form": column.form, "unit": column.unit}, len(known)), None
    if form == "object" and column.form != "object":
        return _read_text(cells, column)
    if column.text == COMPACT and form in NUMERIC:
        return _read_compact(cells)
    if form == column.form and form in ("time", "duration"):
        if cells.unit != column.unit and "period" in (cells.unit, column.unit):
            return cells, "expected periods of time in both tables or in neither; convert the column."
        return dataclasses.replace(cells, values=convert_ticks(cells.values, cells.unit, column.unit)), None
    mixed = column.storage.get("element") == "mixed"
    if form == column.form != "unknown" or (form in NUMERIC and (column.form in NUMERIC or mixed)):
        return cells, infinity_in(cells)
    expected, got = FORM_WORDS[column.form], FORM_WORDS[form]
    return cells, f"expected {expected}, as in the fitted table, got {got}; convert the column."


def _read_text(cells, column):
    """Cells of text as the numbers or times of the fitted column."""
    missing = [
        known and is_missing_word(cell, column.text) for cell, known in zip(cells.values, cells.known, strict=True)
    ]
    cells = dataclasses.replace(cells, known=cells.known & ~np.array(missing, dtype=bool))
    texts, values = [str(value) for value in cells.values[cells.known]], None
    if not texts:
        return empty_cells({"form": column.form, "unit": column.unit}, len(cells.known)), None
    if column.form in NUMERIC:
        values = read_numbers(texts, column.text)
    elif column.form == "time" and column.unit != "period":
        values = _ticks_of(texts, column)
    if values is None and column.levels:
        return cells, None  # levels that the fitted column has not
    if values is None:
        expected = FORM_WORDS[column.form]
        return cells, f"expected {expected}, as in the fitted table, got {texts[0]!r}; correct the cells."
    filled = np.zeros(len(cells.known), dtype=values.dtype)
    filled[cells.known] = values
    known = cells.known & (filled == filled)  # the text nan is a gap
    cells = Cells("number" if column.form in NUMERIC else "time", filled, known, column.unit)
    return cells, infinity_in(cells)


def _read_compact(cells):
    """Cells of whole numbers such as 20251224 as the days that they mean."""
    days = read_compact_dates(cells.values[cells.known])
    if days is None:
        return cells, "expected dates such as 20251224, as in the fitted table, got other numbers; correct the cells."
    values = np.zeros(len(cells.known), dtype=np.int64)
    values[cells.known] = days
    return Cells("time", values, cells.known, "D"), None


def _ticks_of(texts, column):
    """Ticks of ISO text of the fitted style, or of the style of the first text."""
    for style in (column.text, date_style(texts[0])):
        ticks = None if style is None else read_dates(texts, style)
        if ticks is not None:
            return convert_ticks(ticks, TICK[style["unit"]], column.unit)
    return None
