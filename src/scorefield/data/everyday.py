"""Dates, money, per cent and numbers in everyday spelling: 24.12.2025, $1,234.00, 1.234,00 EUR, 12.3 %.

A column is read as a whole: what one cell leaves open, such as day and month of 03/04/2025, another one decides.
"""

import dataclasses
import re
from collections import Counter

import numpy as np

CLOCK = r"(?P<gap>[ T]+)(?P<clock>\d{1,2}:\d\d(?::\d\d)?)"
DATE = re.compile(rf"(\d{{1,4}})([./-])(\d{{1,2}})\2(\d{{4}}|\d\d)(?:{CLOCK})?")
ORDERS = ("dmy", "mdy", "ymd")
PIVOT = 69  # two-digit years from 69 on are of the 20th century, as POSIX has it
MARKS = ("point", "comma")
SPACE = "[ \u00a0\u202f\u2009]"
CODES = (  # of currencies, as alternatives of a pattern
    "EUR USD GBP CHF JPY CNY SEK NOK DKK PLN CZK HUF RON BGN TRY RUB UAH INR BRL MXN CAD AUD NZD SGD HKD KRW ZAR ILS "
    "AED SAR THB IDR MYR PHP VND ARS CLP COP ISK"
).replace(" ", "|")
UNIT = rf"(?:(?:US|CA|A|R)?\$|[€£¥₹₩₽₺₫₪฿₴]|kr\.?|zł|Kč|Ft|Fr\.|Euro|{CODES}|%)"
MINUS = "[-\u2212]"
DIGITS = r"\d[\d.,'\u2019 \u00a0\u202f\u2009]*?|[.,]\d+"
AMOUNT = re.compile(
    rf"(?P<open>\()?(?P<sign>{MINUS})?(?P<before>{UNIT}{SPACE}?)?(?P<inner>{MINUS})?(?P<digits>{DIGITS})"
    rf"(?P<after>{SPACE}?{UNIT})?(?P<close>\))?"
)
THOUSANDS = {mark: rf"[1-9]\d{{0,2}}(?P<mark>[{others}])\d{{3}}(?:(?P=mark)\d{{3}})*" for mark, others in
             ((".", ",'\u2019 \u00a0\u202f\u2009"), (",", ".'\u2019 \u00a0\u202f\u2009"))}  # fmt: skip
NUMBERS = {mark: re.compile(rf"(?:{THOUSANDS[mark]}|\d+)?(?:[{mark}](?P<decimals>\d+))?") for mark in ".,"}
MARKED = re.compile(r"[.,]")
MISSING = ("NA", "N/A", "NaN", "nan", "null", "None", "?", "-")
OPEN_NUMBER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")  # 1,234: a thousand and more, or little more than one


@dataclasses.dataclass(frozen=True)
class Undecided:
    """What the cells of a column leave open: an example, two readings of it, and the kinds that decide."""

    example: str
    readings: str
    kinds: tuple


def everyday_date_style(texts, order=None):
    """The style of dates such as 24.12.2025 or 12/24/25 08:30; None for other text, `Undecided` if it has several.

    Dates with dots have the day first unless a number above 12 says otherwise.
    """
    matches = _all_matches(DATE, texts)
    if not matches:
        return None
    mark = matches[0][2]
    if len({(match[2], *_date_shape(match)) for match in matches}) > 1:
        return None
    clocks = [match["clock"] for match in matches if match["clock"]]
    padded = all(len(match[1]) != 1 and len(match[3]) == 2 for match in matches)
    short = len(matches[0][4]) == 2 and len(matches[0][1]) < 3
    style = {
        "type": "date", "unit": "s" if clocks else "D", "mark": mark, "padded": padded, "short": short,
        "gap": matches[0]["gap"], "seconds": bool(clocks) and clocks[0].count(":") == 2,
        "padded_hours": all(clock.index(":") == 2 for clock in clocks),
    }  # fmt: skip
    candidates = ("ymd",) if len(matches[0][1]) == 4 else ("dmy", "mdy")
    candidates = (order,) if order is not None and (order in candidates or short) else candidates
    styles = [{**style, "order": name} for name in candidates]
    fitting = [each for each in styles if read_everyday_dates(texts, each) is not None]
    if len(fitting) > 1 and mark == ".":
        fitting = fitting[:1]
    if len(fitting) > 1:
        return Undecided(texts[0], "the day or the month first", ("date:dmy", "date:mdy"))
    return fitting[0] if fitting else None


def _all_matches(pattern, texts):
    """Matches of all texts; none where one does not match."""
    matches = []
    for text in texts:
        match = pattern.fullmatch(text)
        if match is None:
            return []
        matches.append(match)
    return matches


def _date_shape(match):
    """What all dates of a column have in common: long or short years, and whether there is a time."""
    return len(match[1]) == 4, len(match[4]), match["gap"], (match["clock"] or "").count(":")


def read_everyday_dates(texts, style):
    """Ticks (days or seconds) of dates of a style; None if one is not."""
    moments = []
    for match in map(DATE.fullmatch, texts):
        if match is None or match[2] != style["mark"] or (match["clock"] is None) != (style["gap"] is None):
            return None
        parts = dict(zip(style["order"], (match[1], match[3], match[4]), strict=True))
        if len(parts["y"]) != (2 if style["short"] else 4) or len(parts["d"]) > 2:
            return None
        year = int(parts["y"]) + ((1900 if int(parts["y"]) >= PIVOT else 2000) if style["short"] else 0)
        hours, _, rest = (match["clock"] or "").partition(":")
        clock = f"T{int(hours):02d}:{rest}" if match["clock"] else ""
        moments.append(f"{year:04d}-{int(parts['m']):02d}-{int(parts['d']):02d}{clock}")
    try:
        return np.array(moments, dtype=f"datetime64[{style['unit']}]").view(np.int64)
    except ValueError:
        return None


def write_everyday_dates(moments, style):
    """Text of a style, of ISO text such as 2025-12-24T08:30:00."""
    texts = []
    for moment in moments:
        day, _, clock = moment.partition("T")
        year, month, date = day.split("-")
        if not style["padded"]:
            month, date = str(int(month)), str(int(date))
        parts = {"y": year[-2:] if style["short"] else year, "m": month, "d": date}
        text = style["mark"].join(parts[part] for part in style["order"])
        if style["gap"] is not None:
            clock = clock if style["seconds"] else clock[:5]
            text += style["gap"] + (clock if style["padded_hours"] else clock.removeprefix("0"))
        texts.append(text)
    return texts


def everyday_number_style(texts, mark=None):
    """The style of money, per cent and numbers with marks; None for other text, `Undecided` for several readings."""
    matches = _all_matches(AMOUNT, texts)
    if not matches or not all(map(_is_amount, matches)):
        return None
    digits = [match["digits"].strip() for match in matches]
    decimals = {"point": (".",), "comma": (",",), None: (".", ",")}[mark]
    decimals = [each for each in decimals if all(map(NUMBERS[each].fullmatch, digits))]
    if not decimals:
        return None
    units = units_of(texts)
    if len(units) > 1 or (units == [""] and not any(map(MARKED.search, digits))):
        return None
    undecided = next(filter(OPEN_NUMBER.fullmatch, digits), None)
    if len(decimals) > 1 and undecided and units[0] not in ("", "%"):  # money has no three decimals
        decimals = ["." if "," in undecided else ","]
    elif len(decimals) > 1 and undecided:
        example = next(text for text, number in zip(texts, digits, strict=True) if OPEN_NUMBER.fullmatch(number))
        return Undecided(example, "a mark between thousands or a decimal mark", ("number:point", "number:comma"))
    style = _number_style_of(matches, digits, decimals[0])
    # Plain numbers in text are another style's, and marks of thousands that are blanks need more than digits.
    plain = style["decimal"] == "." and not style["thousands"]
    odd_marks = style["thousands"] not in ("", ",", ".") and style["decimals"] == 0
    return None if units == [""] and (plain or odd_marks) else style


def _is_amount(match):
    """True for brackets in pairs, one sign and one unit."""
    signs = [match["open"], match["sign"], match["inner"]]
    paired = bool(match["open"]) == bool(match["close"])
    return paired and sum(map(bool, signs)) <= 1 and not (match["before"] and match["after"])


def units_of(texts):
    """The units of amounts, such as $ and EUR; none where a text is not an amount."""
    matches = _all_matches(AMOUNT, texts)
    if not all(map(_is_amount, matches)):
        return []
    return sorted({(match["before"] or match["after"] or "").strip() for match in matches})


def _number_style_of(matches, digits, decimal):
    read = [NUMBERS[decimal].fullmatch(number) for number in digits]
    before, after = (
        Counter(match[name] or "" for match in matches).most_common(1)[0][0] for name in ("before", "after")
    )
    if before and after:
        after = ""
    negatives = Counter(_negative(match) for match in matches if _negative(match))
    thousands = Counter(match["mark"] for match in read if match["mark"])
    lengths = {len(match["decimals"] or "") for match in read}
    long = [number for number in digits if len(re.split(f"[{decimal}]", number)[0]) > 3]
    return {
        "type": "number", "decimals": lengths.pop() if len(lengths) == 1 else None, "decimal": decimal,
        "thousands": thousands.most_common(1)[0][0] if 2 * thousands.total() > len(long) else "",
        "before": before, "after": after, "negative": negatives.most_common(1)[0][0] if negatives else "-",
    }  # fmt: skip


def _negative(match):
    """How an amount is marked as negative: "(", "-" before the unit, "in" after it; "" if it is not."""
    return "(" if match["open"] else "-" if match["sign"] else "in" if match["inner"] else ""


def read_everyday_number(text, style):
    """The number of one text, None if it has another style; the unit may be absent."""
    match = AMOUNT.fullmatch(text.strip())
    number = match and _is_amount(match) and NUMBERS[style["decimal"]].fullmatch(match["digits"].strip())
    unit = match and (match["before"] or match["after"] or "").strip()
    if not number or unit not in ("", (style["before"] or style["after"]).strip()):
        return None
    plain = match["digits"].strip().replace(number["mark"] or "\0", "").replace(style["decimal"], ".")
    return -float(plain) if _negative(match) else float(plain)


def write_everyday_number(number, style):
    """Text of a style, of a number."""
    decimals, size = style["decimals"], abs(number)
    plain = f"{size:.{decimals}f}" if decimals is not None else repr(int(size) if size.is_integer() else size)
    whole, _, fraction = plain.partition(".")
    whole = f"{int(whole):,}".replace(",", style["thousands"]) if whole.isdecimal() else whole
    text = whole + (style["decimal"] + fraction if fraction else "")
    if number >= 0 or not float(plain):
        return style["before"] + text + style["after"]
    if style["negative"] == "(":
        return f"({style['before']}{text}{style['after']})"
    if style["negative"] == "in":
        return f"{style['before']}-{text}{style['after']}"
    return f"-{style['before']}{text}{style['after']}"
