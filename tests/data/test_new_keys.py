"""New keys follow the pattern of their column and are none of its values."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from scorefield.data.containers import Table
from scorefield.data.encoding import TableEncoder
from scorefield.data.new_keys import example_places, key_pattern

N = 50
RNG = np.random.default_rng(11)


def codes(rng, n):
    letters = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return [f"{rng.integers(1000, 9999)}-{''.join(rng.choice(letters, 5))}" for _ in range(n)]


def made(values, n=5, like=None, seed=0):
    """New keys of a column, as its container holds them."""
    table = values if hasattr(values, "columns") else pd.DataFrame({"x": values})
    encoder = TableEncoder({"x": "identifier"}).fit(table)
    restored = TableEncoder.from_plain(encoder.to_plain())
    rows = np.zeros((n, 0)), np.zeros((n, 0), dtype=np.int32)
    return restored.decode(rows, like=like, rng=seed, ids="new")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(1, 301), [301, 302, 303]),
        (RNG.permutation(N) * 10, [500, 510, 520]),
        ([f"C-{i:05d}" for i in range(18)], ["C-00018", "C-00019", "C-00020"]),
        ([f"C-{i}" for i in range(8, 12)], ["C-12", "C-13", "C-14"]),
        ([f"{i:03d}x" for i in range(995, 999)], ["999x", "1000x", "1001x"]),
        (["7590-VHVEG", "5575-GNVDE", "7590-VHVEY"], ["7590-VHVEZ", "7590-VHVFA", "7590-VHVFB"]),
        (["INV-2023-07", "INV-2024-98"], ["INV-2024-99", "INV-2025-00", "INV-2025-01"]),
        (["v1.5-07", "v1.5-98"], ["v1.5-99", "v1.5-100", "v1.5-101"]),
        ([2**60, 2**60 + 7, 2**60 + 3], [2**60 + 8, 2**60 + 9, 2**60 + 10]),
    ],
)
def test_patterns_are_continued_after_the_largest(values, expected):
    assert made(values, 3)["x"].tolist() == expected


@pytest.mark.parametrize(
    "values",
    [
        ["Braund, Mr. Owen", "Cumings, Mrs. John", "Heikkinen, Miss. Laina"],
        ["A/5 21171", "PC 17599", "113803", "STON/O2. 3101282"],
        ["Anna", "Otto", "Lena"],
        ["shop 1", "shop 2"] * 10,
        [f"2024-02-{day}" for day in (27, 28, 30)],
        [f"{day}.02.2024x" for day in (27, 28, 30)],
        ["95.1 kg", "87.4 kg", "96.2 kg"],
        pd.Categorical([f"C-{i}" for i in range(9)]),
        pd.date_range("2024-01-01", periods=9),
        ["1", 2, "c"],
    ],
    ids=[
        "names",
        "tickets",
        "words",
        "names of others",
        "bad dates",
        "almost dates",
        "amounts",
        "category",
        "dates",
        "mixture",
    ],
)
def test_without_a_pattern_keys_are_missing(values):
    assert made(values)["x"].isna().all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "Int16", "float32", "int32[pyarrow]"])
def test_types_stay_and_full_ones_go_on_below(dtype):
    numpy_dtype = np.dtype(dtype.split("[")[0].lower())
    top = 2**24 if numpy_dtype.kind == "f" else np.iinfo(numpy_dtype).max
    values = pd.Series([top - 1 - i for i in range(N)], dtype=object).astype(dtype)
    found = made(values, 3)["x"]
    assert found.dtype == values.dtype
    assert found.tolist() == [top, top - N - 1, top - N - 2]
    assert not set(found) & set(values)


def test_what_neither_the_type_nor_the_pattern_holds_is_missing():
    found = made(pd.Series(np.arange(200), dtype="uint8"), 60)["x"]
    assert found[:56].tolist() == list(range(200, 256))
    assert found[56:].isna().all()
    found = made(["A1", "B8"], 300)["x"]  # of 260 texts, 19 at least lie between the two
    assert found.notna().sum() == 260 - 18
    assert found.dropna().is_unique
    assert not set(found) & {"A1", "B8"}


@pytest.mark.parametrize("spelling", [str, "{{{}}}".format, lambda each: str(each).upper(), lambda each: each.hex])
def test_uuids_are_drawn_in_the_spelling_of_the_column(spelling):
    values = [spelling(uuid.UUID(int=i + 10**30)) for i in range(N)]
    found = made(values)["x"]
    assert all(spelling(uuid.UUID(text)) == text for text in found)
    assert found.is_unique
    assert found.tolist() == made(values)["x"].tolist()
    assert not set(found) & set(made(values, seed=1)["x"])


def test_uuid_objects_stay_objects():
    found = made(pd.Series([uuid.UUID(int=i) for i in range(N)], dtype=object))["x"]
    assert all(isinstance(each, uuid.UUID) for each in found)


def test_other_containers():
    table = pl.DataFrame({"x": codes(RNG, N)})
    assert made(table).schema == table.schema
    table = pa.table({"x": pa.array(range(N), pa.int32())})
    assert made(table).column("x") == pa.chunked_array([pa.array(range(N, N + 5), pa.int32())])
    wide = pd.DataFrame({"x": pd.Series(range(N), dtype="int64")})
    assert made(pd.Series(range(N), dtype="int8"), like=wide)["x"].dtype == "int64"


COLUMNS = {
    "numbers": RNG.permutation(3000)[:200] * 6 + 5,
    "counter": [f"C-{i}" for i in RNG.permutation(300)],
    "padded": [f"C-{i:04d}" for i in RNG.permutation(300)],
    "codes": codes(RNG, 300),
    "hex": [uuid.UUID(int=int(i)).hex[-6:] for i in RNG.integers(2**24, size=300)],
    "uuids": [str(uuid.UUID(int=i)) for i in range(300)],
    "none": [f"{'abc'[i % 3]} {i}" for i in range(300)],
}


@pytest.mark.parametrize("case", COLUMNS)
def test_few_examples_of_parts_have_the_pattern_of_all(case):
    column = pd.Series(COLUMNS[case])
    whole = key_pattern(Table(column.to_frame("x")).cells("x"))
    parts = [part.reset_index(drop=True) for part in (column[:70], column[70:80], column[80:])]
    examples = [part.iloc[example_places(Table(part.to_frame("x")).cells("x"))] for part in parts]
    found = key_pattern(Table(pd.concat(examples).to_frame("x")).cells("x"))
    assert (found or {}) | {"example": ""} == (whole or {}) | {"example": ""}
    if case in ("numbers", "none"):
        assert sum(map(len, examples)) < 100
