"""Columns of text that hold dates, money, per cent or numbers in everyday spelling, as times and numbers."""

import dataclasses

import numpy as np

from scorefield.data.cells import positions
from scorefield.data.everyday import (
    MARKS,
    MISSING,
    ORDERS,
    Undecided,
    everyday_date_style,
    everyday_number_style,
    units_of,
)
from scorefield.data.keys import MANY
from scorefield.data.texts import TICK, read_dates, read_numbers

DECIDED_KINDS = (*(f"date:{order}" for order in ORDERS), *(f"number:{mark}" for mark in MARKS))


def read_everyday(cells, levels, choice=""):
    """Cells as times or numbers, None if they are other text; and a problem if the column leaves its reading open.

    `choice` is the order of day, month and year, or the decimal mark, where the user names one.
    """
    if cells.order is not None or not all(isinstance(level, str) for level in levels):
        return None, None
    texts = [level for level in levels.tolist() if level not in MISSING]
    style = everyday_date_style(texts, choice if choice in ORDERS else None) if texts else None
    if style is None and texts:
        style = everyday_number_style(texts, choice if choice in MARKS else None)
    if isinstance(style, Undecided):
        kinds = " or ".join(map(repr, style.kinds))
        said = f"expected a cell that tells {style.readings}, got {style.example!r} and its like"
        return None, f"{said}; the kind {kinds} decides."
    if style is None:
        return None, _mixed_units(texts)
    if style["type"] == "date":
        form, unit, values = "time", TICK[style["unit"]], read_dates(texts, style)
    else:
        form, unit, values = "number", "", read_numbers(texts, style)
    places = positions(cells.values, cells.known, np.array([*texts, None], dtype=object)[:-1])
    changed = {"form": form, "unit": unit, "values": values[np.maximum(places, 0)], "known": places >= 0}
    return dataclasses.replace(cells, **changed, text=style, order=None), None


def _mixed_units(texts):
    """The problem of many amounts in several currencies, which no model could compare; None without it."""
    units = [unit for unit in units_of(texts) if unit]
    if len(units) < 2 or len(texts) <= MANY:
        return None
    return (
        f"expected amounts in one unit, got {', '.join(units)}; convert them, or set the column aside with the kind "
        "'identifier'."
    )


def style_in_words(style):
    """What is read, for people: the parts of a date in their order, or the unit of a number."""
    if style["type"] == "date":
        letters = {"d": "day", "m": "month", "y": "year"}
        return style["mark"].join(letters[part] for part in style["order"])
    unit = (style["before"] or style["after"]).strip()
    return f"numbers in {unit}" if unit else f"numbers with the decimal mark {style['decimal']}"
