"""Kinds of columns: one closed case per rule, the same kinds in every container, and errors that name all problems."""

import datetime
import os
import pathlib
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from scorefield.data.containers import Table
from scorefield.data.keys import looks_like_id
from scorefield.data.kinds import KINDS, classify

N = 100
RNG = np.random.default_rng(3)
MIXED = pathlib.Path(os.environ.get("SCOREFIELD_DATA", "nowhere")) / "mixed"


def kinds_of(table, columns=None):
    return {name: kind for name, kind, _ in classify(Table(table), columns)}


def kind_of(values, name="x", **series):
    return kinds_of(pd.DataFrame({name: pd.Series(values, **series)}))[name]


SPIKED = np.where(np.arange(N) < 50, 0, RNG.permutation(1000)[:N] + 1)
CASES = {
    "number": RNG.normal(size=N),
    "whole number": RNG.integers(0, 1000, N),
    "whole floats with gaps": np.where(np.arange(N) < 5, np.nan, RNG.integers(0, 1000, N)),
    "spiked number": SPIKED,
    "ordered": RNG.integers(1, 6, N),
    "ordered fractions": RNG.integers(1, 6, N) / 2,
    "ordered categorical": pd.Categorical(RNG.choice(list("abc"), N), categories=list("cab"), ordered=True),
    "flag of bools": RNG.random(N) < 0.5,
    "flag of numbers": RNG.integers(0, 2, N),
    "flag of text": RNG.choice(["yes", "no"], N),
    "category": RNG.choice(list("abc"), N),
    "category of many levels": RNG.integers(0, 45, N).astype(str),
    "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), unit="D"),
    "date as text": [str(day) for day in np.datetime64("2024-01-01") + np.arange(N)],
    "date as moments in text": [f"2024-01-01T08:{i % 60:02d}:00Z" for i in range(N)],
    "date as time of day": [datetime.time(i % 24, 30) for i in range(N)],
    "date as time of day in text": [f"{i % 24:02d}:30" for i in range(N)],
    "duration": pd.to_timedelta(np.arange(N), unit="h"),
    "identifier as text": [f"c{i:04d}" for i in range(N)],
    "identifier as row number": RNG.permutation(N) + 1000,
    "identifier as uuid": [str(uuid.UUID(int=i % 7)) for i in range(N)],
    "identifier as uuid object": [uuid.UUID(int=i) for i in range(N)],
    "text": [f"the customer called {i} times about it" for i in range(N)],
    "constant": np.ones(N),
    "constant without known cell": [None] * N,
    "number as text": [f"{value:.2f}" for value in RNG.normal(size=N)],
}
EXPECTED = {"whole floats with gaps": "whole number"}


@pytest.mark.parametrize("case", CASES)
def test_the_kind_of_each_rule(case):
    kind = EXPECTED.get(case) or next(
        kind for kind in ("whole number", "spiked number", *KINDS) if case.startswith(kind)
    )
    assert kind_of(CASES[case]) == kind


def test_every_kind_has_a_case():
    assert {kind_of(values) for values in CASES.values()} == set(KINDS)


def test_kinds_are_the_same_in_every_container():
    table = pd.DataFrame(
        {
            "number": CASES["number"],
            "whole": CASES["whole number"],
            "spiked": SPIKED,
            "ordered": CASES["ordered"],
            "flag": CASES["flag of bools"],
            "category": CASES["category"],
            "date": CASES["date"],
            "text date": CASES["date as text"],
            "duration": CASES["duration"],
            "code": CASES["identifier as text"],
            "text": CASES["text"],
            "one": 1,
        }
    )
    expected = kinds_of(table)
    assert len(set(expected.values())) == len(KINDS)
    assert kinds_of(pl.from_pandas(table)) == expected
    assert kinds_of(pa.Table.from_pandas(table, preserve_index=False)) == expected
    assert list(kinds_of(table.astype(object).to_numpy()).values()) == list(expected.values())


@pytest.mark.parametrize(
    ("edge", "kind"),
    [
        (np.r_[np.zeros(10), np.arange(1, 91)], "spiked number"),
        (np.r_[np.zeros(9), np.arange(1, 92)], "whole number"),
        (np.r_[np.zeros(30), np.repeat(np.arange(1, 21), 3), np.arange(20) + 0.5], "spiked number"),
        (np.repeat(np.arange(20), 5), "ordered"),
        (np.repeat(np.arange(20), 4), "whole number"),
        (np.repeat(np.arange(21), 5), "whole number"),
        (np.arange(1, 20), "whole number"),  # below 20 rows nothing is an identifier by its values
        (np.arange(1, 21), "identifier"),
        (np.arange(20) * 3, "whole number"),
        ([f"c{i}" for i in range(19)], "category"),
        ([f"c{i}" for i in range(20)], "identifier"),
        ([f"c{i}" for i in range(21)] * 2, "category"),
        ([*(f"c{i}" for i in range(22)), *(f"c{i}" for i in range(21))], "identifier"),
        ([34.5, 51.2], "number"),
        ([34, 51], "whole number"),
        ([0, 1], "flag"),
        ([7], "constant"),
        (["2024-02-30", "2024-01-01", "2024-01-02"], "category"),  # not all of them exist
        (["2024-01-01", "2024-01-01 08:00", "2024-01-02"], "category"),  # two styles
        (["", "  ", None], "constant"),
        (["a", "", "b", " "], "flag"),
    ],
)
def test_edges_of_the_rules(edge, kind):
    assert kind_of(edge) == kind


@pytest.mark.parametrize(
    "name", ["id", "user_id", "customerID", "PassengerId", "Order Number", "row no", "key", "UUID"]
)
def test_a_name_makes_distinct_values_identifiers(name):
    assert looks_like_id(name)
    assert kind_of([3, 17, 4, 99], name=name) == "identifier"
    assert kind_of(["q", "w", "e"], name=name) == "identifier"
    assert kind_of([3, 17, 3, 99], name=name) == "whole number"
    assert kind_of([3.5, 17, 4, 99], name=name) == "number"


@pytest.mark.parametrize("name", ["paid", "grid", "number of rooms", "width", "monkey", "fnlwgt", "nobody", ""])
def test_other_names_do_not(name):
    assert not looks_like_id(name)


def test_plain_arrays_hold_numbers():
    table = np.column_stack([np.arange(N), np.ones(N), RNG.integers(0, 2, N)])
    assert set(kinds_of(table).values()) == {"number"}
    assert set(kinds_of(table.astype(int)).values()) == {"number"}
    assert kinds_of(table, {2: "flag"}) == {0: "number", 1: "number", 2: "flag"}
    assert kinds_of(pd.DataFrame(table)) == {0: "identifier", 1: "constant", 2: "flag"}


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, pd.NaT, "", "  "])
def test_gaps_of_every_type(missing):
    table = Table(np.array([["a"], [missing], ["b"]], dtype=object))
    assert table.cells(0).known.tolist() == [True, False, True]


def test_overrides():
    table = pd.DataFrame({"a": ["1", "2", " 3"], "b": [5, 6, 7], "c": ["x", "y", "z"], "d": ["2024-01-01"] * 3})
    wanted = {"a": "number", 1: "category", "c": "identifier", "d": "date"}
    assert kinds_of(table, wanted) == {"a": "number", "b": "category", "c": "identifier", "d": "date"}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"z": "number"}, ["'z'", "'a'", "'b'"]),
        ({"a": "numeric"}, ["'numeric'", "'spiked number'", "'identifier'"]),
        ({"a": "number", "b": "flag"}, ["'a'", "'x'", "'b'", "3", "'category'"]),
        ({"a": "date", "b": "duration"}, ["'a'", "'b'", "ISO", "durations"]),
        ({"a": "ordered", "b": "constant"}, ["'a'", "'b'", "ordered categories", "at most 1"]),
        ({"a": "whole number", "c": "whole number"}, ["'a'", "'c'", "1.5"]),
    ],
)
def test_overrides_that_cannot_be_honoured(columns, words):
    table = pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 2, 3], "c": [1, 1.5, 2]})
    with pytest.raises(ValueError, match="Expected") as error:
        kinds_of(table, columns)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_all_infinite_columns_are_named():
    table = pd.DataFrame({"a": [1.5, np.inf, 2], "b": [1, 2, 4], "c": [-np.inf, 0, 1.5], "d": [1.5, np.inf, 0]})
    with pytest.raises(ValueError, match=r"(?s)2.*'a'.*infinity.*'c'.*infinity") as error:
        kinds_of(table, {"d": "identifier"})
    assert "'d'" not in str(error.value)
    with pytest.raises(ValueError, match=r"column 1.*infinity"):
        kinds_of(np.array([[1, np.inf]]))


def test_text_among_fractions_is_a_problem():
    values = (np.arange(N) / 8).tolist()
    for cells in ([*values, "n/a"], [*map(str, values), "n/a", "n/a"]):
        with pytest.raises(ValueError, match="expected numbers, as in most of its cells, got 'n/a'"):
            kind_of(cells, dtype=object)
        assert kinds_of(pd.DataFrame({"x": cells}, dtype=object), {"x": "identifier"}) == {"x": "identifier"}
    assert kind_of([*(f"{i}" for i in range(N)), "7b"]) == "identifier"  # codes, not measurements
    assert kind_of([*map(str, values[:60]), *(f"{i} km" for i in range(40))]) == "identifier"


def test_cells_without_a_form_are_refused_or_set_aside():
    table = pd.DataFrame({"a": [[1], [2]], "b": [1j, 2j], "c": [1, 2]})
    with pytest.raises(ValueError, match=r"(?s)'a'.*list.*'identifier'.*'b'.*complex"):
        kinds_of(table)
    assert kinds_of(table, {"a": "identifier", "b": "text"})["a"] == "identifier"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.zeros(3), "two dimensions"),
        (np.zeros((2, 2, 2)), "two dimensions"),
        ([[1, 2], [3]], "equal length"),
        (pl.LazyFrame({"a": [1]}), "collect"),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]), "'a' more than once"),
        (pd.DataFrame([[1, 2]], columns=[("a", 1), ("a", 2)]), "rename"),
        ("a table", "numpy array, a pandas or polars DataFrame or a pyarrow table"),
    ],
)
def test_tables_that_are_not(table, words):
    with pytest.raises(ValueError, match=words):
        Table(table)


REAL = {
    "titanic": {
        "PassengerId": "identifier",
        "Survived": "flag",
        "Pclass": "ordered",
        "Name": "text",
        "Age": "number",
        "Ticket": "identifier",
        "Fare": "number",
        "Cabin": "identifier",
        "Embarked": "category",
    },
    "adult": {
        "age": "whole number",
        "fnlwgt": "whole number",
        "education-num": "ordered",
        "capital-gain": "spiked number",
        "capital-loss": "spiked number",
        "sex": "flag",
        "native-country": "category",
    },
    "telco-churn": {
        "customerID": "identifier",
        "SeniorCitizen": "flag",
        "tenure": "whole number",
        "MonthlyCharges": "number",
        "TotalCharges": "number",
        "Contract": "category",
    },
    "penguins": {"year": "ordered", "body_mass_g": "whole number", "bill_length_mm": "number", "species": "category"},
    "default": {"default": "flag", "student": "flag", "balance": "number", "income": "number"},
}


@pytest.mark.data
@pytest.mark.skipif(not MIXED.is_dir(), reason="SCOREFIELD_DATA is not set")
@pytest.mark.parametrize("name", REAL)
def test_real_tables(name):
    found = kinds_of(pd.read_csv(MIXED / f"{name}.csv", skipinitialspace=True))
    assert {column: found[column] for column in REAL[name]} == REAL[name]
