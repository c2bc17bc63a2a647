"""Conditions on columns: what is asked for, what a table can meet, and rows that are completed to meet it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from scorefield.data.conditions import parse_conditions, read_condition
from scorefield.data.encoding import TableEncoder
from scorefield.data.row_requests import RowRequest

N = 400
RNG = np.random.default_rng(0)
DAYS = pd.date_range("2024-01-01", periods=N)
TABLE = pd.DataFrame({
    "age": RNG.integers(17, 90, N), "income": RNG.uniform(0, 9e4, N).round(2), "exact": RNG.normal(size=N),
    "children": RNG.integers(0, 4, N), "city": RNG.choice(["A", "B", "C"], N), "owner": RNG.random(N) < 0.5,
    "gain": np.where(RNG.random(N) < 0.7, 0, RNG.integers(1, 9000, N)),
    "since": DAYS, "until": (DAYS + DAYS.freq).astype(str), "customer": [f"c{i}" for i in range(N)],
    "grams": 25 * RNG.integers(100, 250, N),
    "size": pd.Categorical(RNG.choice(["s", "m", "l"], N), ["s", "m", "l"], ordered=True),
})  # fmt: skip
ENCODER = TableEncoder().fit(TABLE)


def met(**given):
    return RowRequest(ENCODER, given, None, TABLE).met(TABLE)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"age": 40}, TABLE.age == 40),
        ({"age": "40"}, TABLE.age == 40),
        ({"age": [40, 41.0]}, TABLE.age.isin([40, 41])),
        ({"age": range(20, 30)}, TABLE.age.between(20, 29)),
        ({"age": (20, 29.5)}, TABLE.age.between(20, 29)),
        ({"grams": (3010, 3060)}, TABLE.grams.isin([3025, 3050])),
        ({"income": (20_000, 50_000)}, TABLE.income.between(20_000, 50_000)),
        ({"income": (None, 5_000)}, TABLE.income <= 5_000),
        ({"children": (1, 2)}, TABLE.children.isin([1, 2])),
        ({"city": "A"}, TABLE.city == "A"),
        ({"city": ["A", "B"]}, TABLE.city != "C"),
        ({"city": np.array(["A", "B"])}, TABLE.city != "C"),
        ({"owner": True}, TABLE.owner),
        ({"owner": "false"}, ~TABLE.owner),
        ({"gain": 0}, TABLE.gain == 0),
        ({"gain": (0, 100)}, TABLE.gain <= 100),
        ({"gain": (1, None)}, TABLE.gain >= 1),
        ({"since": ("2024-02-01", "2024-02-29")}, TABLE.since.dt.month.eq(2) & TABLE.since.dt.year.eq(2024)),
        ({"since": pd.Timestamp("2024-02-01")}, TABLE.since == "2024-02-01"),
        ({"until": (None, "2024-01-05")}, TABLE.until <= "2024-01-05"),
        ({"size": ("m", None)}, TABLE["size"] >= "m"),
        ({"city": "A", "owner": False}, (TABLE.city == "A") & ~TABLE.owner),
    ],
    ids=str,
)
def test_rows_that_meet_conditions_are_those_of_pandas(given, expected):
    assert np.array_equal(met(**given), expected)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"age": 400}, "Expected 'age' between 17 and 89, the least and the greatest that were seen, got 400"),
        ({"income": (1e6, None)}, "Expected 'income' between .* that were seen, got 1000000.0.."),
        ({"since": (None, "1999-01-01")}, "Expected 'since' between 2024-01-01 and .*, got ..1999-01-01"),
        ({"age": 40.5}, "Expected whole numbers in 'age', as seen, got 40.5"),
        ({"income": 1.005}, "Expected numbers of at most 2 decimals in 'income', as seen, got 1.005"),
        ({"since": "2024-02-01 10:30"}, "Expected times in steps of 86400 s in 'since'"),
        ({"grams": 3010}, "Expected multiples of 25 in 'grams', as seen, got 3010"),
        ({"city": "Z"}, r"Expected values of 'city' that were seen \('A', 'B', 'C'\), got 'Z'"),
        ({"children": 7}, r"Expected values of 'children' that were seen \(0, 1, 2, 3\), got 7"),
        ({"children": (7, 9)}, r"Expected bounds for 'children' that hold one of its values 0, 1, 2, 3"),
        ({"city": ("A", "B")}, "Expected values for the category 'city', got bounds .* give a list"),
        ({"age": (30, 20)}, "Expected the lower bound of 'age' first"),
        ({"size": ("l", "s")}, "Expected the lower bound of 'size' first"),
        ({"age": (1, 2, 3)}, "Expected two bounds for 'age'"),
        ({"age": (None, None)}, "Expected two bounds for 'age'"),
        ({"age": []}, "Expected at least one value for 'age', got none"),
        ({"age": None}, "expected values, got a missing one"),
        ({"age": float("nan")}, "expected values, got a missing one"),
        ({"age": "old"}, "expected whole numbers, as in the fitted table, got 'old'"),
        ({"customer": "c1"}, "got one on the identifier 'customer'"),
        ({"ages": 1}, "Expected conditions on columns of 'age', .*, got one on 'ages'"),
    ],
    ids=str,
)
def test_conditions_that_no_row_can_meet_are_told_with_what_was_seen(given, said):
    with pytest.raises(ValueError, match=said):
        RowRequest(ENCODER, given, None, TABLE)


def test_all_problems_are_told_at_once():
    with pytest.raises(ValueError, match=r"'Z'(.|\n)*'ages'"):
        RowRequest(ENCODER, {"city": "Z", "ages": 1})
    with pytest.raises(ValueError, match="as a dict such as"):
        parse_conditions([("age", 40)], ENCODER.columns_)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("age=40", ("age", "40")),
        ("income = 20000..50000", ("income", ("20000", "50000"))),
        ("income=..1e4", ("income", (None, "1e4"))),
        ("city=A, B", ("city", ["A", "B"])),
        ("since=2024-01-01..2024-02-01", ("since", ("2024-01-01", "2024-02-01"))),
    ],
)
def test_conditions_of_the_command_line(text, read):
    assert read_condition(text) == read
    name, wanted = read
    assert RowRequest(ENCODER, {name: wanted}, None, TABLE).met(TABLE).any()


@pytest.mark.parametrize("text", ["age", "=4", "age=", ""])
def test_text_that_is_no_condition_is_told(text):
    with pytest.raises(ValueError, match="Expected a condition such as age=40"):
        read_condition(text)


def test_arrays_are_asked_by_position():
    X = TABLE[["age", "exact"]].to_numpy()
    encoder = TableEncoder().fit(X)
    for key in (0, "x0"):
        assert np.array_equal(
            RowRequest(encoder, {key: (20, 30)}, ["x1 <= x0"], X).met(X), (X[:, 0] >= 20) & (X[:, 0] <= 30)
        )


def test_conditions_that_contradict_a_relation_are_told():
    with pytest.raises(
        ValueError, match="Expected conditions that keep 'since < until', got since = 2024-02-02 and until"
    ):
        RowRequest(ENCODER, {"since": "2024-02-02", "until": "2024-02-01"}, ["since < until"], TABLE)


BILLS = pd.DataFrame(
    {"net": RNG.uniform(1, 90, N).round(2), "tax": RNG.uniform(0, 9, N).round(2), "items": RNG.integers(1, 5, N)}
)
BILLS["gross"] = (BILLS.net + BILLS.tax).round(2)
BILLS["tip"] = RNG.integers(0, 30, N)
BILLS["paid"] = (BILLS.gross + BILLS.tip).round(2)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize("order", [1, -1])
def test_completed_rows_keep_linked_sums_exactly(make, order):
    constraints = ["gross == net + tax", "paid == gross + tip"][::order]
    encoder, noisy = (
        TableEncoder().fit(make(BILLS)),
        make(BILLS.assign(gross=BILLS.gross + 0.37, paid=BILLS.paid - 1.11)),
    )
    request = RowRequest(encoder, {"tip": 5}, constraints, make(BILLS))
    assert not request.relations_kept(noisy).any()
    found = request.completed(noisy, hold=True, rng=0)
    assert request.relations_kept(found).all()
    assert (np.asarray(found["tip"]) == 5).all()
    rows = found if make is pd.DataFrame else found.to_pandas()
    assert (rows.dtypes == BILLS.dtypes).all()
    cents = (100 * rows).round().astype(int)
    assert (cents.gross == cents.net + cents.tax).all()
    assert (cents.paid == cents.gross + cents.tip).all()


def test_cells_that_are_not_free_are_not_computed():
    request = RowRequest(TableEncoder().fit(BILLS), None, ["gross == net + tax"], BILLS)
    noisy, nothing = BILLS.assign(gross=BILLS.gross + 1), np.zeros(N, bool)
    free = {"gross": nothing, "net": ~nothing, "tax": nothing}
    found = request.completed(noisy, free=free)
    assert found[["gross", "tax"]].equals(noisy[["gross", "tax"]])
    assert np.allclose(found.net, BILLS.net + 1)
    assert request.completed(noisy, free=dict.fromkeys(free, nothing)).equals(noisy)


def test_computed_cells_beyond_what_was_seen_are_not_possible():
    request = RowRequest(TableEncoder().fit(BILLS), None, ["gross == net + tax"], BILLS)
    drawn = BILLS.assign(net=np.where(np.arange(N) < 7, BILLS.gross.max() + 1, BILLS.net))
    assert (request.possible(request.completed(drawn)) == (np.arange(N) >= 7)).all()


def test_pooled_levels_are_asked_for_by_name():
    """Rare levels of many are modelled as one; rows that are asked for some of them have those alone."""
    zips = np.concatenate([np.repeat([f"z{i}" for i in range(30)], 20), [f"rare{i}" for i in range(40)]])
    table = pd.DataFrame({"zip": zips, "x": np.arange(len(zips)) / 7})
    encoder = TableEncoder({"zip": "category"}).fit(table)
    assert encoder.columns_[0].pool
    for wanted in ("rare3", ["rare3", "rare4", "z1"]):
        request = RowRequest(encoder, {"zip": wanted}, None, table)
        drawn = table[table.zip.isin([f"rare{i}" for i in range(20)])].reset_index(drop=True)
        found = request.completed(drawn, hold=True, rng=0)
        assert set(found.zip) == {"rare3", "rare4"} & set(np.atleast_1d(wanted))
        assert request.met(found).all()
