"""Rows that a database chose, with the odds of the whole table: the query of docs/guide/dask.rst."""

import pathlib
import re

import numpy as np
import pytest

from scorefield import ScoreClassifier

duckdb = pytest.importorskip("duckdb", reason="the query is one of duckdb")
pd = pytest.importorskip("pandas")

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "dask.rst"


def test_the_query_of_the_guide(tmp_path, monkeypatch, rng):
    """It runs as it stands, has the odds of the table, and without priors it has not."""
    y = (rng.random(12_000) < 0.02).astype(int)
    table = pd.DataFrame(rng.normal(size=(len(y), 2)) + y[:, None], columns=["a", "b"]).assign(fraud=y)
    (tmp_path / "transactions").mkdir()
    for part in range(2):
        table[part::2].to_parquet(tmp_path / "transactions" / f"{part}.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    code = re.search(r"   import duckdb\n(?:   .*\n|\n)*", PAGE.read_text()).group()
    light = {"n_members": 1, "hidden": (16,), "max_steps": 100}
    names = {"ScoreClassifier": lambda **options: ScoreClassifier(**light, **options)}
    exec(re.sub("^   ", "", code, flags=re.MULTILINE), names)
    rows, model, X = names["rows"], names["model"], table[["a", "b"]]
    assert rows["fraud"].sum() == y.sum()
    assert abs((rows["fraud"] == 0).sum() - (y == 0).sum() / 20) < 4 * np.sqrt((y == 0).sum() / 20)
    error = 1 / np.sqrt(y.sum())
    assert abs(np.log(model.predict_proba(X)[:, 1].mean() / y.mean())) < 4 * error
    model.priors_ = model.frequencies_
    assert np.log(model.predict_proba(X)[:, 1].mean() / y.mean()) > 8 * error
