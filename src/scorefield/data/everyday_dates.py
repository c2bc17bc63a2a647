"""Dates in everyday spelling: 24.12.2025, 12/24/25 8:30 PM, 24-Dec-2025, December 24, 2025, and 20251224 as a number.

A column is read as a whole: what one cell leaves open, such as day and month of 03/04/2025, another one decides.
"""

import re

import numpy as np

from scorefield.data.everyday import Undecided, all_matches

NAME = r"[^\W\d_]{3,9}"  # of a month
CLOCK = r"(?P<gap>[ T]+|, )(?P<clock>\d{1,2}:\d\d(?::\d\d)?)(?P<half> ?(?:AM|PM|am|pm))?"
DATE = re.compile(
    rf"(\d{{1,4}}|{NAME})(\.? |[./-])(\d{{1,2}}|{NAME})(,? |\. |[./-])(\d{{4}}|\d\d?)(?:{CLOCK})?",
)
ORDERS = ("dmy", "mdy", "ymd")
PIVOT = 69  # two-digit years from 69 on are of the 20th century, as POSIX has it
MONTH_NAMES = (
    "January February March April May June July August September October November December",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
)
MONTHS = [
    [change(name[:length]) for name in names.split()]
    for length in (3, None)
    for names in MONTH_NAMES
    for change in (str, str.upper, str.lower)
]
COMPACT = {"type": "date", "unit": "D", "compact": True}  # whole numbers such as 20251224
FIRST_YEAR, LAST_YEAR = 1900, 2100  # of such numbers
FEWEST_DAYS = 20  # in more than one month: of other whole numbers one in ten would be a date at most


def everyday_date_style(texts, order=None):
    """The style of dates such as 24.12.2025 or 12/24/25 08:30; None for other text, `Undecided` if it has several.

    Dates with dots have the day first unless a number above 12 says otherwise.
    """
    matches = all_matches(DATE, texts)
    if not matches or len(set(map(_shape, matches))) > 1:
        return None
    first, last = matches[0], matches[0][5]
    places = [place for place in (1, 3) if first[place].isalpha()]
    months = _month_names({match[place] for match in matches for place in places})
    if (months is None and places) or len(places) > 1 or (not places and not first[2] == first[4] in "./-"):
        return None
    clocks = [match["clock"] for match in matches if match["clock"]]
    year_first = len(first[1]) == 4 and not first[1].isalpha()
    short = len(last) < 4 and not year_first
    counted = [place for place in (1, 3, 5) if place not in places and place != (1 if year_first else 5)]
    style = {
        "type": "date", "unit": "s" if clocks else "D", "marks": [first[2], first[4]], "months": months,
        "padded": all(len(match[place]) == 2 for match in matches for place in counted), "short": short,
        "gap": first["gap"], "seconds": bool(clocks) and clocks[0].count(":") == 2, "half": first["half"],
        "padded_hours": all(clock.index(":") == 2 for clock in clocks),
    }  # fmt: skip
    styles = [{**style, "order": name} for name in _orders(first, places, order, short)]
    fitting = [each for each in styles if read_everyday_dates(texts, each) is not None]
    if len(fitting) > 1 and first[2] == ".":
        fitting = fitting[:1]
    if len(fitting) > 1:
        return Undecided(texts[0], "the day or the month first", ("date:dmy", "date:mdy"))
    return fitting[0] if fitting else None


def _shape(match):
    """What all dates of a column have in common: marks, lengths of years, names, and whether there is a time."""
    clock, half = (match["clock"] or "").count(":"), (match["half"] or "").casefold().replace("p", "a")
    letters = match[1].isalpha(), match[3].isalpha()
    return (
        match[2],
        match[4],
        len(match[1]) == 4 and not letters[0],
        len(match[5]) == 4,
        *letters,
        match["gap"],
        clock,
        half,
    )


def _month_names(found):
    """The names of the months, of which `found` are some; None for other words."""
    return next((names for names in MONTHS if found and found <= set(names)), None)


def _orders(first, places, order, short):
    """The orders of day, month and year that a date may have."""
    if places:
        return ("mdy",) if places == [1] else ("ymd",) if len(first[1]) == 4 else ("dmy",)
    possible = ("ymd",) if len(first[1]) == 4 else ("dmy", "mdy")
    return (order,) if order is not None and (order in possible or short) else possible


def read_everyday_dates(texts, style):
    """Ticks (days or seconds) of dates of a style; None if one is not."""
    moments = [_moment(DATE.fullmatch(text), style) for text in texts]
    try:
        return None if None in moments else np.array(moments, dtype=f"datetime64[{style['unit']}]").view(np.int64)
    except ValueError:
        return None


def _moment(match, style):
    """ISO text of a date of a style, None if it has another one."""
    if match is None or [match[2], match[4]] != style["marks"]:
        return None
    if (match["clock"] is None) != (style["gap"] is None) or (match["half"] is None) != (style["half"] is None):
        return None
    parts = dict(zip(style["order"], (match[1], match[3], match[5]), strict=True))
    if len(parts["y"]) != (2 if style["short"] else 4) or len(parts["d"]) > 2:
        return None
    month = _number_of_month(parts["m"], style["months"])
    if month is None or not (parts["y"] + parts["d"]).isdecimal():
        return None
    year = int(parts["y"]) + ((1900 if int(parts["y"]) >= PIVOT else 2000) if style["short"] else 0)
    hours, _, rest = (match["clock"] or "").partition(":")
    if match["half"]:
        if not 1 <= int(hours) <= 12:
            return None
        hours = int(hours) % 12 + 12 * (match["half"].strip().lower() == "pm")
    clock = f"T{int(hours):02d}:{rest}" if match["clock"] else ""
    return f"{year:04d}-{month:02d}-{int(parts['d']):02d}{clock}"


def _number_of_month(text, names):
    if names is None:
        return int(text) if text.isdecimal() else None
    return names.index(text) + 1 if text in names else None


def write_everyday_dates(moments, style):
    """Text of a style, of ISO text such as 2025-12-24T08:30:00."""
    texts = []
    for moment in moments:
        day, _, clock = moment.partition("T")
        year, month, date = day.split("-")
        month = style["months"][int(month) - 1] if style["months"] else month if style["padded"] else str(int(month))
        parts = {
            "y": year[-2:] if style["short"] else year,
            "m": month,
            "d": date if style["padded"] else str(int(date)),
        }
        first, second, third = (parts[part] for part in style["order"])
        text = f"{first}{style['marks'][0]}{second}{style['marks'][1]}{third}"
        texts.append(text if style["gap"] is None else text + style["gap"] + _clock(clock, style))
    return texts


def _clock(clock, style):
    hours, rest = int(clock[:2]), clock[2:] if style["seconds"] else clock[2:5]
    half = ""
    if style["half"]:
        half = style["half"][:-2] + ("AM" if hours < 12 else "PM")
        half = half if style["half"][-2:].isupper() else half.lower()
        hours = (hours - 1) % 12 + 1
    return f"{hours:0{2 if style['padded_hours'] else 1}d}{rest}{half}"


def are_compact_dates(levels):
    """True for distinct whole numbers of which all are dates such as 20251224."""
    if len(levels) < FEWEST_DAYS or levels[0] < FIRST_YEAR * 10_000 or levels[-1] > LAST_YEAR * 10_000:
        return False
    return len(np.unique(levels.astype(np.int64) // 100)) > 1 and read_compact_dates(levels) is not None


def read_compact_dates(numbers):
    """Days of numbers such as 20251224; None if one is not a date."""
    texts = [f"{int(number):08d}" for number in numbers.tolist()]
    try:
        return np.array([f"{text[:-4]}-{text[-4:-2]}-{text[-2:]}" for text in texts], "datetime64[D]").view(np.int64)
    except ValueError:
        return None


def write_compact_dates(days):
    """Inverse of `read_compact_dates`."""
    texts = np.datetime_as_string(days.view("datetime64[D]"))
    return np.array([int(text.replace("-", "")) for text in texts.tolist()], dtype=np.int64)
