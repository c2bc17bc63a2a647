"""Dates and numbers that are written as text: recognised, read, and written again in the same style."""

import re

import numpy as np

from scorefield.data.cells import NANOSECONDS, clip_to_day, clip_to_years
from scorefield.data.everyday import MISSING, all_matches, read_everyday_number, write_everyday_number
from scorefield.data.everyday_dates import read_everyday_dates, write_compact_dates, write_everyday_dates

TIME = r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
ZONE = r"Z| ?UTC| ?GMT|[+-]\d\d(?::?\d\d)?"
ISO = re.compile(rf"\d{{4}}-\d\d-\d\d(?:(?P<mark>[T ]){TIME}(?P<zone>{ZONE})?)?")
CLOCK = re.compile(TIME)
MIDNIGHT = "1970-01-01T"  # what makes a moment of a time of day
MOST_OFFSETS = 1024  # times at which the offsets of a column change
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


def style_of_dates(texts):
    """The style of a column of ISO text, with the times from which each offset from UTC holds; None for other text."""
    style = date_style(texts[0])
    ticks = None if style is None else read_dates(texts, style)
    if ticks is None:
        return None
    suffixes = [ISO.fullmatch(text)["zone"] or "" for text in texts] if style["mark"] else [""]
    if len(set(suffixes)) > 1:
        order = np.argsort(ticks, kind="stable").tolist()
        changes = [i for place, i in enumerate(order) if not place or suffixes[i] != suffixes[order[place - 1]]]
        if len(changes) > MOST_OFFSETS:
            return None
        style["offsets"] = {"from": ticks[changes].tolist(), "suffixes": [suffixes[i] for i in changes]}
    return style if write_dates(ticks, style) == list(texts) else None


def read_dates(texts, style):
    """Ticks of the unit `TICK[style["unit"]]`, or None if a text has another style or is not a date.

    Moments of other offsets from UTC than that of the style are converted to it.
    """
    if "order" in style:
        return read_everyday_dates(texts, style)
    if "compact" in style:
        return None
    suffixes, prefix = [style["suffix"]] * len(texts), MIDNIGHT if style["clock"] else ""
    if style["mark"]:
        matches = all_matches(ISO, texts)
        suffixes = [match["zone"] or "" for match in matches]
        if not matches or not all(bool(suffix) == bool(style["suffix"]) for suffix in suffixes):
            return None
    local = [prefix + text[: len(text) - len(suffix)] for text, suffix in zip(texts, suffixes, strict=True)]
    try:
        moments = np.array(local, dtype=f"datetime64[{style['unit']}]")
    except ValueError:
        return None
    unit = TICK[style["unit"]]
    ticks = moments.astype(f"datetime64[{unit}]").view(np.int64)
    if write_dates(ticks, {**style, "suffix": "", "offsets": None}) != [text[len(prefix) :] for text in local]:
        return None
    seconds = np.array([_offset(suffix) for suffix in suffixes], dtype=np.int64) - _offset(style["suffix"])
    return ticks - seconds * (NANOSECONDS["s"] // NANOSECONDS[unit] if seconds.any() else 0)


def _offset(suffix):
    """Seconds by which local times of a zone such as +02:00 are ahead of UTC."""
    if not suffix.startswith(("+", "-")):
        return 0
    size = 3_600 * int(suffix[1:3]) + 60 * int(suffix[-2:] if len(suffix) > 3 else 0)
    return size if suffix[0] == "+" else -size


def write_dates(ticks, style):
    """ISO text of a style, of ticks as `read_dates` gives them."""
    if "compact" in style:
        return list(map(str, write_compact_dates(ticks).tolist()))
    unit, suffixes = TICK[style["unit"]], [style.get("suffix")] * len(ticks)
    if style.get("offsets"):
        places = np.searchsorted(style["offsets"]["from"], ticks, side="right") - 1
        suffixes = [style["offsets"]["suffixes"][place] for place in np.maximum(places, 0).tolist()]
        seconds = np.array([_offset(suffix) for suffix in suffixes], dtype=np.int64) - _offset(style["suffix"])
        ticks = ticks + seconds * (NANOSECONDS["s"] // NANOSECONDS[unit])
    ticks = clip_to_day(ticks, unit) if style.get("clock") else clip_to_years(ticks, unit)
    texts = np.datetime_as_string(ticks.view(f"datetime64[{unit}]"), unit=style["unit"]).tolist()
    if "order" in style:
        return write_everyday_dates(texts, style)
    if style["clock"]:
        return [text[len(MIDNIGHT) :] for text in texts]
    mark = style["mark"] or "T"
    return [text.replace("T", mark) + suffix for text, suffix in zip(texts, suffixes, strict=True)]


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
    """True for words such as NA among dates and numbers in text."""
    return style is not None and text in MISSING


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
