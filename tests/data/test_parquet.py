"""Fits to Parquet files that are read in parts: moments, class shares, folds, sorted files, bad files, commands."""

import sys

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.metrics import roc_auc_score

from scorefield import ScoreClassifier, ScoreDensity
from scorefield._jax.batching import standardized
from scorefield.data import buffer
from scorefield.data.buffer import Moments, RowBuffer
from scorefield.data.parquet import ParquetTable
from scorefield.data.scaling import column_units
from scorefield.estimators import classifier
from scorefield.models import joint_model, training_plan
from scorefield.training import loop as training
from scorefield.training.loop import train_many

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
    """A buffer that the test tables do not fit into."""
    monkeypatch.setattr(buffer, "BUFFER_ROWS", 4096)
    monkeypatch.setattr(buffer, "KEPT_ROWS", 500)


@pytest.fixture(scope="module")
def tables():
    return make(N, 0), make(8000, 1)


def write(table, path, rows=500):
    table.to_parquet(path, row_group_size=rows, index=False)
    return path


def test_moments_in_parts_are_those_of_the_whole(rng):
    mixing = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]])
    X = (rng.normal(size=(5000, 3)) @ mixing) * [1.0, 1e-30, 1e6] + [1e8, 0.0, -3e6]
    moments = Moments()
    for part in np.split(X, [1, 7, 1000, 1003, 4000]):
        moments.add(part)
    mean, scale, covariance = moments.units(X.dtype)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-14, atol=1e-43)
    units = np.array([1.0, 1e-30, 1e6])
    expected = np.cov((X - X.mean(axis=0)) / units, rowvar=False, bias=True)
    # A column of 1e8 + N(0, 1) is stored to 1.5e-8, so its moments are no better.
    np.testing.assert_allclose(covariance * np.outer(scale / units, scale / units), expected, atol=1e-7)
    naive = np.mean(X[:, 0] ** 2) - np.mean(X[:, 0]) ** 2  # the control: sums of squares lose all digits
    assert abs(naive - expected[0, 0]) > 0.1


def test_units_of_a_file_are_those_of_its_table(tmp_path, small, tables, key):
    table = tables[0].assign(d=0.1, e=np.arange(N) > N // 2, f=np.arange(N))
    source = ParquetTable(write(table, tmp_path / "t.parquet"), "y")
    found = RowBuffer(key, source, 5)
    X = table[source.names].to_numpy(np.float64)
    mean, scale = column_units(X)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.scale, scale, rtol=1e-9)
    np.testing.assert_allclose(
        found.covariance, np.cov(standardized(X, mean, scale), rowvar=False, bias=True), atol=1e-5
    )


def test_shares_are_those_of_the_file_and_memory_is_bounded(tmp_path, small, key):
    counts = np.array([7000, 4595, 400, 5])
    table = make(N, 0).assign(y=np.repeat([0, 1, 2, 3], counts))
    found = RowBuffer(key, ParquetTable(write(table, tmp_path / "t.parquet"), "y"), 5)
    assert found.kept.tolist() == [False, False, True, True]
    assert [len(rows) for rows in found.rows[2:]] == [400, 5]
    assert len(found.pooled()[0]) <= buffer.BUFFER_ROWS + buffer.KEPT_ROWS + len(counts)
    drawn = np.array([np.bincount(found.refill()[0][1], minlength=4) for _ in range(200)])
    expected = counts / N * buffer.BUFFER_ROWS
    assert (np.abs(drawn - expected) < 1).all()
    assert (drawn.sum(axis=1) == buffer.BUFFER_ROWS).all()
    part = expected % 1  # of a row: rounded up that often
    error = np.sqrt(part * (1 - part) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - expected) < 4 * error + 1e-9).all()


def test_the_buffer_stays_a_uniform_sample_of_a_sorted_file(tmp_path, small, key):
    table = make(N, 0).assign(row=np.arange(N) / N, y=np.repeat([0, 1], [N - 3000, 3000]))
    found = RowBuffer(key, ParquetTable(write(table, tmp_path / "t.parquet"), "y"), 5)

    def places():
        return np.rint((found.rows[0][:, -1] * found.scale[-1] + found.mean[-1]) * N) / N

    def fair(places):
        return kstest(places, "uniform", args=(0, 1 - 3000 / N)).pvalue > 1e-3

    before = places()
    assert fair(before)
    assert not fair(table["row"][: len(before)])  # the control: the first rows of the file
    for _ in range(12):  # one and a half times the buffer
        found.refill()
    after = places()
    assert fair(after)
    assert len(set(after)) == len(after)
    assert np.mean(np.isin(after, before)) < 0.5  # a renewed row is an old one by chance, 4096 / 12000


def spy(monkeypatch):
    """What the trainer is given: held-out tables, and all tables that each member trains on."""
    seen = {}

    def training(key, models, tables, objective, *, splits, refill, **options):
        def sides(table, splits, side):
            return [tuple(leaf[getattr(split, side)] for leaf in table[:2]) for split in splits]

        seen["held"], seen["kept"] = sides(*tables, splits, "held"), [[t] for t in sides(*tables, splits, "kept")]

        def recorded():
            fresh, fresh_parts = refill()
            for known, table in zip(seen["kept"], sides(*fresh, fresh_parts, "kept"), strict=True):
                known.append(table)
            return fresh, fresh_parts

        return train_many(key, models, tables, objective, splits=splits, refill=recorded, **options)

    monkeypatch.setattr(joint_model, "ROWS_PER_ROTATED", np.inf)  # all members in one call
    monkeypatch.setattr(joint_model, "train_many", training)
    return seen


@pytest.mark.parametrize("side_by_side", [1, 100])
def test_held_out_rows_never_train_and_every_row_group_is_reached(tmp_path, small, tables, monkeypatch, side_by_side):
    monkeypatch.setattr(training, "MODELS_PER_PROGRAM", {jax.default_backend(): side_by_side})
    monkeypatch.setattr(training_plan, "PATIENCE", 1000)
    monkeypatch.setattr(buffer, "REFRESH", 1)
    table = tables[0].assign(c=np.arange(N))  # the number of the row
    seen = spy(monkeypatch)
    model = ScoreClassifier(**SMALL).fit(write(table, tmp_path / "t.parquet"), "y")

    def numbers(part):
        space = model.model_.space
        return set(np.rint(part[0][:, -1] * space.scale[-1] + space.mean[-1]).astype(int).tolist())

    held = [numbers(part) for part in seen["held"]]
    trained = [set().union(*map(numbers, parts)) for parts in seen["kept"]]
    for own, rows in zip(held, trained, strict=True):
        assert len(own) > 500
        assert not own & rows
        assert {row // 500 for row in rows} == set(range(N // 500))
    assert held[0] & trained[1]  # the control: rows are told apart, and train the members that do not hold them out
    assert len(trained[0]) > 2 * buffer.BUFFER_ROWS


def test_a_file_that_fits_the_buffer_is_fitted_as_in_memory(tmp_path, tables):
    train, test = tables
    labels = np.where(train["y"], "yes", "no")
    small = train[COLUMNS].astype({"c": np.float32}).assign(y=labels)[:2000]
    whole = ScoreClassifier(**SMALL).fit(small[COLUMNS], small["y"])
    streamed = ScoreClassifier(**SMALL).fit(str(write(small, tmp_path / "t.parquet")), "y")
    np.testing.assert_array_equal(whole.predict_proba(test[COLUMNS]), streamed.predict_proba(test[COLUMNS]))
    assert streamed.predict(test[COLUMNS]).dtype == whole.predict(test[COLUMNS]).dtype
    assert streamed.feature_names_in_.tolist() == COLUMNS


def in_file_order(self):
    """A refill that does not shuffle: the next row group as it lies in the file."""
    self.visits = (self.visits + 1) % len(self.source.groups)
    rows, labels, folds = (np.concatenate(leaf) for leaf in zip(*self._folded(self.visits), strict=True))
    return (self._to_units(rows), labels.astype(np.int32)), folds


def log_loss(model, test):
    """Losses of the rows."""
    return -model.predict_log_proba(test[COLUMNS])[np.arange(len(test)), test["y"]]


def log_density(model, test):
    return model.score_samples(test[COLUMNS])


def excess(judge, model, others, test):
    """Mean difference of a fit from fits of other seeds in memory, in standard errors of test rows and of the seed."""
    known = np.array([judge(other, test) for other in others])
    difference = judge(model, test) - known.mean(axis=0)
    return difference.mean() / np.hypot(difference.std() / np.sqrt(len(test)), known.mean(axis=1).std(ddof=1))


def fits_in_memory(table, **options):
    return [
        ScoreClassifier(**{**SMALL, **options, "random_state": s}).fit(table[COLUMNS], table["y"]) for s in range(4)
    ]


def test_the_order_of_the_file_does_not_matter(tmp_path, small, tables, monkeypatch):
    """Streamed fits are as good as those in memory; without shuffling they are not."""
    monkeypatch.setattr(buffer, "BUFFER_ROWS", 8192)
    train, test = tables
    whole = fits_in_memory(train)
    by_class = write(train.sort_values(["y", "a"]), tmp_path / "sorted.parquet")
    for path in (write(train, tmp_path / "shuffled.parquet"), by_class):
        model = ScoreClassifier(**SMALL).fit(path, "y")
        assert excess(log_loss, model, whole, test) < 4, path
        assert abs(excess(log_density, model, whole, test)) < 4, path
    again, X = ScoreClassifier(**SMALL).fit(by_class, "y"), test[COLUMNS]
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    np.testing.assert_array_equal(model.sample(20, label=1), again.sample(20, label=1))
    assert model.grad_log_density(X[:5]).shape == (5, 2, 3)
    drawn, expected, other = (
        np.asarray(m.sample(500, label=k))[:, 0] for m, k in ((model, 1), (whole[0], 1), (model, 0))
    )
    error = np.hypot(drawn.std(), expected.std()) / np.sqrt(500)
    assert abs(drawn.mean() - expected.mean()) < 4 * error < abs(drawn.mean() - other.mean())
    monkeypatch.setattr(RowBuffer, "refill", in_file_order)
    monkeypatch.setattr(training_plan, "PATIENCE", 1000)
    assert excess(log_loss, ScoreClassifier(**SMALL, calibration=None).fit(by_class, "y"), whole, test) > 4


@pytest.mark.slow
def test_a_generative_fit_has_the_log_density_of_one_in_memory(tmp_path, small, tables):
    """Without labels each class has an anchor of its own."""
    train, test = tables
    whole = fits_in_memory(train, label_weight=0.0)
    model = ScoreClassifier(**SMALL, label_weight=0.0).fit(write(train, tmp_path / "t.parquet"), "y")
    assert abs(excess(log_density, model, whole, test)) < 4
    model.model_.anchors[:, 0] -= np.log(model.frequencies_)  # the control: shares counted twice or not at all
    assert abs(excess(log_density, model, whole, test)) > 4


@pytest.mark.parametrize("kind", ["text", "category", "bool", "float"])
def test_labels_of_any_kind(tmp_path, small, tables, kind):
    y = tables[0]["y"]
    labels = {"text": y.map({0: "no", 1: "yes"}), "bool": y == 1, "float": y.astype(float)}
    labels["category"] = labels["text"].astype("category")
    source = ParquetTable(write(tables[0].assign(y=labels[kind]), tmp_path / "t.parquet"), "y")
    assert source.classes.tolist() == sorted(set(labels[kind]))
    assert source.counts.tolist() == y.value_counts()[[0, 1]].tolist()
    np.testing.assert_array_equal(source.read()[1], labels[kind].to_numpy())


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
@pytest.mark.parametrize("rows", [256, 1 << 17], ids=["streamed", "whole"])
def test_bad_tables_are_refused(tmp_path, monkeypatch, case, rows):
    monkeypatch.setattr(buffer, "BUFFER_ROWS", rows)
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


def test_a_refill_needs_rows_held_out():
    from scorefield.fields.gaussian import standard_gaussian
    from scorefield.training.losses import Exact

    rows = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    with pytest.raises(ValueError, match="Expected splits with refill"):
        train_many(jax.random.key(0), [standard_gaussian(2)], [rows], Exact(), refill=lambda: [rows])


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


def test_a_sample_of_mixed_files_keeps_small_classes_and_the_shares(tmp_path, rng):
    table = mixed(3000, 0)
    source = ParquetTable(write(table, tmp_path / "t.parquet", rows=700), "y")
    assert source.is_mixed
    assert source.forms == {"a": "number", "colour": "text"}
    rows, labels, weights = source.sample(rng, 1000)
    n_rare = (table["y"] == "rare").sum()
    assert (labels == "rare").sum() == n_rare
    assert len(labels) == len(rows) == 1000
    assert weights[labels == "usual"].sum() == pytest.approx(3000 - n_rare)
    own = table[table["y"] == "rare"].reset_index(drop=True)
    found = rows.to_pandas()[labels == "rare"].reset_index(drop=True)
    pd.testing.assert_frame_equal(found, own[["a", "colour", "since"]], check_dtype=False)
    whole, labels, weights = source.sample(rng, 5000)
    assert weights is None
    assert len(whole) == 3000
    assert labels.tolist() == table["y"].tolist()
    assert not ParquetTable(write(make(100, 0), tmp_path / "numbers.parquet"), "y").is_mixed


def test_mixed_files_are_learned_from_a_sample(tmp_path, monkeypatch):
    table, fresh = mixed(3000, 0), mixed(1000, 1)
    path = write(table, tmp_path / "t.parquet")
    light = {"n_members": 1, "hidden": (16,), "max_steps": 150, "random_state": 0}
    monkeypatch.setattr(classifier, "MIXED_ROWS", 1000)
    with pytest.warns(UserWarning, match="1000 of its 3000 rows are learned from"):
        model = ScoreClassifier(**light).fit(path, "y")
    assert model.feature_names_in_.tolist() == ["a", "colour", "since"]
    found = model.predict_proba(fresh.drop(columns="y"))
    assert found[:, 0].mean() == pytest.approx((fresh["y"] == "rare").mean(), abs=0.03)  # shares are those of the file
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
