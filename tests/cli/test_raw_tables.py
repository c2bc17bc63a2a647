"""Every command on tables as people have them: blanks, leading spaces, ids, names, spikes, a label called "NA"."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from scorefield.studies.benchmark.mixed_tables import TARGETS

DATA = pathlib.Path(os.environ.get("SCOREFIELD_DATA", "")) / "mixed"
SET_ASIDE = ("identifier", "text")
KEYS = ("PassengerId", "customerID")  # with patterns that new ones follow

pytestmark = [pytest.mark.data, pytest.mark.slow]


def scorefield(folder, *arguments):
    """Run a command and return what it prints."""
    command = [sys.executable, "-m", "scorefield", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def as_text(path):
    """The cells of a file as they are written."""
    return pl.read_csv(path, infer_schema=False).fill_null("")


def known(frame, name):
    return ~frame[name].str.strip_chars().is_in(["", "NA"])


def cells(frame, name):
    """The known cells of a column of texts, without the spaces around them."""
    return frame[name].str.strip_chars().filter(known(frame, name))


def numbers(frame, name):
    return cells(frame, name).cast(pl.Float64).to_numpy()


def assert_rows_are_possible(rows, table, kinds, rare_rows):
    """Ranges, levels, ids, and the shares of single values in the table's rare rows."""
    for name, kind in kinds.items():
        if kind in SET_ASIDE:
            if name in KEYS:
                assert known(rows, name).all(), name
            assert not set(cells(rows, name)) & set(cells(table, name)), f"{name} holds the key of another row"
            assert name in KEYS or cells(rows, name).is_empty(), f"{name} holds an invented name"
        elif kind in ("number", "whole number", "spiked number", "ordered"):
            drawn, seen = numbers(rows, name), numbers(table, name)
            assert seen.min() <= drawn.min(), name
            assert drawn.max() <= seen.max(), name
            if kind != "number":
                assert (drawn == drawn.round()).all() or not (seen == seen.round()).all(), name
            if kind == "spiked number":
                values, counts = np.unique(numbers(rare_rows, name), return_counts=True)
                shares = counts / counts.sum()
                for value, share in zip(values[shares > 0.1], shares[shares > 0.1], strict=True):
                    assert abs((drawn == value).mean() - share) < 0.05, f"{name} == {value}"
        else:
            assert set(cells(rows, name)) <= set(cells(table, name)), name


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_every_command_takes_a_raw_table(tmp_path, name):
    source, target = DATA / f"{name}.csv", TARGETS[name]
    table = as_text(source)
    described = json.loads(scorefield(tmp_path, "columns", source, "--json"))
    kinds = {row["column"]: row["kind"] for row in described if row["column"] != target}
    labels = table[target].str.strip_chars()
    rare = labels.value_counts(sort=True)[target][-1]
    rare_rows = table.filter(labels == rare)

    scorefield(tmp_path, "resample", source, "--target", target, "--mark", "-o", "balanced.csv")
    balanced = as_text(tmp_path / "balanced.csv")
    original = balanced.filter(pl.col("is_synthetic").str.to_lowercase().is_in(["0", "false"]))
    assert original.drop("is_synthetic").equals(table)
    lines = source.read_bytes().splitlines()[1:]
    written = (tmp_path / "balanced.csv").read_bytes().splitlines()[1 : len(lines) + 1]
    assert all(ours.startswith(theirs) for ours, theirs in zip(written, lines, strict=True))
    drawn = balanced.filter(pl.col("is_synthetic").str.to_lowercase().is_in(["1", "true"]))
    assert_rows_are_possible(drawn.filter(drawn[target].str.strip_chars() == rare), table, kinds, rare_rows)
    assert balanced[target].str.strip_chars().value_counts()["count"].n_unique() == 1

    scorefield(tmp_path, "quality", "balanced.csv", "--target", target)
    scorefield(tmp_path, "fit", source, "--target", target, "-o", "model.skops")
    assert target in scorefield(tmp_path, "info", "model.skops")
    scorefield(tmp_path, "predict", "model.skops", source, "-o", "scores.csv", "--keep", "all")
    scores = as_text(tmp_path / "scores.csv")
    assert scores.height == table.height
    assert (scores[f"predicted_{target}"].str.strip_chars() == labels).mean() > 0.75
    scorefield(tmp_path, "sample", "model.skops", "--label", rare, "-n", 1000, "-o", "rows.csv")
    assert_rows_are_possible(as_text(tmp_path / "rows.csv"), table, kinds, rare_rows)
    if not all(known(table, column).all() for column in kinds):
        scorefield(tmp_path, "impute", source, "-o", "full.csv")
        full = as_text(tmp_path / "full.csv")
        for column, kind in kinds.items():
            there = known(table, column)
            assert full[column].filter(there).equals(table[column].filter(there))
            text = kind in ("category", "flag")  # in which "NA" is a level like others
            assert kind in SET_ASIDE or known(full, column).all() or (text and (full[column] != "").all())
    scorefield(tmp_path, "advise", source, "--target", target)
