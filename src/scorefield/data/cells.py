"""The cells of one column as a plain array and a mask of the known ones, whatever held them."""

import dataclasses
from typing import Any

import numpy as np

NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# The years 1 to 9999, which Python's dates and ISO text can hold.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
FLAGS = (bool, np.bool_)
NUMERIC = ("flag", "whole", "number")
FORM_WORDS = {
    "flag": "flags",
    "whole": "whole numbers",
    "number": "numbers",
    "time": "dates",
    "duration": "durations",
    "object": "text",
    "unknown": "cells of another type",
}
# The Python type, and its unit, for cells of a form in a column of objects.
NATURAL = {
    "flag": ("bool", ""),
    "whole": ("int", ""),
    "number": ("float", ""),
    "time": ("datetime", "us"),
    "duration": ("timedelta", "us"),
}


@dataclasses.dataclass(frozen=True)
class Cells:
    """One column in one of the forms below; entries that are not known hold arbitrary values of the same type.

    flag: bool. whole: int64, uint64, or object where neither fits. number: float64. time and duration: int64 ticks of
    `unit` (for times since 1970, or since midnight). object: text, or a mixture of text, numbers and flags.
    unknown: values that have no form here.
    """

    form: str
    values: np.ndarray
    known: np.ndarray
    unit: str = ""
    storage: dict[str, Any] = dataclasses.field(default_factory=dict)  # plain; what `containers.write_table` needs
    order: np.ndarray | None = None  # all levels of a categorical dtype
    ordered: bool = False
    text: dict[str, Any] | None = None  # the style of times and numbers that are written as text


def make_cells(form, values, known, storage, *, unit="", **more):
    """Cells whose storage also tells their form and unit."""
    return Cells(form, values, known, unit, {**storage, "form": form, "unit": unit}, **more)


def empty_cells(storage, n_rows):
    """Cells of a storage of which none is known."""
    form = storage["form"]
    values = np.zeros(n_rows, dtype={"flag": bool, "number": np.float64, "object": object}.get(form, np.int64))
    return Cells(form, values, np.zeros(n_rows, dtype=bool), storage["unit"], storage)


def all_known(storage, values):
    """Cells of a storage from a list of plain values."""
    return Cells(
        storage["form"], plain_array(storage["form"], values), np.ones(len(values), bool), storage["unit"], storage
    )


def whole_array(values):
    """Whole numbers as int64, uint64, or Python integers where neither holds them."""
    values = list(map(int, values))
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype=dtype)
        except OverflowError:
            continue
    return np.array(values, dtype=object)


def clip_to_years(ticks, unit):
    """Ticks within the years 1 to 9999, or within what int64 holds."""
    per_day = NANOSECONDS["D"] // NANOSECONDS[unit]
    limit = np.iinfo(np.int64)
    return np.clip(ticks, max(FIRST_DAY * per_day, limit.min + 1), min((LAST_DAY + 1) * per_day - 1, limit.max))


def clip_to_day(ticks, unit):
    """Ticks since midnight, before the next one."""
    return np.clip(ticks, 0, NANOSECONDS["D"] // NANOSECONDS[unit] - 1)


def convert_ticks(ticks, unit, wanted):
    """Ticks of another unit: rounded down to a coarser one, clipped to the range of a finer one."""
    if unit == wanted:
        return ticks
    if NANOSECONDS[unit] < NANOSECONDS[wanted]:
        return ticks // (NANOSECONDS[wanted] // NANOSECONDS[unit])
    factor = NANOSECONDS[unit] // NANOSECONDS[wanted]
    limit = np.iinfo(np.int64).max // factor
    return np.clip(ticks, -limit, limit) * factor


def plain_array(form, values):
    """A list of plain values as the array of a form."""
    if form == "object":
        return np.array([*values, None], dtype=object)[:-1]  # keeps an empty list an array of objects
    if form == "whole":
        return whole_array(values)
    return np.array(values, dtype={"flag": bool, "number": np.float64}.get(form, np.int64))


def positions(values, known, levels):
    """Position of each known value among `levels`, -1 for others."""
    where = {key: i for i, key in enumerate(level_keys(levels))}
    found = np.full(len(values), -1, dtype=np.int32)
    if values.dtype == object:
        found[known] = [where.get(key, -1) for key in level_keys(values[known])]
        return found
    unique, inverse = np.unique(values[known], return_inverse=True)
    found[known] = np.array([where.get(key, -1) for key in unique.tolist()], dtype=np.int32)[inverse]
    return found


def level_keys(values):
    """Values as keys of a dictionary in which True differs from 1."""
    values = values.tolist() if isinstance(values, np.ndarray) else list(values)
    flags = set(map(type, values)) & set(FLAGS)
    if flags and len(set(map(type, values))) > 1:
        return [("flag", bool(value)) if isinstance(value, FLAGS) else value for value in values]
    return values


def in_stored_form(cells):
    """Cells in the form and unit of their storage, which may be that of the same column of another table."""
    form, unit, storage = cells.storage["form"], cells.storage["unit"], cells.storage
    if not cells.known.any():
        return empty_cells(storage, len(cells.known))
    if (form, unit) == (cells.form, cells.unit):
        return cells
    if form == "object" and cells.form in NATURAL:
        element, unit = NATURAL[cells.form]
        storage, form = {**storage, "element": element}, cells.form
    values = _converted(cells, form, unit)
    if values is None:
        raise ValueError(
            f"Expected {FORM_WORDS[cells.form]} in a column of `like`, as in the fitted table, got {FORM_WORDS[form]}; "
            "give a table of the same columns."
        )
    return dataclasses.replace(cells, form=form, unit=unit, values=values, storage=storage)


def _converted(cells, form, unit):
    """Values of `cells` in another form or unit, None if there is no such conversion."""
    if cells.form == form and form in ("time", "duration") and {unit, cells.unit} <= set(NANOSECONDS):
        return convert_ticks(cells.values, cells.unit, unit)
    if cells.form not in NUMERIC or form not in NUMERIC:
        return cells.values if cells.form == form else None
    if form == "flag":
        return cells.values > 0.5
    if form == "whole":
        return whole_array(np.where(cells.known, np.rint(cells.values), 0))
    return cells.values.astype(np.float64)


def cast(cells, dtype):
    """Values as a numpy dtype, clipped to its range; cells that are not known hold anything."""
    values, dtype = cells.values, np.dtype(dtype)
    if dtype.kind in "mM":
        return values.view(f"{dtype.kind}8[{cells.unit}]").astype(dtype)
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        return np.clip(values.astype(np.float64), limits.min, limits.max).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = whole_array(values) if values.dtype.kind == "f" else values
        if values.dtype == object:
            return np.array([min(max(value, limits.min), limits.max) for value in values], dtype=dtype)
        held = np.iinfo(values.dtype)
        return np.clip(values, max(limits.min, held.min), min(limits.max, held.max)).astype(dtype)
    return values.astype(dtype)
