"""What describe_columns says of a table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from scorefield import describe_columns

N = 40
TABLE = pd.DataFrame(
    {
        "customerID": np.arange(N) * 7,
        "gain": np.r_[np.zeros(10), np.arange(1, 31)],
        "size": ["S", "M", "L", None] * 10,
        "<note>": [f"this is the long story number {i}" for i in range(N)],
        "day": pd.date_range("2024-01-01", periods=N),
        "one": 5,
        "none": None,
    }
)


def test_rows():
    rows = {row["column"]: row for row in describe_columns(TABLE).rows}
    assert {name: row["kind"] for name, row in rows.items()} == {
        "customerID": "identifier",
        "gain": "spiked number",
        "size": "category",
        "<note>": "text",
        "day": "date",
        "one": "constant",
        "none": "constant",
    }
    assert rows["size"]["gaps"] == 0.25
    assert rows["size"]["values"] == "L (33 %), M (33 %), S (33 %)"
    assert rows["size"]["treatment"] == "modelled as levels; missing values too"
    assert rows["gain"]["values"] == "0 to 30, spike at 0 (25 %)"
    assert rows["customerID"]["treatment"] == (
        "set aside: every value is different; named like a key; rising from row to row; new keys in generated rows"
    )
    assert rows["<note>"]["treatment"] == "set aside: free text; blank in generated rows"
    assert rows["day"]["values"] == "2024-01-01 to 2024-02-09"
    assert rows["one"]["values"] == "5"
    assert rows["none"]["treatment"] == "left empty: no known cell"


def test_polars_says_the_same():
    assert repr(describe_columns(pl.from_pandas(TABLE))) == repr(describe_columns(TABLE))


def test_lines_are_aligned():
    lines = repr(describe_columns(TABLE)).splitlines()
    assert len(lines) == 1 + TABLE.shape[1]
    starts = [lines[0].index(title) for title in ("kind", "missing", "values", "what is done")]
    assert all(line[start - 2 : start].strip() == "" for line in lines for start in starts)


def test_html_is_escaped():
    page = describe_columns(TABLE)._repr_html_()
    assert page.count("<tr>") == 1 + TABLE.shape[1]
    assert "&lt;note&gt;" in page
    assert "<note>" not in page


def test_overrides_are_said():
    rows = describe_columns(TABLE, {"size": "identifier", "gain": "number"}).rows
    assert rows[2]["treatment"] == "set aside: as asked; blank in generated rows"
    assert rows[1]["values"] == "0 to 30"


def test_repeated_rows_are_counted():
    """Those of the columns that are modelled: copies have keys and stories of their own."""
    both = pd.concat([TABLE, TABLE[:3].assign(customerID=[1, 2, 3])])
    found = describe_columns(both)
    assert (found.repeated_rows, describe_columns(TABLE).repeated_rows) == (3, 0)
    last = repr(found).splitlines()[-1]
    assert last == "3 rows repeat an earlier one apart from the columns that are set aside; splits keep them together."
    assert last in found._repr_html_()
    (one,) = describe_columns(pd.DataFrame({"a": [1.5, 2.5, 1.5], "b": [None] * 3}))._notes
    assert one == "1 row repeats an earlier one; splits keep them together."


def test_labels_that_the_order_of_a_column_tells_are_warned_of():
    labels = np.repeat([0, 1], N // 2)
    (said,) = describe_columns(TABLE[["customerID", "size"]], labels=labels).warnings
    assert said.startswith("The order of 'customerID' alone predicts the label")
    assert f"warning: {said}" in repr(describe_columns(TABLE[["customerID"]], labels=labels))
    assert not describe_columns(TABLE, labels=np.random.default_rng(0).permutation(labels)).warnings


def test_many_levels_are_said_to_be_pooled():
    values = [f"common {i % 32}" for i in range(96)] + ["rare", "rarer"]
    (row,) = describe_columns(pd.DataFrame({"x": values})).rows
    assert row["treatment"] == "modelled as levels; 2 rare levels are pooled"
    assert row["values"].endswith("and 31 more")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pd.to_timedelta([1, 36], unit="h"), "1:00:00 to 1 day, 12:00:00"),
        (pd.period_range("2024-01", periods=3, freq="M"), "2024-01 to 2024-03"),
        (
            pd.to_datetime(["2024-01-01 08:00", "2024-01-02 09:30"]).tz_localize("UTC"),
            "2024-01-01 08:00:00 UTC to 2024-01-02 09:30:00 UTC",
        ),
        (pd.date_range("2024-03-30", periods=3, tz="Europe/Paris"), "2024-03-30 to 2024-04-01"),
        (["08:30", "09:45"], "08:30 to 09:45"),
        ([True, False, True], "True (67 %), False (33 %)"),
        (["two\nlines", "b", "b"], "b (67 %), two lines (33 %)"),
        (["a level with a very long name", "b", "b"], "b (67 %), a level with a ... (33 %)"),
    ],
)
def test_values_are_shown_as_users_write_them(values, shown):
    (row,) = describe_columns(pd.DataFrame({"x": values})).rows
    assert row["values"] == shown


def test_dates_in_several_spellings_are_named():
    days = pd.date_range("2024-01-05", periods=40)
    mixed = [f"{day:%d.%m.%Y}" if i % 2 else f"{day:%Y-%m-%d}" for i, day in enumerate(days)]
    codes = [f"{day:%d.%m.%Y}x" for day in days]
    dates, others = describe_columns(pd.DataFrame({"day": mixed, "code": codes})).rows
    assert dates["reason"] == "dates in several spellings, of which one alone would be read"
    assert others["reason"] == "every value is different"
