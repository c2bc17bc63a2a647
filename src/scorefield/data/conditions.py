"""Conditions that rows are asked to meet: a column has a value, one of several values, or one within bounds."""

import dataclasses
import re
from typing import Any, NamedTuple

import numpy as np

from scorefield.data.cells import NANOSECONDS, NUMERIC, Cells, level_keys, positions
from scorefield.data.coding import Column, encode_column, is_category
from scorefield.data.kinds import SET_ASIDE
from scorefield.data.likeness import like_fitted
from scorefield.data.objects import read_objects

MOST_NAMED = 12  # levels in an error
FLAG_TEXTS = {"true": True, "false": False}


class Allowed(NamedTuple):
    """What a condition leaves of a column, as it is encoded."""

    levels: np.ndarray | None  # per code, whether it is allowed; None for a column without codes
    low: float
    high: float  # of numbers
    numbers: np.ndarray  # at which numbers are held; empty where they are bounded


@dataclasses.dataclass(frozen=True)
class Condition:
    """What one column is asked for: any of `values`, or bounds, None where open, both included."""

    column: Column
    values: np.ndarray | None  # in the form of the column
    bounds: tuple[Any, Any]

    @property
    def name(self):
        """The name of its column."""
        return self.column.name

    def met(self, cells):
        """Rows whose cell, in the form of the column, is known and as asked for."""
        known, column = cells.known, self.column
        if self.values is not None:
            return known & (positions(cells.values, known, self.values) >= 0)
        low, high = self.bounds
        values = cells.values
        if column.form == "object":  # levels with an order
            values = positions(cells.values, known, column.levels)
            low, high = (None if end is None else column.levels.index(end) for end in (low, high))
        result = known.copy()
        if low is not None:
            result[known] &= np.asarray(values[known] >= low, bool)
        if high is not None:
            result[known] &= np.asarray(values[known] <= high, bool)
        return result

    def allowed(self):
        """The same, as codes and encoded numbers."""
        column, levels = self.column, None
        if column.levels:
            every = _cells_of([*column.levels, *column.pool], column)
            codes, met = encode_column(every, column)[1], self.met(every)
            levels = np.zeros(column.n_levels, bool)
            levels[codes[met]] = True
            return Allowed(levels, np.inf, -np.inf, np.zeros(0))
        low, high, numbers = -np.inf, np.inf, np.zeros(0)
        if self.values is not None:
            encoded, codes = encode_column(_cells_of(self.values.tolist(), column), column)
            numbers = encoded[~np.isnan(encoded)]
        else:
            ends = [(end, sign) for end, sign in zip(self.bounds, (-np.inf, np.inf), strict=True)]
            low, high = (sign if end is None else float(_encoded_end(end, column)) for end, sign in ends)
        if column.spikes:
            met = self.met(_cells_of(column.spikes, column))
            has_number = len(numbers) > 0 if self.values is not None else low < high
            levels = np.concatenate([[has_number], met])
        return Allowed(levels, low, high, numbers)

    def __str__(self):
        if self.values is None:
            low, high = ("" if end is None else _plain(end, self.column) for end in self.bounds)
            return f"{self.name} = {low}..{high}"
        return f"{self.name} = " + " or ".join(str(_plain(value, self.column)) for value in self.values.tolist())


def _encoded_end(end, column):
    """A bound as an encoded number, whether or not it is a spike."""
    bare = dataclasses.replace(column, spikes=[])
    return encode_column(_cells_of([end], bare), bare)[0][0]


def _cells_of(values, column):
    """Cells that hold plain values in the form of a column."""
    dtype = {"flag": bool, "number": np.float64, "object": object, "whole": None}.get(column.form, np.int64)
    array = np.array(values, dtype=dtype)
    return Cells(column.form, array, np.ones(len(array), bool), column.unit)


def _plain(value, column):
    """A plain value as users write it."""
    cells = _cells_of([value], column)
    natural = {"time": "datetime64", "duration": "timedelta64"}.get(column.form)
    if natural is None or column.unit == "period":
        return value
    moment = cells.values.view(f"{natural}[{column.unit}]")
    return str(np.datetime_as_string(moment, unit="auto")[0] if natural == "datetime64" else moment[0])


def parse_conditions(given, columns):
    """The `Condition`s of a dict such as {"age": 40, "income": (20_000, 50_000), "city": ["A", "B"]}.

    A tuple of two values bounds a column, None leaving it open; a list, set or array names the values that it may have.
    All problems are told in one ValueError.

    Parameters
    ----------
    given : None or dict
        Names of columns, or positions in an array, and what is asked for.
    columns : list of Column
        The columns of the fitted table.

    Returns
    -------
    conditions : list of Condition
    """
    if given is None:
        return []
    if not hasattr(given, "items"):
        raise ValueError(
            f"Expected conditions as a dict such as {{'age': 40, 'income': (20_000, 50_000), 'city': ['A', 'B']}}, got "
            f"{type(given).__name__}."
        )
    conditions, problems = [], []
    by_name = {column.name: column for column in columns}
    for key, wanted in given.items():
        try:
            conditions.append(_condition(_column_named(key, by_name), wanted))
        except ValueError as error:
            problems.append(str(error))
    names = [condition.name for condition in conditions]
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    problems += [f"Expected one condition for column {name}, got several; join them." for name in twice]
    if problems:
        raise ValueError("\n".join(problems))
    return conditions


def _column_named(key, columns):
    if key in columns:
        return columns[key]
    if isinstance(key, str) and re.fullmatch(r"x\d+", key) and int(key[1:]) in columns:  # arrays
        return columns[int(key[1:])]
    raise ValueError(f"Expected conditions on columns of {_listed(list(columns))}, got one on {key!r}.")


def _condition(column, wanted):
    if column.kind in SET_ASIDE:
        raise ValueError(
            f"Expected conditions on columns that are generated, got one on the {column.kind} {column.name!r}; say "
            "what it is by `columns` when fitting, or leave the condition out."
        )
    if isinstance(wanted, tuple):
        return _bounded(column, wanted)
    several = isinstance(wanted, list | set | frozenset | range) or (hasattr(wanted, "tolist") and np.ndim(wanted) == 1)
    values = list(wanted) if several else [wanted]
    if not values:
        raise ValueError(f"Expected at least one value for {column.name!r}, got none.")
    read = _read(values, column)
    _check_seen_values(column, read, values)
    return Condition(column, read, (None, None))


def _bounded(column, wanted):
    if len(wanted) != 2 or all(end is None for end in wanted):
        raise ValueError(
            f"Expected two bounds for {column.name!r}, such as (20, 30) or (20, None), got {wanted!r}; for one of "
            "several values give a list."
        )
    has_order = column.kind == "ordered" or not is_category(column.kind, column.form)
    if not has_order:
        raise ValueError(
            f"Expected values for the {column.kind} {column.name!r}, got bounds {wanted!r}; give a list of levels of "
            f"{_levels_seen(column)}."
        )
    ends = [None if end is None else _read([end], column, on_grid=False).tolist()[0] for end in wanted]
    condition = Condition(column, None, tuple(ends))
    if column.form == "object":
        _check_seen_values(column, [end for end in ends if end is not None], wanted)
    low, high = (_rank(end, column) for end in ends)
    if low is not None and high is not None and low > high:
        raise ValueError(f"Expected the lower bound of {column.name!r} first, got {wanted!r}; swap them.")
    if column.levels and not condition.allowed().levels.any():
        raise ValueError(
            f"Expected bounds for {column.name!r} that hold one of its values {_levels_seen(column)}, got {wanted!r}."
        )
    return condition


def _rank(end, column):
    return column.levels.index(end) if end is not None and column.form == "object" else end


def _read(values, column, on_grid=True):
    """Values that users write as an array in the form of a column."""
    if column.form == "flag":
        values = [FLAG_TEXTS.get(value.lower(), value) if isinstance(value, str) else value for value in values]
    objects = np.array([*values, None], dtype=object)[:-1]
    cells, problem = like_fitted(read_objects(objects, {}), column)
    if problem is None and not cells.known.all():
        problem = "expected values, got a missing one; leave it out."
    if problem is None and cells.form != column.form and not (cells.form in NUMERIC and column.form in NUMERIC):
        problem = None if column.form == "object" else f"expected {column.kind}, got {values[0]!r}."
    if problem is not None:
        raise ValueError(f"Expected a condition on {column.name!r} that fits the column, but {problem}")
    read = cells.values
    if column.form == "flag":
        return read.astype(bool)
    if on_grid and column.form in ("whole", "number") and not on_step(column, read).all():
        step = column.grid["step"] / 10 ** column.grid["decimals"]
        raise ValueError(f"Expected multiples of {step:g} in {column.name!r}, as seen, got {values[0]!r}; round it.")
    if column.form == "whole" and read.dtype.kind != "i":
        _check_grid(column, read.astype(float), np.rint(read.astype(float)), on_grid, "whole numbers")
        return read if not on_grid else np.array([int(value) for value in read])
    if column.form == "number":
        read = read.astype(np.float64)
        if column.decimals is not None:
            rounded = np.round(read, column.decimals).astype(column.narrow).astype(np.float64)
            _check_grid(column, read, rounded, on_grid, f"numbers of at most {column.decimals} decimals")
            return rounded if on_grid else read
    if column.form == "time" and on_grid and column.step > 1 and not column.midnights and (read % column.step).any():
        seconds = column.step * NANOSECONDS[column.unit] / 10**9
        raise ValueError(f"Expected times in steps of {seconds:g} s in {column.name!r}, as seen, got {values[0]!r}.")
    return read


def on_step(column, numbers):
    """True for the numbers of a column that are multiples of the step that all seen ones share."""
    if column.grid is None or column.grid["step"] == 1:
        return np.ones(len(numbers), bool)
    ticks = np.rint(np.asarray(numbers, float) * 10.0 ** column.grid["decimals"])
    spikes = positions(numbers, np.ones(len(numbers), bool), column.spikes) >= 0
    return spikes | (ticks % column.grid["step"] == 0)


def _check_grid(column, values, rounded, on_grid, expected):
    """Refuse values that the column cannot hold; bounds may lie between them."""
    off = np.abs(values - rounded) > 1e-6 * np.maximum(np.abs(values), 1.0)  # rounding of a narrow dtype
    if on_grid and off.any():
        raise ValueError(f"Expected {expected} in {column.name!r}, as seen, got {values[off][0]}; round it.")


def _check_seen_values(column, read, told):
    """Refuse levels and constants that the fitted table does not have."""
    if column.kind == "constant":
        seen = [] if column.constant is None else [column.constant]
    elif column.levels:
        seen = [*column.levels, *column.pool]
    else:
        return
    keys = set(level_keys(seen))
    unseen = [value for value, key in zip(told, level_keys(list(read)), strict=False) if key not in keys]
    if unseen:
        raise ValueError(
            f"Expected values of {column.name!r} that were seen ({_levels_seen(column)}), got "
            f"{', '.join(map(repr, unseen))}."
        )


def _levels_seen(column):
    if column.kind == "constant":
        return "missing everywhere" if column.constant is None else f"{column.constant!r} alone"
    return _listed([_plain(value, column) for value in [*column.levels, *column.pool]], MOST_NAMED)


def _listed(values, most=20):
    return ", ".join(map(repr, values[:most])) + (f" and {len(values) - most} more" if len(values) > most else "")


def check_seen_range(conditions, ranges):
    """Refuse conditions on numbers that lie outside of what was seen.

    `ranges` has the least and the greatest value of columns of numbers by name, in their form.
    """
    problems = []
    for condition in conditions:
        if condition.name not in ranges or condition.column.levels:
            continue
        low, high = ranges[condition.name]
        ends = condition.bounds if condition.values is None else (max(condition.values), min(condition.values))
        if (ends[0] is not None and ends[0] > high) or (ends[1] is not None and ends[1] < low):
            low, high = (_plain(end, condition.column) for end in (low, high))
            problems.append(
                f"Expected {condition.name!r} between {low} and {high}, the least and the greatest that were seen, got "
                f"{str(condition).partition(' = ')[2]}."
            )
    if problems:
        raise ValueError("\n".join(problems))


def read_condition(text):
    """A name and what is asked for, from text such as "age=40", "income=20000..50000" or "city=A,B".

    Examples
    --------
    >>> from scorefield.data.conditions import read_condition
    >>> read_condition("income=20000..50000"), read_condition("city=A,B"), read_condition("age=40..")
    (('income', ('20000', '50000')), ('city', ['A', 'B']), ('age', ('40', None)))
    """
    name, equals, wanted = text.partition("=")
    if not equals or not name.strip() or not wanted.strip():
        raise ValueError(
            f"Expected a condition such as age=40, income=20000..50000 or city=A,B, got {text!r}; a side may be left "
            "open, as in age=40.."
        )
    name, wanted = name.strip(), wanted.strip()
    if ".." in wanted:
        low, _, high = (part.strip() or None for part in wanted.partition(".."))
        return name, (low, high)
    values = [value.strip() for value in wanted.split(",")]
    return name, values if len(values) > 1 else values[0]
