"""Keys among whole numbers are told by name and shape; what is measured stays a number, however rarely it repeats."""

import os
import pathlib

import numpy as np
import pandas as pd
import pytest

from scorefield import describe_columns
from scorefield.data.containers import Table
from scorefield.data.kinds import classify

N = 300
RNG = np.random.default_rng(7)
DATA = pathlib.Path(os.environ.get("SCOREFIELD_DATA", "nowhere"))


def with_repeated_rows(values, n_repeated=20, name="x"):
    """A table of a column and of measurements, with copies of its first rows at the end."""
    n = len(values)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: values, "a": rng.normal(size=n), "b": rng.integers(0, 3, n)})
    return pd.concat([table, table[:n_repeated]], ignore_index=True)


def kind_of(table, name="x", columns=None):
    return {column: kind for column, kind, _ in classify(Table(table), columns)}[name]


def thinned(share, rng):
    return np.flatnonzero(rng.random(round(N / share)) < share)


KEYS = {
    "row numbers": ("x", np.arange(1, N + 1)),
    "shuffled row numbers": ("x", RNG.permutation(N) + 5000),
    "a third of consecutive numbers": ("x", thinned(1 / 3, RNG)),
    "numbers as floats": ("x", np.arange(N, dtype=float)),
    "numbers beyond 2**53": ("x", 10**17 + RNG.choice(10**12, N, replace=False)),
    "far apart, by their name": ("customerID", RNG.choice(10**9, N, replace=False)),
    "an order number": ("order number", RNG.choice(10**9, N, replace=False)),
}


@pytest.mark.parametrize("n_repeated", [0, 20])
@pytest.mark.parametrize("case", KEYS)
def test_keys_are_identifiers_also_where_rows_are_repeated(case, n_repeated):
    name, values = KEYS[case]
    table = with_repeated_rows(values, n_repeated, name)
    assert kind_of(table, name) == "identifier"
    assert kind_of(table, name, {name: "number"}) == "number"
    said = describe_columns(table).rows[0]["treatment"]
    assert "every value is different" in said
    assert ("apart from repeated rows" in said) == (n_repeated > 0)
    assert ("named like a key" in said) == (name != "x")


def test_a_few_values_that_repeat_in_other_rows_leave_a_key():
    rows = with_repeated_rows(np.arange(N), 5)
    rows.loc[N:, "a"] += 1  # corrected since
    assert kind_of(rows) == "identifier"
    assert "most values are different" in describe_columns(rows).rows[0]["treatment"]
    seldom = with_repeated_rows(RNG.choice(10**9, N, replace=False), 90, "customer_id")
    seldom.loc[N:, "a"] += 1  # customers who came again
    assert kind_of(seldom, "customer_id") == "identifier"
    assert kind_of(seldom.rename(columns={"customer_id": "spent"}), "spent") == "whole number"


def test_another_key_with_numbers_of_its_own_does_not_hide_the_copies():
    table = with_repeated_rows(np.arange(N), 20, "order").assign(row=np.arange(N + 20))
    assert kind_of(table, "order") == kind_of(table, "row") == "identifier"


MEASURED = {
    "incomes": ("income", np.exp(RNG.normal(10.5, 0.6, N)).round()),
    "unnamed incomes": ("x", np.exp(RNG.normal(10.5, 0.6, N)).round()),
    "different incomes": ("x", RNG.choice(10**6, N, replace=False)),
    "sorted incomes": ("x", np.sort(RNG.choice(10**6, N, replace=False))),
    "sorted sensor": ("x", np.sort(RNG.integers(0, 4096, N))),
    "drawn from as many values": ("x", RNG.integers(0, N, N)),
    "seconds": ("Time", np.arange(N)),
    "years": ("year", np.arange(1700, 1700 + N)),
    "moments at a steady pace": ("x", np.cumsum(RNG.integers(8, 13, N))),
    "moments at an even pace": ("x", np.arange(N) * 60),
    "nanoseconds": ("timestamp", 1_700_000_000 * 10**9 + np.cumsum(RNG.integers(10**8, 10**10, N))),
    "fractions": ("id", np.arange(N) + 0.25),
    "ranks": ("rank", RNG.permutation(N) + 1),
    "counts of rooms": ("number of rooms", RNG.integers(0, 90, N)),
}


@pytest.mark.parametrize("n_repeated", [0, 20])
@pytest.mark.parametrize("case", MEASURED)
def test_measurements_are_no_keys(case, n_repeated):
    name, values = MEASURED[case]
    assert kind_of(with_repeated_rows(values, n_repeated, name), name) in ("number", "whole number")


def test_values_that_other_columns_follow_from_are_no_keys_though_rows_repeat_with_them():
    values = RNG.integers(0, 200, 400)
    table = pd.DataFrame({"x": values, "warm": values > 100, "twice": 2 * values})
    assert len(np.unique(values)) / 400 < 0.5
    assert kind_of(table) == "whole number"
    assert kind_of(pd.DataFrame({"x": RNG.integers(0, 200, 220), "warm": RNG.random(220) < 0.5})) == "whole number"


@pytest.mark.parametrize("seed", range(20))
def test_independent_whole_numbers_are_never_keys(seed):
    """Of any law and density: values without a key's name are sets aside once in many tables only."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 2000))
    table = pd.DataFrame({f"c{i}": rng.integers(0, round(n * 4.0**i) + 1, n) for i in range(-1, 6)})
    table["normal"], table["heavy"] = np.rint(rng.normal(0, n, n)), np.rint(n * rng.standard_cauchy(n))
    assert not [name for name, kind, _ in classify(Table(table)) if kind == "identifier"]


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="SCOREFIELD_DATA is not set")
def test_no_measurement_of_real_arrays_is_a_key():
    for file in sorted((DATA / "imblearn" / "zenodo").glob("*.npz")):
        found = classify(Table(pd.DataFrame(np.load(file)["data"]).add_prefix("c")))
        assert not [name for name, kind, _ in found if kind in ("identifier", "text")], file.name
