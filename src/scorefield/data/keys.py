"""Keys among whole numbers: columns that name their rows and measure nothing, told by their name and their shape."""

import re

import numpy as np

ID_WORDS = {"id", "ids", "uuid", "guid", "key", "identifier"}
ID_LAST_WORDS = {"number", "no", "nr", "num", "index"}  # "order number" is one, "number of rooms" is not
# Names of what is measured, though its values need not repeat: moments, ranks and amounts.
MEASURED_WORDS = {
    *("time", "timestamp", "ts", "date", "datetime", "epoch", "year", "years", "month", "week", "day", "days", "hour"),
    *("hours", "minute", "minutes", "second", "seconds", "sec", "ms", "ns", "duration", "age", "rank", "ranking"),
    *("amount", "price", "cost", "income", "salary", "revenue", "balance", "total", "count", "quantity", "score"),
    *("population", "weight", "height", "length", "width", "distance", "temperature", "pressure", "dose"),
}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
EXACT = 2**53  # whole numbers up to here are exact in float64
FEW_FOR_A_KEY = 20  # below it, distinct values do not make an identifier
MANY = 20  # distinct values above which a name makes a key of values that repeat
DENSE = 1.5  # range over number of values below which distinct whole numbers are row numbers
# Shares of distinct values: as in text, and that of as many draws as there are values to draw from.
MOSTLY_DISTINCT, DISTINCT_DRAWS = 0.5, 1 - np.exp(-1)
NEARLY_DISTINCT = 0.9
KEY_EVIDENCE = 20.0  # nats: measured values would repeat as rarely once in exp(20) tables


def words_of(name):
    """The words of a name in lower case: customerID has customer and id."""
    return [word.lower() for word in WORD.findall(str(name))]


def looks_like_id(name):
    """True for names with a word such as id or key: user_id, customerID, order number."""
    words = words_of(name)
    if ID_WORDS & set(words):
        return True
    return bool(words) and words[-1] in ID_LAST_WORDS and not MEASURED_WORDS & set(words)


def key_reason(name, cells, levels, others):
    """Why a column of whole numbers is taken for a key, in words; None if it is not.

    Parameters
    ----------
    name : str or int
    cells : Cells
        Whole numbers.
    levels : ndarray
        Their distinct values, sorted.
    others : iterable of Cells
        The other columns that are not set aside. Values may repeat in rows that repeat as a whole.
    """
    n, n_levels = int(cells.known.sum()), len(levels)
    if n_levels < 2 or n_levels <= MOSTLY_DISTINCT * n:
        return None
    by_name = looks_like_id(name)
    if not by_name and (n_levels < FEW_FOR_A_KEY or not _may_be_key(name, levels, n)):
        return None
    n_repeats = 0 if n_levels == n else _unexplained_repeats(cells, others)
    rising = n >= FEW_FOR_A_KEY and _is_rising(cells)
    found = _by_name(name, n_levels, n_repeats, rising) if by_name else None
    found = found or (_by_shape(levels, n_repeats) if _may_be_key(name, levels, n) else None)
    if found is None:
        return None
    if n_repeats:
        unique = "most values are different"
    else:
        unique = "every value is different" + ("" if n_levels == n else ", apart from repeated rows")
    return "; ".join([unique, *found, *(["rising from row to row"] if rising else [])])


def _by_name(name, n_levels, n_repeats, rising):
    """Words for a key that its name tells, None if its values repeat too often."""
    if not n_repeats:
        return ["named like a key"]
    strong = bool(ID_WORDS & set(words_of(name))) or rising
    mostly = n_levels > MANY and n_levels > MOSTLY_DISTINCT * (n_levels + n_repeats)
    return ["named like a key"] if strong and mostly else None


def _may_be_key(name, levels, n):
    """True if the shape of a column without repeats would make it a key."""
    if MEASURED_WORDS & set(words_of(name)) or len(levels) < FEW_FOR_A_KEY or len(levels) < DISTINCT_DRAWS * n:
        return False
    return _by_shape(levels, 0) is not None


def _by_shape(levels, n_repeats):
    """Words for a key that the shape of whole numbers tells, None if they may be measured."""
    low, high = int(levels[0]), int(levels[-1])
    size, n = high - low + 1, len(levels) + n_repeats  # of the values to draw from, and of the draws
    nearly_distinct = len(levels) >= NEARLY_DISTINCT * n
    if max(abs(low), abs(high)) > EXACT and nearly_distinct:
        return ["more digits than a number holds exactly"]
    if not n_repeats and high - low < DENSE * len(levels):
        return ["numbers almost without a break"]
    # Draws from so many values, whatever their law, repeat at least as often as those of the uniform law. (The second
    # number is the limit of the first, which cancellation spoils among very many values.)
    expected = min(n + size * np.expm1(n * np.log1p(-1 / size)), n**2 / (2 * size))
    # Keys are a part of consecutive numbers; moments at a steady pace have none that are consecutive.
    consecutive = np.count_nonzero(np.diff(levels.astype(np.float64)) == 1)
    steady = 2 * consecutive < len(levels) ** 2 / size
    if not nearly_distinct or steady:
        return None
    from scipy.stats import poisson  # late: commands refuse a table before heavy imports

    if poisson.logcdf(n_repeats, expected) < -KEY_EVIDENCE:
        return ["measured values would repeat"]
    return None


def _is_rising(cells):
    """True if known values never fall from row to row."""
    values = cells.values[cells.known]
    return bool((values[1:] >= values[:-1]).all())


def _unexplained_repeats(cells, others):
    """Number of known cells with the value of another row that differs elsewhere."""
    places = np.flatnonzero(cells.known)
    order = places[np.argsort(cells.values[places], kind="stable")]
    same = cells.values[order[1:]] == cells.values[order[:-1]]
    first, second = order[:-1][same], order[1:][same]
    differs, n_others = np.zeros(len(first), dtype=bool), 0
    for other in others:
        n_others += 1
        differs |= _differ(other, first, second)
        if differs.all():
            break
    return int(differs.sum()) if n_others else len(first)


def _differ(cells, first, second):
    """Where the cells of pairs of rows differ; missing ones are equal to each other."""
    if cells.form == "unknown":
        return np.zeros(len(first), dtype=bool)
    known = cells.known[first]
    differs = known != cells.known[second]
    return differs | (known & (cells.values[first] != cells.values[second]).astype(bool))
