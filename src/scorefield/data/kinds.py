"""Kinds of columns: what each column of a table is taken for, from its cells and its name, or as the user says."""

import re
from collections import Counter

import numpy as np

from scorefield.data.cells import NUMERIC, level_keys, positions
from scorefield.data.everyday_dates import are_compact_dates
from scorefield.data.keys import EXACT, FEW_FOR_A_KEY, MANY, MOSTLY_DISTINCT, key_reason, looks_like_id
from scorefield.data.objects import is_uuid
from scorefield.data.recognition import (
    DECIDED_KINDS,
    as_compact_dates,
    as_dates,
    as_numbers,
    is_text,
    read_everyday,
    stray_cell,
    without_words,
)
from scorefield.data.texts import number_style, read_numbers

KINDS = (
    "number",
    "whole number",
    "spiked number",
    "ordered",
    "flag",
    "category",
    "date",
    "duration",
    "identifier",
    "text",
    "constant",
)
GIVEN_KINDS = (*KINDS, *DECIDED_KINDS)  # those that a user may name
NUMBER_KINDS = ("number", "whole number", "spiked number", "date", "duration")
LEVEL_KINDS = ("ordered", "flag", "category")
SET_ASIDE = ("identifier", "text")
ROWS_PER_LEVEL = 5  # rows that a level of numbers needs on average to be a level: the usual floor of a chi-squared cell
SPIKE_SHARE = 0.1
MAX_SPIKES = 3
LONG_TEXT = 40  # characters on average
SEVERAL_WORDS = 3  # words on average
UUID = re.compile(r"\{?[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\}?")


def classify(table, columns=None):
    """Name, kind and cells of each column; all problems of the table in one ValueError.

    Parameters
    ----------
    table : Table
        A table as in `scorefield.data.containers`.
    columns : dict or None
        Kinds by name or position, in place of the inferred ones.

    Returns
    -------
    classified : list of (name, kind, Cells)
        Text that holds dates or numbers is read, so that its cells have the form of its kind.
    """
    wanted = wanted_kinds(table.names, columns)
    classified, problems = [], []
    for name in table.names:
        cells = table.cells(name)
        if name in wanted:
            kind, (cells, problem) = wanted[name].partition(":")[0], _honour(wanted[name], cells)
        else:
            kind, cells, problem = _infer(name, cells, table.is_plain)
        if problem is None and kind not in SET_ASIDE:
            problem = infinity_in(cells)
        if problem is not None:
            problems.append(f"column {name!r}: {problem}")
        classified.append((name, kind, cells))
    refuse(problems)
    return _with_keys(classified, wanted)


def _with_keys(classified, wanted):
    """The columns with identifiers in the place of whole numbers that are keys.

    Values of keys repeat in rows that repeat as a whole, which is told without the other keys: those whose values are
    all different come first.
    """
    keys, doubtful = set(), []
    for name, kind, cells in classified:
        if kind == "whole number" and name not in wanted:
            levels = tally(cells)[0]
            if len(levels) < cells.known.sum():
                doubtful.append((name, cells, levels))
            elif key_reason(name, cells, levels, ()) is not None:
                keys.add(name)
    for name, cells, levels in doubtful:
        others = (own for other, kind, own in classified if not {other} & {name, *keys} and kind not in SET_ASIDE)
        if key_reason(name, cells, levels, others) is not None:
            keys.add(name)
    return [(name, "identifier" if name in keys else kind, cells) for name, kind, cells in classified]


def refuse(problems):
    """Raise one ValueError for all problems of a table."""
    if len(problems) == 1:
        raise ValueError(f"Expected a table without problems, got one in {problems[0]}")
    if problems:
        raise ValueError(f"Expected a table without problems, got {len(problems)}:\n  " + "\n  ".join(problems))


def infinity_in(cells):
    """The problem of infinite numbers, None without any."""
    if cells.form != "number" or np.isfinite(cells.values[cells.known]).all():
        return None
    return "expected finite numbers, got infinity; replace it by a gap or a number."


def wanted_kinds(names, columns):
    """Kinds by name; unknown names and kinds are refused."""
    wanted, unknown = {}, []
    for key, kind in (columns or {}).items():
        if key not in names and isinstance(key, int) and -len(names) <= key < len(names):
            key = names[key]
        if key not in names:
            unknown.append(key)
        wanted[key] = kind
    if unknown:
        raise ValueError(
            f"Expected names of columns in `columns`, got {_listed(unknown)}; the table has {_listed(names)}."
        )
    odd = [kind for kind in wanted.values() if kind not in GIVEN_KINDS]
    if odd:
        raise ValueError(f"Expected kinds of columns, got {_listed(odd)}; the kinds are {_listed(GIVEN_KINDS)}.")
    return wanted


def _listed(values, most=20):
    texts = [repr(value) for value in values]
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")


def tally(cells):
    """Distinct known values in order (that of a categorical dtype, else sorted), and how often each occurs."""
    present = cells.values[cells.known]
    if present.dtype != object:
        levels, counts = np.unique(present, return_counts=True)
    else:
        counted = Counter(level_keys(present))
        by_key = dict(zip(level_keys(present), present, strict=True))
        keys = sorted(counted, key=lambda key: (isinstance(key, str), isinstance(key, tuple), key))  # numbers first
        levels = np.array([*(by_key[key] for key in keys), None], dtype=object)[:-1]
        counts = np.array([counted[key] for key in keys], dtype=np.int64)
    if cells.order is not None and len(cells.order):
        first = np.argsort(positions(levels, np.ones(len(levels), dtype=bool), cells.order), kind="stable")
        levels, counts = levels[first], counts[first]
    return levels, counts


def _infer(name, cells, plain):
    """Kind, cells and problem of a column that the user says nothing about."""
    if not cells.known.any():
        return "constant", cells, None
    if plain:
        return "number", cells, None
    if cells.form == "unknown":
        if is_uuid(cells.values[cells.known]):
            return "identifier", cells, None
        return "", cells, _unknown_cells(cells)
    levels, counts = tally(cells)
    if len(levels) == 1:
        return "constant", cells, None
    if cells.form == "object":
        read, problem = read_everyday(cells, levels)
        if problem is not None:
            return "", cells, problem
        if read is not None:
            return ("date" if read.form == "time" else _number_kind(*tally(read))), read, None
        kind, cells = _infer_text(name, cells, levels, counts)
        return kind, cells, stray_cell(levels) if kind in SET_ASIDE else None
    if cells.order is not None or cells.form == "flag":
        return _level_kind(cells, levels), cells, None
    if cells.form in ("time", "duration"):
        return ("date" if cells.form == "time" else "duration"), cells, None
    dates = as_compact_dates(cells, levels) if are_compact_dates(levels) else None
    return (_number_kind(levels, counts), cells, None) if dates is None else ("date", dates, None)


def _unknown_cells(cells):
    held = type(cells.values[cells.known][0]).__name__ if cells.values.dtype == object else cells.storage["dtype"]
    return (
        f"expected numbers, text, flags, dates or durations, got {held}; convert it, or set it aside with the kind "
        "'identifier'."
    )


def _level_kind(cells, levels):
    return "flag" if len(levels) == 2 else "ordered" if cells.ordered else "category"


def _infer_text(name, cells, levels, counts):
    """Kind and cells of text; dates and numbers in it are read."""
    n = int(counts.sum())
    if cells.ordered:
        return _level_kind(cells, levels), cells
    if is_text(levels) and cells.order is None:
        dates = as_dates(cells, levels)
        if dates is not None:
            return "date", dates
        if all(map(UUID.fullmatch, levels)):
            return "identifier", cells
        # Whole numbers in text, such as postcodes, are names of something.
        texts = without_words(levels)
        style = number_style(texts) if len(texts) > MANY and any("." in text for text in texts) else None
        if style is not None:
            numbers = as_numbers(cells, texts, style)
            return _number_kind(*tally(numbers)), numbers
    if _is_mostly_distinct(name, levels, n):
        words = sum(len(str(level).split()) for level in levels) / len(levels)
        length = sum(len(str(level)) for level in levels) / len(levels)
        return ("text" if length > LONG_TEXT or words >= SEVERAL_WORDS else "identifier"), cells
    return _level_kind(cells, levels), cells


def _is_mostly_distinct(name, levels, n):
    if len(levels) == n and (looks_like_id(name) or n >= FEW_FOR_A_KEY):
        return True
    return len(levels) > MANY and len(levels) > MOSTLY_DISTINCT * n


def _number_kind(levels, counts):
    """Kind of a column of numbers with at least two values; keys are told later."""
    if are_levels(levels, int(counts.sum())):
        return "flag" if len(levels) == 2 else "ordered"
    if spikes_of(levels, counts):
        return "spiked number"
    return "whole number" if is_whole(levels) else "number"


def are_levels(values, n):
    """True if the distinct numbers of a column of n rows are few, with several rows each on average, or 0 and 1."""
    few = len(values) <= MANY and n >= ROWS_PER_LEVEL * len(values)
    return few or set(values.tolist()) == {0, 1}


def is_whole(levels):
    """True if all numbers are whole and exact."""
    if levels.dtype.kind != "f":
        return True
    return bool((np.rint(levels) == levels).all() and np.abs(levels).max() <= EXACT)


def spikes_of(levels, counts):
    """Values that hold a good share of the rows while the others are many; the commonest first."""
    common = are_common(counts)
    if not common.any() or (~common).sum() <= MANY:
        return []
    return _commonest(levels, counts, common)


def are_common(counts):
    """Which of the values, by how often they occur, hold a good share of the rows."""
    return counts >= max(SPIKE_SHARE * counts.sum(), ROWS_PER_LEVEL)


def _commonest(levels, counts, among):
    first = np.argsort(-counts, kind="stable")
    return levels[first][among[first]][:MAX_SPIKES].tolist()


def wanted_spikes(levels, counts):
    """Spikes of a column that the user calls a spiked number: those of the rule, else the commonest values."""
    common = counts >= max(SPIKE_SHARE * counts.sum(), 2)
    return spikes_of(levels, counts) or _commonest(levels, counts, common)


def _honour(kind, cells):
    """Cells in the form that a kind needs, and the problem if they cannot have it."""
    if kind in SET_ASIDE or not cells.known.any():
        return cells, None
    if cells.form == "unknown":
        return cells, _unknown_cells(cells)
    levels, _ = tally(cells)
    kind, _, choice = kind.partition(":")
    if cells.form == "object" and kind in NUMBER_KINDS:
        read, problem = read_everyday(cells, levels, choice)
        if problem is not None:
            return cells, problem
        cells, levels = (cells, levels) if read is None else (read, tally(read)[0])
    if kind in NUMBER_KINDS and cells.order is not None:
        return cells, f"expected a dtype without categories for the kind {kind!r}, got one with them; convert it."
    if kind in ("number", "whole number", "spiked number"):
        return _honour_number(kind, cells, levels)
    if kind == "date":
        return _honour_date(cells, levels)
    return cells, _problem_of_levels(kind, cells, levels)


def _honour_date(cells, levels):
    dates = None
    if cells.form == "object" and is_text(levels):
        dates = as_dates(cells, levels)
    elif cells.form in NUMERIC:
        dates = as_compact_dates(cells, levels)
    cells = cells if dates is None else dates
    return cells, None if cells.form == "time" else _cannot("dates or ISO text of one style", levels, "category")


def _problem_of_levels(kind, cells, levels):
    """Why a column cannot be of a kind that takes its cells as they are, None if it can."""
    if kind == "duration" and cells.form != "duration":
        return _cannot("durations", levels, "number")
    if kind == "ordered" and cells.form == "object" and cells.order is None:
        return _cannot("numbers or a dtype with ordered categories", levels, "category")
    most = {"flag": 2, "constant": 1}.get(kind, len(levels))
    if len(levels) > most:
        return f"expected at most {most} distinct values for the kind {kind!r}, got {len(levels)}; use 'category'."
    return None


def _cannot(expected, levels, other):
    return f"expected {expected}, got {levels[0]!r}; correct the cells or use the kind {other!r}."


def _honour_number(kind, cells, levels):
    if cells.form == "object" and is_text(levels):
        style = number_style(levels.tolist()) or {"type": "number", "decimals": None}
        numbers = as_numbers(cells, levels, style)
        if numbers is None:
            odd = next(level for level in levels if read_numbers([level]) is None)
            return cells, _cannot("numbers", [odd], "category")
        cells, levels = numbers, tally(numbers)[0]
    if cells.form not in NUMERIC:
        return cells, _cannot("numbers", levels, "date" if cells.form == "time" else "category")
    if kind == "spiked number" and not wanted_spikes(*tally(cells)):
        return cells, f"expected a value in {SPIKE_SHARE:.0%} of the known cells, got none; use the kind 'number'."
    if kind == "whole number" and not is_whole(levels):
        fraction = levels[np.rint(levels) != levels]
        return cells, _cannot("whole numbers", fraction if len(fraction) else levels, "number")
    return cells, None
