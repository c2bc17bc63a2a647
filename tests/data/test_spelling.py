"""Typed values that are written as a text file spells them: blanks, missing values, decimals and labels."""

import numpy as np
import pandas as pd
import pytest

from scorefield.data.files import write_parts
from scorefield.data.formats import Reading, output_file
from scorefield.data.formats.delimited import Delimited
from scorefield.data.tables import read_labelled, read_table

SPELLED = "work,hours,price,share,label\n" + "".join(
    [" Private, 40, 1.50,1, <=50K\n", " Private, 38, 12.25,0.5, <=50K\n", "State , 40, 3.00,2, >50K\n"] * 3
    + [" ?, ?, 2.00,4, >50K\n", "Private,20,7.10,1,>50K\n"]
)


@pytest.fixture
def table(tmp_path):
    (tmp_path / "spelled.csv").write_text(SPELLED)
    return read_labelled(tmp_path / "spelled.csv", "label")


def written(tmp_path, table, frame, name="more.csv"):
    output = output_file(tmp_path / name, table.file)
    write_parts(tmp_path / name, table.and_rows(output, frame), like=table.file)
    return tmp_path / name


def test_new_rows_are_spelled_like_most_cells_of_their_level(tmp_path, table):
    path = written(tmp_path, table, pd.concat([table.frame, table.frame]))
    lines = path.read_text().splitlines()
    assert "\n".join(lines[:12]) == SPELLED.strip()
    assert lines[12] == " Private, 40, 1.50,1, <=50K"
    assert lines[14] == "State , 40, 3.00,2, >50K"
    assert lines[-2:] == [" ?, ?, 2.00,4, >50K", " Private, 20, 7.10,1, >50K"]  # the odd spelling is not repeated


def test_pandas_reads_the_same_columns(tmp_path, table):
    more = written(tmp_path, table, pd.concat([table.frame, table.frame.iloc[:8]]))
    before, after = pd.read_csv(tmp_path / "spelled.csv"), pd.read_csv(more)
    pd.testing.assert_series_equal(before.dtypes, after.dtypes)
    for name in ("work", "label"):
        assert set(before[name]) == set(after[name])


def test_fractions_stay_fractions_where_all_new_ones_are_whole(tmp_path, table):
    whole = table.frame.assign(share=2.0)
    new = pd.read_csv(written(tmp_path, table, pd.concat([table.frame, whole]))).iloc[len(table) :]
    output_file(tmp_path / "alone.csv", table.file)
    write_parts(tmp_path / "alone.csv", [whole], like=table.file)
    assert new["share"].eq(2).all()
    assert pd.read_csv(tmp_path / "alone.csv")["share"].dtype == float


def test_filled_cells_are_spelled(tmp_path, table):
    full = table.frame.fillna({"hours": 35})
    output = output_file(tmp_path / "full.csv", table.file)
    write_parts(tmp_path / "full.csv", [table.filled_for(output, full)], like=table.file)
    assert " ?, 35, 2.00,4, >50K" in (tmp_path / "full.csv").read_text()


def test_decimal_commas_keep_their_decimals(tmp_path):
    (tmp_path / "de.csv").write_text("preis;zahl\n1,50;1\n2,25;2\n")
    table = read_table(tmp_path / "de.csv", Reading(decimal=","))
    path = written(tmp_path, table, pd.concat([table.frame, pd.DataFrame({"preis": [3.0, 4.5], "zahl": [1, 2]})]))
    assert path.read_text().splitlines()[3:] == ["3,00;1", "4,50;2"]


def test_spellings_survive_plain_values(table):
    again = Delimited.from_plain(table.file.to_plain())
    assert again.header == table.file.header
    for name in table.frame:
        assert again.spellings.get(name) == table.file.spellings[name]


def test_columns_without_blanks_have_no_spelling(tmp_path):
    pd.DataFrame({"a": np.arange(5), "b": list("vwxyz")}).to_csv(tmp_path / "plain.csv", index=False)
    assert read_table(tmp_path / "plain.csv").file.to_plain()["spellings"] == {}


def test_other_formats_hold_values_without_blanks(tmp_path, table):
    path = written(tmp_path, table, pd.concat([table.frame, table.frame]), "more.parquet")
    assert set(pd.read_parquet(path)["label"]) == {"<=50K", ">50K"}
