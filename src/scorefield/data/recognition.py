"""Columns of text that hold dates, money, per cent or numbers, as times and numbers; whole numbers that hold dates."""

import dataclasses

import numpy as np

from scorefield.data.cells import positions
from scorefield.data.everyday import MARKS, MISSING, Undecided, everyday_number_style, is_money, units_of
from scorefield.data.everyday_dates import COMPACT, ORDERS, everyday_date_style, read_compact_dates
from scorefield.data.keys import MANY
from scorefield.data.texts import TICK, date_style, read_dates, read_numbers, style_of_dates

MOSTLY = 0.9  # share of distinct values from which another text is taken for a mistake
DECIDED_KINDS = (*(f"date:{order}" for order in ORDERS), *(f"number:{mark}" for mark in MARKS))


def read_everyday(cells, levels, choice=""):
    """Cells as times or numbers, None if they are other text; and a problem if the column leaves its reading open.

    `choice` is the order of day, month and year, or the decimal mark, where the user names one.
    """
    if cells.order is not None or not is_text(levels):
        return None, None
    texts = without_words(levels)
    style = everyday_date_style(texts, choice if choice in ORDERS else None) if texts else None
    if style is None and texts:
        style = everyday_number_style(texts, choice if choice in MARKS else None)
    if isinstance(style, Undecided):
        kinds = " or ".join(map(repr, style.kinds))
        said = f"expected a cell that tells {style.readings}, got {style.example!r} and its like"
        return None, f"{said}; the kind {kinds} decides (`columns` in Python, --as in commands)."
    if style is None:
        return None, _mixed_units(texts)
    if style["type"] == "date":
        form, unit, values = "time", TICK[style["unit"]], read_dates(texts, style)
    else:
        form, unit, values = "number", "", read_numbers(texts, style)
    return _from_texts(cells, texts, values, form, unit, style), None


def is_text(levels):
    """True if all levels are text."""
    return all(isinstance(level, str) for level in levels)


def without_words(levels):
    """The texts among levels that do not mean missing."""
    return [level for level in levels.tolist() if level not in MISSING]


def as_dates(cells, levels):
    """Cells of ISO text as times, None if not all of them are dates of one style, or words for missing ones."""
    texts = without_words(levels)
    style = style_of_dates(texts) if texts else None
    if style is None:
        return None
    return _from_texts(cells, texts, read_dates(texts, style), "time", TICK[style["unit"]], style)


def as_compact_dates(cells, levels):
    """Cells of whole numbers such as 20251224 as times, None if not all of them are dates."""
    days = read_compact_dates(levels)
    if days is None:
        return None
    places = positions(cells.values, cells.known, levels)
    changed = {"form": "time", "unit": "D", "values": days[np.maximum(places, 0)]}
    return dataclasses.replace(cells, **changed, text=COMPACT, order=None)


def as_numbers(cells, texts, style):
    """Cells of text as numbers, None if one of the texts cannot be read; other cells are missing."""
    numbers = read_numbers(texts)
    if numbers is None:
        return None
    read = _from_texts(cells, texts, numbers, "number", "", style)
    return dataclasses.replace(read, known=read.known & (read.values == read.values))  # the text nan is a gap


def _from_texts(cells, texts, values, form, unit, style):
    """Cells with the values of their texts; others are missing."""
    places = positions(cells.values, cells.known, np.array([*texts, None], dtype=object)[:-1])
    changed = {"form": form, "unit": unit, "values": values[np.maximum(places, 0)], "known": places >= 0}
    return dataclasses.replace(cells, **changed, text=style, order=None)


def stray_cell(levels):
    """The problem of a few texts among fractions or dates, which would set the column aside; None without it."""
    for what, is_one in (("numbers", _is_number), ("dates", _is_date)):
        stray = [text for text in without_words(levels) if isinstance(text, str) and not is_one(text)]
        if not 0 < len(stray) <= (1 - MOSTLY) * len(levels):
            continue
        if what == "dates" or any("." in str(level) for level in set(levels.tolist()) - set(stray)):
            return (
                f"expected {what}, as in most of its cells, got {stray[0]!r}; empty or correct such cells, or set the "
                "column aside with the kind 'identifier'."
            )
    return None


def _is_number(text):
    return read_numbers([text]) is not None


def _is_date(text):
    style = date_style(text)
    return everyday_date_style([text]) is not None if style is None else read_dates([text], style) is not None


def _mixed_units(texts):
    """The problem of many amounts in several currencies, which no model could compare; None without it."""
    units = list(filter(is_money, units_of(texts)))
    if len(units) < 2 or len(texts) <= MANY:
        return None
    return (
        f"expected amounts in one unit, got {', '.join(units)}; convert them, or set the column aside with the kind "
        "'identifier'."
    )


def decided_kind(kind, style):
    """A kind that reads parts of a column as the whole one, whose other cells decided what those of a part leave open.

    `style` is that of text which was read as times or numbers, or None.
    """
    if style and "order" in style:
        return f"date:{style['order']}"
    if style and "decimal" in style:
        return "number:comma" if style["decimal"] == "," else "number:point"
    return kind


def style_in_words(style):
    """What is read, for people: the parts of a date in their order, or the unit of a number."""
    if style["type"] == "date":
        if "compact" in style:
            return "year, month and day"
        first, second, third = ({"d": "day", "m": "month", "y": "year"}[part] for part in style["order"])
        return f"{first}{style['marks'][0]}{second}{style['marks'][1]}{third}"
    unit = (style["before"] or style["after"]).strip()
    if not unit and style["thousands"] and style["decimals"] == 0:
        return "whole numbers in groups of three digits"
    return f"numbers in {unit}" if unit else f"numbers with the decimal mark {style['decimal']}"
