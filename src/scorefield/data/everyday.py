"""Money, per cent and numbers in everyday spelling: $1,234.00, 1.234,00 EUR, 12.3 %.

A column is read as a whole: what one cell leaves open, such as the mark of 1,234, another one decides.
"""

import dataclasses
import re
from collections import Counter

MARKS = ("point", "comma")
SPACE = "[ \u00a0\u202f\u2009]"
CODES = (  # of currencies, as alternatives of a pattern
    "EUR USD GBP CHF JPY CNY SEK NOK DKK PLN CZK HUF RON BGN TRY RUB UAH INR BRL MXN CAD AUD NZD SGD HKD KRW ZAR ILS "
    "AED SAR THB IDR MYR PHP VND ARS CLP COP ISK"
).replace(" ", "|")
MEASURES = (  # other units, which follow a number, as alternatives of a pattern
    "kg mg g t lbs lb oz km/h mph km cm mm mi ft in m² m2 sqft ml m l hrs hr h mins min secs sec ms s °C °F kWh MWh kW "
    "MW W V kHz MHz GHz Hz TB GB MB KB kB bpm mmHg years yrs days months weeks hours minutes seconds Jahre Tage Monate "
    "Wochen Stunden Minuten"
).replace(" ", "|")
UNIT = rf"(?:(?:US|CA|A|R)?\$|[€£¥₹₩₽₺₫₪฿₴]|kr\.?|zł|Kč|Ft|Fr\.|Euro|{CODES}|%)"
MINUS = "[-\u2212]"
DIGITS = r"\d[\d.,'\u2019 \u00a0\u202f\u2009]*?|[.,]\d+"
AMOUNT = re.compile(
    rf"(?P<open>\()?(?P<sign>{MINUS})?(?P<before>{UNIT}{SPACE}?)?(?P<inner>{MINUS})?(?P<digits>{DIGITS})"
    rf"(?P<after>{SPACE}?(?:{UNIT}|{MEASURES}))?(?P<close>\))?"
)
THOUSANDS = {mark: rf"[1-9]\d{{0,2}}(?P<mark>[{others}])\d{{3}}(?:(?P=mark)\d{{3}})*" for mark, others in
             ((".", ",'\u2019 \u00a0\u202f\u2009"), (",", ".'\u2019 \u00a0\u202f\u2009"))}  # fmt: skip
NUMBERS = {mark: re.compile(rf"(?:{THOUSANDS[mark]}|\d+)?(?:[{mark}](?P<decimals>\d+))?") for mark in ".,"}
MARKED = re.compile("[.,'\u2019 \u00a0\u202f\u2009]")
MISSING = ("NA", "N/A", "NaN", "nan", "null", "None", "?", "-")
OPEN_NUMBER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")  # 1,234: a thousand and more, or little more than one


@dataclasses.dataclass(frozen=True)
class Undecided:
    """What the cells of a column leave open: an example, two readings of it, and the kinds that decide."""

    example: str
    readings: str
    kinds: tuple


def all_matches(pattern, texts):
    """Matches of all texts; none where one does not match."""
    matches = []
    for text in texts:
        match = pattern.fullmatch(text)
        if match is None:
            return []
        matches.append(match)
    return matches


def everyday_number_style(texts, mark=None):
    """The style of money, per cent and numbers with marks; None for other text, `Undecided` for several readings."""
    matches = all_matches(AMOUNT, texts)
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
    if len(decimals) > 1 and undecided and is_money(units[0]):  # which has no three decimals
        decimals = ["." if "," in undecided else ","]
    elif len(decimals) > 1 and undecided:
        example = next(text for text, number in zip(texts, digits, strict=True) if OPEN_NUMBER.fullmatch(number))
        return Undecided(example, "a mark between thousands or a decimal mark", ("number:point", "number:comma"))
    style = _number_style_of(matches, digits, decimals[0])
    # Plain numbers in text are another style's, and groups of digits as many in each cell may be codes.
    plain = style["decimal"] == "." and not style["thousands"]
    codes = style["thousands"] not in ("", ",", ".") and style["decimals"] == 0 and len(set(map(len, digits))) == 1
    return None if units == [""] and (plain or codes) else style


def _is_amount(match):
    """True for brackets in pairs, one sign and one unit."""
    signs = [match["open"], match["sign"], match["inner"]]
    paired = bool(match["open"]) == bool(match["close"])
    return paired and sum(map(bool, signs)) <= 1 and not (match["before"] and match["after"])


def is_money(unit):
    """True for a currency."""
    return unit not in ("", "%", *MEASURES.split("|"))


def units_of(texts):
    """The units of amounts, such as $ and EUR; none where a text is not an amount."""
    matches = all_matches(AMOUNT, texts)
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
