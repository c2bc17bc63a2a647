"""The benchmark of rows that help: its arms and controls, parts of seeds, and claims that follow the rows."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.statistics import FAILS, HOLDS
from scorefield.studies.benchmark import learning, lessons, tables
from scorefield.studies.benchmark.learning_summary import REFUTING, show_learning
from scorefield.studies.benchmark.registry import EXPERIMENTS
from scorefield.studies.engine import runs
from scorefield.studies.engine.experiment import Experiment, Section

LIGHT = {"n_members": 1, "hidden": (8,), "max_steps": 20}


@pytest.fixture
def light(monkeypatch):
    """A small table, and models that are trained briefly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 1).astype(int)
    monkeypatch.setattr(tables, "load", lambda name: (X, y))
    monkeypatch.setattr(lessons, "ScoreClassifier", functools.partial(ScoreClassifier, **LIGHT))
    brief = LogisticRegression()
    monkeypatch.setattr(learning, "tuned_boosting", lambda seed, cv: brief)
    monkeypatch.setattr(learning.remedies, "learners", lambda seed: dict.fromkeys(learning.FIVE, brief))
    return X, y


def test_arms_and_controls_give_their_rows(light):
    chosen = [arm for arm in learning.MIXED_ARMS if arm != learning.SHARING]
    config = {**learning.LEARNING.config, "tables": ["only"], "parts": [[arm, "logistic"] for arm in chosen]}
    rows = {row["arm"]: row for row in learning.run(learning.numeric_task, 1, config)}
    assert set(rows) == set(chosen)
    assert all("refused" not in row for row in rows.values())
    n = rows["nothing"]["n"]
    assert rows[learning.DISTILLED]["n"] == n * 5
    assert rows["parents' labels"]["n"] == n * 5  # each new row once
    assert n < rows[learning.OUT_OF_FOLD]["n"] <= 2 * n
    assert rows[learning.OURS]["n"] == rows[learning.SMOTE_ROWS]["n"] > n
    assert rows[learning.OUT_OF_FOLD]["log_loss"] != rows["nothing"]["log_loss"]


def test_labels_decide_what_a_learner_is_taught(light):
    """Wrong labels on the same rows must harm, else the controls would not control anything."""
    config = {**learning.LEARNING.config, "tables": ["only"]}
    task = learning.numeric_task("only", 0, 0, config)
    forest = RandomForestClassifier(30, random_state=0)

    def loss(proba_of):
        return learning.measures(
            task.split.y_test, task.lessons.taught(forest, proba_of)[0].predict_proba(task.split.X_test)[:, 1]
        )["log_loss"]

    right = loss(lambda rows, parents: np.eye(2)[task.split.y[parents]])
    assert right < loss(lambda rows, parents: np.eye(2)[1 - task.split.y[parents]])


def test_spunge_rows_change_a_tenth_of_the_cells_and_none_of_narrow_tables():
    rng, wide = np.random.default_rng(0), np.arange(20_000.0).reshape(1000, 20)
    made = lessons.spunge_rows(rng, wide, np.arange(1000))
    redrawn = np.mean(np.abs(made - wide) > 5 * lessons.SPUNGE_NOISE * wide.std(axis=0))
    far = np.mean(np.abs(wide[:, :1] - wide[:, 0]) > 5 * lessons.SPUNGE_NOISE * wide[:, 0].std())
    assert abs(redrawn - 0.1 * far) < 5 * np.sqrt(0.1 * 0.9 / wide.size)
    narrow = pd.DataFrame({"a": np.arange(1000.0), "b": ["x", "y"] * 500})
    made = lessons.spunge_rows(rng, narrow, np.arange(1000))
    assert made["b"].tolist() == narrow["b"].tolist()
    noise = (made["a"] - narrow["a"]) / narrow["a"].std(ddof=0)
    moved = noise != 0
    assert abs(moved.mean() - 0.1) < 5 * np.sqrt(0.09 / 1000)
    assert abs(noise[moved].std() - 0.1) < 5 * 0.1 / np.sqrt(2 * moved.sum())


def test_a_crossed_threshold_sees_no_row_that_it_decides():
    """Pure noise: the best threshold on the same rows would flatter, one of the other half does not."""
    rng, crossed, flattered = np.random.default_rng(0), [], []
    for seed in range(40):
        y, p = (rng.random(60) < 0.3).astype(int), rng.random(60)
        crossed.append(learning.crossed_f1(y, p, seed))
        decided = p >= learning.best_threshold(y, p)
        flattered.append(learning.decision_scores(y, decided)["f1"])
    assert np.mean(crossed) < np.mean(flattered) - 0.03
    y = np.repeat([0, 1], 30)
    assert learning.crossed_f1(y, y.astype(float), 0) == 1.0


def test_parts_of_a_seed_are_run_once_and_join(tmp_path):
    ran = []

    def run(seed, config):
        ran.extend(config["parts"])
        return [{"arm": arm, "value": seed} for arm in config["parts"]]

    experiment = Experiment("made", "", "", run, lambda rows: Section(), 2, 1, {"size": 3, "parts": ["a", "b", "c"]})
    for wanted in (["b"], ["b", "a"], ["a", "b"], ["a", "b", "c"]):
        assert runs.run_all([(experiment, 0, {**experiment.config, "parts": wanted})], tmp_path) == []
    assert ran == ["b", "a", "c"]
    header, rows = runs.read_rows(tmp_path, experiment, experiment.config)[0]
    assert [row["arm"] for row in rows] == ran
    assert sorted(header["parts"]) == ["a", "b", "c"]
    assert header["config"] == {"size": 3}
    runs.run_all([(experiment, 0, {**experiment.config, "size": 4})], tmp_path)
    assert runs.read_rows(tmp_path, experiment, experiment.config)[0] == (header, rows)  # other settings: another file


def made_up_rows(gain, learner):
    rng, rows = np.random.default_rng(0), []
    others = ("nothing", learning.NOISE, learning.SMOTE_ROWS, *REFUTING)
    for table in range(12):
        base = rng.uniform(0.3, 0.6)
        for arm in (*others, learning.OURS, learning.DISTILLED):
            best = {learning.OURS: gain, learning.DISTILLED: 1.5 * gain}.get(arm, 0.0)
            value = base + best + 0.002 * rng.normal()
            worse = dict.fromkeys(("brier", "log_loss"), 1 - value)
            rows.append({"kind": "arm", "arm": arm, "learner": learner, "table": f"t{table}", "split": 0,
                         **dict.fromkeys(("average_precision", "roc_auc", "f1", "f1_tuned"), value), **worse,
                         "test_share": 0.3, "seconds": 1.0, "megabytes": None})  # fmt: skip
    return rows


@pytest.mark.parametrize(("gain", "verdict"), [(0.05, HOLDS), (-0.05, FAILS)])
@pytest.mark.parametrize("learner", learning.FIVE)
def test_claims_follow_the_rows(learner, gain, verdict):
    section = show_learning(made_up_rows(gain, learner))
    assert section.claims
    assert {claim.verdict for claim in section.claims} == {verdict}


def test_arms_that_lack_tables_are_left_out_and_named():
    rows = [row for row in made_up_rows(0.1, "forest") if (row["arm"], row["table"]) != (learning.NOISE, "t3")]
    section = show_learning(rows)
    assert section.tables[-1].rows == [["forest", learning.NOISE]]
    assert not any(learning.NOISE in claim.text for claim in section.claims)
    assert "over 12 tables" in section.tables[1].caption


def test_both_experiments_can_be_asked_for():
    assert {"learning", "mixed-learning"} <= set(EXPERIMENTS)
    assert ScoreOverSampler().purpose == "learning"  # what the arm of that name measures
