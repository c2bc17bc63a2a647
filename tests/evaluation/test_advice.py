"""advise on tables where the truth is known."""

import itertools
import subprocess
import sys
import types

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from scorefield import advise
from scorefield.evaluation import advice
from scorefield.evaluation.advice import _splits, _thinned, _verdict
from scorefield.evaluation.recipes import CODE, NOISE, OURS, OURS_TUNED, code_for, written
from scorefield.evaluation.remedies import NOTHING, THRESHOLD, WEIGHTS, boosting


@pytest.mark.parametrize(
    ("model", "seed"), [(DecisionTreeClassifier(max_depth=3, random_state=0), 0), (LogisticRegression(), 1)]
)
def test_pure_noise_has_no_remedy(model, seed):
    """A tuned threshold has a higher F1 even there: it calls every row rare. That is no reason to use it."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(400, 3)), np.repeat(["no", "yes"], [340, 60])
    found = advise(X, y, model, minutes=0)
    assert found.verdict.startswith("No difference")
    assert found.winner == NOTHING
    assert found.n_splits == 5
    assert {row["remedy"] for row in found.table} >= {NOTHING, "class weights", THRESHOLD, "SMOTE", OURS}
    rows = {row["remedy"]: row for row in found.table}
    assert rows[THRESHOLD]["f1"] > rows[NOTHING]["f1"] + 0.05  # the trap is there


def test_separable_classes_leave_nothing_to_gain():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-10, 1, (200, 2)), rng.normal(10, 1, (40, 2))])
    found = advise(X, np.repeat([0, 1], [200, 40]), LogisticRegression(), minutes=0)
    assert found.verdict.startswith("No difference: do nothing")
    assert found.winner == NOTHING


@pytest.fixture
def three_repetitions(monkeypatch):
    """A clock that ticks once a repetition, so that three minutes are three of them on any machine, with all rows."""
    ticks = itertools.count(0, 60)
    monkeypatch.setattr(advice, "time", types.SimpleNamespace(monotonic=lambda: next(ticks)))
    monkeypatch.setattr(advice, "_fitting_rows", lambda X, y, *rest: np.arange(len(y)))


@pytest.mark.usefixtures("three_repetitions")
def test_a_weak_learner_is_helped_by_something():
    """Logistic regression at one half hardly predicts the rare class: a remedy raises F1, and the advice says so."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (9000, 2)), rng.normal(1.0, 1, (600, 2))])
    found = advise(X, np.repeat([0, 1], [9000, 600]), LogisticRegression(), minutes=3)
    assert found.n_splits == 15
    assert found.winner != NOTHING
    assert "raises F1" in found.verdict
    rows = {row["remedy"]: row for row in found.table}
    assert rows[found.winner]["low"] > 0


class CoarseTree(DecisionTreeClassifier):
    """A tree that decides by the majority of its leaves: no threshold helps it, more rows of the rare class do."""

    def predict_proba(self, X, check_input=True):
        return np.round(super().predict_proba(X, check_input))


@pytest.mark.usefixtures("three_repetitions")
def test_over_sampling_wins_where_it_should():
    """Rare rows fill a disc in a sea of common ones; leaves of fewer than 40 rows are too coarse for 30 of them."""
    rng = np.random.default_rng(0)
    common = rng.uniform(-3, 3, (3000, 2))
    common = common[np.linalg.norm(common, axis=1) > 1]
    angle, radius = rng.uniform(0, 2 * np.pi, 30), 0.8 * np.sqrt(rng.uniform(size=30))
    rare = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X, y = np.concatenate([common, rare]), np.repeat([0, 1], [len(common), 30])
    found = advise(X, y, CoarseTree(min_samples_leaf=40, random_state=0), minutes=3)
    assert found.verdict.startswith("Over-sample with")
    assert "SMOTE" in found.winner or found.winner in (OURS, NOISE)


def test_verdict_needs_more_than_the_best_of_many():
    """The largest of several equal remedies is above zero by chance; its widened interval is not."""
    rng = np.random.default_rng(0)
    wrong = plain = 0
    for _ in range(300):
        scores = {name: 0.5 + 0.02 * rng.normal(size=(10, 5)) for name in CODE}
        winner, _ = _verdict(scores, np.full(10, 0.1))
        wrong += winner != NOTHING
        best = max(scores, key=lambda name: scores[name][:, 0].mean())
        gaps = scores[best][:, 0] - scores[NOTHING][:, 0]
        plain += best != NOTHING and gaps.mean() > 2.26 * gaps.std(ddof=1) / np.sqrt(10)
    assert wrong / 300 < 0.05
    assert plain / 300 > 0.05  # the control: uncorrected intervals of the best remedy are fooled, 1 in 40 is promised


@pytest.mark.parametrize("winner", list(CODE))
@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([1, 0])])
@pytest.mark.parametrize("estimator", [LogisticRegression(C=0.5), RandomForestClassifier(5, random_state=0)])
def test_code_runs_as_given(winner, labels, estimator):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.repeat([0, 1], [100, 20])
    names = {}
    exec(code_for(winner, estimator, y, labels, 5), names)
    model = names["model"]
    if winner not in (OURS, OURS_TUNED):
        assert model.fit(X, labels[y]).predict_proba(X).shape == (120, 2)


def test_code_for_estimators_that_cannot_be_written_names_them():
    y = np.repeat([0, 1], [90, 10])
    labels = np.array([0, 1])
    assert "XGBClassifier(" in code_for(NOTHING, boosting(0), y, labels, 10)
    assert "scale_pos_weight=9.0" in code_for("class weights", boosting(0), y, labels, 10)
    for given in (np.array(["no", "yes"]), labels[::-1]):  # boosting takes 0 and 1 alone
        names = {"y": given[y]}
        exec(code_for(WEIGHTS, boosting(0), y, given, 10), names)
        assert names["y"].tolist() == y.tolist()
        assert names["model"].scale_pos_weight == 9
        names["model"].fit(np.arange(100.0)[:, None], names["y"])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert code_for(NOTHING, pipeline, y, labels, 10) == "model = estimator"
    unwritten = RandomForestClassifier(5, random_state=np.random.RandomState(0))
    names = {"estimator": unwritten}
    exec(code_for(WEIGHTS, unwritten, y, labels, 10), names)
    assert names["model"].class_weight == "balanced"
    names = {"estimator": pipeline}
    exec(code_for(THRESHOLD, CoarseTree(), y, labels, 10), names)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(C=0.5, class_weight={0: 1.0, 1: 3.0}),
        RandomForestClassifier(5, max_features=None, random_state=0),
        BaggingClassifier(LogisticRegression(C=1e-3), 3),
        CalibratedClassifierCV(BaggingClassifier(DecisionTreeClassifier(max_depth=2))),
        boosting(0),
    ],
)
def test_code_makes_the_same_estimator(estimator):
    names = {}
    exec(code_for(NOTHING, estimator, np.array([0, 1]), np.array([0, 1]), 10), names)
    made, given = names["model"], estimator
    assert type(made) is type(given)
    assert repr(made.get_params()) == repr(given.get_params())


def test_no_text_of_a_parameter_is_run(tmp_path):
    class Parameter:
        def __repr__(self):
            return f"open({str(tmp_path / 'made')!r}, 'w')"

    for estimator in (LogisticRegression(C=Parameter()), BaggingClassifier(LogisticRegression(C=Parameter()))):
        code = code_for(NOTHING, estimator, np.array([0, 1]), np.array([0, 1]), 10)
        assert code == "model = estimator"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "value", [float("nan"), np.float64(2.0), np.arange(3), print, LogisticRegression, {1, 2, print}]
)
def test_values_that_are_not_literals_are_not_written(value):
    assert written(value) is None
    assert written(LogisticRegression(C=value)) is None


class Picky(LogisticRegression):
    def __init__(self, C=-1.0):
        if C < 0:
            raise ValueError("no penalty was given")
        super().__init__(C=C)


class Named:
    def __repr__(self):
        return "1.0"  # the default of C


@pytest.mark.parametrize("estimator", [Picky(2.0), LogisticRegression(C=Named())])
def test_estimators_that_cannot_be_made_again_are_not_written(estimator):
    assert written(estimator) is None


def test_advice_imports_no_study():
    code = (
        "import sys, scorefield.evaluation.advice; "
        "found = [name for name in sys.modules if name.startswith('scorefield.studies')]; assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rare_rows_survive_thinning_and_equal_rows_stay_together():
    y = (np.arange(100_000) < 50).astype(int)
    kept = _thinned(y, 500, np.random.default_rng(0))
    assert len(kept) == 500
    assert y[kept].sum() == 50
    rng = np.random.default_rng(0)
    X = rng.normal(size=(110, 2))
    X[102:110] = X[101]  # eight of ten rare rows are equal
    with pytest.raises(ValueError, match="distinct rows"):
        advise(X, np.repeat([0, 1], [100, 10]), LogisticRegression(), minutes=0)
    X = np.concatenate([rng.normal(size=(100, 2)), np.repeat(rng.normal(size=(7, 2)), 2, axis=0)])
    assert advise(X, np.repeat([0, 1], [100, 14]), LogisticRegression(), minutes=0).n_splits == 5


def test_inner_folds_keep_equal_rows_together():
    y = np.tile(np.repeat([0, 1], [60, 9]), 3)
    groups = np.tile(np.arange(69), 3)
    for kept, held in _splits(y, groups, 0, 3):
        assert not set(groups[kept]) & set(groups[held])
        assert 0 < y[held].sum() < len(held)


def test_few_splits_are_said_not_to_tell():
    rng = np.random.default_rng(0)
    wide = {name: 0.5 + 0.2 * rng.normal(size=(5, 5)) for name in CODE}
    narrow = {name: 0.5 + 0.001 * rng.normal(size=(5, 5)) for name in CODE}
    trivial = np.full(5, -1.0)
    for scores, unsure in ((wide, True), (narrow, False)):
        winner, verdict = _verdict(scores, trivial)
        assert winner == NOTHING
        assert verdict.startswith("No difference: do nothing")
        assert ("more rows or minutes would tell" in verdict) == unsure


def test_large_tables_are_thinned_and_pages_written(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = (X[:, 0] + rng.normal(size=len(X)) > 2.3).astype(int)
    found = advise(X, y, LogisticRegression(), minutes=0)
    assert found.n_rows < 20_000
    assert "of 20000 rows" in found.verdict
    found.write_page(tmp_path / "advice.html")
    text = (tmp_path / "advice.html").read_text()
    assert "data:image/png" in text
    assert THRESHOLD in text


def test_bad_tables():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="two classes"):
        advise(X, np.repeat([0, 1, 2], 10))
    with pytest.raises(ValueError, match="at least 5 distinct rows"):
        advise(X, np.repeat([0, 1], [27, 3]))
    with pytest.raises(ValueError, match="NaN"):
        advise(np.where(X > 1, np.nan, X), np.repeat([0, 1], [20, 10]))
