"""Held-out measures of a fitted classifier beside its baselines."""

import numpy as np
import pandas as pd
import pytest

from scorefield import ScoreClassifier, ScoreDensity
from scorefield.evaluation.held_out import judge_held_out

LIGHT = {"hidden": (16, 16), "max_steps": 100, "n_members": 5, "random_state": 0}


@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_model_that_knows_something_beats_the_class_frequencies(rng, n_classes):
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"]).assign(c=rng.choice(["u", "v"], 300))
    y = np.array(["p", "q", "r"])[
        np.clip(np.round(X["a"] + 1 + rng.normal(size=300) / 2), 0, n_classes - 1).astype(int)
    ]
    lines = {name: values for name, *values in judge_held_out(ScoreClassifier(**LIGHT).fit(X, y), X, y)}
    assert list(lines) == ["ScoreClassifier", "gradient boosting", "class frequencies"]
    shares = np.unique(y, return_counts=True)[1] / len(y)
    precision, loss, error = lines["class frequencies"]
    assert precision == pytest.approx(shares.min() if n_classes == 2 else shares.mean())
    assert loss == pytest.approx(-np.sum(shares * np.log(shares)))
    assert error == 0
    for name in ("ScoreClassifier", "gradient boosting"):
        assert lines[name][0] > precision + 0.1
    assert lines["ScoreClassifier"][1] < loss
    # Labels without any relation to the rows: nothing is better than the class frequencies.
    noise = rng.permutation(y)
    ours, *_, usual = judge_held_out(ScoreClassifier(**LIGHT).fit(X, noise), X, noise)
    assert ours[2] > usual[2] - 0.05
    order = np.argsort(y, kind="stable")
    *_, usual = judge_held_out(ScoreClassifier(**LIGHT).fit(X.iloc[order], y[order]), X.iloc[order], y[order])
    assert usual[3] == 0  # of a table that is sorted by label too


def test_nothing_is_said_of_a_model_without_held_out_rows(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] > 0
    assert judge_held_out(ScoreClassifier(ScoreDensity("gaussian")).fit(X, y), X, y) == []


def test_a_column_that_some_folds_do_not_know_is_judged(rng):
    """Boosting of scikit-learn 1.9 fails on columns without a known cell."""
    X = pd.DataFrame({"a": rng.normal(size=90), "b": np.nan})
    X.loc[4, "b"] = 1.5
    y = (X["a"] > 0).to_numpy()
    model = ScoreClassifier(**{**LIGHT, "max_steps": 5}, columns={"b": "number"}).fit(X, y)
    assert [name for name, *_ in judge_held_out(model, X, y)][1] == "gradient boosting"
