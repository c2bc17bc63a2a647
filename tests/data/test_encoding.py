"""Encoding is exact: tables of every container, dtype and kind come back as they were, from plain state alone."""

import datetime
import decimal
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scorefield.data.coding import MAX_LEVELS
from scorefield.data.encoding import Encoded, TableEncoder
from scorefield.data.kinds import SET_ASIDE

N = 60
RNG = np.random.default_rng(5)
MIXED = pathlib.Path(os.environ.get("SCOREFIELD_DATA", "nowhere")) / "mixed"
DAY = np.datetime64("2020-02-20")


def returned(table, columns=None):
    """The table after encoding, storage in plain values, and decoding."""
    encoder = TableEncoder(columns).fit(table)
    restored = TableEncoder.from_plain(stored(encoder.to_plain()))
    assert restored.variables == encoder.variables
    return restored.decode(encoder.encode(table), rng=0)


def stored(plain):
    """What a file of plain values gives back; arrays are refused by json and pass beside it."""
    arrays = []

    def aside(value):
        assert isinstance(value, np.ndarray), type(value)
        assert value.dtype.kind == "f"
        arrays.append(value)
        return {"array": len(arrays) - 1}

    text = json.dumps(plain, default=aside)
    return json.loads(text, object_hook=lambda part: arrays[part["array"]] if set(part) == {"array"} else part)


def with_gaps(values, **options):
    series = pd.Series(values, **options)
    series[::7] = None
    return series


def moments(unit, high):
    return (DAY.astype(f"M8[{unit}]") + RNG.integers(0, high, N)).astype(f"M8[{unit}]")


TEXTS = RNG.choice(["x", "y y", "ü"], N)
PANDAS = {
    "int8": pd.Series(RNG.integers(-128, 128, N), dtype="int8"),
    "uint64 beyond int64": pd.Series(np.uint64(2**64 - 1) - RNG.integers(0, 10**6, N).astype(np.uint64)),
    "int64 beyond 2**53": pd.Series(2**60 + RNG.integers(0, 10**6, N)),
    "lowest int64": pd.Series(-(2**63) + RNG.integers(0, 10**6, N)),
    "int64 of a wide range in steps": pd.Series(RNG.integers(-(2**50), 2**50, N) * 1000),
    "Int32": with_gaps(RNG.integers(0, 1000, N), dtype="Int32"),
    "Int64 beyond 2**53": with_gaps(2**60 + RNG.integers(0, 10**6, N), dtype="Int64"),
    "float16": pd.Series(RNG.normal(size=N), dtype="float16"),
    "float32": pd.Series(RNG.normal(size=N).round(2), dtype="float32"),
    "float64": with_gaps(RNG.normal(size=N)),
    "Float64": with_gaps(RNG.normal(size=N).round(3), dtype="Float64"),
    "bool": pd.Series(RNG.random(N) < 0.5),
    "boolean": with_gaps(RNG.random(N) < 0.5, dtype="boolean"),
    "datetime64[ns]": with_gaps(moments("ns", 10**15)),
    "datetime64[us]": pd.Series(moments("us", 10**15)),
    "microseconds over centuries": pd.Series(moments("us", 2**52)),
    "datetime64[s]": with_gaps(moments("s", 10**9)),
    "midnight": pd.Series(moments("D", 3000).astype("M8[ns]")),
    "zone": with_gaps(pd.Series(moments("us", 10**15)).dt.tz_localize("UTC").dt.tz_convert("America/New_York")),
    "offset": pd.Series(moments("s", 10**9))
    .dt.tz_localize("UTC")
    .dt.tz_convert(datetime.timezone(datetime.timedelta(hours=2))),
    "timedelta": with_gaps(RNG.integers(-(10**6), 10**6, N).astype("m8[ms]")),
    "period": with_gaps(pd.period_range("2000-01", periods=N, freq="M")),
    "category": with_gaps(pd.Categorical(TEXTS, categories=["ü", "never", "x", "y y"])),
    "ordered category": pd.Series(pd.Categorical(RNG.choice([3, 1, 2], N), categories=[3, 1, 2], ordered=True)),
    "category of dates": pd.Series(pd.Categorical(RNG.choice(pd.date_range("2020", periods=4), N))),
    "category of bools": pd.Series(pd.Categorical(RNG.random(N) < 0.5)),
    "category of intervals": pd.Series(pd.cut(RNG.normal(size=N), [-9, -1.5, 0, 9])),
    "category of spans": pd.Series(pd.cut(pd.Series(moments("s", 10**9)), pd.date_range("2000", "2060", 4))),
    "string": with_gaps(TEXTS, dtype="string"),
    "string[python]": with_gaps(TEXTS, dtype="string[python]"),
    "string[pyarrow]": with_gaps(TEXTS, dtype="string[pyarrow]"),
    "inferred text": with_gaps(TEXTS.tolist()),
    "object text": with_gaps(TEXTS.astype(object), dtype=object),
    "object beyond 64 bits": pd.Series([2**70 + int(i) for i in RNG.integers(0, 1000, N)], dtype=object),
    "object mixture": pd.Series([True, 1.5, "a", 3, None] * (N // 5), dtype=object),
    "object decimals": pd.Series([decimal.Decimal(int(i)) / 100 for i in RNG.integers(0, 1000, N)], dtype=object),
    "object dates": with_gaps(moments("D", 3000).astype(object), dtype=object),
    "object datetimes": with_gaps(moments("us", 10**15).astype(object), dtype=object),
    "object times": pd.Series([datetime.time(i // 60, i % 60, 1) for i in RNG.integers(0, 1440, N)], dtype=object),
    "object timedeltas": pd.Series([datetime.timedelta(minutes=int(i)) for i in range(N)], dtype=object),
    "object timestamps": pd.Series([pd.Timestamp(m, tz="UTC") for m in moments("s", 10**9)], dtype=object),
    "dates in text": pd.Series(moments("D", 3000).astype(str)),
    "moments in text": pd.Series([str(m).replace("T", " ") for m in moments("s", 10**9)]),
    "milliseconds in text": pd.Series([f"{m}Z" for m in moments("ms", 10**12)]),
    "minutes in text": pd.Series([f"{m}+01:00" for m in moments("m", 10**6)]),
    "clock in text": pd.Series([f"{i // 60:02d}:{i % 60:02d}" for i in RNG.integers(0, 1440, N)]),
    "numbers in text": pd.Series([f"{x:.2f}" for x in RNG.normal(size=N)]),
    "short numbers in text": pd.Series([f"{x:.2f}".rstrip("0").rstrip(".") for x in RNG.uniform(1, 9, size=N)]),
    "sparse": pd.Series(pd.arrays.SparseArray(RNG.choice([0, 0, 1.5, 2.25], N), fill_value=0.0)),
    "sparse nan": pd.Series(pd.arrays.SparseArray(np.where(RNG.random(N) < 0.5, np.nan, RNG.normal(size=N)))),
    "int64[pyarrow]": with_gaps(RNG.integers(0, 1000, N)).astype("int64[pyarrow]"),
    "timestamp[pyarrow]": with_gaps(moments("us", 10**15)).astype("timestamp[us, tz=UTC][pyarrow]"),
    "date32[pyarrow]": pd.Series(moments("s", 10**9)).astype("date32[day][pyarrow]"),
    "large_string[pyarrow]": with_gaps(TEXTS.tolist()).astype(pd.ArrowDtype(pa.large_string())),
    "constant": pd.Series([7] * N, dtype="uint8"),
    "constant text": pd.Series(["a"] * N),
    "no known cell": pd.Series([None] * N, dtype="Int16"),
}


def kinds_of(case):
    """Whole numbers beyond 2**53 would be keys, which are not encoded."""
    wide = case in ("lowest int64", "int64 of a wide range in steps", "Int64", "UInt64", "uint64") or "beyond" in case
    return {"x": "whole number"} if wide else None


@pytest.mark.parametrize("case", PANDAS)
def test_pandas_dtypes_come_back(case):
    table = pd.DataFrame({"x": PANDAS[case], "y": RNG.normal(size=N)})
    pd.testing.assert_frame_equal(returned(table, kinds_of(case)), table)


GAPS = pl.Series([i % 7 == 0 for i in range(N)])


def _polars(values, dtype):
    return pl.select(pl.when(~GAPS).then(pl.Series(values).cast(dtype)).alias("x"))["x"]


POLARS = {
    "Int8": _polars(RNG.integers(-128, 128, N), pl.Int8),
    "Int64": _polars(2**60 + RNG.integers(0, 10**6, N), pl.Int64),
    "UInt64": _polars(np.uint64(2**64 - 1) - RNG.integers(0, 10**6, N).astype(np.uint64), pl.UInt64),
    "Int128": _polars(RNG.integers(0, 1000, N), pl.Int128),
    "Float32": _polars(RNG.normal(size=N).round(2), pl.Float32),
    "Float64": _polars(RNG.normal(size=N), pl.Float64),
    "Boolean": _polars(RNG.random(N) < 0.5, pl.Boolean),
    "String": _polars(TEXTS.tolist(), pl.String),
    "Categorical": _polars(TEXTS.tolist(), pl.Categorical),
    "Enum": _polars(TEXTS.tolist(), pl.Enum(["ü", "never", "x", "y y"])),
    "Decimal": _polars(RNG.integers(0, 1000, N) / 100, pl.Decimal(10, 2)),
    "Date": _polars(moments("ms", 10**12), pl.Date),
    "Datetime": _polars(moments("us", 10**15), pl.Datetime("us")),
    "Datetime with a zone": _polars(moments("ms", 10**12), pl.Datetime("ms", "Europe/Paris")),
    "Duration": _polars(RNG.integers(0, 10**9, N), pl.Duration("us")),
    "Time": _polars(RNG.integers(0, 86_400, N) * 10**9, pl.Time),
    "dates in text": _polars(moments("D", 3000).astype(str).tolist(), pl.String),
    "Null": pl.Series("x", [None] * N),
}


@pytest.mark.parametrize("case", POLARS)
def test_polars_dtypes_come_back(case):
    table = pl.DataFrame({"x": POLARS[case], "y": RNG.normal(size=N)})
    back = returned(table, kinds_of(case))
    assert back.schema == table.schema
    assert back.equals(table)


MASK = np.arange(N) % 7 == 0
ARROW = {
    "int16": pa.array(RNG.integers(0, 1000, N).astype(np.int16), mask=MASK),
    "uint64": pa.array(np.uint64(2**64 - 1) - RNG.integers(0, 10**6, N).astype(np.uint64), mask=MASK),
    "halffloat": pa.array(RNG.normal(size=N).astype(np.float16), mask=MASK),
    "float": pa.array(RNG.normal(size=N).astype(np.float32), mask=MASK),
    "bool": pa.array(RNG.random(N) < 0.5, mask=MASK),
    "string": pa.array(TEXTS, mask=MASK),
    "large_string": pa.array(TEXTS, mask=MASK).cast(pa.large_string()),
    "dictionary": pa.array(TEXTS, mask=MASK).dictionary_encode(),
    "small dictionary": pa.DictionaryArray.from_arrays(
        pa.array(RNG.integers(0, 3, N).astype(np.int8), mask=MASK), pa.array(["b", "a", "c"]), ordered=True
    ),
    "decimal128": pa.array([f"{x:.3f}" for x in RNG.normal(size=N)]).cast(pa.decimal128(12, 3)),
    "date32": pa.array(moments("D", 3000), mask=MASK),
    "date64": pa.array(moments("D", 3000), mask=MASK).cast(pa.date64()),
    "timestamp[s]": pa.array(moments("s", 10**9), mask=MASK),
    "timestamp[ns]": pa.array(moments("ns", 10**15), mask=MASK),
    "timestamp with a zone": pa.array(moments("us", 10**15), mask=MASK).cast(pa.timestamp("us", "Europe/Paris")),
    "time32": pa.array(RNG.integers(0, 86_400, N).astype(np.int32), mask=MASK).cast(pa.time32("s")),
    "time64": pa.array(RNG.integers(0, 86_400, N) * 10**6, mask=MASK).cast(pa.time64("us")),
    "duration": pa.array(RNG.integers(0, 10**6, N), mask=MASK).cast(pa.duration("ms")),
    "null": pa.nulls(N),
    "chunks": pa.chunked_array([RNG.integers(0, 1000, N - 9), RNG.integers(0, 1000, 9)]),
}


@pytest.mark.parametrize("case", ARROW)
def test_arrow_types_come_back(case):
    table = pa.table({"x": ARROW[case], "y": RNG.normal(size=N)})
    back = returned(table, kinds_of(case))
    assert back.schema == table.schema
    assert back.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint16", "bool", "M8[D]", "m8[s]", "U9"])
def test_numpy_dtypes_come_back(dtype):
    table = RNG.integers(0, 2, (N, 3)).astype(dtype)
    back = returned(table)
    assert back.dtype == table.dtype
    np.testing.assert_array_equal(back, table)


def test_object_arrays_come_back():
    table = np.array([[1, 1.5, "a", None], [2, None, "b", True], [None, 2.5, None, False]] * 9, dtype=object)
    back = returned(table)
    assert back.tolist() == table.tolist()


def test_true_is_not_one():
    table = np.array([[True], [1], ["1"], [False], [0]] * 9, dtype=object)
    back = returned(table).ravel().tolist()
    assert [(type(value), value) for value in back[:5]] == [(bool, True), (int, 1), (str, "1"), (bool, False), (int, 0)]


def test_lists_of_rows():
    assert returned([[1, "a"], [2, "b"], [3, "a"]]).tolist() == [[1, "a"], [2, "b"], [3, "a"]]
    np.testing.assert_array_equal(returned([[1.0, 2.0], [3.0, 4.0]]), [[1, 2], [3, 4]])


def test_numbers_are_those_of_the_table():
    table = np.column_stack([np.arange(5) * 1.25, [1, 2, np.nan, 4, 5]])
    numbers, codes = TableEncoder().fit(table).encode(table)
    np.testing.assert_array_equal(numbers, table)
    assert codes.shape == (5, 0)
    assert codes.dtype == np.int32


def test_spikes():
    values = np.r_[np.zeros(40), np.full(30, 99.5), np.arange(1, 29), np.nan]
    encoder = TableEncoder().fit(pd.DataFrame({"x": values}))
    (variable,) = encoder.variables
    assert variable == ("x", "spiked number", 0, 0, 3)
    numbers, codes = encoder.encode(pd.DataFrame({"x": [0, 99.5, 3, None, 5000]}))
    assert codes.ravel().tolist() == [1, 2, 0, -1, 0]
    np.testing.assert_array_equal(numbers.ravel(), [np.nan, np.nan, 3, np.nan, 5000])
    back = encoder.decode(
        Encoded(np.array([[7.04], [7.04], [7.04], [np.nan], [7.04]]), np.array([[0], [1], [2], [0], [-1]]))
    )
    np.testing.assert_array_equal(back["x"], [7, 0, 99.5, np.nan, np.nan])


def test_dates_are_seconds_since_the_earliest():
    table = pd.DataFrame({"x": pd.to_datetime(["2024-01-02 00:00:10.5", "2024-01-01 00:00:00.0", None])})
    encoder = TableEncoder().fit(table)
    numbers, _ = encoder.encode(table)
    np.testing.assert_array_equal(numbers.ravel(), [86_410.5, 0, np.nan])
    back = encoder.decode((np.array([[0.0014]]), np.zeros((1, 0))))
    assert back["x"][0] == pd.Timestamp("2024-01-01 00:00:00.001")  # milliseconds, as observed


def test_generated_dates_are_days_where_all_are_midnights():
    table = pd.DataFrame(
        {"x": pd.date_range("2024-01-01", periods=30), "y": [f"2024-01-{i:02d}" for i in range(1, 31)]}
    )
    encoder = TableEncoder().fit(table)
    back = encoder.decode((np.full((1, 2), 86_400 * 1.3), np.zeros((1, 0))))
    assert back["x"][0] == pd.Timestamp("2024-01-02")
    assert back["y"][0] == "2024-01-02"


@pytest.mark.parametrize("zone", ["Europe/Paris", "Asia/Kolkata", "America/New_York"])
def test_generated_dates_are_local_midnights_where_all_are(zone):
    days = pd.Series(pd.date_range("2024-01-01", "2024-12-31", tz=zone)).astype(f"datetime64[us, {zone}]")
    arrow_backed = days.astype(pd.ArrowDtype(pa.timestamp("us", zone)))
    for table in (
        days.to_frame("x"),
        pl.DataFrame({"x": days}),
        pa.table({"x": pa.array(days)}),
        arrow_backed.to_frame("x"),
    ):
        encoder = TableEncoder().fit(table)
        numbers, codes = encoder.encode(table)
        early = encoder.decode((numbers + RNG.uniform(-10, 10, numbers.shape) * 3600, codes))
        back = early["x"].to_pylist() if isinstance(early, pa.Table) else early["x"].to_list()
        assert [moment.isoformat() for moment in back] == [day.isoformat() for day in days]


def test_numbers_below_a_tenth_have_their_own_decimals():
    frame = pd.DataFrame({"x": np.round(np.random.default_rng(0).normal(5e-8, 1e-8, 60), 11)})
    encoder = TableEncoder().fit(frame)
    rows = encoder.encode(frame)
    pd.testing.assert_frame_equal(encoder.decode(rows), frame)
    between = encoder.decode(rows._replace(numbers=rows.numbers + 1.3e-12))["x"].to_numpy()
    np.testing.assert_array_equal(between, np.round(between, 11))


def test_generated_numbers_are_rounded_to_the_observed_decimals():
    table = pd.DataFrame(
        {"price": [1.25, 2.5, 3.0], "count": [10.0, None, 12.0], "free": np.pi * np.arange(3), "i": [5, 6, 9]}
    )
    encoder = TableEncoder().fit(table)
    back = encoder.decode((np.full((1, 4), 10.12345678), np.zeros((1, 0))))
    assert back.iloc[0].tolist() == [10.12, 10, 10.12345678, 10]
    single = TableEncoder().fit(table[["price"]].astype("float32").map(lambda price: price / np.float32(10)))
    assert single.decode((np.array([[0.12345678]]), np.zeros((1, 0))))["price"][0] == np.float32(0.123)
    exact = TableEncoder().fit(table.to_numpy())
    assert exact.decode((np.full((1, 4), 10.12345678), np.zeros((1, 0)))).tolist() == [[10.12345678] * 4]


@pytest.mark.parametrize("dtype", ["int8", "uint64", "Int16", "int64[pyarrow]"])
def test_generated_whole_numbers_stay_in_their_dtype(dtype):
    table = pd.DataFrame({"x": pd.Series([1, 50, 100], dtype=dtype)})
    encoder = TableEncoder({"x": "number"}).fit(table)
    limits = np.iinfo(dtype.lower().removesuffix("[pyarrow]"))
    back = encoder.decode((np.array([[-1e30], [1e30]]), np.zeros((2, 0))))["x"]
    assert back.dtype == dtype
    assert [int(value) for value in back] == [limits.min, limits.max]
    back = encoder.decode((np.array([[-70_000.4], [70_000.4]]), np.zeros((2, 0))))["x"]
    assert [int(value) for value in back] == [max(limits.min, -70_000), min(limits.max, 70_000)]


def test_a_range_beyond_float64_gives_the_nearest():
    values = np.array([0, 1, 2**64 - 1, 2**63 + 1] * 9 + list(range(100, 160)), dtype=np.uint64)
    table = pd.DataFrame({"x": values})
    back = returned(table, {"x": "number"})["x"]
    assert back.dtype == np.uint64
    errors = [abs(int(a) - int(b)) for a, b in zip(values, back, strict=True)]
    assert max(errors) <= 2**11  # half the spacing of float64 below 2**64


def test_pooled_levels():
    counts = np.arange(1, 101)
    values = np.repeat([f"level {i:03d}" for i in range(100)], counts)
    table = pd.DataFrame({"x": values})
    encoder = TableEncoder().fit(table)
    (variable,) = encoder.variables
    assert variable.n_levels == MAX_LEVELS
    _, codes = encoder.encode(table)
    pooled = codes.ravel() == MAX_LEVELS - 1
    assert pooled.sum() == counts[: 100 - MAX_LEVELS + 1].sum()  # the rarest
    back = encoder.decode(encoder.encode(table), rng=1)["x"].to_numpy()
    assert (back[~pooled] == values[~pooled]).all()
    many = encoder.decode((np.zeros((20_000, 0)), np.full((20_000, 1), MAX_LEVELS - 1)), rng=1)["x"]
    share = counts[36] / counts[:37].sum()
    assert abs((many == "level 036").mean() - share) < 5 * np.sqrt(share * (1 - share) / 20_000)
    assert set(many) <= set(values[pooled])


def test_levels_of_single_rows_are_pooled_among_many():
    values = [*(f"common {i}" for i in range(30)), *(f"common {i}" for i in range(30)), "a", "b", "c"]
    (variable,) = TableEncoder({"x": "category"}).fit(pd.DataFrame({"x": values})).variables
    assert variable.n_levels == 31
    (variable,) = TableEncoder({"x": "category"}).fit(pd.DataFrame({"x": values[4:-1]})).variables
    assert variable.n_levels == 32  # not more than 32: all are kept


def test_level_values_of_ordered_columns():
    table = pd.DataFrame(
        {
            "stars": [1, 2, 5] * 10,
            "size": pd.Categorical(["S", "L", "M"] * 10, categories=["S", "M", "L"], ordered=True),
            "colour": ["r", "g", "b"] * 10,
        }
    )
    encoder = TableEncoder().fit(table)
    stars, size, colour = encoder.level_values
    assert (stars.tolist(), size.tolist(), colour) == ([1, 2, 5], [0, 1, 2], None)
    assert encoder.encode(table).codes[:3].tolist() == [[0, 0, 2], [1, 2, 1], [2, 1, 0]]


def test_what_is_set_aside_is_empty_and_constants_are_filled():
    table = pd.DataFrame(
        {
            "id": range(N),
            "note": [f"the {i} th of many words" for i in range(N)],
            "one": 1,
            "none": None,
            "x": RNG.normal(size=N),
        }
    )
    encoder = TableEncoder().fit(table)
    assert (encoder.set_aside, encoder.constants) == (["id", "note"], ["one", "none"])
    back = encoder.decode(encoder.encode(table.iloc[:3]))
    assert back["id"].isna().all()
    assert back["id"].dtype == "Int64"
    assert back["note"].isna().all()
    assert back["note"].dtype == table["note"].dtype
    assert back["one"].tolist() == [1, 1, 1]
    assert back["none"].isna().all()


def test_gaps_in_whole_numbers():
    rows = (np.array([[np.nan], [4.0]]), np.zeros((2, 0)))
    frame = pd.DataFrame({"x": np.arange(0, 200, 2, dtype=np.uint8)})
    assert TableEncoder().fit(frame).decode(rows)["x"].dtype == "UInt8"
    back = TableEncoder().fit(frame.to_numpy()).decode(rows)
    np.testing.assert_array_equal(back, [[np.nan], [4]])
    objects = TableEncoder().fit(frame.astype(object).to_numpy()).decode(rows)
    assert objects.tolist() == [[None], [4]]


def test_a_table_like_another():
    table = pd.DataFrame(
        {"a": [1, 2, 3], "b": ["x", "y", "x"], "c": pd.to_datetime(["2024-01-01", "2024-01-02", None])}
    )
    encoder = TableEncoder().fit(table)
    rows = encoder.encode(table)
    frame = pl.DataFrame({"a": [1.0], "b": ["z"], "c": [datetime.date(2000, 1, 1)]})
    back = encoder.decode(rows, like=frame)
    assert back.schema == frame.schema
    assert back["a"].to_list() == [1, 2, 3]
    assert back["c"].to_list() == [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), None]
    assert encoder.decode(rows, like=pa.table({"c": [None], "b": ["q"], "a": [1]})).column_names == ["a", "b", "c"]
    assert encoder.decode(rows, like=np.array([[None] * 3])).tolist()[0] == [1, "x", datetime.datetime(2024, 1, 1)]


def test_columns_without_a_form_come_back_empty():
    columns = {"a": "identifier", "b": "text"}
    table = pd.DataFrame({"a": pd.interval_range(0, 3), "b": [[1], [2], [3]], "x": [1.5, 2, 4]})
    for frame in (
        table,
        pl.from_pandas(table[["b", "x"]].assign(a=[b"1", b"2", b"3"])),
        pa.table({"a": [[1]], "b": [{"c": 1}]}),
    ):
        back = returned(frame, columns)
        assert all(
            value is None or value != value
            for value in list(back["a"].to_pylist() if isinstance(back, pa.Table) else back["a"])
        )


def test_masked_cells_and_nan_in_any_container_are_gaps():
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[True, False], [False, False]])
    np.testing.assert_array_equal(TableEncoder().fit(masked).encode(masked).numbers, [[np.nan, 2], [3, 4]])
    values = [1.5, float("nan"), None, 2.0]
    for table in (pl.DataFrame({"x": values}), pa.table({"x": pa.array(values)}), pd.DataFrame({"x": values})):
        numbers = TableEncoder().fit(table).encode(table).numbers
        np.testing.assert_array_equal(numbers.ravel(), [1.5, np.nan, np.nan, 2])
    text = pd.DataFrame({"x": ["1.5", "nan", " ", "2"]})
    numbers = TableEncoder({"x": "number"}).fit(text).encode(text).numbers
    np.testing.assert_array_equal(numbers.ravel(), [1.5, np.nan, np.nan, 2])


def test_tables_of_other_containers_encode_alike():
    table = pd.DataFrame(
        {"a": [1, 2, 3], "b": ["x", "y", "x"], "c": pd.to_datetime(["2024-01-01", "2024-01-02", None])}
    )
    encoder = TableEncoder().fit(table)
    expected = encoder.encode(table)
    text = pd.DataFrame({"c": ["2024-01-01", "2024-01-02", ""], "a": ["1", "2", "3"], "more": 0, "b": ["x", "y", "x"]})
    for other in (pl.from_pandas(table), pa.Table.from_pandas(table), text, table.astype(object).to_numpy()):
        rows = encoder.encode(other)
        np.testing.assert_array_equal(rows.numbers, expected.numbers)
        np.testing.assert_array_equal(rows.codes, expected.codes)


def test_unseen_levels_and_gaps():
    encoder = TableEncoder().fit(pd.DataFrame({"x": ["a", "b", "c"], "y": [True, False, True]}))
    rows = encoder.encode(pd.DataFrame({"x": ["c", "new", None], "y": [None, None, None]}))
    assert rows.codes.tolist() == [[2, -1], [-1, -1], [-1, -1]]
    back = encoder.decode(rows)
    assert back["x"].isna().tolist() == [False, True, True]
    assert back["y"].dtype == "boolean"


def test_all_problems_of_a_table_are_named():
    encoder = TableEncoder().fit(
        pd.DataFrame({"a": [1.5, 2, 3], "b": [4, 5, 6], "c": pd.date_range("2024", periods=3)})
    )
    with pytest.raises(ValueError, match=r"'a', 'c'"):
        encoder.encode(pd.DataFrame({"b": [1]}))
    with pytest.raises(ValueError, match=r"(?s)3:.*'a'.*infinity.*'b'.*'word'.*'c'.*'soon'"):
        encoder.encode(pd.DataFrame({"a": [np.inf], "b": ["word"], "c": ["soon"]}))
    with pytest.raises(ValueError, match="Expected 3 columns"):
        encoder.encode(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="infinity"):
        encoder.decode((np.full((1, 3), np.inf), np.zeros((1, 0))))
    with pytest.raises(ValueError, match="0 rows"):
        TableEncoder().fit(pd.DataFrame({"a": []}))


def test_no_rows_come_back_as_none():
    table = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"], "c": pd.date_range("2024", periods=3), "d": 1})
    back = TableEncoder().fit(table).decode((np.zeros((0, 2)), np.zeros((0, 1), dtype=int)))
    assert back.shape == (0, 4)


def test_arrays_need_neither_pandas_nor_polars():
    code = (
        "import sys, numpy as np; from scorefield.data.encoding import TableEncoder; "
        "table = np.array([[1, 'a', np.datetime64('2024-01-01')]] * 3, dtype=object); "
        "encoder = TableEncoder().fit(table); encoder.decode(encoder.encode(table)); "
        "assert not {'pandas', 'polars', 'pyarrow', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.data
@pytest.mark.skipif(not MIXED.is_dir(), reason="SCOREFIELD_DATA is not set")
@pytest.mark.parametrize("name", ["adult", "default", "penguins", "telco-churn", "titanic"])
def test_real_tables_come_back(name):
    table = pd.read_csv(MIXED / f"{name}.csv", skipinitialspace=True)
    check_known_cells(table)
    check_known_cells(pl.from_pandas(table))


def check_known_cells(table, columns=None):
    """Cells that are known come back equal, in columns of the same dtypes, except for what is set aside."""
    encoder = TableEncoder(columns).fit(table)
    rows = encoder.encode(table)
    back = encoder.decode(rows, rng=0)
    names = [c.name for c in encoder.columns_ if c.kind not in SET_ASIDE and not c.pool]
    for name in names:
        before, after = table[name], back[name]
        assert before.dtype == after.dtype
        known = [not (pd.isna(v) or (isinstance(v, str) and not v.strip())) for v in before.to_list()]
        pairs = zip(before.to_list(), after.to_list(), known, strict=True)
        assert [(a, b) for a, b, is_known in pairs if is_known and a != b] == []
    again = encoder.encode(back)
    kept = [v for v in encoder.variables if v.name in names]
    numbers, codes = [v.number for v in kept if v.number >= 0], [v.category for v in kept if v.category >= 0]
    np.testing.assert_array_equal(again.numbers[:, numbers], rows.numbers[:, numbers])
    np.testing.assert_array_equal(again.codes[:, codes], rows.codes[:, codes])


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DATES = st.dates(datetime.date(1700, 1, 1), datetime.date(2250, 1, 1))
MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2150, 1, 1))  # microseconds below 2**53
# dtype in pandas, dtype in polars, values
COLUMNS = [
    ("Int8", pl.Int8, st.integers(-128, 127)),
    ("Int64", pl.Int64, st.integers(2**62, 2**62 + 2**52)),
    ("UInt64", pl.UInt64, st.integers(2**64 - 2**52, 2**64 - 1)),
    ("Int32", pl.Int32, st.integers(0, 3)),
    ("float64", pl.Float64, FLOATS),
    ("float64", pl.Float64, st.decimals(-1000, 1000, places=2).map(float)),
    ("float32", pl.Float32, st.floats(allow_nan=False, allow_infinity=False, width=32)),
    ("boolean", pl.Boolean, st.booleans()),
    ("string", pl.String, st.text(max_size=8)),
    ("object", pl.String, st.sampled_from(["a", " b", "", "True", "1.0"])),
    ("category", pl.Categorical, st.sampled_from(["a", "b", "c"])),
    ("string", pl.String, DATES.map(str)),
    ("string", pl.String, st.times().map(lambda time: time.isoformat("milliseconds"))),
    ("datetime64[us]", pl.Datetime("us"), MOMENTS),
    ("datetime64[us, Europe/Paris]", pl.Datetime("us", "Europe/Paris"), st.integers(0, 2**50)),
    ("datetime64[s]", pl.Date, DATES),
    ("timedelta64[us]", pl.Duration("us"), st.timedeltas(datetime.timedelta(-999), datetime.timedelta(999))),
]


@st.composite
def raw_tables(draw):
    """Columns of random kinds with gaps and odd names: names, dtypes and lists of values."""
    n_rows = draw(st.integers(1, 30))
    names = draw(st.lists(st.text(max_size=6), min_size=1, max_size=5, unique=True))
    table = []
    for name in names:
        pandas_dtype, polars_dtype, values = draw(st.sampled_from(COLUMNS))
        cells = draw(st.lists(values | st.none(), min_size=n_rows, max_size=n_rows))
        table.append((name, pandas_dtype, polars_dtype, cells))
    return table


def _pandas_column(dtype, cells):
    if "Paris" in dtype:
        return pd.Series(pd.to_datetime(pd.Series(cells, dtype="Int64"), unit="us", utc=True)).astype(dtype)
    return pd.Series(cells, dtype=dtype)


def _polars_column(name, dtype, cells):
    if dtype == pl.Datetime("us", "Europe/Paris"):
        return pl.Series(name, cells, dtype=pl.Int64).cast(dtype)
    return pl.Series(name, cells, dtype=dtype)


def check_round_trip(raw):
    check_known_cells(pd.DataFrame({name: _pandas_column(dtype, cells) for name, dtype, _, cells in raw}))
    check_known_cells(pl.DataFrame([_polars_column(name, dtype, cells) for name, _, dtype, cells in raw]))


SETTINGS = {"deadline": None, "derandomize": True, "database": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=300, **SETTINGS)
@given(raw_tables())
def test_random_tables_come_back(raw):
    check_round_trip(raw)


@pytest.mark.slow
@settings(max_examples=3000, **{**SETTINGS, "derandomize": False})
@given(raw_tables())
def test_many_random_tables_come_back(raw):
    check_round_trip(raw)


def test_a_category_whose_levels_are_all_rare_is_modelled():
    table = pd.DataFrame({"x": [f"{i}x" for i in range(N)]})
    encoder = TableEncoder({"x": "category"}).fit(table)
    assert len(encoder.variables) == 1
    assert encoder.decode(encoder.encode(table), rng=0)["x"].isin(table["x"]).all()
