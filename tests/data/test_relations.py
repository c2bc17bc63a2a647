"""Relations between columns: the grammar, what keeps them, and cells computed from the others."""

import datetime

import numpy as np
import pandas as pd
import pytest

from scorefield.data.cells import Cells
from scorefield.data.containers import Table
from scorefield.data.encoding import TableEncoder
from scorefield.data.likeness import like_fitted
from scorefield.data.relations import check_relations, parse_relations, refuse_violations

NAMES = ["a", "b", "net price", "total", "it's", 'so "called"', "1st", "x.y"]


def only(constraint, names=NAMES):
    (relation,) = parse_relations([constraint], names)
    return relation


@pytest.mark.parametrize(
    ("text", "terms", "constant", "operator"),
    [
        ("a <= b", ((1, "a"), (-1, "b")), 0, "<="),
        ("a>=b", ((-1, "a"), (1, "b")), 0, "<="),
        ("a > b", ((-1, "a"), (1, "b")), 0, "<"),
        ("total = a + b", ((1, "total"), (-1, "a"), (-1, "b")), 0, "=="),
        ("total == a - -b", ((1, "total"), (-1, "a"), (-1, "b")), 0, "=="),
        ("'net price' + 2.5 <= total - 1e1", ((1, "net price"), (-1, "total")), 12.5, "<="),
        ('"it\'s" < `so "called"`', ((1, "it's"), (-1, 'so "called"')), 0, "<"),
        ("'1st' <= x.y", ((1, "1st"), (-1, "x.y")), 0, "<="),
        ("-a + b <= 3", ((-1, "a"), (1, "b")), -3, "<="),
    ],
)
def test_text_is_read_by_the_grammar(text, terms, constant, operator):
    relation = only(text)
    assert (relation.terms, relation.constant, relation.operator) == (terms, constant, operator)


def test_tuples_chains_and_arrays():
    assert only(("net price", "<=", "total")).terms == ((1, "net price"), (-1, "total"))
    assert parse_relations(("a", "<=", "b"), NAMES) == parse_relations([("a", "<=", "b")], NAMES)
    assert [r.terms for r in parse_relations("a <= b <= total", NAMES)] == [
        ((1, "a"), (-1, "b")), ((1, "b"), (-1, "total"))
    ]  # fmt: skip
    assert only((0, "<=", 2), [0, 1, 2]).terms == only("x0 <= x2", [0, 1, 2]).terms == ((1, 0), (-1, 2))
    assert parse_relations(None, NAMES) == []


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ("total", "cannot be read at 'its end'"),
        ("a <=", "cannot be read at 'its end'"),
        ("a b <= total", "cannot be read at 'b'"),
        ("a <= (b)", r"cannot be read at '\(b\)'"),
        ("a <= __import__('os')", "got '__import__'; the columns are 'a', 'b', 'net price'"),
        ("a <= lambda", "got 'lambda'"),
        ("a * 2 <= b", r"cannot be read at '\* 2 <= b'"),
        ("net price <= b", "got 'net'; the columns .* are quoted"),
        ("a + a <= b", r"got \['a'\] more than once"),
        ("1 <= 2", "got none"),
        (("a", "!=", "b"), "Expected a constraint such as"),
        (3, "Expected a constraint such as"),
        (("a", "<=", None), "Expected a column or a number in a constraint, got None"),
    ],
)
def test_what_cannot_be_read_is_told(constraint, said):
    with pytest.raises(ValueError, match=said):
        parse_relations([constraint], NAMES)


def opened(table, columns=None):
    encoder, whole = TableEncoder(columns).fit(table), Table(table)
    columns = {column.name: column for column in encoder.columns_}
    return {name: like_fitted(whole.cells(name), column)[0] for name, column in columns.items()}, columns


def kept(table, constraint, kinds=None):
    cells, columns = opened(table, kinds)
    relations = parse_relations([constraint], list(columns))
    check_relations(relations, columns)
    return np.all([relation.kept(cells, columns) for relation in relations], axis=0)


N = 60
RNG = np.random.default_rng(0)
CENTS = pd.DataFrame({"a": RNG.uniform(0, 9, N).round(2), "b": RNG.uniform(0, 9, N).round(2)})
CENTS["total"] = (CENTS.a + CENTS.b).round(2)


def test_sums_of_decimals_are_compared_on_their_grid():
    assert (CENTS.a + CENTS.b != CENTS.total).any()  # as floats are
    assert kept(CENTS, "total == a + b").all()
    assert kept(CENTS, "a + b <= total").all()
    assert not kept(CENTS, "a + b < total").any()
    wrong = CENTS.assign(total=CENTS.total + 0.01)
    assert not kept(wrong, "total == a + b").any()
    assert kept(wrong, "a + b < total").all()


def test_sums_of_floats_allow_for_rounding_alone():
    table = pd.DataFrame({"a": RNG.normal(size=N), "b": 1e3 * RNG.normal(size=N)})
    table["total"] = table.b + table.a
    assert kept(table, "total == a + b").all()
    assert not kept(table.assign(total=table.total * (1 + 1e-12)), "total == a + b").any()
    assert kept(table.astype(np.float32), "total == a + b").all()


def test_large_whole_numbers_are_compared_exactly():
    base = 2**62 + np.repeat(RNG.integers(0, 10**9, N // 2), 2)
    table = pd.DataFrame({"a": base, "b": base + (np.arange(N) % 2)})
    kinds = dict.fromkeys("ab", "whole number")
    assert (kept(table, "b <= a", kinds) == (np.arange(N) % 2 == 0)).all()
    assert (kept(table, "a < b", kinds) == (np.arange(N) % 2 == 1)).all()
    wide = pd.DataFrame({"a": base, "b": base, "c": base - base.min()})
    assert not kept(wide, "a + b <= c", dict.fromkeys("abc", "whole number")).any()  # the sum is beyond int64


def test_dates_are_compared_as_dates_whatever_holds_them():
    days = pd.date_range("2024-01-30", periods=N)
    table = pd.DataFrame({
        "start": days, "text": (days + pd.Timedelta(days=1)).strftime("%Y-%m-%d"),
        "day": [d.date() for d in days], "stay": pd.to_timedelta(np.arange(1, N + 1), "D"),
    })  # fmt: skip
    table["end"] = table.start + table.stay
    for constraint in ("start < text", "day <= start", "start <= day", "end == start + stay", "start + stay <= end"):
        assert kept(table, constraint).all(), constraint
    assert not kept(table, "text <= start").any()
    later = table.assign(day=[d + datetime.timedelta(days=1) for d in table.day])
    assert not kept(later, "day <= start").any()


def test_a_missing_cell_keeps_a_relation():
    table = CENTS.assign(total=np.where(np.arange(N) % 3 == 0, np.nan, CENTS.total + 1))
    assert (kept(table, "total == a + b") == (np.arange(N) % 3 == 0)).all()


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ("start <= price", "got 'start' .date., 'price' .number."),
        ("start + end <= end2", "Expected dates to be compared with dates"),
        ("start <= 5", "Expected dates to be compared with dates"),
        ("city <= price", "Expected numbers or dates in the constraint 'city <= price', got the category 'city'"),
        ("customer <= price", "got the identifier 'customer'"),
    ],
)
def test_columns_that_cannot_be_compared_are_told(constraint, said):
    days = pd.date_range("2024-01-30", periods=N).to_numpy()
    table = pd.DataFrame(
        {"start": days, "end": days, "end2": days, "price": CENTS.a, "city": ["A", "B", "C"] * (N // 3)}
    )
    table["customer"] = [f"c{i}" for i in range(N)]
    _, columns = opened(table)
    with pytest.raises(ValueError, match=said):
        check_relations(parse_relations([constraint], list(columns)), columns)


def test_violations_are_counted():
    cells, columns = opened(CENTS.assign(total=np.where(np.arange(N) < 3, 0.0, CENTS.total)))
    with pytest.raises(ValueError, match=r"got 3 of 60 rows violate 'total == a \+ b'; correct"):
        refuse_violations(parse_relations(["a <= 9", "total == a + b"], list(columns)), cells, columns)


@pytest.mark.parametrize("name", ["a", "b", "total"])
def test_a_cell_is_computed_from_the_others_on_its_grid(name):
    cells, columns = opened(CENTS)
    (relation,) = parse_relations(["total == a + b"], list(columns))
    assert np.array_equal(relation.solved(name, cells, columns), CENTS[name])


def test_computed_whole_numbers_and_times_keep_their_form():
    days = pd.date_range("2024-01-30", periods=N)
    table = pd.DataFrame({"n": np.arange(N) + 100, "m": np.arange(N) * 7, "start": days})
    table["sum"], table["stay"] = table.n + table.m, pd.to_timedelta(np.arange(1, N + 1), "D")
    table["end"] = table.start + table.stay
    cells, columns = opened(table)
    for constraint in ("sum == n + m", "end == start + stay"):
        (relation,) = parse_relations([constraint], list(columns))
        for name in relation.names:
            solved = relation.solved(name, cells, columns)
            assert solved.dtype == np.int64
            assert np.array_equal(solved, cells[name].values)


def test_relations_of_empty_tables():
    _, columns = opened(CENTS)
    none = {name: Cells("number", np.zeros(0), np.zeros(0, bool)) for name in columns}
    (relation,) = parse_relations(["total == a + b"], list(columns))
    assert relation.kept(none, columns).shape == (0,)
