"""Contributions of columns, distances to boundaries and counterfactuals, against closed forms and enumerations."""

import itertools
import math
import re

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from scorefield import ScoreClassifier, ScoreDensity, boundary_distance, counterfactuals, explain, find_boundary
from scorefield._jax.batching import map_rows
from scorefield.explanations.row_views import summands, view_of
from scorefield.inference import attribution

LIGHT = {"hidden": (16, 16), "max_steps": 60, "n_members": 2, "random_state": 0}


def additive(x):
    """Logits of a function that adds up over columns."""
    return jnp.array([0.0, jnp.sin(x[0]) + x[1] ** 2 / 4 - 0.5 * x[2]])


def product(x):
    return jnp.array([0.0, x[0] * x[1] + x[2]])


def shapley(function, row, baselines):
    """Exact Shapley values: columns that are left out take the values of each baseline row in turn."""
    d, values = len(row), np.zeros(len(row))
    for j in range(d):
        others = [k for k in range(d) if k != j]
        for size in range(d):
            for chosen in itertools.combinations(others, size):
                weight = math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
                for with_j in (0, 1):
                    mixed = baselines.copy()
                    kept = [*chosen, *([j] if with_j else [])]
                    mixed[:, kept] = row[kept]
                    values[j] += (2 * with_j - 1) * weight * np.mean([function(x)[1] for x in mixed])
    return values


@pytest.fixture(scope="module")
def people():
    """Labels that depend on age, colour and pay; the noise columns do not matter."""
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "id": [f"c{i:04d}" for i in range(n)],
            "age": rng.integers(18, 80, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "pay": np.where(rng.random(n) < 0.5, 0.0, rng.gamma(3, 100, n).round(1)),
            "noise": rng.normal(size=n),
        }
    )
    odds = (frame["age"] - 50) / 8 + 2.0 * (frame["colour"] == "red") + (frame["pay"] > 0) - 1
    label = np.where(rng.logistic(size=n) < odds, "yes", "no")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    return frame, label


@pytest.fixture(scope="module")
def mixed_model(people):
    return ScoreClassifier(hidden=(32, 32), max_steps=200, n_members=2, random_state=0).fit(*people)


@pytest.mark.parametrize("function", [additive, product])
def test_contributions_are_shapley_values_of_additive_and_bilinear_functions(rng, function):
    baselines, rows = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    found = explain(function, rows, label=1, baseline=baselines)
    exact = np.array([shapley(function, row, baselines) for row in rows])
    assert np.abs(found.contributions.sum(axis=1) - exact.sum(axis=1)).max() < 1e-3
    assert found.errors.max() < 1e-3
    # A product of two columns is bilinear: the line integral shares it as Shapley's average over orders does.
    np.testing.assert_allclose(found.contributions, exact, atol=1e-3)


def test_contributions_of_a_linear_model(rng):
    X = rng.normal([100.0, -3.0], [20.0, 0.1], (80, 2))
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X[:, 0] + 100 * X[:, 1] > -200)
    found = explain(model, X[:5], baseline=X)
    expected = model[-1].coef_ / model[0].scale_ * (X[:5] - X.mean(axis=0))
    np.testing.assert_allclose(found.contributions, expected, atol=1e-6)
    np.testing.assert_allclose(found.log_odds, model.decision_function(X[:5]), atol=1e-6)


def test_contributions_of_several_classes_explain_the_predicted_one(rng):
    centres = np.array([[-1, 0], [1, 0], [0, 1.5]])
    y = np.repeat(["a", "b", "c"], 60)
    X = rng.normal(size=(180, 2)) + np.repeat(centres, 60, axis=0)
    model = ScoreClassifier(ScoreDensity("gaussian"), random_state=0).fit(X, y)
    found = explain(model, X[::20])
    assert found.labels.tolist() == model.predict(X[::20]).tolist()
    logs = model.predict_log_proba(X[::20])
    own = np.searchsorted(model.classes_, found.labels)
    rest = np.log1p(-np.exp(logs[np.arange(len(own)), own]))
    np.testing.assert_allclose(found.log_odds, logs[np.arange(len(own)), own] - rest, atol=1e-3, rtol=1e-3)
    assert found.errors.max() < 0.01


def test_contributions_in_a_mixed_table(people, mixed_model):
    frame, _ = people
    found = explain(mixed_model, frame[:40])
    logs = mixed_model.predict_log_proba(frame[:40])
    np.testing.assert_allclose(found.log_odds, logs[:, 1] - logs[:, 0], atol=1e-3)
    assert found.errors.max() < 0.02
    assert found.columns == list(frame.columns)
    mean = dict(zip(found.columns, np.abs(found.contributions).mean(axis=0), strict=True))
    assert mean["id"] == 0
    assert mean["age"] > 2 * mean["noise"]
    red = (frame["colour"][:40] == "red").to_numpy()
    colour = found.contributions[:, found.columns.index("colour")]
    assert colour[red].mean() > colour[~red].mean() + 0.5
    assert "age" in str(found)
    assert "35 more rows" in str(found)


def test_the_columns_that_are_not_named_are_added_up(rng):
    found = explain(lambda x: jnp.array([0.0, x @ jnp.arange(1.0, 8.0)]), rng.normal(size=(2, 7)), 1, np.zeros((3, 7)))
    shown = re.findall(r"^ +([+-]\d+\.\d\d)  ", str(found).split("row 1")[0], flags=re.MULTILINE)
    assert len(shown) == 6
    assert abs(sum(map(float, shown)) - (found.log_odds[0] - found.baseline_log_odds[0])) < 6 * 0.005 + 1e-3
    assert "the 2 other columns" in str(found)
    assert found.others(0, 6)[0] == "the other column"
    assert found.others(0, 7) is None


@pytest.mark.parametrize("width", [1.0, 0.02])
def test_lines_are_refined_where_a_threshold_is_steep(rng, monkeypatch, width):
    """Contributions are right at any width, for fewer gradients than evenly spaced ones that resolve the threshold."""
    lines = []

    def counted(function, rows, **options):
        if isinstance(function, attribution.SegmentContributions):
            lines.append(len(rows))
        return map_rows(function, rows, **options)

    monkeypatch.setattr(attribution, "map_rows", counted)

    def steep(x):
        return jnp.array([0.0, 2 * jnp.tanh((x[0] - 0.4) / width) + 0.5 * x[1]])

    X, baselines, done = rng.normal(size=(20, 2)), rng.normal(size=(16, 2)), []
    found = explain(steep, X, 1, baselines, progress=lambda *rows: done.append(rows))
    exact = 2 * np.tanh((X[:, 0] - 0.4) / width) - np.mean(2 * np.tanh((baselines[:, 0] - 0.4) / width))
    assert np.abs(found.contributions[:, 0] - exact).max() < 4 * attribution.TOLERANCE
    assert np.abs(found.contributions[:, 1] - 0.5 * (X[:, 1] - baselines[:, 1].mean())).max() < 1e-4
    assert attribution.NODES * sum(lines) < 128 * len(X) * len(baselines)
    assert done == [(20, 20)]
    monkeypatch.setattr(attribution, "HALVINGS", 0)
    whole = explain(steep, X, 1, baselines)
    assert (np.abs(whole.contributions[:, 0] - exact).max() > 4 * attribution.TOLERANCE) == (width < 0.1)


def test_the_networks_and_the_rules_of_a_model_add_up(people, mixed_model):
    frame, _ = people
    view = view_of(mixed_model)
    inputs = view.inputs(view.read(frame[:50]))
    parts = summands(view.input_logits())
    assert len(parts) == 2  # without rules there would be nothing to test
    logits, first, second = (np.asarray(map_rows(f, inputs)) for f in (view.input_logits(), *parts))
    np.testing.assert_allclose(first + second, logits, atol=1e-4)
    assert np.abs(first).max() > 0.1
    assert np.abs(second).max() > 0.1


def test_what_cannot_be_explained_is_refused(rng):
    X = rng.normal(size=(40, 2))
    y = X[:, 0] > 0
    with pytest.raises(TypeError, match="no field"):
        explain(DecisionTreeClassifier().fit(X, y), X)
    with pytest.raises(ValueError, match="give some as baseline"):
        explain(LogisticRegression().fit(X, y), X)
    with pytest.raises(ValueError, match="minimum of 1"):
        explain(lambda x: jnp.array([0.0, x[0]]), X, baseline=X[:0])


def ellipse(x):
    return jnp.array([0.0, x[0] ** 2 / 9 + x[1] ** 2 - 1])


def test_the_nearest_point_of_an_ellipse(rng):
    X = rng.normal(size=(30, 2)) * [3, 1]
    angles = np.linspace(0, 2 * np.pi, 20_001)
    curve = np.column_stack([3 * np.cos(angles), np.sin(angles)])
    nearest = np.array([np.sqrt(((curve - x) ** 2).sum(axis=1)).min() for x in X])
    found = boundary_distance(ellipse, X)
    outside = X[:, 0] ** 2 / 9 + X[:, 1] ** 2 > 1
    assert found.converged.mean() > 0.9
    assert (np.sign(found.distance) == np.where(outside, 1, -1))[found.converged].all()
    clear = outside & found.converged
    np.testing.assert_allclose(found.distance[clear], nearest[clear], atol=0.02)
    # Inside, one of two near sides may be found; never a nearer one than there is.
    assert (np.abs(found.distance[found.converged]) > nearest[found.converged] - 0.02).all()
    # Newton's method alone ends on the boundary, but farther away.
    newton = find_boundary(ellipse, X)
    walked = np.sqrt(((newton.points - X) ** 2).sum(axis=1))
    assert (walked > nearest + 0.05).any()


def test_distances_are_in_standard_units_of_the_columns(rng):
    X = rng.normal([0, 1000], [1, 200], (300, 2))
    y = X[:, 1] > 1000
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e3)).fit(X, y)
    weights = model[-1].coef_[0]
    exact = model.decision_function(X) / np.sqrt(weights @ weights)
    found = boundary_distance(model, X)
    np.testing.assert_allclose(found.distance, exact, atol=1e-3)
    assert np.abs(model.decision_function(found.points)).max() < 1e-3
    raw = boundary_distance(model, X, scale=[1, 1]).distance
    assert np.abs(raw).max() > 50 * np.abs(exact).max()


def test_distance_honours_the_margin_and_finds_no_boundary_where_there_is_none(rng):
    X = np.concatenate([rng.normal(-1, 1, (100, 1)), rng.normal(1, 1, (100, 1))])
    y = np.repeat([0, 1], 100)
    model = ScoreClassifier(ScoreDensity("gaussian"), calibration=None, random_state=0).fit(X, y)
    apart = boundary_distance(model, X[:5]).distance
    strict = boundary_distance(model.set_params(margin=1.0), X[:5]).distance
    assert (strict < apart - 0.1).all()
    none = boundary_distance(lambda x: jnp.array([0.0, 1.0 + x[0] ** 2]), [[1.0], [0.0]])
    assert np.isnan(none.distance).all()
    assert not none.converged.any()
    np.testing.assert_array_equal(none.points, [[1.0], [0.0]])


def test_distances_in_a_mixed_table_move_numbers_only(people, mixed_model):
    frame, _ = people
    found = boundary_distance(mixed_model, frame[:60])
    assert found.converged.mean() > 0.5
    assert (found.points["colour"] == frame["colour"][:60]).all()
    assert (found.points["id"] == frame["id"][:60]).all()
    assert ((found.distance > 0) == (mixed_model.predict(frame[:60]) == "yes"))[found.converged].all()
    gaps = frame["age"][:60].isna()
    assert found.points["age"][gaps].isna().all()


def test_counterfactuals_of_gaussian_classes_lie_across_the_line(rng):
    X = np.concatenate([rng.normal(-1.5, 1, (300, 2)), rng.normal(1.5, 1, (300, 2))])
    y = np.repeat(["a", "b"], 300)
    model = ScoreClassifier(ScoreDensity("gaussian"), calibration=None, random_state=0).fit(X, y)
    rows = X[:300][model.predict(X[:300]) == "a"][:8]
    found = counterfactuals(model, rows, target="b", n=2)
    assert (model.predict(found.rows) == "b").all()
    assert (found.probability > 0.5).all()
    assert set(found.index) == set(range(8))
    for i in range(8):
        costs = found.cost[found.index == i]
        assert (np.diff(costs) >= 0).all()
    # Every value occurs in the data, and rows are no less probable than all but few of the class's own.
    for j in range(2):
        assert np.isin(found.rows[:, j].round(5), X[:, j].round(5)).all()
    own = model.log_likelihood(X[300:])[:, 1]
    assert (found.log_density >= np.quantile(own, 0.02)).all()
    # The nearest row of the class is one candidate: results must not be dearer.
    nearest = [np.min((rows[i] != X[300:]).sum(axis=1) + np.abs(rows[i] - X[300:]).sum(axis=1) / X.std(axis=0).mean())
               for i in range(8)]  # fmt: skip
    best = [found.cost[found.index == i].min() for i in range(8)]
    assert np.mean(np.array(best) <= np.array(nearest) + 0.1) >= 0.9


def test_counterfactuals_of_a_mixed_table_hold_columns_and_stay_possible(people, mixed_model):
    frame, _ = people
    rows = frame[mixed_model.predict(frame) == "no"][:10]
    found = counterfactuals(mixed_model, rows, fixed=["colour"], n=3)
    assert (mixed_model.predict(found.rows) == "yes").all()
    assert list(found.rows.columns) == list(frame.columns)
    same = rows.iloc[found.index].reset_index(drop=True)
    made = found.rows.reset_index(drop=True)
    assert set(found.index) == set(range(10))
    pd.testing.assert_series_equal(made["colour"], same["colour"])
    pd.testing.assert_series_equal(made["id"], same["id"])
    assert made["age"].dropna().isin(frame["age"]).all()
    assert made["pay"].isin(frame["pay"]).all()
    for i, changes in enumerate(found.changes):
        assert changes
        assert not {"id", "colour"} & set(changes)
        for name in set(frame.columns) - set(changes):
            assert made[name][i] == same[name][i] or (pd.isna(made[name][i]) and pd.isna(same[name][i]))
    assert "->" in str(found)
    again = counterfactuals(mixed_model, rows, fixed=["colour"], n=3)
    pd.testing.assert_frame_equal(again.rows, found.rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fixed": ["weight"]}, "'weight'"),
        ({"fixed": ["age", "colour", "pay", "noise"]}, "at least one column that may change"),
        ({"target": "maybe"}, "a label of"),
        ({"target": "no"}, "not predicted as 'no' yet"),
        ({"n": 0}, "n >= 1"),
    ],
)
def test_impossible_counterfactuals_are_refused(people, mixed_model, arguments, message):
    rows = people[0][mixed_model.predict(people[0]) == "no"][:3]
    with pytest.raises(ValueError, match=message):
        counterfactuals(mixed_model, rows, **arguments)


def test_a_target_out_of_reach_is_told(rng):
    X = np.concatenate([rng.normal(0, 1, (200, 2)), rng.normal([0, 30], 1, (200, 2))])
    model = ScoreClassifier(ScoreDensity("gaussian"), random_state=0).fit(X, np.repeat([0, 1], 200))
    with pytest.raises(ValueError, match="let more columns change"):
        counterfactuals(model, X[:3], target=1, fixed=[1])
    with pytest.raises(TypeError, match="ScoreClassifier"):
        counterfactuals(LogisticRegression().fit(X, np.repeat([0, 1], 200)), X[:3], target=1)
