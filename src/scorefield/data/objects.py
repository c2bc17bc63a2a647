"""Cells of numpy arrays and of Python objects, and Python objects of cells."""

import datetime
import decimal
import uuid
from numbers import Integral, Real

import numpy as np

from scorefield.data.cells import (
    FIRST_DAY,
    FLAGS,
    LAST_DAY,
    NANOSECONDS,
    clip_to_day,
    clip_to_years,
    make_cells,
    whole_array,
)
from scorefield.data.zones import zone_of

EPOCH = datetime.datetime(1970, 1, 1)
MISSING_TYPES = ("NAType", "NaTType")  # of pandas, which need not be imported to recognise them


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
    return (
        zones.pop() if len(zones) == 1 and all(zone is None or zone_of(zone) is not None for zone in zones) else False
    )


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
    "datetime64": ("time", "us", _is(np.datetime64), lambda values: values.astype("datetime64[us]").view(np.int64)),
    "timedelta64": (
        "duration",
        "us",
        _is(np.timedelta64),
        lambda values: values.astype("timedelta64[us]").view(np.int64),
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
    if element in ("datetime64", "timedelta64"):
        return list(values.view(f"{element}[us]"))
    if element == "timedelta":
        return values.view("timedelta64[us]").tolist()
    return values if values.dtype == object else values.tolist()
