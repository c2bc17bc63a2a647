"""Filled rows keep relations; known cells stay as they came, and rows that cannot keep a relation are named."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest

from scorefield import ScoreImputer

RELATIONS = ["total == net + tax", "start <= end"]


def bills(n, rng):
    table = pd.DataFrame({"net": rng.uniform(5, 90, n).round(2), "tax": rng.uniform(0, 20, n).round(2)})
    table["total"] = (table.net + table.tax).round(2)
    table["start"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    table["end"] = table["start"] + pd.to_timedelta(rng.integers(0, 200, n), "D")
    table["city"] = rng.choice(["A", "B", "C"], n)
    return table


def with_missing(table, rng, share=0.35):
    return table.mask(rng.random(table.shape) < share)


@pytest.fixture(scope="module")
def imputer():
    table = with_missing(bills(300, np.random.default_rng(0)), np.random.default_rng(1), 0.1)
    return ScoreImputer(method="neighbours", max_steps=40, hidden=(16,), constraints=RELATIONS, random_state=0).fit(
        table
    )


def keeps(rows):
    cents = (100 * rows[["net", "tax", "total"]]).round().astype(int)
    return (cents.total == cents.net + cents.tax) & (rows["start"] <= rows["end"])


@pytest.mark.parametrize("n_draws", [1, 3])
def test_filled_rows_keep_relations(imputer, n_draws):
    table = with_missing(bills(120, np.random.default_rng(2)), np.random.default_rng(3))
    table.index = table.index * 7
    filled = imputer.set_params(n_draws=n_draws).transform(table)
    known = table.notna()
    assert filled.where(known).equals(table.where(known))
    assert filled.index.equals(table.index)
    assert (filled.dtypes == table.dtypes).all()
    assert keeps(filled).all()
    assert filled.notna().all().all()
    plain = copy.copy(imputer).set_params(constraints=None)
    assert not keeps(plain.transform(table)).all()  # the control: the same model without the constraints


def test_a_cell_that_the_others_tell_is_computed(imputer):
    table = bills(30, np.random.default_rng(4))
    filled = imputer.set_params(n_draws=1).transform(table.assign(tax=np.nan))
    assert np.array_equal(filled["tax"], table["tax"])


def test_rows_whose_known_cells_violate_a_relation_are_named_and_left(imputer):
    table = bills(20, np.random.default_rng(5))
    table.loc[[3, 8], "end"] = table.loc[[3, 8], "start"] - pd.Timedelta(days=1)
    table.loc[[3, 4], "net"] = np.nan
    with pytest.warns(UserWarning, match="Rows 3, 8 .* left as they came: their known cells violate"):
        filled = imputer.set_params(n_draws=1).transform(table)
    pd.testing.assert_frame_equal(filled.drop(index=4), table.drop(index=4))
    assert filled.loc[4].notna().all()


def test_training_rows_that_violate_a_relation_are_counted():
    table = bills(60, np.random.default_rng(6))
    table.loc[:4, "total"] += 1
    with pytest.raises(ValueError, match=r"Expected training rows .*, got 5 of 60 rows violate 'total == net \+ tax'"):
        ScoreImputer(constraints=RELATIONS).fit(table)


def test_other_containers(imputer):
    table = with_missing(bills(40, np.random.default_rng(7)), np.random.default_rng(8))
    filled = imputer.set_params(n_draws=1).transform(pl.from_pandas(table))
    assert isinstance(filled, pl.DataFrame)
    rows = filled.to_pandas()
    assert keeps(rows).all()
