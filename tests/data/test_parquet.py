"""Fits to Parquet files that are read in parts: chosen rows, class shares, sorted files, bad files, commands."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.metrics import roc_auc_score

from scorefield import ScoreClassifier, ScoreDensity
from scorefield.data.parquet import ParquetTable
from scorefield.models import row_choice
from scorefield.models.row_choice import choose_ranks

N = 12_000
SMALL = {"n_members": 2, "hidden": (32,), "max_steps": 600, "random_state": 0}
COLUMNS = ["a", "b", "c"]


def make(n, seed):
    """Three columns, two classes: a shift in one column, a spread in another."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 1.5 * y
    X[:, 1] *= np.where(y == 1, 2.0, 1.0)
    return pd.DataFrame(X, columns=COLUMNS).assign(y=y)


@pytest.fixture
def small(monkeypatch):
    """Bounds that the test tables do not fit into."""
    monkeypatch.setattr(row_choice, "MOST_ROWS", 2000)
    monkeypatch.setattr(row_choice, "MOST_MIXED", 1000)
    monkeypatch.setattr(row_choice, "WHOLE", 500)


@pytest.fixture(scope="module")
def tables():
    return make(N, 0), make(8000, 1)


def write(table, path, rows=500):
    table.to_parquet(path, row_group_size=rows, index=False)
    return path


@pytest.mark.parametrize("n", [400, N])
def test_a_file_is_fitted_as_its_table_in_memory(tmp_path, small, tables, n):
    """To the bit: whole where it is small, else of the same rows."""
    train, test = tables
    labels = np.where(train["y"], "yes", "no")
    light = SMALL | {"max_steps": 50, "n_members": 1, "common_per_rare": 1}
    table = train[COLUMNS].astype({"c": np.float32}).assign(y=labels)[:n]
    whole = ScoreClassifier(**light).fit(table[COLUMNS], table["y"])
    path = str(write(table, tmp_path / "t.parquet"))
    streamed = ScoreClassifier(**light).fit(path, "y")
    np.testing.assert_array_equal(whole.predict_proba(test[COLUMNS]), streamed.predict_proba(test[COLUMNS]))
    assert streamed.predict(test[COLUMNS]).dtype == whole.predict(test[COLUMNS]).dtype
    assert streamed.feature_names_in_.tolist() == COLUMNS
    assert streamed.n_rows_learned_ == whole.n_rows_learned_ <= min(n, 2000)
    np.testing.assert_array_equal(streamed.frequencies_, whole.frequencies_)
    other = ScoreClassifier(**light | {"random_state": 1}).fit(path, "y")  # the control
    assert (other.predict_proba(test[COLUMNS]) != streamed.predict_proba(test[COLUMNS])).any()


def test_the_rows_of_a_sorted_file_are_a_fair_sample(tmp_path, small, rng):
    table = make(N, 0).assign(row=np.arange(N) / N, y=np.repeat([0, 1], [N - 500, 500]))
    source = ParquetTable(write(table, tmp_path / "t.parquet"), "y")
    rows, codes = source.rows_of(choose_ranks(rng, source.counts, 5))
    assert np.bincount(codes).tolist() == [1500, 500]
    own = table.set_index("row").loc[rows[:, -1]]
    assert (own["y"].to_numpy() == codes).all()
    np.testing.assert_array_equal(own[COLUMNS].to_numpy(), rows[:, :3])

    def fair(places):
        return kstest(places, "uniform", args=(0, 1 - 500 / N)).pvalue > 1e-3

    assert fair(rows[codes == 0, -1])
    assert not fair(table["row"][:1500])  # the control: the first rows of the file


@pytest.mark.parametrize("kind", ["text", "category", "bool", "float"])
def test_labels_of_any_kind(tmp_path, small, tables, kind):
    y = tables[0]["y"]
    labels = {"text": y.map({0: "no", 1: "yes"}), "bool": y == 1, "float": y.astype(float)}
    labels["category"] = labels["text"].astype("category")
    source = ParquetTable(write(tables[0].assign(y=labels[kind]), tmp_path / "t.parquet"), "y")
    assert source.classes.tolist() == sorted(set(labels[kind]))
    assert source.counts.tolist() == y.value_counts()[[0, 1]].tolist()
    np.testing.assert_array_equal(source.classes[source.rows_of([None, None])[1]], labels[kind].to_numpy())


BAD = {
    "target": (lambda t: t.rename(columns={"y": "z"}), r"among the columns of .*, got 'y'; there are a, b, c, z"),
    "infinite": (lambda t: t.assign(c=np.inf), "NaN or infinity in 'c'"),
    "one class": (lambda t: t.assign(y=1), "two classes in y, got 1 class: 1"),
    "empty": (lambda t: t[:0], "Expected rows in .*, got a header alone"),
    "missing labels": (lambda t: t.assign(y=t["y"].where(t.index > 6)), "got 7 missing in 'y'; drop"),
    "fractions": (lambda t: t.assign(y=t["a"]), "got fractions"),
    "dates": (lambda t: t.assign(y=pd.Timestamp("2020-01-01")), "whole numbers or text as labels in 'y'"),
    "alone": (lambda t: t[["y"]], "columns beside the target"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("rows", [256, 1 << 17], ids=["a part", "whole"])
def test_bad_tables_are_refused(tmp_path, monkeypatch, case, rows):
    monkeypatch.setattr(row_choice, "MOST_ROWS", rows)
    change, message = BAD[case]
    path = write(change(make(1000, 0)), tmp_path / "t.parquet", rows=100)
    with pytest.raises(ValueError, match=message):
        ScoreClassifier(**SMALL).fit(path, "y")


def test_bad_paths_and_settings_are_refused(tmp_path, monkeypatch):
    table = make(100, 0)
    path = write(table, tmp_path / "t.parquet")

    def refused(message, *given, error=ValueError, **options):
        with pytest.raises(error, match=message):
            ScoreClassifier(**options).fit(*given)

    refused("does not exist", tmp_path / "no.parquet", "y", error=FileNotFoundError)
    refused("name of the label column beside a path, got Series", path, table["y"])
    refused('density="joint".*; read the table', path, "y", density=ScoreDensity())
    (tmp_path / "t.csv").write_text("a,y\n1,0\n")
    refused("ends in .parquet", tmp_path / "t.csv", "y")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but no more")
    refused("Expected a Parquet file, got", tmp_path / "bad.parquet", "y")
    (tmp_path / "none").mkdir()
    refused("got none that ends", tmp_path / "none", "y")
    (tmp_path / "parted" / "y=1").mkdir(parents=True)
    write(table, tmp_path / "parted" / "y=1" / "t.parquet")
    refused("got one in its folder y=1; .* without partitions", tmp_path / "parted", "y")
    for change, message in (({"a": "x"}, "for 'a' in 2"), ({"z": 1}, "for 'z' in 2")):
        write(table, tmp_path / "none" / "1.parquet")
        write(table.assign(**change), tmp_path / "none" / "2.parquet")
        refused(message, tmp_path / "none", "y")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(r"pyarrow .* not installed; pip install 'scorefield\[cli\]'", path, "y")


def test_an_index_of_pandas_is_no_column(tmp_path):
    make(50, 0).sample(50, random_state=0).to_parquet(tmp_path / "t.parquet")
    assert ParquetTable(tmp_path / "t.parquet", "y").names == COLUMNS


def test_commands_take_folders_and_large_files(tmp_path, small, tables, monkeypatch):
    from typer.testing import CliRunner

    from scorefield.cli import commands
    from scorefield.cli.app import app

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    table = tables[0].assign(c=np.arange(N) % 7)
    (tmp_path / "parts").mkdir()
    for i in range(3):
        write(table[i * 4000 : (i + 1) * 4000], tmp_path / "parts" / f"{i}.parquet")
    whole = write(table, tmp_path / "whole.parquet")
    monkeypatch.setattr(
        commands, "ScoreClassifier", lambda **options: ScoreClassifier(**{**SMALL, "max_steps": 200, **options})
    )
    said = run("fit", tmp_path / "parts", "--target", "y", "-o", tmp_path / "a.skops")
    assert f"learned 2 classes from {N} rows of 3 columns" in said
    monkeypatch.setattr("scorefield.data.tables.read_labelled", None)  # neither reads a table whole
    run("fit", whole, "--target", "y", "-o", tmp_path / "b.skops", "--stream")
    monkeypatch.setattr("scorefield.data.tables.STREAMED_BYTES", 1000)
    run("fit", whole, "--target", "y", "-o", tmp_path / "c.skops")
    assert f"scored {N} rows" in run("predict", tmp_path / "a.skops", tmp_path / "parts", "-o", tmp_path / "a.parquet")
    run("predict", tmp_path / "b.skops", whole, "-o", tmp_path / "b.parquet")
    run("predict", tmp_path / "c.skops", whole, "-o", tmp_path / "c.parquet")
    found = {name: pd.read_parquet(tmp_path / f"{name}.parquet") for name in "abc"}
    pd.testing.assert_frame_equal(found["b"], found["c"])
    assert (found["a"]["predicted_y"] == found["b"]["predicted_y"]).mean() > 0.95
    run("sample", tmp_path / "a.skops", "--label", "1", "-n", "20", "-o", tmp_path / "rows.csv")
    assert pd.read_csv(tmp_path / "rows.csv")["c"].dtype.kind == "i"


def mixed(n, seed):
    """A number with gaps, a category that tells the class, a date; one class is rare."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    colour = np.where(rng.random(n) < np.where(y == 1, 0.8, 0.2), "red", "blue")
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, n), unit="D")
    a = pd.Series(rng.normal(size=n) + y).mask(rng.random(n) < 0.2)
    return pd.DataFrame({"a": a, "colour": colour, "since": days, "y": np.where(y == 1, "rare", "usual")})


def test_mixed_files_are_learned_from_a_part(tmp_path, small, rng):
    """Small classes are kept whole, and shares are those of the files."""
    table, fresh = mixed(3000, 0), mixed(1000, 1)
    path = write(table, tmp_path / "t.parquet", rows=700)
    source = ParquetTable(path, "y")
    assert source.is_mixed
    assert source.forms == {"a": "number", "colour": "text"}
    rows, codes = source.rows_of(choose_ranks(rng, source.counts, 10, mixed=True))
    n_rare = (table["y"] == "rare").sum()
    assert np.bincount(codes).tolist() == [n_rare, 1000 - n_rare]
    own = table[table["y"] == "rare"].reset_index(drop=True)
    found = rows.to_pandas()[codes == 0].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, own[["a", "colour", "since"]], check_dtype=False)
    assert not ParquetTable(write(make(100, 0), tmp_path / "numbers.parquet"), "y").is_mixed
    light = {"n_members": 1, "hidden": (16,), "max_steps": 150, "random_state": 0}
    model = ScoreClassifier(**light).fit(path, "y")
    assert model.feature_names_in_.tolist() == ["a", "colour", "since"]
    assert model.n_rows_learned_ <= 1000
    found = model.predict_proba(fresh.drop(columns="y"))
    assert found[:, 0].mean() == pytest.approx((fresh["y"] == "rare").mean(), abs=0.03)
    assert roc_auc_score(fresh["y"] == "rare", found[:, 0]) > 0.8


@pytest.mark.usefixtures("untrained")
def test_commands_take_folders_of_mixed_files(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from scorefield.cli import commands
    from scorefield.cli.app import app

    table = mixed(400, 0).assign(rooms=lambda t: (np.arange(len(t)) % 5).astype("int64"))
    (tmp_path / "parts").mkdir()
    for i in range(2):
        write(table[i * 200 : (i + 1) * 200], tmp_path / "parts" / f"{i}.parquet")
    light = {"n_members": 1, "hidden": (16,), "max_steps": 50}
    monkeypatch.setattr(commands, "ScoreClassifier", lambda **options: ScoreClassifier(**{**light, **options}))
    model, made = tmp_path / "m.skops", tmp_path / "made.parquet"
    for arguments in (
        ("fit", tmp_path / "parts", "--target", "y", "-o", model),
        ("predict", model, tmp_path / "parts", "--keep", "y", "-o", tmp_path / "scored.parquet"),
        ("sample", model, "--label", "rare", "-n", 30, "-o", made),
    ):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
    assert pd.read_parquet(tmp_path / "scored.parquet")["y"].tolist() == table["y"].tolist()
    rows = pd.read_parquet(made)
    assert list(rows.columns) == list(table.columns)
    assert set(rows["y"]) == {"rare"}
    assert set(rows["colour"]) <= {"red", "blue"}
    assert rows["rooms"].isin(range(5)).all()
    assert rows["since"].between(table["since"].min(), table["since"].max()).all()
