"""The benchmark on mixed tables: encodings of the peers, measures of several classes, rows of both experiments."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss

from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.metrics import scores
from scorefield.studies.benchmark import mixed, mixed_tables
from scorefield.studies.benchmark.arms import OUR_CLASSIFIER, OURS_CLEAR, SHARING

CONFIG = {"tables": ["people"], "n_folds": 2, "n_repeats": 3, "max_rows": 200, "protocol": 0}


@pytest.fixture
def people(monkeypatch):
    """A table of numbers, text and gaps in the place of the real ones."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.gamma(4, 10, 240), "colour": rng.choice(["red", "green", "blue"], 240),
                          "rooms": rng.integers(1, 6, 240)})  # fmt: skip
    y = (rng.random(240) < np.where(frame["colour"] == "red", 0.5, 0.1)).astype(int)
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "colour"] = None
    frame = pd.concat([frame, frame[:20]], ignore_index=True)  # copies
    y = np.concatenate([y, y[:20]])
    monkeypatch.setattr(mixed_tables, "load", lambda name: (frame, y))
    return frame, y


def test_equal_rows_are_on_one_side(people):
    split = mixed.split_of("people", 1, 0, CONFIG)
    train, test = (set(map(str, part.to_numpy().tolist())) for part in (split.X, split.X_test))
    assert not train & test
    assert len(split.X) == len(split.y) > len(split.X_test) == len(split.y_test) > 20


def test_encodings_take_gaps_and_unknown_levels(people):
    frame, _ = people
    other = pd.DataFrame({"age": [30.0, np.nan], "colour": ["violet", None], "rooms": [1, 2]})
    coded = mixed_tables.codes(frame).fit(frame).transform(other)
    assert np.isnan(coded).tolist() == [[True, False, False], [True, True, False]]
    assert np.isfinite(mixed_tables.filled_codes(frame).fit(frame).transform(other)).all()
    shown = mixed_tables.one_hot(dense=True).fit(frame).transform(other)
    assert np.isfinite(shown).all()
    assert shown[:, 2:].sum(axis=1).tolist() == [0, 1]  # nothing for an unknown level, the commonest for a gap


def test_measures_of_several_classes_are_those_of_two_where_there_are_two():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1], 200)
    y = (rng.random(200) < proba[:, 1]).astype(int)
    found = mixed.class_measures(y, proba)
    assert found["brier"] == pytest.approx(brier_score_loss(y, proba[:, 1]), abs=1e-12)
    assert found["average_precision"] == pytest.approx(scores(y, proba[:, 1], y)["average_precision"])
    three = np.column_stack([0.5 * proba, np.full(200, 0.5)])  # the third class never happens to be wrong by much
    labels = np.where(rng.random(200) < 0.5, 2, y)
    several = mixed.class_measures(labels, three)
    assert several["brier"] == pytest.approx(0.5 * np.mean(np.sum((three - np.eye(3)[labels]) ** 2, axis=1)))
    assert several["log_loss"] == pytest.approx(-np.mean(np.log(three[np.arange(200), labels])))
    sure = mixed.class_measures(labels, np.eye(3)[labels])
    assert (sure["average_precision"], sure["roc_auc"], sure["f1"]) == (1, 1, 1)


@pytest.mark.slow
def test_every_arm_gives_a_row(people, monkeypatch):
    light = {"n_members": 1, "hidden": (8,), "max_steps": 20}
    monkeypatch.setattr(mixed, "ScoreClassifier", lambda **options: ScoreClassifier(**options, **light))
    rows = mixed.run_classifiers(0, CONFIG)
    assert {row["arm"] for row in rows} >= {OUR_CLASSIFIER, "logistic", "SVM, tuned", "forest, sigmoid"}
    assert all(0 < row["average_precision"] <= 1 and row["table"] == "people" for row in rows)
    assert next(row for row in rows if row["arm"] == "logistic")["average_precision"] > 0.2  # the share is .2


def test_resampled_tables_keep_their_rows_and_are_balanced(people, monkeypatch):
    frame, y = people
    monkeypatch.setattr(mixed, "ScoreOverSampler", lambda **options: _NoSampler())
    arms = {name: resample() for name, resample in mixed.oversampled(frame, y, 0)}
    assert set(arms) == {"random", "SMOTENC", SHARING, OURS_CLEAR}
    X, labels = arms["SMOTENC"]
    pd.testing.assert_frame_equal(X[: len(frame)], frame, check_dtype=False)
    assert np.bincount(labels).tolist() == [np.sum(y == 0)] * 2
    assert set(X["colour"].dropna()) == {"red", "green", "blue"}
    assert not X["age"][len(frame) :].isna().any()


class _NoSampler(ScoreOverSampler):
    def fit_resample(self, X, y):
        return X, y


def test_oversampling_rows_have_every_remedy(people, monkeypatch):
    monkeypatch.setattr(mixed, "ScoreOverSampler", lambda **options: _NoSampler())
    rows = mixed.run_oversampling(0, CONFIG)
    logistic = {row["arm"]: row for row in rows if row["learner"] == "logistic"}
    assert set(logistic) == {"nothing", "class weights", "tuned threshold", "random", "SMOTENC", SHARING, OURS_CLEAR}
    same = ("average_precision", "brier", "f1")
    assert [logistic[SHARING][name] for name in same] == [
        logistic["nothing"][name] for name in same
    ]  # no row was added
    assert logistic["random"]["brier"] > logistic["nothing"]["brier"]
