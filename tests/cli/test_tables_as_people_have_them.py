"""Commands on tables in German and American spelling: pandas reads its output as it reads the table."""

import functools
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from scorefield.cli import commands
from scorefield.cli.app import app
from scorefield.evaluation import advice

N = 90
GERMAN = {"sep": ";", "decimal": ","}


def columns_of_people():
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2024-01-05") + pd.to_timedelta(rng.integers(0, 500, N), unit="D")
    label = np.repeat(["nein", "ja"], [60, 30])  # sorted, as exports are
    price = rng.normal(900, 200, N) + 400 * (label == "ja")
    return rng, days, label, price


def german_table():
    """Semicolons, decimal commas, dates with dots, a byte order mark, leading zeros and a quoted line end."""
    rng, days, label, price = columns_of_people()
    numbers = [f"{number:,.2f}".translate(str.maketrans(",.", ".,")) for number in price]
    lines = ["Kunde;PLZ;Datum;Betrag;Rabatt;Stunden;Ort;Storno"]
    for i in range(N):
        place = ("Köln", '"Bad\nHomburg"', "Ulm")[i % 3]
        hours = f"{rng.integers(1, 80) / 2:.1f}".replace(".", ",") if i % 9 else ""
        cells = (i + 1, f"{rng.integers(1, 5):05d}", days[i].strftime("%d.%m.%Y"), f"{numbers[i]} EUR")
        lines.append(";".join(map(str, (*cells, f"{rng.integers(0, 30)} %", hours, place, label[i]))))
    lines[5:5] = lines[40:42]  # repeated rows
    return "\ufeff" + "\r\n".join(lines) + "\r\n"


def american_table():
    """Months first, dollars, blanks before the cells, and words for missing values."""
    rng, days, label, price = columns_of_people()
    lines = ["customer_id,zip,signed, amount, rate,mass,work, churn"]
    for i in range(N):
        work = (" Private", " State-gov", " ?")[i % 3]
        mass = 25 * rng.integers(100, 250) if i % 11 else "NA"
        cells = (1000 + i, f"{rng.integers(1, 5):05d}", days[i].strftime("%m/%d/%Y"), f'"${price[i]:,.2f}"')
        lines.append(",".join(map(str, (*cells, f" {rng.integers(1, 60) / 4:.2f}%", mass, work, f" {label[i]}"))))
    return "\n".join(lines) + "\n"


TABLES = {"german": (german_table(), "Storno", GERMAN), "american": (american_table(), "churn", {"sep": ","})}


@pytest.fixture(params=TABLES)
def case(request, tmp_path, monkeypatch):
    """A file, its target, how pandas reads it, and commands that train for a few steps."""
    for name, settings in (("ScoreDensity", {}), ("ScoreImputer", {"method": "neighbours"})):
        monkeypatch.setattr(commands, name, functools.partial(getattr(commands, name), max_steps=5, **settings))
    small = functools.partial(commands.ScoreClassifier, n_members=1)
    monkeypatch.setattr(commands, "ScoreClassifier", small)
    text, target, reading = TABLES[request.param]
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    return path, target, reading


def scorefield(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, f"{arguments}\n{done.output}\n{done.exception!r}"
    return done.output


def assert_reads_alike(path, source, reading, *, all_levels=True, filled=False):
    """The same dtypes, and no level that the source has not."""
    before, after = (pd.read_csv(name, **reading) for name in (source, path))
    for name in before:
        assert name in after
        if not (filled and before[name].hasnans):  # whole numbers without missing values are integers to pandas
            assert before[name].dtype == after[name].dtype, name
        levels, found = set(before[name].dropna()), set(after[name].dropna())
        if len(levels) >= 10 and not pd.api.types.is_numeric_dtype(before[name]):
            shape = {pd.Series(sorted(cells)).str.replace(r"\d+", "0", regex=True).max() for cells in (levels, found)}
            assert len(shape) == 1, f"{name}: {shape}"
        if len(levels) < 10:
            assert found <= levels, name
            assert found == levels or not all_levels, name


def decimal_options(reading):
    return ("--decimal", reading["decimal"]) if "decimal" in reading else ()


def test_columns_are_recognised(case):
    path, target, reading = case
    told = scorefield("columns", path, *decimal_options(reading))
    date, amount = ("day.month.year", "EUR") if target == "Storno" else ("month/day/year", "$")
    assert f"read as {date}" in told
    assert f"read as numbers in {amount}" in told
    assert "read as numbers in %" in told


def test_rows_are_added_and_filled_in_the_same_spelling(case):
    path, target, reading = case
    decimal, more, full = decimal_options(reading), path.with_name("more.csv"), path.with_name("full.csv")
    scorefield("resample", path, "--target", target, *decimal, "-o", more)
    as_text = {**reading, "dtype": str, "keep_default_na": False}
    own, both = (pd.read_csv(name, **as_text) for name in (path, more))
    pd.testing.assert_frame_equal(both.iloc[: len(own)], own)
    assert_reads_alike(more, path, reading)
    generated, key = pd.read_csv(more, **reading).iloc[len(own) :], own.columns[0]
    assert generated.notna().any().all()
    assert generated[key].is_unique
    assert not set(generated[key]) & set(own[key].astype(int))
    if "mass" in generated:
        assert not (generated["mass"].dropna() % 25).any()
    scorefield("impute", path, *decimal, "-o", full)
    assert_reads_alike(full, path, reading, filled=True)


def test_rows_are_judged(case, monkeypatch):
    path, target, reading = case
    decimal, odd = decimal_options(reading), path.with_name("odd.csv")
    scorefield("outliers", path, *decimal, "-o", odd)
    assert_reads_alike(odd, path, reading)
    assert pd.read_csv(odd, **reading)["is_outlier"].dtype == bool
    found = json.loads(scorefield("quality", path, path, *decimal, "--json"))
    assert found["copies"] == 1
    assert all(column["distance"] == 0 for column in found["columns"])
    all_remedies = advice._remedies
    keep = ("nothing", "class weights", "SMOTE")
    monkeypatch.setattr(advice, "_remedies", lambda *a: {k: v for k, v in all_remedies(*a).items() if k in keep})
    given = (path, "--target", target, *decimal, "--learner", "logistic", "--minutes", 0)
    found = json.loads(scorefield("advise", *given, "--json"))
    precision = {row["remedy"]: row["average_precision"] for row in found["table"]}
    assert precision["nothing"] > 0.5  # a third of the rows; prices and the label go together


@pytest.mark.slow
def test_a_model_carries_the_spelling(case):
    path, target, reading = case
    decimal, model = decimal_options(reading), path.with_name("model.skops")
    scored, rows, why = (path.with_name(name) for name in ("scored.csv", "rows.csv", "why.csv"))
    scorefield("fit", path, "--target", target, *decimal, "-o", model)
    labels = pd.read_csv(path, **reading).iloc[:, -1]
    scorefield("predict", model, path, *decimal, "--keep", "all", "-o", scored)
    assert_reads_alike(scored, path, reading)
    assert set(pd.read_csv(scored, **reading)[f"predicted_{target}"]) <= set(labels)
    scorefield("sample", model, "--label", "ja", "-n", 60, "-o", rows)
    assert_reads_alike(rows, path, reading, all_levels=False)
    scorefield("explain", model, path, *decimal, "-o", why)
    assert set(pd.read_csv(why)["label"]) <= set(labels)
    told = json.loads(scorefield("info", model, "--json"))
    assert told["target"] == target
    assert all(label.strip() in told["classes"] for label in set(labels))
    arrays = path.with_name("model.json")
    scorefield("export", model, arrays)
    assert json.loads(arrays.read_text())
    scorefield("drift", model, path, "--reference", path, *decimal)


@pytest.mark.slow
def test_a_taught_learner_carries_the_spelling(case):
    path, target, reading = case
    decimal, model, scored = decimal_options(reading), path.with_name("learner.skops"), path.with_name("scored.csv")
    scorefield("distill", path, "--target", target, *decimal, "--estimator", "logistic", "-o", model)
    scorefield("predict", model, path, *decimal, "--keep", "all", "-o", scored)
    assert_reads_alike(scored, path, reading)
    assert set(pd.read_csv(scored, **reading)[f"predicted_{target}"]) <= set(pd.read_csv(path, **reading).iloc[:, -1])


def test_a_column_of_groups_is_kept_together_and_not_learned(tmp_path, monkeypatch):
    small = functools.partial(commands.ScoreClassifier, n_members=1, max_steps=2)
    monkeypatch.setattr(commands, "ScoreClassifier", small)
    all_remedies = advice._remedies
    keep = ("nothing", "SMOTE")
    monkeypatch.setattr(advice, "_remedies", lambda *a: {name: all_remedies(*a)[name] for name in keep})
    rng = np.random.default_rng(0)
    customers = np.repeat(np.arange(24), 4)
    place = rng.normal(size=24)[customers].round(3)
    table = pd.DataFrame({"customer": [f"c{c}" for c in customers], "x": place + rng.normal(size=96).round(3) / 100})
    path, model = tmp_path / "visits.csv", tmp_path / "model.skops"
    table.assign(y=np.where(customers % 3 == 0, "yes", "no")).to_csv(path, index=False)
    options = ("--target", "y", "--groups", "customer")
    found = json.loads(scorefield("advise", path, *options, "--minutes", 0, "--learner", "neighbours", "--json"))
    torn = json.loads(
        scorefield(
            "advise", path, *options[:2], "--drop", "customer", "--minutes", 0, "--learner", "neighbours", "--json"
        )
    )
    precision = [each["table"][0]["average_precision"] for each in (found, torn)]
    assert precision[0] < precision[1] - 0.2
    assert "of 1 columns" in scorefield("fit", path, *options, "-o", model)
    scorefield("predict", model, path, "-o", tmp_path / "scores.csv")
    wrong = CliRunner().invoke(app, ["advise", str(path), "--target", "y", "--groups", "custmer"])
    assert "did you mean 'customer'?" in str(wrong.exception)
