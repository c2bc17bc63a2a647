"""Tables from files: headers of any length, warnings, odd cells, decimals."""

import decimal
import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scorefield.data.parquet import ParquetTable
from scorefield.data.tables import csv_header, read_labelled, read_parts, read_table


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("kind", [".csv", ".csv.gz"])
def test_a_header_of_any_length_is_read_whole(tmp_path, separator, kind):
    names = [f"column {i}, in EUR;\tor | USD" if i % 1000 == 0 else f"c{i}" for i in range(200_000)]
    names[7] = 'two\nlines and "quotes"'
    line = separator.join('"' + name.replace('"', '""') + '"' if len(name) > 9 else name for name in names)
    path = tmp_path / f"wide{kind}"
    with (gzip.open if kind.endswith("gz") else open)(path, "wt", encoding="utf-8-sig", newline="") as stream:
        stream.write(line + "\r\n" + separator.join(["1"] * len(names)) + "\r\n")
    assert csv_header(path, kind) == (separator, names)


def test_duplicates_are_found_far_into_a_header(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(200_000)) + ",c150000\n1\n")
    with pytest.raises(ValueError, match=r"unique column names in .*wide.csv, got 'c150000' more than once; rename"):
        csv_header(path, ".csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n1,2\n", "Expected a header in the first line"),
        (",,\n1,2,3\n", "Expected a header in the first line"),
        ('"' + "a" * 200_000, "got a name of more than 131,072 characters; check its quotes"),
    ],
)
def test_bad_headers(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "bad.csv")


def test_filters_of_warnings_are_the_callers_between_parts(tmp_path):
    pd.DataFrame({"a": range(10)}).to_csv(tmp_path / "a.csv", index=False)
    before = list(warnings.filters)
    for part in read_parts(tmp_path / "a.csv", 3):
        assert list(warnings.filters) == before
        assert len(part) <= 3


@pytest.mark.parametrize("rows", [1, 100])
def test_a_longer_line_is_refused_in_parts_too(tmp_path, rows):
    (tmp_path / "long.csv").write_text("a,b\n" + "1,2,3\n" * 10)
    with pytest.raises(ValueError, match=r"Expected a table in .*long.csv, got lines that do not fit"):
        list(read_parts(tmp_path / "long.csv", rows))


def test_parts_are_numbered_as_the_rows_of_the_table(tmp_path):
    table = pd.DataFrame({"a": np.arange(10)})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.sample(10, random_state=0).sort_values("a").to_parquet(tmp_path / "b.parquet", row_group_size=4)
    for name in ("a.csv", "b.parquet"):
        pd.testing.assert_frame_equal(pd.concat(read_parts(tmp_path / name, 3)), table)


def column_of(tmp_path, values):
    pd.DataFrame({"c": values, "y": np.arange(len(values)) % 2}).to_csv(tmp_path / "t.csv", index=False)
    return read_labelled(tmp_path / "t.csv", "y")["c"]


@pytest.mark.parametrize("odd", ["n/a?", "12O", "1,5"])
def test_an_odd_cell_among_numbers_is_reported(tmp_path, odd):
    values = [str(i % 7) for i in range(1000)]
    assert column_of(tmp_path, values).dtype.kind == "i"
    values[499], values[600] = odd, ""
    with pytest.raises(ValueError, match=r"numbers in column 'c', as in 998 .* in row 500 below the header; correct"):
        column_of(tmp_path, values)
    values[::10] = [odd] * 100  # together with row 500 more than a tenth
    values[0] = odd
    assert column_of(tmp_path, values).dtype == "category"


def test_the_share_that_makes_a_column_numbers_is_nine_tenths(tmp_path):
    with pytest.raises(ValueError, match=r"got 'x' in row 1 below the header and 9 more such cells; correct"):
        column_of(tmp_path, ["x"] * 10 + ["1"] * 90)
    assert column_of(tmp_path, ["x"] * 11 + ["1"] * 89).dtype == "category"


def test_categories_with_numbers_among_them_stay_categories(tmp_path):
    found = column_of(tmp_path, ["2", "3", "4", "5more"] * 10)
    assert found.cat.categories.tolist() == ["2", "3", "4", "5more"]


@pytest.mark.parametrize("labels", [[True, False], [0.0, 1.0], ["a", "b"]], ids=["bool", "float", "text"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "category"])
def test_labels_of_any_kind(tmp_path, labels, kind):
    table = pd.DataFrame({"c": np.arange(20), "y": labels * 10})
    if kind == "csv":
        table.to_csv(tmp_path / "t.csv", index=False)
    else:
        table.astype({"y": "category"} if kind == "category" else {}).to_parquet(tmp_path / "t.parquet")
    assert read_labelled(next(tmp_path.iterdir()), "y")["y"].tolist() == labels * 10


def test_dates_are_no_labels(tmp_path):
    pd.DataFrame({"c": [1, 2], "y": pd.Timestamp("2020-01-01")}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"whole numbers or text as labels in 'y', got Timestamp.*; convert them"):
        read_labelled(tmp_path / "t.parquet", "y")


def test_decimals_are_numbers(tmp_path):
    prices = [decimal.Decimal(cents) / 100 for cents in range(1000, 1040)]
    columns = {
        "price": pa.array(prices, pa.decimal128(10, 2)),
        "wide": pa.array(prices, pa.decimal256(40, 3)),
        "count": pa.array(range(40)).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 0)),
        "label": pa.array([0, 1] * 20).cast(pa.decimal128(19, 0)).cast(pa.decimal128(1, 0)),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    found = read_labelled(tmp_path / "t.parquet", "label")
    assert found.dtypes.to_dict() == {"price": "float64", "wide": "float64", "count": "int64", "label": "int64"}
    np.testing.assert_array_equal(found["price"], [float(price) for price in prices])
    streamed = ParquetTable(tmp_path / "t.parquet", "label")
    rows, labels = streamed.read()
    np.testing.assert_array_equal(rows, found.drop(columns="label"))
    np.testing.assert_array_equal(labels, found["label"])
    assert streamed.integers == ["count"]
