"""Columns of pyarrow as `Cells`, and back. pyarrow is imported where a column of it is read or written."""

import re

import numpy as np

from scorefield.data.cells import all_known, cast, clip_to_day, convert_ticks, make_cells, positions
from scorefield.data.objects import read_objects, to_objects

ZONED = re.compile(r"timestamp\[(\w+), tz=(.+)\]")
DECIMAL = re.compile(r"(decimal\d+)\((\d+), (-?\d+)\)")
TICK_WIDTH = {"date32": "int32", "time32": "int32"}  # int64 for all others


def read_arrow(column):
    """Cells of an arrow array or chunked array."""
    import pyarrow as pa

    column = pa.chunked_array(column) if isinstance(column, list) else column
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of several chunks that do not fit one, as with very long text
        array = pa.concat_arrays(array.chunks)
    types, kind = pa.types, array.type
    known, storage = np.asarray(array.is_valid()), {"type": "arrow", "dtype": str(kind)}
    if types.is_dictionary(kind):
        return _read_dictionary(array, known, storage)
    if types.is_boolean(kind):
        return make_cells("flag", np.asarray(array.fill_null(False)), known, storage)
    if types.is_integer(kind):
        values = np.asarray(array.fill_null(0))
        return make_cells("whole", values.astype(np.uint64 if values.dtype.kind == "u" else np.int64), known, storage)
    if types.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64)
        return make_cells("number", values, known & ~np.isnan(values), storage)
    if types.is_decimal(kind):  # by way of text, as arrow's own cast to double is not exact
        values = array.cast(pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
        return make_cells("number", values, known, storage)
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _read_ticks(array, known, storage)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind) or str(kind) == "string_view":
        return read_objects(array.to_numpy(zero_copy_only=False).astype(object), storage)
    return make_cells("unknown", np.zeros(len(array)), known, storage)


def _read_dictionary(array, known, storage):
    inner = read_arrow(array.dictionary)
    if inner.form == "unknown":
        return make_cells("unknown", np.zeros(len(array)), known, storage)
    codes = np.asarray(array.indices.fill_null(0)).astype(np.int64)
    known = known & (inner.known[codes] if len(inner.known) else False)
    storage |= {
        "categories": inner.values[inner.known].tolist(),
        "inner": inner.storage,
        "index": str(array.type.index_type),
        "ordered": bool(array.type.ordered),
    }
    values = inner.values[codes] if len(inner.values) else np.zeros(len(codes), dtype=inner.values.dtype)
    order = inner.values[inner.known]
    return make_cells(
        inner.form, values, known, storage, unit=inner.unit, order=order, ordered=bool(array.type.ordered)
    )


def _read_ticks(array, known, storage):
    import pyarrow as pa

    name = storage["dtype"].split("[")[0]
    unit = "D" if name == "date32" else "ms" if name == "date64" else array.type.unit
    ticks = array.cast(TICK_WIDTH.get(name, "int64")).fill_null(0)
    form = "duration" if pa.types.is_duration(array.type) else "time"
    return make_cells(form, np.asarray(ticks).astype(np.int64), known, storage, unit=unit)


def arrow_type(storage):
    """The arrow type of a storage."""
    import pyarrow as pa

    text = storage["dtype"]
    if "inner" in storage:
        return pa.dictionary(pa.type_for_alias(storage["index"]), arrow_type(storage["inner"]), storage["ordered"])
    zoned, exact = ZONED.fullmatch(text), DECIMAL.fullmatch(text)
    if zoned:
        return pa.timestamp(*zoned.groups())
    if exact:
        return getattr(pa, exact.group(1))(int(exact.group(2)), int(exact.group(3)))
    try:
        return pa.type_for_alias(text)
    except ValueError:  # a nested type, which is set aside: a column without values
        return pa.null()


def write_arrow(cells):
    """An arrow array of the type in the storage of the cells."""
    import pyarrow as pa

    storage, empty = cells.storage, ~cells.known
    kind = arrow_type(storage)
    if not cells.known.any():
        return pa.nulls(len(empty), kind)
    if pa.types.is_null(kind):  # of another table, where no cell of the column is known
        return pa.array(to_objects(cells.values, cells.known, storage).tolist())
    if "inner" in storage:
        inner = all_known(storage["inner"], storage["categories"])
        codes = positions(cells.values, cells.known, inner.values)
        indices = pa.array(np.where(empty, 0, codes), mask=empty).cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, write_arrow(inner), ordered=storage["ordered"])
    if cells.form == "object":
        return pa.array(np.where(empty, None, cells.values), type=kind)
    if pa.types.is_decimal(kind):
        digits = [None if gap else f"{value:.{kind.scale}f}" for value, gap in zip(cells.values, empty, strict=True)]
        return pa.array(digits, type=pa.string()).cast(kind)
    if cells.form in ("time", "duration"):
        return _write_ticks(cells, kind, empty)
    return pa.array(cast(cells, kind.to_pandas_dtype()), mask=empty, type=kind)


def _write_ticks(cells, kind, empty):
    import pyarrow as pa

    ticks, name = np.where(empty, 0, cells.values), cells.storage["dtype"].split("[")[0]
    if name == "date64":  # whole days, although they are counted in milliseconds
        ticks = convert_ticks(convert_ticks(ticks, "ms", "D"), "D", "ms")
    if name.startswith("time") and name != "timestamp":
        ticks = clip_to_day(ticks, cells.unit)
    width = np.dtype(TICK_WIDTH.get(name, "int64"))
    limits = np.iinfo(width)
    return pa.array(np.clip(ticks, limits.min, limits.max).astype(width), mask=empty).cast(kind)
