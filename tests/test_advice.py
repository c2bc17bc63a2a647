"""advise on tables where the truth is known."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from scorefield import advise
from scorefield.advice import _interval


def test_pure_noise_has_no_remedy():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.repeat(["no", "yes"], [340, 60])
    advice = advise(X, y, DecisionTreeClassifier(max_depth=3, random_state=0), minutes=0)
    assert not advice.verdict.startswith("Over-sample with score")
    assert advice.n_splits == 5
    assert {row["remedy"] for row in advice.table} >= {"nothing", "class weights", "tuned threshold", "SMOTE"}
    assert "tuned threshold" in str(advice)


def test_separable_classes_leave_nothing_to_gain():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-10, 1, (200, 2)), rng.normal(10, 1, (40, 2))])
    advice = advise(X, np.repeat([0, 1], [200, 40]), LogisticRegression(), minutes=0)
    assert advice.verdict.startswith("No difference")
    assert advice.winner == "nothing"
    assert advice.code == "model = LogisticRegression()"


def test_a_weak_learner_is_helped_by_something():
    """Logistic regression at one half hardly predicts the rare class: a remedy raises F1, and the advice says so."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (4000, 2)), rng.normal(1.0, 1, (300, 2))])
    advice = advise(X, np.repeat([0, 1], [4000, 300]), LogisticRegression(), minutes=0)
    assert advice.winner != "nothing"
    assert "raises F1" in advice.verdict
    rows = {row["remedy"]: row for row in advice.table}
    assert rows[advice.winner]["low"] > 0


def test_interval_covers_and_excludes():
    rng = np.random.default_rng(0)
    assert _interval(rng.normal(0, 1, 10))[1] < 0 < _interval(rng.normal(0, 1, 10))[2]
    assert _interval(rng.normal(5, 1, 10))[1] > 0


def test_bad_tables():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="two classes"):
        advise(X, np.repeat([0, 1, 2], 10))
    with pytest.raises(ValueError, match="at least 5 rows"):
        advise(X, np.repeat([0, 1], [27, 3]))
    with pytest.raises(ValueError, match="NaN"):
        advise(np.where(X > 1, np.nan, X), np.repeat([0, 1], [20, 10]))
