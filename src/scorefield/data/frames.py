"""Columns of pandas and polars as `Cells`, and back. Both are imported where a column of theirs is written."""

import numpy as np

from scorefield.data import arrow
from scorefield.data.cells import Cells, all_known, cast, clip_to_day, make_cells, positions, whole_array
from scorefield.data.objects import read_numpy, read_objects, to_objects


def read_pandas(series):
    """Cells of a pandas Series."""
    dtype = series.dtype
    reader = PANDAS_READERS.get(type(dtype).__name__)
    if isinstance(dtype, np.dtype):
        return read_numpy(series.to_numpy())
    if reader is not None:
        return reader(series, dtype)
    storage = {"type": "masked", "dtype": str(dtype)}
    if dtype.kind in "biuf":
        known = ~series.isna().to_numpy()
        inner = read_numpy(series.to_numpy(dtype=dtype.type, na_value=0))
        return make_cells(inner.form, inner.values, known & inner.known, storage)
    return make_cells("unknown", np.zeros(len(series)), ~series.isna().to_numpy(), storage)


def _read_string(series, dtype):
    missing = "nan" if isinstance(dtype.na_value, float) else "NA"
    storage = {"type": "string", "dtype": str(dtype), "keeper": dtype.storage, "missing": missing}
    return read_objects(series.to_numpy(dtype=object), storage)


def _read_categorical(series, dtype):
    inner = _read_categories(dtype.categories)
    codes = series.cat.codes.to_numpy()
    known = codes >= 0
    if inner.form == "unknown":
        return make_cells("unknown", np.zeros(len(series)), known, {"type": "numpy", "dtype": "object"})
    known = known & inner.known[codes] if len(inner.known) else known
    values = inner.values[codes] if len(inner.values) else np.zeros(len(codes), dtype=inner.values.dtype)
    storage = {
        "type": "category",
        "dtype": "category",
        "categories": inner.values.tolist(),
        "inner": inner.storage,
        "ordered": bool(dtype.ordered),
    }
    order = inner.values[inner.known]
    return make_cells(inner.form, values, known, storage, unit=inner.unit, order=order, ordered=bool(dtype.ordered))


def _read_categories(index):
    """Cells of the categories of a dtype; intervals, as `pandas.cut` makes them, by their text."""
    if type(index.dtype).__name__ != "IntervalDtype":
        return read_pandas(index.to_series())
    storage = {"type": "intervals", "dtype": str(index.dtype), "closed": index.closed}
    for side in ("left", "right"):
        ends = read_pandas(getattr(index, side).to_series())
        storage[side] = {"values": ends.values.tolist(), "storage": ends.storage}
    return make_cells("object", index.astype(str).to_numpy(dtype=object), np.ones(len(index), dtype=bool), storage)


def _read_zoned(series, dtype):
    cells = read_numpy(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    storage = {"type": "zoned", "dtype": str(dtype), "zone": str(dtype.tz)}
    return make_cells("time", cells.values, cells.known, storage, unit=cells.unit)


def _read_period(series, dtype):
    storage = {"type": "period", "dtype": str(dtype)}
    ticks = np.asarray(series.array.asi8)
    return make_cells("time", ticks, ~series.isna().to_numpy(), storage, unit="period")


def _read_sparse(series, dtype):
    inner = read_pandas(series.sparse.to_dense())
    fill = dtype.fill_value
    storage = {"type": "sparse", "dtype": str(dtype), "fill": fill.item() if isinstance(fill, np.generic) else fill}
    storage["inner"] = inner.storage
    return make_cells(inner.form, inner.values, inner.known, storage, unit=inner.unit)


def _read_arrow_backed(series, dtype):
    import pyarrow as pa

    cells = arrow.read_arrow(pa.array(series))
    storage = {"type": "arrow-backed", "dtype": str(dtype), "inner": cells.storage}
    return make_cells(
        cells.form, cells.values, cells.known, storage, unit=cells.unit, order=cells.order, ordered=cells.ordered
    )


PANDAS_READERS = {
    "StringDtype": _read_string,
    "CategoricalDtype": _read_categorical,
    "DatetimeTZDtype": _read_zoned,
    "PeriodDtype": _read_period,
    "SparseDtype": _read_sparse,
    "ArrowDtype": _read_arrow_backed,
}


def write_pandas(cells):
    """A pandas array of the dtype in the storage of the cells.

    Whole numbers and flags with gaps take pandas' nullable dtype of the same width.
    """
    import pandas as pd

    kind, storage = cells.storage["type"], cells.storage
    if kind == "category":
        return _write_categorical(cells)
    if kind == "string":
        return pd.array(np.where(cells.known, cells.values, None), dtype=_string_dtype(storage))
    if kind == "zoned":
        moments = np.where(cells.known, cells.values, np.iinfo(np.int64).min).view(f"M8[{cells.unit}]")
        return pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(storage["zone"]).array
    if kind == "period":
        ordinals = np.where(cells.known, cells.values, np.iinfo(np.int64).min)
        return pd.arrays.PeriodArray(ordinals, dtype=pd.api.types.pandas_dtype(storage["dtype"]))
    if kind == "sparse":
        inner = np.asarray(write_pandas(_with_storage(cells, storage["inner"])))
        return pd.arrays.SparseArray(inner, fill_value=storage["fill"])
    if kind == "arrow-backed":
        return pd.arrays.ArrowExtensionArray(arrow.write_arrow(_with_storage(cells, storage["inner"])))
    dtype = pd.api.types.pandas_dtype(storage["dtype"])
    if isinstance(dtype, np.dtype):
        return _write_numpy_column(cells, dtype)
    if dtype.kind in "biuf" and hasattr(dtype, "numpy_dtype"):
        return dtype.construct_array_type()(cast(cells, dtype.numpy_dtype), ~cells.known)
    # A dtype without a form, which is set aside; that of intervals of whole numbers cannot be empty.
    dtype = object if storage["dtype"].startswith(("interval[int", "interval[uint")) else dtype
    return pd.array([None] * len(cells.values), dtype=dtype)


def _with_storage(cells, storage):
    return Cells(cells.form, cells.values, cells.known, cells.unit, storage)


def _string_dtype(storage):
    import pandas as pd

    if storage["missing"] == "nan" and storage["keeper"] != "pyarrow_numpy":
        return pd.StringDtype(storage["keeper"], na_value=np.nan)
    return pd.StringDtype(storage["keeper"])


def _write_categorical(cells):
    import pandas as pd

    storage = cells.storage
    inner = all_known(storage["inner"], storage["categories"])
    index = _interval_index(storage["inner"]) if storage["inner"]["type"] == "intervals" else write_pandas(inner)
    dtype = pd.CategoricalDtype(pd.Index(index), ordered=storage["ordered"])
    return pd.Categorical.from_codes(positions(cells.values, cells.known, inner.values), dtype=dtype)


def _interval_index(storage):
    import pandas as pd

    left, right = (
        write_pandas(all_known(storage[side]["storage"], storage[side]["values"])) for side in ("left", "right")
    )
    return pd.IntervalIndex.from_arrays(left, right, closed=storage["closed"])


def _write_numpy_column(cells, dtype):
    import pandas as pd

    if dtype.kind == "O":
        return pd.Series(to_objects(cells.values, cells.known, cells.storage), dtype=object)
    values = cast(cells, dtype)
    if cells.known.all():
        return values
    if dtype.kind in "biu":
        name = "boolean" if dtype.kind == "b" else dtype.name.replace("i", "I", 1).replace("u", "U", 1)
        nullable = pd.api.types.pandas_dtype(name)
        return nullable.construct_array_type()(values, ~cells.known)
    values[~cells.known] = np.nan if dtype.kind in "fc" else "NaT"
    return values


def read_polars(series):
    """Cells of a polars Series."""
    dtype = series.dtype
    name = str(dtype.base_type())
    known = series.is_not_null().to_numpy()
    storage = {"type": "polars", "dtype": name}
    if dtype.is_integer():
        if name.endswith("128"):
            return make_cells("whole", whole_array(series.fill_null(0).to_list()), known, storage)
        values = series.fill_null(0).to_numpy()
        return make_cells("whole", values.astype(np.uint64 if values.dtype.kind == "u" else np.int64), known, storage)
    if dtype.is_float():
        values = series.to_numpy().astype(np.float64)
        return make_cells("number", values, known & ~np.isnan(values), storage)
    if name == "Boolean":
        return make_cells("flag", series.fill_null(False).to_numpy(), known, storage)
    if name == "Decimal":
        storage |= {"precision": dtype.precision, "scale": dtype.scale}
        values = np.array([float(value or 0) for value in series.to_list()], dtype=np.float64)
        return make_cells("number", values, known, storage)
    if dtype.is_temporal():
        unit = {"Date": "D", "Time": "ns"}.get(name) or dtype.time_unit
        storage["zone"] = getattr(dtype, "time_zone", None)
        ticks = series.to_physical().fill_null(0).to_numpy().astype(np.int64)
        return make_cells("duration" if name == "Duration" else "time", ticks, known, storage, unit=unit)
    if name in ("String", "Null", "Categorical", "Enum"):
        import polars as pl

        cells = read_objects(np.array([*series.cast(pl.String).to_list(), None], dtype=object)[:-1], storage)
        order = np.array(dtype.categories.to_list(), dtype=object) if name == "Enum" else None
        if name == "Enum":
            cells.storage["categories"] = order.tolist()
        if name == "Categorical":
            order = np.array(sorted(set(cells.values[cells.known].tolist())), dtype=object)
        return Cells(cells.form, cells.values, cells.known, "", cells.storage, order, name == "Enum")
    return make_cells("unknown", np.zeros(len(series)), known, storage)


def polars_dtype(storage):
    """The polars dtype of a storage."""
    import polars as pl

    name = storage["dtype"]
    if name == "Datetime":
        return pl.Datetime(storage["unit"], storage["zone"])
    if name == "Duration":
        return pl.Duration(storage["unit"])
    if name == "Decimal":
        return pl.Decimal(storage["precision"], storage["scale"])
    if name == "Enum":
        return pl.Enum(storage["categories"])
    dtype = getattr(pl, name)
    return pl.Null if dtype.is_nested() or name in ("Object", "Unknown") else dtype


def write_polars(name, cells):
    """A polars Series of the dtype in the storage of the cells."""
    import polars as pl

    dtype, stored = polars_dtype(cells.storage), cells.storage["dtype"]
    if not cells.known.any():
        return pl.Series(name, [None] * len(cells.known), dtype=dtype)
    if dtype == pl.Null:  # of another table, where no cell of the column is known
        return pl.Series(name, to_objects(cells.values, cells.known, cells.storage).tolist())
    if cells.form == "object":
        return pl.Series(name, np.where(cells.known, cells.values, None).tolist(), dtype=pl.String).cast(dtype)
    if stored == "Decimal" or stored.endswith("128"):
        values = [value if known else None for value, known in zip(cells.values.tolist(), cells.known, strict=True)]
        if stored == "Decimal":
            values = [None if value is None else f"{value:.{cells.storage['scale']}f}" for value in values]
        return pl.Series(name, values, dtype=pl.String if stored == "Decimal" else dtype).cast(dtype)
    if cells.form in ("time", "duration"):
        ticks = clip_to_day(cells.values, "ns") if stored == "Time" else cells.values
        if stored == "Date":
            limits = np.iinfo(np.int32)
            ticks = np.clip(ticks, limits.min, limits.max).astype(np.int32)
        column = pl.Series(name, ticks).cast(dtype)
    else:
        column = pl.Series(name, cast(cells, POLARS_NUMBERS.get(stored, stored.lower())), dtype=dtype)
    return column if cells.known.all() else column.scatter(np.flatnonzero(~cells.known), None)


POLARS_NUMBERS = {"Boolean": "bool"}
