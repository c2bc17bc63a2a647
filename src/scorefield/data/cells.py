"""The cells of one column as a plain array and a mask of the known ones, whatever held them."""

import dataclasses
import datetime
import decimal
import re
import uuid
import zoneinfo
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
EPOCH = datetime.datetime(1970, 1, 1)
# The years 1 to 9999, which Python's dates and ISO text can hold.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
MISSING_TYPES = ("NAType", "NaTType")  # of pandas, which need not be imported to recognise them
FIXED_OFFSET = re.compile(r"UTC([+-])(\d\d):(\d\d)")


@dataclass(frozen=True)
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
    storage: dict[str, Any] = field(default_factory=dict)  # plain; what `containers.write_column` needs
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


def read_numpy(values):
    """Cells of a one-dimensional numpy array."""
    kind, storage = values.dtype.kind, {"type": "numpy", "dtype": str(values.dtype)}
    known = np.ones(len(values), dtype=bool)
    if kind == "b":
        return make_cells("flag", values, known, storage)
    if kind in "iu":
        return make_cells("whole", values.astype(np.uint64 if kind == "u" else np.int64), known, storage)
    if kind == "f":
        return make_cells("number", values.astype(np.float64), ~np.isnan(values), storage)
    if kind in "mM":
        unit, count = np.datetime_data(values.dtype)
        if unit not in NANOSECONDS or count != 1:
            values = values.astype(f"{kind}8[{'D' if unit in 'YMW' else 'ns' if unit in ('ps', 'fs', 'as') else 's'}]")
            unit = np.datetime_data(values.dtype)[0]
        form = "time" if kind == "M" else "duration"
        return make_cells(form, np.ascontiguousarray(values).view(np.int64), ~np.isnat(values), storage, unit=unit)
    if kind in "OUT":
        return read_objects(values.astype(object), storage)
    return make_cells("unknown", values, known, storage)


def read_objects(values, storage):
    """Cells of Python objects: the form is that of the types of the known cells."""
    known = _known_objects(values)
    present = values[known]
    types = set(map(type, present))
    for element, (form, unit, matches, convert) in ELEMENTS.items():
        if types and all(map(matches, types)):
            zone = _common_zone(present, element)
            if zone is False:
                break
            filled = np.zeros(len(values), dtype=object)
            converted = convert(present) if form != "object" else present
            if form != "object":
                filled = np.zeros(len(values), dtype=converted.dtype)
            filled[known] = converted
            return make_cells(form, filled, known, {**storage, "element": element, "zone": zone}, unit=unit)
    form = "unknown" if types else "object"
    return make_cells(form, values, known, {**storage, "element": "unknown"})


def _known_objects(values):
    """False for None, NaN, pandas' NA and NaT, and blank text."""
    types = set(map(type, values))
    if types <= {str}:
        return np.fromiter((not (text == "" or text.isspace()) for text in values), dtype=bool, count=len(values))
    return np.fromiter(map(_is_known, values), dtype=bool, count=len(values))


def _is_known(value):
    if isinstance(value, str):
        return not (value == "" or value.isspace())
    if value is None or type(value).__name__ in MISSING_TYPES:
        return False
    same = value == value
    return bool(same) if isinstance(same, bool | np.bool_) else True


def _common_zone(present, element):
    """The one time zone of aware datetimes, None without one, False where they differ."""
    if element not in ("datetime", "Timestamp"):
        return None
    zones = {None if value.tzinfo is None else str(value.tzinfo) for value in present}
    return zones.pop() if len(zones) == 1 and all(zone is None or _zone_exists(zone) for zone in zones) else False


def _zone_exists(name):
    try:
        zone_of(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return False
    return True


def zone_of(name):
    """The time zone of a name such as Europe/Paris, UTC or UTC+01:00."""
    if name == "UTC":
        return datetime.UTC
    fixed = FIXED_OFFSET.fullmatch(name)
    if fixed is None:
        return zoneinfo.ZoneInfo(name)
    sign, hours, minutes = fixed.groups()
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
    return datetime.timezone(offset if sign == "+" else -offset)


def whole_array(values):
    """Whole numbers as int64, uint64, or Python integers where neither holds them."""
    values = list(map(int, values))
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype=dtype)
        except OverflowError:
            continue
    return np.array(values, dtype=object)


def _datetimes(values):
    naive = [v if v.tzinfo is None else v.astimezone(datetime.UTC).replace(tzinfo=None) for v in values]
    return np.array(naive, dtype="datetime64[us]").view(np.int64)


def _timestamps(values):
    return np.array([v.as_unit("ns").value for v in values], dtype=np.int64)


def _times(values):
    ticks = [((v.hour * 60 + v.minute) * 60 + v.second) * 10**6 + v.microsecond for v in values]
    return np.array(ticks, dtype=np.int64)


def _numbers(values):
    return np.array([float(v) for v in values], dtype=np.float64)


def _is(*kinds, but=()):
    return lambda cls: issubclass(cls, kinds) and not issubclass(cls, but)


FLAGS = (bool, np.bool_)
# Types of Python objects: the form, the unit of a tick, which classes they are, and their plain array.
ELEMENTS = {
    "str": ("object", "", _is(str), None),
    "bool": ("flag", "", _is(*FLAGS), lambda values: values.astype(bool)),
    "int": ("whole", "", _is(Integral, but=FLAGS), whole_array),
    "float": ("number", "", _is(Real, but=FLAGS), _numbers),
    "Decimal": ("number", "", _is(decimal.Decimal), _numbers),
    "Timestamp": ("time", "ns", lambda cls: cls.__name__ == "Timestamp", _timestamps),
    "datetime": ("time", "us", _is(datetime.datetime), _datetimes),
    "date": (
        "time",
        "D",
        _is(datetime.date, but=(datetime.datetime,)),
        lambda values: np.array(list(values), dtype="datetime64[D]").view(np.int64),
    ),
    "time": ("time", "us", _is(datetime.time), _times),
    "Timedelta": ("duration", "ns", lambda cls: cls.__name__ == "Timedelta", _timestamps),
    "timedelta": (
        "duration",
        "us",
        _is(datetime.timedelta),
        lambda values: np.array(list(values), dtype="timedelta64[us]").view(np.int64),
    ),
    "mixed": ("object", "", _is(str, Real), None),
}


def is_uuid(values):
    """True if all values are UUID objects."""
    return len(values) > 0 and all(isinstance(value, uuid.UUID) for value in values)


def to_objects(values, known, storage):
    """Python objects of the element type in `storage`, None where a cell is not known."""
    objects = np.full(len(values), None, dtype=object)
    objects[known] = _python_values(values[known], storage.get("element"), storage.get("zone"))
    return objects


def _python_values(values, element, zone):
    """A list, or an array of objects, of Python values."""
    if element == "Decimal":
        return [decimal.Decimal(repr(value)) for value in values.tolist()]
    if element in ("Timestamp", "Timedelta"):
        import pandas as pd

        if element == "Timedelta":
            return [pd.Timedelta(value, unit="ns") for value in values.tolist()]
        return [pd.Timestamp(value, unit="ns", tz=zone) for value in values.tolist()]
    if element == "date":
        return np.clip(values, FIRST_DAY, LAST_DAY).view("datetime64[D]").tolist()
    if element == "datetime":
        moments = clip_to_years(values, "us").view("datetime64[us]").tolist()
        if zone is None:
            return moments
        return [moment.replace(tzinfo=datetime.UTC).astimezone(zone_of(zone)) for moment in moments]
    if element == "time":
        return [(EPOCH + datetime.timedelta(microseconds=value)).time() for value in clip_to_day(values, "us").tolist()]
    if element == "timedelta":
        return values.view("timedelta64[us]").tolist()
    return values if values.dtype == object else values.tolist()


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
            f"Expected a column of {cells.form} cells in `like`, as in the fitted table, got {form} cells; give a "
            "table of the same columns."
        )
    return dataclasses.replace(cells, form=form, unit=unit, values=values, storage=storage)


NATURAL = {
    "flag": ("bool", ""),
    "whole": ("int", ""),
    "number": ("float", ""),
    "time": ("datetime", "us"),
    "duration": ("timedelta", "us"),
}
NUMERIC = ("flag", "whole", "number")


def _converted(cells, form, unit):
    """Values of `cells` in another form or unit, None if there is no such conversion."""
    if cells.form == form and form in ("time", "duration") and {unit, cells.unit} <= set(NANOSECONDS):
        return convert_ticks(cells.values, cells.unit, unit)
    if cells.form not in NUMERIC or form not in NUMERIC:
        return cells.values if cells.form == form else None
    if form == "flag":
        return cells.values > 0.5
    if form == "whole":
        whole = cells.form == "number" and np.where(cells.known, np.rint(cells.values), 0)
        return whole_array(whole) if cells.form == "number" else cells.values.astype(np.int64)
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
