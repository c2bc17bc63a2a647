"""Tables from files: typed columns, cells that are written back as they were, and all problems in one report."""

import csv
import datetime
import decimal
import gzip
import json
import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scorefield.data.description import describe_columns
from scorefield.data.files import write_parts
from scorefield.data.formats import Reading, output_file
from scorefield.data.formats.delimited import csv_header
from scorefield.data.parquet import ParquetTable
from scorefield.data.tables import TableError, kept_names, open_first, read_labelled, read_pair, read_parts, read_table

SEVERAL = 'zip,price, name ,y\r\n00501, 1.50,"a, ""b""",0\r\n10001,,  c ,1\r\n10002,-0.5,,NA\r\n'


def read(tmp_path, text, name="t.csv", target=None, saved="utf-8", **options):
    (tmp_path / name).write_bytes(text.encode(saved))
    reading = Reading(**options)
    return read_table(tmp_path / name, reading) if target is None else read_labelled(tmp_path / name, target, reading)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("kind", [".csv", ".csv.gz"])
def test_a_header_of_any_length_is_read_whole(tmp_path, separator, kind):
    names = [f"column {i}, in EUR;\tor | USD" if i % 1000 == 0 else f"c{i}" for i in range(200_000)]
    names[7] = 'two\nlines and "quotes"'
    line = separator.join('"' + name.replace('"', '""') + '"' if len(name) > 9 else name for name in names)
    path = tmp_path / f"wide{kind}"
    with (gzip.open if kind.endswith("gz") else open)(path, "wt", encoding="utf-8-sig", newline="") as stream:
        stream.write(line + "\r\n" + separator.join(["1"] * len(names)) + "\r\n")
    assert csv_header(path) == (separator, names, "\r\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n1,2\n", "Expected a header in the first line"),
        (",,\n1,2,3\n", "Expected a header in the first line"),
        ('"' + "a" * 200_000, "got a name of more than 131,072 characters; check its quotes"),
        ("a,b\n1,2,3\n", r"lines that do not fit .*Expected 2 columns, got 3"),
        ("a,b\n1,2\n3\n", r"lines that do not fit .*Expected 2 columns, got 1"),
        ('a,b\n1,"2\n3,4\n', r"got a quote that is not closed before '2\\n3,4"),
    ],
)
def test_lines_that_make_no_table(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)
    with pytest.raises(ValueError, match=message):
        list(read_parts(tmp_path / "t.csv", rows=1))


# Cells of a column, its dtype and its values; None is a gap.
COLUMNS = {
    "whole": (["1", " 2", "-3 "], "int64", [1, 2, -3]),
    "whole with a gap": (["9007199254740993", " "], "Int64", [9007199254740993, None]),
    "wider than 64 bits": (["1", "99999999999999999999"], "object", [1, 99999999999999999999]),
    "fractions": (["1.50", ".5", "+2", "1e3", "-0.5"], "float64", [1.5, 0.5, 2, 1000, -0.5]),
    "zero": (["0", "0.5", "-0.25"], "float64", [0, 0.5, -0.25]),
    "leading zeros": (["00501", "10001"], "str", ["00501", "10001"]),
    "signed leading zeros": (["-01", "1"], "str", ["-01", "1"]),
    "gaps among numbers": (["1", "NA", "?", "-", "null", "N/A"], "Int64", [1, *[None] * 5]),
    "levels among text": (["NA", "x", "?", ""], "str", ["NA", "x", "?", None]),
    "only words of gaps": (["NA", "?"], "str", ["NA", "?"]),
    "one word of gaps": (["NA", "NA", ""], "float64", [None] * 3),
    "one word, and a level": (["NA", "x"], "str", ["NA", "x"]),
    "no cell": (["", " "], "float64", [None, None]),
    "true and false": (["true", "False"], "str", ["true", "False"]),
    "dates": (["2024-05-01", "2024-05-02"], "str", ["2024-05-01", "2024-05-02"]),
    "few numbers": (["2", "3", "5more"], "str", ["2", "3", "5more"]),
    "hexadecimal": (["0x10", "1_000"], "str", ["0x10", "1_000"]),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_what_a_column_of_text_is(tmp_path, case):
    cells, dtype, values = COLUMNS[case]
    found = read(tmp_path, "a,b\n" + "".join(f"{cell},x\n" for cell in cells)).frame["a"]
    text = pd.Series(["x"]).dtype  # "str" from pandas 3
    assert found.dtype == (text if dtype == "str" else dtype)
    assert [None if pd.isna(value) else value for value in found] == values


def test_marks_of_thousands_are_not_taken_for_decimal_ones(tmp_path):
    numbers = np.random.default_rng(0).integers(2, 400, 150) * 17
    german = "a;b\n" + "".join(f"{number:,};x\n" for number in numbers).replace(",", ".")
    frame = read(tmp_path, german).frame
    with pytest.raises(ValueError, match="'number:point' or 'number:comma' decides"):
        describe_columns(frame)
    row = describe_columns(frame, columns={"a": "number:comma"}).rows[0]
    assert row["values"].endswith(f"{numbers.max():,}".replace(",", "."))
    # Fractions of three decimals all have them, also whole ones, or end with a zero now and then.
    for text in ("".join(f"{number / 1000:.3f},x\n" for number in numbers),
                 "".join(f"{number / 1000},x\n" for number in [*numbers, *range(1000, 9000, 1000)]),
                 "".join(f"{number:.3f},x\n" for number in [0, *numbers / 1000]).replace("0.000", "0")):  # fmt: skip
        assert read(tmp_path, "a,b\n" + text).frame["a"].dtype == float


def test_options_of_text_files(tmp_path):
    found = read(tmp_path, "a;b;c\n1,5;k.A.;é\n2,25;x;é\n", decimal=",", na=("k.A.",), saved="latin-1",
                 encoding="latin-1", separator=";", drop=("c",))  # fmt: skip
    assert list(found.frame) == ["a", "b"]
    assert found.frame["a"].tolist() == [1.5, 2.25]
    assert found.frame["b"].fillna("gap").tolist() == ["gap", "x"]  # a gap of text is None before pandas 3, then nan
    zips = "zip\n007\n12\n"
    assert read(tmp_path, zips, columns={"zip": "number"}).frame["zip"].tolist() == [7, 12]
    assert read(tmp_path, "zip\n7\n12\n", columns={"zip": "category"}).frame["zip"].tolist() == ["7", "12"]
    with pytest.raises(ValueError, match=r"Expected text in utf-8 .*; name its encoding, such as --encoding latin-1"):
        read(tmp_path, "a\né\n", saved="latin-1")
    assert read(tmp_path, "a,b\né,1\n", saved="utf-16", encoding="utf-16").frame["a"].tolist() == ["é"]
    assert list(read(tmp_path, "a,b\né,1\n", saved="utf-8-sig", encoding="utf8").frame) == ["a", "b"]
    with pytest.raises(ValueError, match="Expected a known --encoding, got 'klingon'"):
        read(tmp_path, "a\n1\n", encoding="klingon")


def test_only_empty_cells_of_the_target_are_missing(tmp_path):
    labels = read(tmp_path, "a,y\n1,NA\n2,EU\n3,?\n", target="y", na=("?",)).frame["y"]
    assert labels.tolist() == ["NA", "EU", "?"]
    with pytest.raises(ValueError, match="got 1 missing in 'y'; drop those rows"):
        read(tmp_path, "a,y\n1,NA\n2,EU\n3,\n", target="y")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_rows_of_a_csv_file_are_written_as_they_were(tmp_path, name, encoding):
    """Blanks, zeros, quotes, line ends, header and the mark at the start."""
    content = SEVERAL.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    table = read_labelled(tmp_path / name, "y")
    assert list(table.frame) == ["zip", "price", "name", "y"]
    output = tmp_path / f"out{name[1:]}"
    more = pd.concat([table.frame, table.frame[:2].assign(zip="00999", price=[2.0, 0.1])], ignore_index=True)
    assert write_parts(output, table.and_rows(output_file(output, table.file), more), like=table.file) == 5
    written = gzip.decompress(output.read_bytes()) if name.endswith("gz") else output.read_bytes()
    assert written == content + b'00999,2.0,"a, ""b""",0\r\n00999,0.1,  c ,1\r\n'


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_any_cells_survive(tmp_path, seed, separator):
    rng = np.random.default_rng(seed)
    n_columns = rng.integers(2, 6)
    signs = np.array([*' ,;"\t\n0.-é|', "\r\n", "NA", "1"])
    rows = [["".join(rng.choice(signs, rng.integers(0, 6))) for _ in range(n_columns)] for _ in range(30)]
    names = [f"c{i}" for i in range(n_columns)]
    with open(tmp_path / "t.csv", "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=separator, lineterminator="\r\n").writerows([names, *rows])
    table = read_table(tmp_path / "t.csv", Reading(columns=dict.fromkeys(names, "text")))
    output = tmp_path / "o.csv"
    write_parts(output, [table.cells_for(output_file(output, table.file))], like=table.file)
    assert output.read_bytes() == (tmp_path / "t.csv").read_bytes()
    # Some quotes are needless, some lines empty, and the last line has no end.
    said = [['"' + cell.replace('"', '""') + '"' if set(cell) & set(f'{separator}"\r\n') or rng.random() < 0.3 else cell
             for cell in row] for row in rows]  # fmt: skip
    lines = [separator.join(line) for line in [names, *said]]
    (tmp_path / "t.csv").write_bytes("\r\n\r\n".join(lines).encode())
    table = read_table(tmp_path / "t.csv", Reading(columns=dict.fromkeys(names, "text")))
    write_parts(output, [table.cells_for(output_file(output, table.file))], like=table.file)
    assert output.read_bytes() == "".join(f"{line}\r\n" for line in lines).encode()
    write_parts(tmp_path / "o.jsonl", [table.cells_for(output_file(tmp_path / "o.jsonl", table.file))])
    found = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [list(row.values()) for row in found] == [[cell.strip() or None for cell in row] for row in rows]


def test_needless_quotes_are_kept_beside_new_cells(tmp_path):
    """Cells that are filled in or added get the quotes that they need, and columns may be left out."""
    content = 'a,price,place,y\n"1","$837.22","x, y",0\n2,"$9.50",,1\n3,,"z",0\n'
    (tmp_path / "t.csv").write_text(content)
    table = read_table(tmp_path / "t.csv", Reading(drop=("a",)))
    full = table.frame.assign(place=["x, y", "p, q", "z"], price=["$837.22", "$9.50", "$1,000.00"])
    output = tmp_path / "o.csv"
    write_parts(output, [table.filled_for(output_file(output, table.file), full)], like=table.file)
    lines = ['"$837.22","x, y",0', '"$9.50","p, q",1', '"$1,000.00","z",0']
    assert output.read_text() == "\n".join(["price,place,y", *lines, ""])
    more = full.assign(note=['say "no"'] * 3)
    write_parts(output, table.and_rows(output_file(output, table.file), pd.concat([more, more[2:]])), like=table.file)
    added = ',"say ""no"""\n'
    lines = ["price,place,y,note\n", '"$837.22","x, y",0' + added, '"$9.50",,1' + added, ',"z",0' + added]
    assert output.read_text() == "".join([*lines, '"$1,000.00",z,0' + added])
    write_parts(tmp_path / "o.tsv", [table.cells_for(output_file(tmp_path / "o.tsv", table.file))], like=table.file)
    assert (tmp_path / "o.tsv").read_text().splitlines()[1] == "$837.22\tx, y\t0"


def test_rows_of_a_jsonl_file_are_written_as_they_were(tmp_path):
    line = '{"a": 1.50, "b": "01", "c": true, "d": null, "e": 12345678901234567890}\n'
    table = read(tmp_path, line + '{"b": "x", "c": false}\n', "t.jsonl")
    assert [str(dtype) for dtype in table.frame.dtypes] == ["float64", str(pd.Series(["x"]).dtype), "bool",
                                                            "float64", "object"]  # fmt: skip
    write_parts(tmp_path / "o.jsonl", [table.cells_for(output_file(tmp_path / "o.jsonl", table.file)), table.frame])
    first, second, third, last = (tmp_path / "o.jsonl").read_text().splitlines(keepends=True)
    assert (first, second) == (line, '{"b": "x", "c": false}\n')
    assert json.loads(third) == json.loads(line)
    assert json.loads(last) == {"a": None, "b": "x", "c": False, "d": None, "e": None}


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".tsv.gz", ".jsonl", ".ndjson", ".parquet", ".feather", ".xlsx"])
def test_values_survive_every_format(tmp_path, kind):
    frame = pd.DataFrame(
        {
            "whole": pd.array([2**60 if kind != ".xlsx" else 2**50, None, 3], dtype="Int64"),
            "number": [0.1, 1e-300, np.nan],
            "text": ["00501", 'a\t"b"', None],
            "formula": ["=1+1", "=", "x"],
            "y": ["p", "q", "p"],
        }
    )
    path = tmp_path / f"t{kind}"
    write_parts(path, [frame[:2], frame[2:]])
    found = read_labelled(path, "y")
    pd.testing.assert_frame_equal(found.frame, frame, check_dtype=False)
    back = tmp_path / "back.csv"
    write_parts(back, [found.cells_for(output_file(back, found.file))])
    pd.testing.assert_frame_equal(read_table(back).frame, frame, check_dtype=False)


def test_dates_of_a_sheet_stay_dates(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    day = pd.Timestamp("2024-05-01").to_pydatetime()
    book = openpyxl.Workbook()
    for row in (["when", "n", None], [day, 1, None], [None, 2], [None, None]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx")
    assert table.frame["when"].tolist()[0] == "2024-05-01"
    more = pd.concat([table.frame, pd.DataFrame({"when": ["2024-05-02"], "n": [3]})], ignore_index=True)
    output = tmp_path / "o.xlsx"
    write_parts(output, table.and_rows(output_file(output, table.file), more), like=table.file)
    rows = list(openpyxl.load_workbook(output).active.iter_rows(values_only=True))
    assert rows == [("when", "n"), (day, 1), (None, 2), (day + pd.Timedelta(days=1), 3)]


def test_columns_of_a_parquet_file_keep_their_types(tmp_path):
    columns = {
        "price": pa.array([decimal.Decimal("1.10"), None], pa.decimal128(8, 2)),
        "small": pa.array([1, None], pa.uint8()),
        "level": pa.array(["a", "b"]).dictionary_encode(),
        "day": pa.array([datetime.date(2024, 5, 1), None]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert [str(dtype) for dtype in table.frame.dtypes] == ["float64", "UInt8", "category", "datetime64[s]"]
    output = tmp_path / "o.parquet"
    more = pd.concat([table.frame, table.frame[:1].assign(price=2.349)], ignore_index=True)
    write_parts(output, table.and_rows(output_file(output, table.file), more), like=table.file)
    found = pq.read_table(output)
    assert found.schema.types == [column.type for column in columns.values()]
    assert found["price"].to_pylist() == [decimal.Decimal("1.10"), None, decimal.Decimal("2.35")]


def test_gaps_are_filled_and_known_cells_stay_as_written(tmp_path):
    table = read(tmp_path, "a,b\n 1.50,x\n,\n", "t.csv")
    output = tmp_path / "o.csv"
    full = pd.DataFrame({"a": [9.0, 2.5], "b": ["z", "y"]})
    write_parts(output, [table.filled_for(output_file(output, table.file), full)], like=table.file)
    assert output.read_text() == "a,b\n 1.50,x\n 2.50,y\n"


FAULTY = "a,b,c,y\n" + "1,2,[x],0\n" * 20 + "12O,inf,1,0\n"


def test_all_problems_are_reported_at_once_with_the_options_that_avoid_them(tmp_path):
    with pytest.raises(TableError, match=r"got 5:\n") as caught:
        read(tmp_path, FAULTY, target="Y", columns={"bb": "category"}, drop=("q",))
    for part in (
        "--drop, got 'q'; there are a, b, c, y",
        "--as, got 'bb'; did you mean 'b'?",
        "got 'Y'; did you mean 'y'?",
        "Expected numbers in column 'a', as in 20 of its cells, got '12O' in row 21 below the header; correct them, or "
        "--na 12O if they mean missing, or --as a=category if the column holds categories.",
        "Expected finite numbers in column 'b', got inf in row 21 below the header; correct them, or --na inf.",
    ):
        assert part in str(caught.value)
    assert caught.value.fix == []  # a wrong name in --drop has no remedy that is certain
    with pytest.raises(TableError) as caught:
        read(tmp_path, FAULTY)
    assert caught.value.fix == ["--na", "12O", "--na", "inf"]
    assert read(tmp_path, FAULTY, na=("12O", "inf")).frame.isna().sum().tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('"a, b",c\n' + "1,2\n" * 60 + "".join(f"t{i},1\n" for i in range(4)), ["--as", '"a, b=category"']),
    ],
)
def test_remedies(tmp_path, text, fix):
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    assert caught.value.fix == fix
    assert shlex.join(fix) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y\n1,0\n2,0\n", "Expected two classes or more in 'y', got 0 alone"),
        ("a,y\n1,0.5\n2,1\n", "got fractions such as 0.5"),
        ("y\n0\n1\n", "Expected columns beside the target"),
        ("a,a,y\n1,1,0\n2,2,1\n", "got 'a' more than once; rename"),
        ("a,y\n" + "1,0\n2,1\n" * 20 + "3,x\n", "got 'x' in row 41 .*--as y=category"),
    ],
)
def test_labels_and_names(tmp_path, text, message):
    with pytest.raises(TableError, match=message):
        read(tmp_path, text, target="y")


def test_the_share_that_makes_a_column_numbers_is_nine_tenths(tmp_path):
    with pytest.raises(ValueError, match=r"got 'x' in row 1 below the header and 9 more such cells; correct"):
        read(tmp_path, "c,d\n" + "x,1\n" * 10 + "1,1\n" * 90)
    assert read(tmp_path, "c,d\n" + "x,1\n" * 11 + "1,1\n" * 89).frame["c"].tolist()[-1] == "1"


def test_nested_columns_are_problems_with_a_remedy(tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "b": [[1], [2]], "c": [{"d": 1}] * 2}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"(?s)column 'b', got list.*column 'c', got struct") as caught:
        read_table(tmp_path / "t.parquet")
    assert caught.value.fix == ["--drop", "b", "--drop", "c"]
    assert list(read_table(tmp_path / "t.parquet", Reading(drop=("b", "c"))).frame) == ["a"]
    with pytest.raises(TableError, match="column 'b', got a list or object in row 2"):
        read(tmp_path, '{"a": 1}\n{"a": 2, "b": [1]}\n', "t.jsonl")


def test_parts_are_numbered_as_the_rows_of_the_table(tmp_path):
    table = pd.DataFrame({"a": np.arange(10)})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.sample(10, random_state=0).sort_values("a").to_parquet(tmp_path / "b.parquet", row_group_size=4)
    table.to_json(tmp_path / "c.jsonl", orient="records", lines=True)
    for name in ("a.csv", "b.parquet", "c.jsonl"):
        parts = list(read_parts(tmp_path / name, rows=3))
        assert max(map(len, parts)) == 3
        pd.testing.assert_frame_equal(pd.concat([part.frame for part in parts]), table)
    (tmp_path / "d.csv").write_text("a\n" + "1\n" * 8 + "x\n")
    with pytest.raises(TableError, match="got 'x' in row 9 below the header"):
        list(read_parts(tmp_path / "d.csv", Reading(columns={"a": "number"}), rows=3))


def test_columns_to_keep(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,b\n01,1,2\n")
    file = open_first(tmp_path / "t.csv")
    assert kept_names(file, ["all"]) == ["id", "a", "b"]
    assert kept_names(file, ["b"]) == ["b"]
    with pytest.raises(TableError, match="--keep, got 'ID'; did you mean 'id'"):
        kept_names(file, ["ID"])
    (part,) = read_parts(tmp_path / "t.csv", None, ["a"], ["id"])
    output = output_file(tmp_path / "o.csv", file)
    assert part.and_columns(output, pd.DataFrame({"p": [0.5]}), ["id"]).to_pydict() == {"id": ["01"], "p": ["0.5"]}
    with pytest.raises(ValueError, match="Expected no column 'id' in the table, as one is added"):
        part.and_columns(output, pd.DataFrame({"id": [0.5]}), ["id"])


def test_a_marked_table_is_split(tmp_path):
    marked = pd.DataFrame({"a": range(6), "y": [0, 0, 0, 1, 1, 1], "is_synthetic": [False] * 4 + [True] * 2})
    for name in ("t.csv", "t.parquet", "t.jsonl"):
        write_parts(tmp_path / name, [marked])
        real, generated = read_pair(tmp_path / name, None)
        assert (real["a"].tolist(), generated["a"].tolist()) == ([0, 1, 2, 3], [4, 5])
        assert read_pair(tmp_path / name, None, target="y")[0]["a"].tolist() == [3]
    with pytest.raises(ValueError, match="Expected a second table, or a column is_synthetic"):
        read_pair(tmp_path / "t.csv", None, Reading(drop=("is_synthetic",)))


def test_a_second_table_is_read_as_the_first(tmp_path):
    (tmp_path / "real.csv").write_text("code,n\n01,1\nA,2\n")
    (tmp_path / "made.csv").write_text("code,n\n1,1\n2,NA\n")
    real, made = read_pair(tmp_path / "real.csv", tmp_path / "made.csv")
    assert made["code"].tolist() == ["1", "2"]
    assert made["code"].dtype == real["code"].dtype
    (tmp_path / "made.csv").write_text("code,n\n1,x\n2,y\n")
    with pytest.raises(TableError, match="Expected numbers in column 'n'"):
        read_pair(tmp_path / "real.csv", tmp_path / "made.csv")


@pytest.mark.parametrize("labels", [[True, False], [0.0, 1.0], ["a", "b"]], ids=["bool", "float", "text"])
@pytest.mark.parametrize("kind", ["parquet", "category", "feather"])
def test_labels_of_any_kind(tmp_path, labels, kind):
    table = pd.DataFrame({"c": np.arange(20), "y": labels * 10})
    table = table.astype({"y": "category"} if kind == "category" else {})
    path = tmp_path / ("t.feather" if kind == "feather" else "t.parquet")
    write_parts(path, [table])
    assert read_labelled(path, "y").frame["y"].tolist() == labels * 10


def test_dates_are_no_labels(tmp_path):
    pd.DataFrame({"c": [1, 2], "y": pd.Timestamp("2020-01-01")}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"whole numbers or text as labels in 'y', got .*2020.*; convert them"):
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
    found = read_labelled(tmp_path / "t.parquet", "label").frame
    assert found.dtypes.to_dict() == {"price": "float64", "wide": "float64", "count": "int64", "label": "int64"}
    np.testing.assert_array_equal(found["price"], [float(price) for price in prices])
    streamed = ParquetTable(tmp_path / "t.parquet", "label")
    rows, codes = streamed.rows_of([None, None])
    np.testing.assert_array_equal(rows, found.drop(columns="label"))
    np.testing.assert_array_equal(streamed.classes[codes], found["label"])
    assert streamed.integers == ["count"]
