"""New keys for generated rows: they continue the pattern of a column of identifiers and collide with none of it."""

import math
import re
import string
import uuid

import numpy as np

from scorefield.data.cells import Cells, empty_cells, plain_array
from scorefield.data.everyday_dates import DATE
from scorefield.data.keys import EXACT, FEW_FOR_A_KEY, MOSTLY_DISTINCT
from scorefield.data.kinds import UUID
from scorefield.data.objects import is_uuid
from scorefield.data.texts import ISO

ONE_DECIMAL = re.compile(r"[^\d.,]*\d+[.,]\d+(?![.,]?\d)\D*")
LAST_NUMBER = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL)
CLASSES = (string.digits, string.ascii_uppercase, string.ascii_lowercase)
HEX = ("ABCDEF", "abcdef")


def key_pattern(cells):
    """The pattern of the known cells of an identifier in plain values, None where no new keys can follow from it.

    Whole numbers and numbered texts are continued after the largest one, UUIDs are drawn, and codes of one length are
    counted on in their digits and letters, such as 7590-VHVEG.
    """
    if cells.order is not None or not cells.known.any():
        return None
    values = cells.values[cells.known]
    if cells.form == "unknown":
        return {"type": "uuid object"} if is_uuid(values) else None
    distinct = list(dict.fromkeys(values.tolist()))
    if len(distinct) <= MOSTLY_DISTINCT * len(values):
        return None  # names of something else, of which new ones would be invented
    if cells.form == "object":
        return _text_pattern(distinct) if all(isinstance(value, str) for value in distinct) else None
    if cells.form not in ("whole", "number") or any(value != int(value) for value in distinct):
        return None
    numbers = list(map(int, distinct))
    low = min(numbers)
    return {"type": "whole", "low": low, "high": max(numbers), "step": math.gcd(*(n - low for n in numbers)) or 1}


def _text_pattern(texts):
    if all(map(UUID.fullmatch, texts)):
        return {"type": "uuid", "example": texts[0]}
    if 2 * sum(map(_is_measured, texts)) > len(texts):
        return None
    parts = [LAST_NUMBER.fullmatch(text) for text in texts]
    if not all(parts):
        return None
    (head, _, tail), digits = parts[0].groups(), [part.group(2) for part in parts]
    if all((part.group(1), part.group(3)) == (head, tail) for part in parts):
        width = len(digits[0]) if len(set(map(len, digits))) == 1 else 0
        if width or not any(number.startswith("0") and number != "0" for number in digits):
            return {"type": "counter", "head": head, "tail": tail, "width": width, "last": max(map(int, digits))}
    return _pattern_of_places(texts)


def _is_measured(text):
    """True for dates and for text with one decimal number, such as 12.5 kg, which do not count on."""
    return bool(DATE.match(text) or ISO.match(text) or ONE_DECIMAL.fullmatch(text))


def _pattern_of_places(texts):
    """Which characters each place of codes of one length may have."""
    if len(set(map(len, texts))) > 1:
        return None
    places = [set(place) for place in zip(*texts, strict=True)]
    alphabets = []
    for found in places:
        classes = [own for own in CLASSES if found & set(own)]
        if found - set("".join(classes)) and len(found) > 1:
            return None
        alphabets.append("".join(found) if len(found) == 1 and classes != [string.digits] else "".join(classes))
    for letters, first in zip(CLASSES[1:], HEX, strict=True):
        used = set("".join(texts)) & set(letters)
        if len(texts) >= FEW_FOR_A_KEY and used <= set(first):
            alphabets = [alphabet.replace(letters, first) for alphabet in alphabets]
    counts = [_count_of(text, alphabets) for text in texts]
    return {"type": "places", "alphabets": alphabets, "low": min(counts), "high": max(counts)}


def _count_of(text, alphabets):
    count = 0
    for character, alphabet in zip(text, alphabets, strict=True):
        count = count * len(alphabet) + alphabet.index(character)
    return count


def _text_of(count, alphabets):
    characters = []
    for alphabet in reversed(alphabets):
        count, place = divmod(count, len(alphabet))
        characters.append(alphabet[place])
    return "".join(reversed(characters))


def new_keys(pattern, n, storage, rng):
    """Cells of n new keys for a storage; those beyond what its type or the pattern can hold are missing.

    Parameters
    ----------
    pattern : dict or None
        As `key_pattern` returns it; without one all keys are missing.
    n : int
    storage : dict
        That of the column which the keys are for.
    rng : numpy Generator
        Draws UUIDs.

    Returns
    -------
    keys : Cells
    """
    if pattern is None or not n:
        return empty_cells(storage, n)
    form, values = "object", []
    if pattern["type"] in ("uuid", "uuid object"):
        drawn = [uuid.UUID(bytes=rng.bytes(16), version=4) for _ in range(n)]
        values = [_like(str(each), pattern["example"]) for each in drawn] if "example" in pattern else drawn
        form = "object" if "example" in pattern else "unknown"
    elif pattern["type"] == "counter":
        head, tail, width = (pattern[part] for part in ("head", "tail", "width"))
        values = [f"{head}{pattern['last'] + i:0{width}d}{tail}" for i in range(1, n + 1)]
    elif pattern["type"] == "places":
        alphabets = pattern["alphabets"]
        last = math.prod(map(len, alphabets)) - 1
        values = [_text_of(count, alphabets) for count in _beyond(pattern["low"], pattern["high"], 1, n, (0, last))]
    else:
        form = "whole"
        values = _beyond(pattern["low"], pattern["high"], pattern["step"], n, _limits(storage))
    found = np.zeros(n, dtype=bool)
    found[: len(values)] = True
    filler = values[0] if values else 0 if form == "whole" else ""
    array = plain_array("object" if form == "unknown" else form, [*values, *[filler] * (n - len(values))])
    return Cells(form, array, found, "", storage)


def _beyond(low, high, step, n, limits):
    """Up to n numbers above the highest, then below the lowest one, within limits."""
    above = n if limits is None else min(n, (limits[1] - high) // step)
    below = n - above if limits is None else min(n - above, (low - limits[0]) // step)
    return [high + step * i for i in range(1, above + 1)] + [low - step * i for i in range(1, below + 1)]


def _limits(storage):
    """Least and greatest whole number that a storage holds exactly, None without limits."""
    inner = storage.get("inner", storage)
    try:
        dtype = np.dtype(str(inner.get("dtype")).lower())
    except TypeError:
        return None
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if dtype.kind == "f":
        most = min(2 ** (np.finfo(dtype).nmant + 1), EXACT)
        return -most, most
    return None


def _like(text, example):
    """A UUID in the spelling of another one: braces, hyphens and capitals."""
    text = text if "-" in example else text.replace("-", "")
    text = text.upper() if example != example.lower() else text
    return f"{{{text}}}" if example.startswith("{") else text


def example_places(cells):
    """Places of a few known cells that have the pattern of all; those of all parts of a column, that of the whole."""
    places = np.flatnonzero(cells.known)
    if cells.form == "unknown" or not len(places):
        return places[:1]
    values = cells.values[places].tolist()
    if cells.form != "object":
        order = np.argsort(cells.values[places], kind="stable")
        chosen = {int(order[0]), int(order[-1])}
        low, step = values[order[0]], 0
        for i, value in enumerate(values):  # each one that makes the common step smaller
            if math.gcd(step, int(value - low)) != step:
                step = math.gcd(step, int(value - low))
                chosen.add(i)
        return places[sorted(chosen)]
    found = {}
    for i, value in enumerate(values):
        text = str(value)
        for place, character in enumerate(text):
            found.setdefault((len(text), place, character), i)
        for end, better in (("first", min), ("last", max)):
            best = found.setdefault((len(text), end), i)
            found[len(text), end] = better(best, i, key=lambda at: str(values[at]))
    return places[sorted(set(found.values()))]
