"""How missing values are filled: by one method or the best on held-out cells, from a bounded number of donors."""

import copy

import numpy as np
import pandas as pd
import pytest

from scorefield import ScoreImputer, load_model, save_model
from scorefield.models import filling

METHODS = ("auto", "draws", "neighbours", "leaves", "matching")


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(3)
    whole = pd.DataFrame(
        {
            "x": x,
            "y": (x + 0.1 * rng.normal(size=n)).round(3),
            "city": np.where(x > 0, "a", "b"),
            "full": rng.normal(size=n),
        }
    )
    missing = rng.random(whole.shape) < 0.3
    missing[:, 3] = False
    missing[2, :] = True  # a row of which nothing is known
    return whole.mask(missing)


@pytest.fixture(scope="module", params=METHODS)
def imputer(request, random_networks):
    with random_networks():
        return ScoreImputer(method=request.param, hidden=(4,), random_state=0).fit(table())


def test_known_cells_stay_and_others_are_filled_alike(imputer):
    for X in (table(), table(9, seed=1)):  # the fitted rows, and new ones
        known, first = X.notna(), imputer.transform(X)
        assert first.notna().all().all()
        assert first.where(known).equals(X.where(known))
        assert first.equals(imputer.transform(X))
        more = imputer.draws(X, 7)  # more than the fitted rows were completed
        assert len({each.to_csv() for each in more}) == 7
        typical = copy.copy(imputer).set_params(n_draws=3).transform(X)
        assert typical.where(known).equals(X.where(known))
        assert typical.notna().all().all()


def test_a_fitted_attribute_says_what_was_chosen(imputer):
    if imputer.method == "auto":
        assert set(imputer.method_scores_) == {"neighbours", "leaves", "matching"}
        assert imputer.method_ == min(imputer.method_scores_, key=imputer.method_scores_.get)
    else:
        assert (imputer.method_, imputer.method_scores_) == (imputer.method, {})


def test_filled_cells_are_values_of_fitted_rows(imputer):
    X = table()
    for filled in imputer.draws(table(40, seed=1), 2):
        seen = pd.concat([X, table(40, seed=1)])
        strange = [value for name in ("x", "y") for value in set(filled[name]) - set(seen[name].dropna())]
        assert bool(strange) == (imputer.method_ == "draws")


def test_a_stored_imputer_fills_alike(imputer, tmp_path):
    save_model(imputer, tmp_path / "imputer.skops")
    again = load_model(tmp_path / "imputer.skops")
    assert again.transform(table()).equals(imputer.transform(table()))
    assert again.method_ == imputer.method_


def test_donors_are_bounded_and_wide_tables_fit_no_model_per_column(monkeypatch, random_networks):
    monkeypatch.setattr(filling, "MAX_DONORS", 20)
    monkeypatch.setattr(filling, "MAX_SWEPT", 2)
    with random_networks():
        imputer = ScoreImputer(hidden=(4,), random_state=0).fit(table())
    assert {len(imputer.donors_[name]) for name in ("rows", "numbers")} == {20}
    assert imputer.method_ == "neighbours"
    assert imputer.transform(table()).notna().all().all()


@pytest.mark.parametrize(
    "X", [[[1.0], [2.0], [np.nan]], [[1.0, 2.0], [2.0, np.nan]], [[1.0, np.nan], [2.0, np.nan], [3.0, 1.0]]]
)
def test_tiny_tables(X, random_networks):
    with random_networks():
        filled = ScoreImputer(hidden=(4,), random_state=0).fit_transform(np.array(X))
    assert not np.isnan(filled).any()


def test_the_choice_prefers_methods_that_keep_the_law(monkeypatch, random_networks):
    """Rows on a line: donors at random are never chosen, whatever they are called."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    X = np.where(rng.random((120, 2)) < 0.2, np.nan, np.column_stack([x, x]))
    copied = filling.with_donors

    def all_but_one_at_random(rng, layout, method, pool, cells, free):
        if method == "leaves":
            return copied(rng, layout, method, pool, cells, free)
        found = cells.taken(np.arange(len(free)))
        for v in range(len(layout.variables)):
            at, known = np.flatnonzero(free[:, v]), np.flatnonzero(pool.known[:, v])
            found.copy_from(at, v, layout, pool.cells, rng.choice(known, len(at)))
        return found

    monkeypatch.setattr(filling, "with_donors", all_but_one_at_random)
    with random_networks():
        assert ScoreImputer(hidden=(4,), random_state=0).fit(X).method_ == "leaves"
