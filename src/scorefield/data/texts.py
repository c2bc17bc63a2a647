"""Dates and numbers that are written as text: recognised, read, and written again in the same style."""

import re

import numpy as np

from scorefield.data.cells import clip_to_day, clip_to_years
from scorefield.data.everyday import (
    MISSING,
    read_everyday_dates,
    read_everyday_number,
    write_everyday_dates,
    write_everyday_number,
)

TIME = r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
ISO = re.compile(rf"\d{{4}}-\d\d-\d\d(?:(?P<mark>[T ]){TIME}(?P<zone>Z|[+-]\d\d:?\d\d)?)?")
CLOCK = re.compile(TIME)
MIDNIGHT = "1970-01-01T"  # what makes a moment of a time of day
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
UNIT_BY_LENGTH = {10: "D", 16: "m", 19: "s", 23: "ms", 26: "us", 29: "ns"}
TICK = {"D": "D", "m": "s", "s": "s", "ms": "ms", "us": "us", "ns": "ns"}  # the unit in which cells hold the times


def date_style(text):
    """The style of an ISO date, moment or time of day such as 2024-05-01 08:30; None for other text."""
    match, clock = ISO.fullmatch(text), CLOCK.fullmatch(text)
    if match is None and clock is None:
        return None
    mark, suffix = (match.group("mark"), match.group("zone") or "") if match else (None, "")
    unit = UNIT_BY_LENGTH.get(len(text) - len(suffix) + (len(MIDNIGHT) if clock else 0))
    if unit is None:
        return None
    return {"type": "date", "unit": unit, "mark": mark, "suffix": suffix, "clock": clock is not None}


def read_dates(texts, style):
    """Ticks of the unit `TICK[style["unit"]]`, or None if a text has another style or is not a date."""
    if "order" in style:
        return read_everyday_dates(texts, style)
    end = -len(style["suffix"]) or None
    if not all(text.endswith(style["suffix"]) for text in texts):
        return None
    prefix = MIDNIGHT if style["clock"] else ""
    try:
        moments = np.array([prefix + text[:end] for text in texts], dtype=f"datetime64[{style['unit']}]")
    except ValueError:
        return None
    ticks = moments.astype(f"datetime64[{TICK[style['unit']]}]").view(np.int64)
    return ticks if write_dates(ticks, style) == list(texts) else None


def write_dates(ticks, style):
    """ISO text of a style, of ticks as `read_dates` gives them."""
    unit = TICK[style["unit"]]
    ticks = clip_to_day(ticks, unit) if style.get("clock") else clip_to_years(ticks, unit)
    texts = np.datetime_as_string(ticks.view(f"datetime64[{unit}]"), unit=style["unit"]).tolist()
    if "order" in style:
        return write_everyday_dates(texts, style)
    if style["clock"]:
        return [text[len(MIDNIGHT) :] for text in texts]
    mark = style["mark"] or "T"
    return [text.replace("T", mark) + style["suffix"] for text in texts]


def number_style(texts):
    """The style of text that holds plain numbers alone, such as 12 and 12.5; None for other text."""
    if not all(map(NUMBER.fullmatch, texts)):
        return None
    numbers = np.array(texts, dtype=np.float64)
    lengths = {len(text.partition(".")[2]) for text in texts}
    for decimals in [None] + ([max(lengths)] if len(lengths) == 1 else []):
        style = {"type": "number", "decimals": decimals}
        if write_numbers(numbers, style) == list(texts):
            return style
    return None


def is_missing_word(text, style):
    """True for words such as NA among dates and numbers in everyday spelling."""
    return style is not None and ("order" in style or "decimal" in style) and text in MISSING


def read_numbers(texts, style=None):
    """Numbers of text in a style, or None if one cannot be read."""
    if style is not None and "decimal" in style:
        numbers = [read_everyday_number(text, style) for text in texts]
        return None if None in numbers else np.array(numbers, dtype=np.float64)
    try:
        return np.array([float(text) for text in texts], dtype=np.float64)
    except ValueError:
        return None


def write_numbers(numbers, style):
    """Text of a style: a fixed number of decimals, or as few as a number needs."""
    if "decimal" in style:
        return [write_everyday_number(number, style) for number in numbers.tolist()]
    if style["decimals"] is not None:
        return [f"{number:.{style['decimals']}f}" for number in numbers.tolist()]
    return [repr(int(number)) if number.is_integer() else repr(number) for number in numbers.tolist()]
