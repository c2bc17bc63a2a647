"""The command line, end to end on real files: what works, what is refused in one line, what a kill leaves behind."""

import functools
import gzip
import json
import os
import shlex
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from scorefield import ScoreClassifier
from scorefield.cli.app import app
from scorefield.cli.main import main
from scorefield.cli.options import WHERE
from scorefield.models import selection

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], [150, 30])
    return pd.DataFrame(
        {
            "amount": np.where(y == "yes", 3.0, 0.0) + rng.normal(size=180),
            "count": rng.poisson(400, size=180) + 20 * (y == "yes"),
            "fraud": y,
            "hour": rng.integers(0, 240, size=180),
        }
    )


@pytest.fixture(scope="module")
def mixed(frame):
    """Numbers, whole numbers, categories, an identifier and gaps."""
    return frame.assign(
        amount=frame["amount"].where(frame.index % 20 != 7),
        country=["de", "f,r", 'g"b'] * 60,
        id=[f"{number:04d}" for number in range(180)],
    )


@pytest.fixture
def short_training(monkeypatch):
    from scorefield.cli import commands

    for name, settings in (("ScoreDensity", {}), ("ScoreImputer", {"method": "neighbours"})):
        monkeypatch.setattr(commands, name, functools.partial(getattr(commands, name), max_steps=20, **settings))


def run_with_stages(monkeypatch, capsys, *arguments):
    """Exit code, standard output and standard error of the command as installed."""
    monkeypatch.setattr(sys, "argv", ["scorefield", *map(str, arguments)])
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    return code, *capsys.readouterr()


def run(monkeypatch, capsys, *arguments):
    """`run_with_stages` without the lines that tell what is being done."""
    code, out, err = run_with_stages(monkeypatch, capsys, *arguments)
    return code, out, without_stages(err)


def without_stages(err):
    return "".join(line for line in err.splitlines(keepends=True) if not line.endswith(" ...\n"))


@pytest.mark.parametrize(
    ("source", "output"), [("a.csv", "b.csv.gz"), ("a.csv.gz", "b.parquet"), ("a.parquet", "b.csv")]
)
def test_resample_balances_and_keeps_the_columns(tmp_path, frame, monkeypatch, capsys, source, output):
    if source.endswith("parquet"):
        frame.to_parquet(tmp_path / source)
    else:
        frame.to_csv(tmp_path / source, index=False)
    options = ("--target", "fraud", "-o", tmp_path / output, "--model", "gaussian", "--mark", "--seed", "3")
    code, out, err = run(monkeypatch, capsys, "resample", tmp_path / source, *options)
    assert (code, err) == (0, "")
    assert "fraud=yes: 30 rows before, 150 after" in out
    found = pd.read_parquet(tmp_path / output) if output.endswith("parquet") else pd.read_csv(tmp_path / output)
    assert list(found.columns) == [*frame.columns, "is_synthetic"]
    assert found["fraud"].value_counts().to_dict() == {"no": 150, "yes": 150}
    assert found["is_synthetic"].sum() == 120
    assert found["count"].dtype.kind == "i"
    pd.testing.assert_frame_equal(
        found.loc[~found["is_synthetic"], ["amount", "count"]].reset_index(drop=True), frame[["amount", "count"]]
    )


def test_resample_keeps_the_rows_that_are_asked_for(tmp_path, monkeypatch, capsys):
    """Rows at the core of a class are nearer to its middle than rows from all of it."""
    assert WHERE == selection.WHERE
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(180, 2)), columns=["a", "b"]).assign(fraud=[0] * 150 + [1] * 30)
    frame.to_csv(tmp_path / "a.csv", index=False)
    spread = {}
    for where in ("everywhere", "core"):
        given = (
            "--target",
            "fraud",
            "-o",
            tmp_path / f"{where}.csv",
            "--model",
            "gaussian",
            "--mark",
            "--purpose",
            "sharing",
            "--where",
            where,
        )
        code, _, err = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *given)
        assert (code, err) == (0, "")
        found = pd.read_csv(tmp_path / f"{where}.csv")
        spread[where] = found.loc[found["is_synthetic"], ["a", "b"]].std().mean()
    assert spread["core"] < 0.8 * spread["everywhere"]
    code, _, err = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *given[:-1], "here")
    assert code == 2
    assert "everywhere, clear" in " ".join(err.split())


def test_a_taught_learner_predicts_and_says_what_it_cannot_do(tmp_path, mixed, monkeypatch, capsys):
    light = functools.partial(ScoreClassifier, n_members=1, max_steps=10, hidden=(8,))
    monkeypatch.setattr("scorefield.files.stored_learner.ScoreClassifier", light)
    mixed.to_csv(tmp_path / "a.csv", index=False)
    options = ("--target", "fraud", "--estimator", "logistic", "-o", tmp_path / "m.skops")
    code, out, err = run(monkeypatch, capsys, "distill", tmp_path / "a.csv", *options)
    assert (code, err) == (0, "")
    assert "taught logistic by 180 rows and 720 new ones" in out
    code, _, err = run(
        monkeypatch, capsys, "predict", tmp_path / "m.skops", tmp_path / "a.csv", "-o", tmp_path / "p.csv"
    )
    assert (code, err) == (0, "")
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found.columns) == ["predicted_fraud", "probability_no", "probability_yes"]
    assert (found["predicted_fraud"] == mixed["fraud"]).mean() > 0.8
    code, out, _ = run(monkeypatch, capsys, "info", tmp_path / "m.skops")
    assert "learner: logistic" in out
    code, _, err = run(monkeypatch, capsys, "explain", tmp_path / "m.skops", tmp_path / "a.csv")
    assert code == 1
    assert "which has no energy of rows; fit one to the same table" in err


def test_the_rows_of_a_table_stay_as_they_are_written(tmp_path, mixed, monkeypatch, capsys, short_training):
    """Blanks, zeros, long decimals, gaps, line ends and the order of columns."""
    text = mixed.assign(
        amount=[f" {value:.8f}0" if value == value else "?" for value in mixed["amount"]],
        zip=["00501", "10001"] * 90,
        fraud=mixed["fraud"] + " ",
    )
    text.to_csv(tmp_path / "a.csv", index=False, lineterminator="\r\n")
    options = ("--target", "fraud", "-o", tmp_path / "b.csv", "--as", "zip=category")
    code, _, err = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)
    assert (code, err) == (0, "")
    before, after = ((tmp_path / name).read_bytes() for name in ("a.csv", "b.csv"))
    assert after.startswith(before)
    generated = pd.read_csv(tmp_path / "b.csv", dtype=str, keep_default_na=False)[180:]
    assert set(generated["zip"]) <= {"00501", "10001"}
    assert set(generated["country"]) <= {"de", "f,r", 'g"b'}
    assert generated["hour"].str.fullmatch(r"\d+").all()
    assert set(generated["fraud"]) == {"yes "}  # with the blank that the column writes


def test_gaps_are_filled_and_known_cells_stay(tmp_path, mixed, monkeypatch, capsys, short_training):
    mixed.to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = run(monkeypatch, capsys, "impute", tmp_path / "a.csv", "-o", tmp_path / "b.csv")
    assert (code, out.splitlines()[0]) == (0, "filled 9 of 9 gaps")
    before, after = (pd.read_csv(tmp_path / name, dtype=str) for name in ("a.csv", "b.csv"))
    assert not after.isna().to_numpy().any()
    pd.testing.assert_frame_equal(after.where(before.notna()), before)


def test_outliers_are_flagged_and_cells_stay(tmp_path, frame, monkeypatch, capsys):
    frame.assign(amount=frame["amount"].where(frame.index != 3, 99.0)).to_csv(tmp_path / "a.csv", index=False)
    options = ("--contamination", "0.05", "--model", "gaussian", "--drop", "fraud", "-o", tmp_path / "b.csv")
    code, out, _ = run(monkeypatch, capsys, "outliers", tmp_path / "a.csv", *options)
    assert (code, out.splitlines()[0]) == (0, "flagged 9 of 180 rows")
    before, after = (pd.read_csv(tmp_path / name) for name in ("a.csv", "b.csv"))
    pd.testing.assert_frame_equal(after[["amount", "count", "hour"]], before[["amount", "count", "hour"]])
    assert after["outlier_score"].idxmax() == 3
    np.testing.assert_array_equal(after["outlier_score"] > 0, after["is_outlier"])


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_and_a_mark_at_the_start(tmp_path, frame, monkeypatch, capsys, separator):
    frame.to_csv(tmp_path / "a.csv", index=False, sep=separator, encoding="utf-8-sig")
    options = ("--target", "fraud", "-o", tmp_path / "b.csv", "--model", "gaussian", "-q")
    assert run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options) == (0, "", "")
    before, after = ((tmp_path / name).read_bytes() for name in ("a.csv", "b.csv"))
    assert after.startswith(before)  # separator, mark and line ends as in the input
    assert len(pd.read_csv(tmp_path / "b.csv", sep=separator)) == 300


def test_strategy_and_chain_reach_the_sampler(tmp_path, frame, monkeypatch, capsys):
    three = frame.assign(fraud=np.repeat([0, 1, 2], [120, 40, 20]))
    three.to_csv(tmp_path / "a.csv", index=False)
    options = ("--target", "fraud", "-o", tmp_path / "b.csv", "--model", "gaussian", "--strategy", "1=60,2=25",
               "--step-size", "0.01", "--chain-length", "20", "--discard", "0.5")  # fmt: skip
    code, out, _ = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)
    assert code == 0
    assert pd.read_csv(tmp_path / "b.csv")["fraud"].value_counts().to_dict() == {0: 120, 1: 60, 2: 25}
    assert "fraud=2: 20 rows before, 25 after" in out


@pytest.mark.parametrize("purpose", ["sharing", pytest.param("learning", marks=pytest.mark.slow)])
def test_a_thousand_columns(tmp_path, monkeypatch, capsys, purpose):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(60, 1000)).round(3), columns=[f"c{i}" for i in range(1000)])
    wide.assign(y=[1] * 12 + [0] * 48).to_csv(tmp_path / "a.csv", index=False)
    options = ("--target", "y", "-o", tmp_path / "b.parquet", "--model", "gaussian", "--purpose", purpose)
    assert run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)[0] == 0
    assert pd.read_parquet(tmp_path / "b.parquet").shape == (96, 1001)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, mixed):
    folder, table = tmp_path_factory.mktemp("fitted"), mixed.drop(columns="id")
    table.to_csv(folder / "data.csv", index=False)
    small = functools.partial(ScoreClassifier, n_members=2, hidden=(32, 32), max_steps=200)
    from scorefield.cli import commands

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "ScoreClassifier", small)
        arguments = ["fit", str(folder / "data.csv"), "--target", "fraud", "-o", str(folder / "m.skops")]
        result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "learned 2 classes from 180 rows of 4 columns" in result.output
    return folder, table


def test_predict_scores_like_the_estimator_in_parts(fitted, tmp_path, monkeypatch, capsys):
    from scorefield.data import tables
    from scorefield.files.model_files import load_classifier

    folder, table = fitted
    monkeypatch.setattr(tables, "PART_ROWS", 50)
    code, out, _ = run(
        monkeypatch, capsys, "predict", folder / "m.skops", folder / "data.csv", "-o", tmp_path / "s.csv"
    )
    assert (code, out.splitlines()[0]) == (0, "scored 180 rows")
    found = pd.read_csv(tmp_path / "s.csv")
    stored = load_classifier(folder / "m.skops")
    model = stored["model"]
    assert stored["target"] == "fraud"
    X = table.drop(columns="fraud")
    np.testing.assert_allclose(found[["probability_no", "probability_yes"]], model.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(found["log_density"], model.score_samples(X), atol=1e-4)
    assert (found["predicted_fraud"] == model.predict(X)).all()
    assert np.mean(found["predicted_fraud"] == table["fraud"]) > 0.9


def test_commands_print_json_for_machines(fitted, tmp_path, monkeypatch, capsys):
    folder, table = fitted
    table[:2].to_csv(tmp_path / "rows.csv", index=False)
    found = {}
    for command in (
        ("columns", folder / "data.csv"),
        ("info", folder / "m.skops"),
        ("quality", folder / "data.csv", folder / "data.csv"),
        ("explain", folder / "m.skops", tmp_path / "rows.csv", "--target", "yes", "-n", "1"),
    ):
        code, out, err = run(monkeypatch, capsys, *command, "--json")
        assert (code, err) == (0, "")
        found[command[0]] = json.loads(out)
    assert {row["column"] for row in found["columns"]["columns"]} == set(table.columns)
    assert found["info"]["target"] == "fraud"
    assert found["quality"]["copies"] == 1.0
    assert len(found["explain"]["contributions"]) == 2
    assert found["explain"]["near_rows"][0]["changes"]


def test_a_pipe_gets_one_line_for_each_stage(tmp_path, frame, monkeypatch, capsys):
    frame.to_csv(tmp_path / "a.csv", index=False)
    options = ("--target", "fraud", "-o", tmp_path / "b.csv", "--model", "gaussian")
    _, _, err = run_with_stages(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)
    stages = [f"reading {tmp_path / 'a.csv'}", "learning and generating rows", f"writing {tmp_path / 'b.csv'}"]
    assert err.splitlines() == [f"{stage} ..." for stage in stages]
    _, _, err = run_with_stages(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options, "--force", "--quiet")
    assert err == ""


def test_rows_are_explained(fitted, tmp_path, monkeypatch, capsys):
    from scorefield.files.model_files import load_classifier

    folder, table = fitted
    rows = table.iloc[[0, 1, 178, 179]]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    options = ("-o", tmp_path / "c.csv", "--target", "yes", "--fixed", "hour", "-n", "1")
    code, out, err = run(monkeypatch, capsys, "explain", folder / "m.skops", tmp_path / "rows.csv", *options)
    assert (code, err) == (0, "")
    assert "row 0: log odds of 'yes'" in out
    assert "->" in out
    assert "hour:" not in out.partition("nearest credible rows of yes")[2]
    found = pd.read_csv(tmp_path / "c.csv")
    model = load_classifier(folder / "m.skops")["model"]
    logs = model.predict_log_proba(rows.drop(columns="fraud"))
    np.testing.assert_allclose(found["log_odds"], logs[:, 1] - logs[:, 0], atol=1e-3)
    parts = found[["amount", "count", "hour", "country"]].sum(axis=1)
    np.testing.assert_allclose(parts, found["log_odds"] - found["baseline"], atol=0.02)
    for option, value in (("--label", "maybe"), ("--target", "maybe"), ("--fixed", "weight")):
        more = ("--target", "yes", "--force") if option == "--fixed" else ()
        code, _, err = run(
            monkeypatch, capsys, "explain", folder / "m.skops", tmp_path / "rows.csv", option, value, *more
        )
        assert code == 1
        assert value in err


def test_rows_that_are_not_shown_are_not_explained(fitted, tmp_path, monkeypatch, capsys):
    folder, table = fitted
    table[:8].to_csv(tmp_path / "rows.csv", index=False)
    code, out, _ = run(monkeypatch, capsys, "explain", folder / "m.skops", tmp_path / "rows.csv")
    assert code == 0
    assert [line.partition(":")[0] for line in out.splitlines() if line.startswith("row ")] == [
        f"row {i}" for i in range(5)
    ]
    assert "... and 3 more rows; --output writes" in out
    options = ("-o", tmp_path / "all.csv")
    code, out, _ = run(monkeypatch, capsys, "explain", folder / "m.skops", tmp_path / "rows.csv", *options)
    assert code == 0
    assert "... and 3 more rows\n" in out
    assert len(pd.read_csv(tmp_path / "all.csv")) == 8


def test_predict_carries_columns_over_as_they_are_written(fitted, tmp_path, monkeypatch, capsys):
    folder, table = fitted
    new = table[:3].assign(id=["007", " 8", ""], hour=[" 1", "02", "3 "])
    new.to_csv(tmp_path / "new.csv", index=False)
    options = ("--keep", "id,hour", "-o", tmp_path / "s.csv")
    assert run(monkeypatch, capsys, "predict", folder / "m.skops", tmp_path / "new.csv", *options)[0] == 0
    found = pd.read_csv(tmp_path / "s.csv", dtype=str, keep_default_na=False)
    assert list(found)[:3] == ["id", "hour", "predicted_fraud"]
    assert found[["id", "hour"]].to_numpy().tolist() == new[["id", "hour"]].to_numpy().tolist()
    options = ("--keep", "all", "-o", tmp_path / "s.parquet")
    assert run(monkeypatch, capsys, "predict", folder / "m.skops", tmp_path / "new.csv", *options)[0] == 0
    found = pd.read_parquet(tmp_path / "s.parquet")
    assert list(found)[:7] == [*new, "predicted_fraud"]
    assert found["hour"].tolist() == [1, 2, 3]


def test_sample_on_request(fitted, tmp_path, monkeypatch, capsys):
    folder, _ = fitted
    asked = ("--given", "amount=1.5..2.5", "--given", "country=de")
    options = ("-n", "40", *asked, "-o", tmp_path / "rows.csv")
    code, _, err = run(monkeypatch, capsys, "sample", folder / "m.skops", *options)
    assert code == 0, err
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert list(rows.columns) == ["amount", "count", "fraud", "hour", "country"]
    assert len(rows) == 40
    assert rows["amount"].between(1.5, 2.5).all()
    assert set(rows["country"]) == {"de"}
    assert set(rows["fraud"]) <= {"yes", "no"}
    for option, value, said in (
        ("--given", "nothing=1", "got one on 'nothing'"),
        ("--given", "nothing", "Expected a condition such as age=40"),
        ("--given", "country=Z", "Expected values of 'country' that were seen"),
        ("--given", "fraud=yes", "use --label"),
        ("--constraint", "amount <", "Expected a constraint such as"),
        ("--constraint", "amount <= -1000", "rows violate 'amount <= -1000'"),
    ):
        code, _, err = run(
            monkeypatch, capsys, "sample", folder / "m.skops", option, value, "-o", tmp_path / "none.csv"
        )
        assert code == 1
        assert said in err
    assert not (tmp_path / "none.csv").exists()


def test_drift_of_a_stored_model(fitted, tmp_path, monkeypatch, capsys):
    folder, table = fitted
    table.to_csv(tmp_path / "old.csv", index=False)
    table.assign(amount=table["amount"] + 20).drop(columns="fraud").to_csv(tmp_path / "new.csv", index=False)
    options = (tmp_path / "new.csv", "--reference", tmp_path / "old.csv")
    code, out, err = run(monkeypatch, capsys, "drift", folder / "m.skops", *options)
    assert code == 0, err
    assert "Column 'amount' has other values" in out
    _, out, _ = run(monkeypatch, capsys, "drift", folder / "m.skops", *options, "--json")
    assert json.loads(out)["columns"][0]["column"] == "amount"
    code, _, err = run(monkeypatch, capsys, "drift", folder / "m.skops", tmp_path / "none.csv", *options[1:])
    assert code == 1
    assert "none.csv" in err


def test_sample_and_info(fitted, tmp_path, monkeypatch, capsys):
    folder, _ = fitted
    options = ("--label", "yes", "-n", "40", "-o", tmp_path / "r.csv")
    assert run(monkeypatch, capsys, "sample", folder / "m.skops", *options)[0] == 0
    rows = pd.read_csv(tmp_path / "r.csv")
    assert list(rows.columns) == ["amount", "count", "fraud", "hour", "country"]
    assert set(rows["country"]) <= {"de", "f,r", 'g"b'}
    assert rows["hour"].dtype.kind == "i"
    assert len(rows) == 40
    assert set(rows["fraud"]) == {"yes"}
    assert abs(rows["amount"].mean() - 3) < 1
    code, out, _ = run(monkeypatch, capsys, "info", folder / "m.skops")
    assert code == 0
    assert "classes: no (0.8333), yes (0.1667)" in out
    assert "columns: 4: amount, count, hour, country" in out


def test_export_writes_what_other_programs_run(fitted, tmp_path, monkeypatch, capsys):
    import onnxruntime

    from scorefield import encode_rows
    from scorefield.files.model_files import load_classifier

    folder, table = fitted
    model, X = load_classifier(folder / "m.skops")["model"], table.drop(columns="fraud")
    code, out, err = run(monkeypatch, capsys, "export", folder / "m.skops", tmp_path / "m.onnx")
    assert (code, out, err) == (0, f"wrote {tmp_path / 'm.onnx'}\n", "")
    label, probabilities = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"rows": encode_rows(model, X)})
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)
    assert label.tolist() == model.predict(X).tolist()
    assert run(monkeypatch, capsys, "export", folder / "m.skops", tmp_path / "m.json", "-q") == (0, "", "")
    assert json.loads((tmp_path / "m.json").read_text())["output"]["classes"] == ["no", "yes"]
    code, _, err = run(monkeypatch, capsys, "export", folder / "m.skops", tmp_path / "m.json")
    assert (code, "--force" in err) == (1, True)
    code, _, err = run(monkeypatch, capsys, "export", folder / "m.skops", tmp_path / "m.pt")
    assert (code, "ends in .onnx, .json" in err) == (1, True)


def test_quality_tells_good_rows_from_bad_ones(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    real, good = (
        pd.DataFrame(rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=400), columns=["a", "b"])
        for _ in range(2)
    )
    real["c"] = good["c"] = ["x", "y"] * 200
    bad = pd.DataFrame(rng.normal([1, 0], 1, size=(400, 2)), columns=["a", "b"]).assign(c="x")
    for name, table in (
        ("real", real),
        ("good", good),
        ("bad", bad),
        ("copy", real.sample(400, replace=True, random_state=0)),
    ):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    says = {
        name: run(monkeypatch, capsys, "quality", tmp_path / "real.csv", tmp_path / f"{name}.csv",
                  "--html", tmp_path / f"{name}.html")[1]
        for name in ("good", "bad", "copy")
    }  # fmt: skip
    assert "cannot tell" in says["good"]
    assert "not suspiciously close" in says["good"]
    assert "tells generated from real rows" in says["bad"] or "tells some" in says["bad"]
    assert "100.0% of the generated rows are copies" in says["copy"]
    assert "lie suspiciously close" in says["copy"]
    assert "<img" in (tmp_path / "bad.html").read_text()


def test_quality_with_held_out_rows_tells_copies(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    tables = {name: pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"]) for name in ("real", "fresh", "held")}
    tables["copy"] = tables["real"].sample(200, replace=True, random_state=0)
    for name, table in tables.items():
        table.assign(kind=np.where(table["a"] > 0, "x", "y")).to_csv(tmp_path / f"{name}.csv", index=False)
    for name, told in (("copy", "can be told"), ("fresh", "cannot be told")):
        given = (tmp_path / "real.csv", tmp_path / f"{name}.csv", "--held-out", tmp_path / "held.csv")
        page = ("--target", "kind", "--html", tmp_path / f"{name}.html")
        code, out, _ = run(monkeypatch, capsys, "quality", *given, *page)
        assert code == 0
        assert f"Training rows {told} from held-out rows" in out
        assert "no guarantee such as differential privacy" in out
        assert f"Training rows {told}" in (tmp_path / f"{name}.html").read_text()
    code, _, err = run(monkeypatch, capsys, "quality", tmp_path / "real.csv", tmp_path / "copy.csv",
                       "--held-out", tmp_path / "absent.csv")  # fmt: skip
    assert code != 0
    assert "absent.csv" in err


def test_quality_of_a_marked_table(tmp_path, frame, monkeypatch, capsys):
    """The rows of the class that was enlarged are compared; with the others a forest tells them by the label alone."""
    marked = pd.concat([frame, frame[150:].sample(60, replace=True, random_state=0)], ignore_index=True)
    marked["is_synthetic"] = marked.index >= 180
    marked.to_csv(tmp_path / "m.csv", index=False)
    code, out, _ = run(monkeypatch, capsys, "quality", tmp_path / "m.csv", "--target", "fraud")
    assert code == 0
    assert "100.0% of the generated rows are copies" in out
    assert "is_synthetic" not in out
    assert ["fraud", "constant", "0.000"] in [line.split() for line in out.splitlines()]
    out = run(monkeypatch, capsys, "quality", tmp_path / "m.csv")[1]
    assert ["fraud", "flag", "0.833"] in [line.split() for line in out.splitlines()]


def test_quality_and_advice_take_gaps_categories_and_identifiers(tmp_path, mixed, monkeypatch, capsys):
    from scorefield.evaluation import advice

    mixed.to_csv(tmp_path / "a.csv", index=False)
    other = mixed.assign(amount=mixed["amount"].where(mixed.index % 2 == 0), country="de")
    other.to_csv(tmp_path / "b.csv", index=False)
    code, out, err = run(monkeypatch, capsys, "quality", tmp_path / "a.csv", tmp_path / "b.csv",
                         "--html", tmp_path / "q.html")  # fmt: skip
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.split()}
    assert rows["country"] == ["category", "0.667"]
    gaps = other["amount"].isna().mean() - mixed["amount"].isna().mean()
    assert rows["amount"][-1] == f"{gaps:+.3f}"
    assert "Left out, as identifiers or free text: 'id'." in out
    assert "<img" in (tmp_path / "q.html").read_text()
    keep, all_remedies = ("nothing", "SMOTE"), advice._remedies
    monkeypatch.setattr(advice, "_remedies", lambda *a: {k: v for k, v in all_remedies(*a).items() if k in keep})
    given = (tmp_path / "a.csv", "--target", "fraud", "--learner", "logistic")
    code, out, err = run(monkeypatch, capsys, "advise", *given,
                         "--minutes", "0", "--as", "hour=number")  # fmt: skip
    assert code == 0
    assert err.startswith("warning: The order of 'id' alone predicts the label")  # the table is sorted by label
    assert len(err.splitlines()) == 1
    assert "MixedEncoder(columns={'hour': 'number'}, form='one-hot')" in out


def test_advice_on_one_of_several_classes_by_a_metric(tmp_path, monkeypatch, capsys):
    from scorefield.evaluation import advice

    keep, all_remedies = ("nothing", "class weights", "SMOTE"), advice._remedies
    monkeypatch.setattr(advice, "_remedies", lambda *a: {k: v for k, v in all_remedies(*a).items() if k in keep})
    y = np.repeat([1, 2, 3], [100, 40, 20])
    table = pd.DataFrame({"x": y + np.random.default_rng(0).normal(size=160), "y": y})
    table.to_csv(tmp_path / "a.csv", index=False)
    given = ("advise", tmp_path / "a.csv", "--target", "y", "--learner", "logistic", "--minutes", "0")
    for chosen, expected in ((("--positive", "2"), "2"), ((), "3")):
        code, out, err = run_with_stages(monkeypatch, capsys, *given, *chosen, "--metric", "log_loss")
        assert (code, err) == (0, "comparing remedies, one repetition of the quick ones ...\n")
        assert "1 repetition of 5 train-test splits of 160 rows" in out
        assert out.startswith(f"Class {expected} against all others.")
        assert "gain: by how much log loss (of probabilities; sure and wrong costs most) is lower than after" in out
        assert f"y = (y == {expected}).astype(int)" in out


def test_columns_are_described(tmp_path, monkeypatch, capsys):
    rows = "".join(f"{i:05d},{i % 3},{i / 7}\n" for i in range(40))
    (tmp_path / "a.csv").write_text("zip,level,x\n" + rows)
    code, out, err = run(monkeypatch, capsys, "columns", tmp_path / "a.csv", "--as", "level=category", "--drop", "x")
    assert (code, err) == (0, "")
    _, *lines, last = out.splitlines()
    assert [line.split()[:2] for line in lines] == [["zip", "identifier"], ["level", "category"]]
    assert last.startswith("37 rows repeat an earlier one apart from the columns that are set aside;")


@pytest.mark.parametrize("ids", ["new", pytest.param("blank", marks=pytest.mark.slow)])
def test_resample_writes_new_keys_of_the_same_type(tmp_path, frame, monkeypatch, capsys, short_training, ids):
    names = [f"{'abc'[i % 3] * 2} van {'xyz'[i % 2]}{i}" for i in range(180)]
    frame.assign(id=range(1, 181), code=[f"C-{i:05d}" for i in range(180)], name=names).to_csv(
        tmp_path / "a.csv", index=False
    )
    options = ("--target", "fraud", "--ids", ids, "-o", tmp_path / "b.csv")
    code, out, _ = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)
    assert code == 0
    found = pd.read_csv(tmp_path / "b.csv")
    new = found[180:]
    assert new["name"].isna().all()
    assert f"left blank in the new rows: {'name' if ids == 'new' else 'id, code, name'}" in out
    assert (found["id"].dtype == "int64") == (ids == "new")
    if ids == "new":
        assert new["id"].tolist() == list(range(181, 301))
        assert new["code"].tolist() == [f"C-{i:05d}" for i in range(180, 300)]


def test_columns_warns_of_keys_in_a_table_that_is_sorted_by_label(tmp_path, monkeypatch, capsys):
    table = pd.DataFrame({"id": range(60), "x": np.sin(np.arange(60)), "fraud": [0] * 50 + [1] * 10})
    table.to_csv(tmp_path / "a.csv", index=False)
    for more, warned in (((), False), (("--target", "fraud"), True)):
        code, out, err = run(monkeypatch, capsys, "columns", tmp_path / "a.csv", *more)
        assert (code, err, "warning: The order of 'id' alone predicts the label" in out) == (0, "", warned)
    code, _, err = run(monkeypatch, capsys, "columns", tmp_path / "a.csv", "--target", "frauds")
    assert (code, "did you mean 'fraud'?" in err) == (1, True)


def test_columns_tells_machines_what_it_tells_people(tmp_path, monkeypatch, capsys):
    table = pd.DataFrame({"id": range(60), "x": np.sin(np.arange(60)), "fraud": [0] * 50 + [1] * 10})
    pd.concat([table, table[7:10]]).sort_values("id").to_csv(tmp_path / "a.csv", index=False)
    given = ("columns", tmp_path / "a.csv", "--target", "fraud", "--as", "fraud=flag")
    _, said, _ = run(monkeypatch, capsys, *given)
    code, out, err = run(monkeypatch, capsys, *given, "--json")
    found = json.loads(out)
    assert (code, err, found["repeated_rows"]) == (0, "", 3)
    key, x, fraud = found["columns"]
    assert (x["reason"], fraud["reason"]) == (None, "as asked")
    assert key["reason"]
    (warning,) = found["warnings"]
    assert warning.startswith("The order of 'id' alone predicts the label")
    assert all(text in said for text in ("3 rows repeat an earlier one", f"set aside: {key['reason']};", warning))


def test_the_report_of_a_table_ends_in_a_command_that_works(tmp_path, monkeypatch, capsys):
    rows = "".join(f"{'12O' if i == 7 else i},{'inf' if i == 8 else i % 5},{i % 4 // 3}\n" for i in range(40))
    (tmp_path / "a.csv").write_text("a,b,fraud\n" + rows)
    given = ("columns", tmp_path / "a.csv")
    code, _, err = run(monkeypatch, capsys, *given)
    first, *problems, last = err.splitlines()
    assert (code, first[:6], len(problems)) == (1, "error:", 2)
    assert all(line.startswith("- Expected ") for line in problems)
    assert last.startswith(f"try: scorefield columns {tmp_path / 'a.csv'} ")
    assert run(monkeypatch, capsys, *shlex.split(last)[2:])[0] == 0
    code, _, err = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", "--target", "Fraud", "-o", "x.csv",
                       "--na", "12O,inf")  # fmt: skip
    assert (code, err.splitlines()[1].split(" --target ")[1]) == (1, "fraud -o x.csv --na 12O,inf")


def test_errors_come_before_heavy_imports(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n" + "1,0\n2,1\n" * 20)
    (tmp_path / "m.skops").write_text("no model")
    data, model, output = (str(tmp_path / name) for name in ("a.csv", "m.skops", "o.csv"))
    wrong = [
        *([command, data + "?", "--target", "y", "-o", output] for command in ("resample", "fit")),
        ["resample", data, "--target", "z", "-o", output],
        ["resample", data, "--target", "y", "-o", output, "--model", "gausian"],
        ["resample", data, "--target", "y", "-o", output, "--strategy", "2=30"],
        ["resample", data, "--target", "y", "-o", output, "--as", "a=numbr"],
        ["advise", data, "--target", "y", "--learner", "tree"],
        ["advise", data, "--target", "y", "--metric", "accuracy"],
        ["advise", data, "--target", "y", "--positive", "yes"],
        ["predict", model, data, "-o", output, "--keep", "b"],
        ["predict", model + "?", data, "-o", output],
        ["sample", model + "?", "--label", "1", "-o", output],
        ["info", model + "?"],
        ["export", model + "?", str(tmp_path / "m.onnx")],
        ["export", model, output],
        ["quality", data, "--target", "z"],
        ["columns", data, "--drop", "b"],
        ["impute", data + "?", "-o", output],
        ["outliers", data, "-o", output, "--contamination", "0.7"],
        ["columns", data, "--decimal", ";"],
    ]
    code = (
        "import json, sys\nfrom scorefield.cli.main import main\ncodes = []\n"
        "for arguments in json.loads(sys.argv[1]):\n    sys.argv = ['scorefield', *arguments]\n"
        "    try:\n        main()\n    except SystemExit as stop:\n        codes.append(stop.code)\n"
        "print(codes, [name for name in ('jax', 'sklearn', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, json.dumps(wrong)], capture_output=True, text=True)
    codes, _, heavy = done.stdout.partition("] ")
    assert set(json.loads(codes + "]")) == {1, 2}, done.stderr
    assert len(json.loads(codes + "]")) == len(wrong)
    assert heavy.strip() == "[]"


BAD_FILES = {
    "empty.csv": (b"", "got an empty file"),
    "blank.csv": (b"\n\n", "Expected a header"),
    "header.csv": (b"a,fraud\n", "a header alone"),
    "twice.csv": (b"a,a,fraud\n1,2,0\n3,4,1\n", "'a' more than once"),
    "latin.csv": ("name,fraud\nJosé,0\nx,1\n".encode("latin-1"), "--encoding latin-1"),
    "ragged.csv": (b"a,fraud\n1,0\n2,1,5,6\n", "Expected"),
    "longer.csv": (b"a,b,fraud\n1,2,0,9\n3,4,1,9\n", "Expected a table"),
    "thousands.csv": (b"a;fraud\n" + b"13,750;0\n1,990;1\n" * 20, "the kind 'number:point' or 'number:comma'"),
    "text.csv": (b"name,fraud\n" + b"".join(b"person %d x,%d\n" % (i, i % 3 == 0) for i in range(200)), "Expected "),
    "missing.csv": (b"a,fraud\n1,0\n" + b"1,0\n,1\n" * 20, "at least one column that varies"),
    "nolabel.csv": (b"a,fraud\n" + b"1,0\n2,\n" * 20, "20 missing"),
    "one.csv": (b"a,fraud\n" + b"1,0\n2,0\n" * 20, "two classes"),
    "fraction.csv": (b"a,fraud\n1,0.5\n2,0.25\n", "got fractions"),
    "alone.csv": (b"fraud\n0\n1\n", "columns beside the target"),
    "notarget.csv": (b"a,b\n0,1\n1,0\n", "got 'fraud'"),
    "damaged.parquet": (b"PAR1 but no more", "Expected a Parquet file"),
    "damaged.csv.gz": (b"\x1f\x8bnot really", "Expected"),
    "table.xlsx": (b"PK", "Expected an Excel file"),
    "table.sav": (b"$FL2", "ends in .csv, .csv.gz, .tsv"),
    "rows.jsonl": (b'{"a": 1, "fraud": 0}\n{"a": 2,\n', "in line 2; correct it"),
    "open.csv": (b'a,fraud\n"1,0\n2,1\n', "Expected"),
}


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("command", ["resample", "fit"])
def test_bad_input_is_refused_and_leaves_nothing(tmp_path, monkeypatch, capsys, name, command):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    output = tmp_path / ("out.csv" if command == "resample" else "out.skops")
    code, out, err = run(monkeypatch, capsys, command, tmp_path / name, "--target", "fraud", "-o", output)
    assert code == 1
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    _, *more = err.strip().splitlines()
    assert all(line.startswith("try: scorefield ") for line in more)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_balanced_table_is_written_as_it_is(tmp_path, monkeypatch, capsys):
    content = 'a,name,fraud\n1.50,"x",0\n,y,1\n0,"p, q",0\n7,z,1\n'
    (tmp_path / "a.csv").write_text(content)
    given = ("resample", tmp_path / "a.csv", "--target", "fraud", "-o", tmp_path / "b.csv")
    code, out, err = run(monkeypatch, capsys, *given, "--quiet")
    assert (code, out, err, (tmp_path / "b.csv").read_text()) == (0, "", "", content)
    code, out, err = run(monkeypatch, capsys, *given, "--force")
    assert (code, (tmp_path / "b.csv").read_text()) == (0, content)
    assert "no rows were added: no class is smaller than asked for" in out


def test_paths_that_cannot_be(tmp_path, frame, monkeypatch, capsys):
    frame.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "old.csv").write_text("old")
    cases = {
        (tmp_path, tmp_path / "b.csv"): "got the folder",
        (tmp_path / "no.csv", tmp_path / "b.csv"): "does not exist",
        (tmp_path / "a.csv", tmp_path / "old.csv"): "--force",
        (tmp_path / "a.csv", tmp_path / "no" / "b.csv"): "Expected an existing folder",
        (tmp_path / "a.csv", tmp_path / "b.txt"): "ends in",
        (tmp_path / "a.csv", tmp_path): "ends in",
    }
    for (source, output), message in cases.items():
        code, _, err = run(monkeypatch, capsys, "resample", source, "--target", "fraud", "-o", output)
        assert code == 1
        assert message in err
    assert (tmp_path / "old.csv").read_text() == "old"
    options = ("--target", "fraud", "-o", tmp_path / "old.csv", "--model", "gaussian", "--force")
    assert run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)[0] == 0
    assert len(pd.read_csv(tmp_path / "old.csv")) == 300


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_leaves_nothing(tmp_path, frame, monkeypatch, capsys):
    from scorefield.data import files

    frame.to_csv(tmp_path / "a.csv", index=False)

    def on_a_full_disk(path, **options):
        path.symlink_to("/dev/full")

    monkeypatch.setattr(files.pathlib.Path, "touch", on_a_full_disk)
    options = ("--target", "fraud", "-o", tmp_path / "b.csv", "--model", "gaussian")
    code, _, err = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)
    assert code == 1
    assert "No space left" in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_an_unwritable_folder_is_refused(tmp_path, frame, monkeypatch, capsys):
    frame.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "locked").mkdir(mode=0o500)
    output = tmp_path / "locked" / "b.csv"
    code, _, err = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", "--target", "fraud", "-o", output)
    assert code == 1
    assert "writable" in err


@pytest.mark.parametrize("damage", ["cut", "foreign", "text"])
def test_a_foreign_model_file_is_refused(fitted, tmp_path, monkeypatch, capsys, damage):
    import skops.io
    from sklearn.linear_model import LogisticRegression

    folder, _ = fitted
    path = tmp_path / "m.skops"
    if damage == "cut":
        path.write_bytes((folder / "m.skops").read_bytes()[:2000])
    elif damage == "foreign":
        skops.io.dump(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), path)
    else:
        path.write_text("no model")
    code, _, err = run(monkeypatch, capsys, "predict", path, folder / "data.csv", "-o", tmp_path / "s.csv")
    assert code == 1
    assert "Expected a model written by" in err
    assert not (tmp_path / "s.csv").exists()


def test_predict_on_other_columns_is_refused(fitted, tmp_path, monkeypatch, capsys):
    folder, _ = fitted
    (tmp_path / "new.csv").write_text("amount\n1\n")
    code, _, err = run(
        monkeypatch, capsys, "predict", folder / "m.skops", tmp_path / "new.csv", "-o", tmp_path / "s.csv"
    )
    assert code == 1
    assert "none named 'count'" in err
    assert not (tmp_path / "s.csv").exists()
    (tmp_path / "none.csv").write_text("amount,count,hour,country\n")
    code, _, err = run(
        monkeypatch, capsys, "predict", folder / "m.skops", tmp_path / "none.csv", "-o", tmp_path / "s.csv"
    )
    assert code == 1
    assert "a header alone" in err
    assert not (tmp_path / "s.csv").exists()


def test_usage_errors_have_code_two(tmp_path):
    assert RUNNER.invoke(app, ["resample"]).exit_code == 2
    assert RUNNER.invoke(app, ["reproduce", "nothing-like-it"]).exit_code == 2
    assert RUNNER.invoke(app, ["sample", "m.skops", "--label", "1", "-n", "0", "-o", "x.csv"]).exit_code == 2


@pytest.mark.parametrize(
    "command",
    [
        "resample",
        "fit",
        "predict",
        "sample",
        "quality",
        "columns",
        "impute",
        "outliers",
        "export",
        "info",
        "reproduce",
        "demo",
    ],
)
def test_help_shows_an_example(command):
    result = RUNNER.invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 0
    assert f"scorefield {command}" in result.output.split("Example:")[1]


def test_reproduce_lists_its_experiments():
    result = RUNNER.invoke(app, ["reproduce", "list"])
    assert result.exit_code == 0
    assert "imbalanced-10d" in result.output


def test_debug_shows_the_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["scorefield", "--debug", "info", str(tmp_path / "no.skops")])
    with pytest.raises(FileNotFoundError):
        main()
    monkeypatch.setattr("scorefield.cli.console.state", {"debug": False, "quiet": False})


@pytest.mark.parametrize(
    ("command", "delay"),
    [
        ("predict", 0.0),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("predict", 0.4), ("resample", 0.0))),
    ],
)
def test_a_killed_command_leaves_the_old_output(fitted, frame, tmp_path, command, delay):
    folder, table = fitted
    big = pd.concat([table if command == "predict" else frame] * 3000, ignore_index=True)
    big.to_csv(tmp_path / "big.csv", index=False)
    output = tmp_path / "s.csv"
    output.write_text("old")
    given = [str(folder / "m.skops"), str(tmp_path / "big.csv")]
    if command == "resample":
        given = [str(tmp_path / "big.csv"), "--target", "fraud", "--model", "gaussian"]
    process = subprocess.Popen(
        [sys.executable, "-m", "scorefield", command, *given, "-o", str(output), "--force", "-q"]
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".s.csv.*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    process.kill()
    process.wait()
    whole = len(big) + 1 if command == "predict" else 2 * 150 * 3000 + 1
    text = output.read_text()
    assert text == "old" or text.count("\n") == whole


def test_gzip_output_is_gzip(tmp_path, frame, monkeypatch, capsys):
    frame.to_csv(tmp_path / "a.csv", index=False)
    options = ("--target", "fraud", "-o", tmp_path / "b.csv.gz", "--model", "gaussian")
    run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)
    with gzip.open(tmp_path / "b.csv.gz", "rt") as stream:
        assert stream.readline().strip() == "amount,count,fraud,hour"


def test_separators_inside_quotes_are_no_trouble(tmp_path, frame, monkeypatch, capsys):
    odd = frame.rename(columns={"amount": "amount, in EUR", "count": "n [kg]"})
    odd.to_csv(tmp_path / "a.csv", index=False, sep=";")
    options = ("--target", "fraud", "-o", tmp_path / "b.csv", "--model", "gaussian")
    assert run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)[0] == 0
    assert list(pd.read_csv(tmp_path / "b.csv", sep=";").columns) == list(odd.columns)
    odd.to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = run(monkeypatch, capsys, "quality", tmp_path / "a.csv", tmp_path / "b.csv")
    assert code == 0
    assert "n [kg]" in out


def test_near_copies_are_noticed_among_many_rows_and_columns(monkeypatch):
    from scorefield import compare_tables
    from scorefield.evaluation import quality

    monkeypatch.setattr(quality, "MAX_COMPARED", 300)  # copies are looked for in all rows all the same
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.normal(size=(2000, 20)))
    near = real + 1e-3 * rng.normal(size=real.shape)
    fresh = pd.DataFrame(rng.normal(size=(1000, 20)))
    found = {name: compare_tables(real, table) for name, table in (("copy", real), ("near", near), ("fresh", fresh))}
    assert found["copy"].copies == 1.0
    assert found["near"].copies == 0.0
    whole = pd.DataFrame({"n": np.arange(40), "c": ["x", "y"] * 20})
    assert compare_tables(whole, whole.astype({"n": float, "c": "category"})).copies == 1.0  # whatever the dtype
    assert "lie suspiciously close" in found["near"].sentences[-1]
    assert "not suspiciously close" in found["fresh"].sentences[-1]


def test_one_option_of_the_chain_keeps_the_others(frame):
    from scorefield.cli import commands

    near, _, _ = commands.resample(frame, "fraud", model="gaussian", chain={"step_size": 0.02})
    default, _, _ = commands.resample(frame, "fraud", model="gaussian")
    assert near["amount"][180:].nunique() == default["amount"][180:].nunique() == 120


def test_an_output_that_appears_meanwhile_is_kept(tmp_path, frame, monkeypatch, capsys):
    from scorefield.cli import commands

    frame.to_csv(tmp_path / "a.csv", index=False)
    real = commands.resample

    def slow(*given, **options):
        (tmp_path / "b.csv").write_text("another's")
        return real(*given, **options)

    monkeypatch.setattr(commands, "resample", slow)
    options = ("--target", "fraud", "-o", tmp_path / "b.csv", "--model", "gaussian")
    code, _, err = run(monkeypatch, capsys, "resample", tmp_path / "a.csv", *options)
    assert code == 1
    assert "b.csv, which exists; give another name or --force" in err
    assert (tmp_path / "b.csv").read_text() == "another's"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("quiet", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_warning_is_one_plain_line(tmp_path, frame, monkeypatch, capsys, quiet):
    """Pytest takes warnings over, so this is a process of its own."""
    few = frame[:155]  # five rows of one class
    few.to_csv(tmp_path / "a.csv", index=False)
    options = ("--target", "fraud", "-o", tmp_path / "b.csv", *(["-q"] if quiet else []))
    done = subprocess.run(
        [sys.executable, "-m", "scorefield", "resample", tmp_path / "a.csv", *options], capture_output=True, text=True
    )
    assert done.returncode == 0
    said = "warning: Class 'yes' has only 5 rows; new ones lean on the other classes.\n"
    assert without_stages(done.stderr) == ("" if quiet else said)
    assert not quiet or done.stderr == ""


def test_names_with_dollar_signs_are_drawn(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"$a_{$": rng.normal(size=50), r"in $\frac^$": ["$x_{$", "y"] * 25})
    table.to_csv(tmp_path / "a.csv", index=False)
    options = ("--html", tmp_path / "q.html")
    code, _, err = run(monkeypatch, capsys, "quality", tmp_path / "a.csv", tmp_path / "a.csv", *options)
    assert (code, err) == (0, "")
    assert "<img" in (tmp_path / "q.html").read_text()


MESSAGES = {
    "nested": (["resample", "nested.parquet"], "column 'b', got list<element: int64>; flatten"),
    "nested fit": (["fit", "nested.parquet"], "column 'b', got list<element: int64>; flatten"),
    "twice": (
        ["resample", "twice.parquet"],
        "unique column names in {0}/twice.parquet, got 'a' more than once; rename",
    ),
    "one odd": (
        ["resample", "odd.csv"],
        "Expected numbers in column 'a', as in 99 of its cells, got '12O' in row 8 below the header; correct",
    ),
    "odd label": (
        ["fit", "label.csv"],
        "Expected numbers in column 'fraud', as in 99 of its cells, got 'yes' in row 3",
    ),
    "stream": (["fit", "nested.parquet", "--stream", "--drop", "b"], "Expected no --as, --drop, --na or --groups for"),
    "absurd": (["resample", "good.csv", "--strategy", "1=99999999999999999999"], "GiB; ask for fewer rows"),
    "no number": (["resample", "good.csv", "--strategy", "1=²"], "Expected label=count with a label of ['0', '1']"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_messages_name_the_column_and_the_remedy(tmp_path, monkeypatch, capsys, case):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (command, name, *options), message = MESSAGES[case]
    a, y = np.arange(100.0), np.arange(100) % 4 // 3
    good = pd.DataFrame({"a": a, "fraud": y})
    text = good.astype(str)
    if name == "nested.parquet":
        pq.write_table(pa.table({"a": a, "b": [[1, 2]] * 100, "fraud": y}), tmp_path / name)
    elif name == "twice.parquet":
        pq.write_table(pa.table([a, a, y], names=["a", "a", "fraud"]), tmp_path / name)
    else:
        changed = {
            "good.csv": good,
            "odd.csv": text.assign(a=text["a"].where(text.index != 7, "12O")),
            "label.csv": text.assign(fraud=text["fraud"].where(text.index != 2, "yes")),
        }
        changed[name].to_csv(tmp_path / name, index=False)
    output = tmp_path / ("out.skops" if command == "fit" else "out.csv")
    code, _, err = run(monkeypatch, capsys, command, tmp_path / name, "--target", "fraud", "-o", output, *options)
    assert code == 1
    assert message.format(tmp_path) in err
    assert not output.exists()


def test_predict_names_the_column_of_a_bad_cell(fitted, tmp_path, monkeypatch, capsys):
    from scorefield.data import tables

    folder, table = fitted
    monkeypatch.setattr(tables, "PART_ROWS", 50)
    count = ["1.5"] * 180
    count[61] = "w"
    table.assign(count=count).to_csv(tmp_path / "new.csv", index=False)
    options = ("-o", tmp_path / "s.csv")
    code, _, err = run(monkeypatch, capsys, "predict", folder / "m.skops", tmp_path / "new.csv", *options)
    assert code == 1
    assert "got 'w' in row 62 below the header; correct them, or --na w if they mean missing." in err
    assert not (tmp_path / "s.csv").exists()


def test_predict_refuses_duplicate_columns_and_ignores_nested_ones(fitted, tmp_path, monkeypatch, capsys):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder, table = fitted
    good = pa.Table.from_pandas(table)
    for name, other in (
        ("twice", good.append_column("hour", good["hour"])),
        ("more", good.append_column("tags", pa.array([["x"]] * 180))),
    ):
        pq.write_table(other, tmp_path / f"{name}.parquet")
    options = ("-o", tmp_path / "s.csv")
    code, _, err = run(monkeypatch, capsys, "predict", folder / "m.skops", tmp_path / "twice.parquet", *options)
    assert code == 1
    assert "got 'hour' more than once; rename them" in err
    assert run(monkeypatch, capsys, "predict", folder / "m.skops", tmp_path / "more.parquet", *options)[0] == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no POSIX modes")
def test_a_link_is_followed_and_modes_are_kept(tmp_path):
    from scorefield.data.files import write_whole

    (tmp_path / "real.txt").write_text("old")
    os.chmod(tmp_path / "real.txt", 0o600)
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_whole(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    assert (tmp_path / "real.txt").stat().st_mode & 0o777 == 0o600
