"""Taught learners as plain arrays: they predict what scikit-learn's own do."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from scorefield import MixedEncoder, ScoreClassifier, load_model, save_model
from scorefield.estimators.distilled import DistilledClassifier
from scorefield.files import stored_learner
from scorefield.files.stored_learner import LEARNERS, StoredLearner

# Any teacher will do: a learner is compared with its arrays.
pytestmark = pytest.mark.usefixtures("untrained")


def mixed(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n)
    table = pd.DataFrame(
        {"x": rng.normal(y == classes[0], 1), "c": rng.choice(["u", "v", "w"], n), "z": rng.normal(size=n)}
    )
    table.loc[rng.random(n) < 0.2, "x"] = np.nan
    return table, y


@pytest.fixture
def quick(monkeypatch):
    """A light teacher, and the learners that it teaches."""
    taught = []

    def light(**options):
        return ScoreClassifier(n_members=1, max_steps=10, hidden=(8,))

    class Remembered(DistilledClassifier):
        def fit(self, X, y):
            taught.append(super().fit(X, y))
            return self

    monkeypatch.setattr(stored_learner, "ScoreClassifier", light)
    monkeypatch.setattr(stored_learner, "DistilledClassifier", Remembered)
    monkeypatch.setattr(stored_learner, "RandomForestClassifier", lambda n: RandomForestClassifier(5))
    monkeypatch.setattr(
        stored_learner, "HistGradientBoostingClassifier", lambda: HistGradientBoostingClassifier(max_iter=5)
    )
    return taught


@pytest.mark.parametrize("classes", [["no", "yes"], ["a", "b", "c"]], ids=["two", "three"])
@pytest.mark.parametrize("kind", LEARNERS)
def test_arrays_predict_what_the_learner_does(quick, kind, classes, tmp_path):
    X, y = mixed(150, classes)
    model = StoredLearner(kind, random_state=0).fit(X, y)
    X_new = mixed(80, classes, seed=1)[0]
    expected = quick[0].predict_proba(X_new)
    np.testing.assert_allclose(model.predict_proba(X_new), expected, atol=1e-12)
    assert (model.predict(X_new) == quick[0].predict(X_new)).all()
    save_model(quick[0], tmp_path / "m.skops")
    stored = load_model(tmp_path / "m.skops")
    np.testing.assert_array_equal(stored.predict_proba(X_new), model.predict_proba(X_new))
    np.testing.assert_array_equal(stored.priors_, model.priors_)


@pytest.mark.parametrize("learner", [DecisionTreeClassifier(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_other_learners_are_refused_by_name(learner, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    teacher = ScoreClassifier(n_members=1, max_steps=10, hidden=(8,))
    taught = DistilledClassifier(learner, teacher, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=r"(DecisionTree|LogisticRegression after StandardScaler).*pickle"):
        save_model(taught, tmp_path / "m.skops")
    assert not (tmp_path / "m.skops").exists()


@pytest.mark.parametrize(
    "learner",
    [HistGradientBoostingClassifier(max_iter=5), RandomForestClassifier(5, random_state=0), LogisticRegression()],
)
@pytest.mark.parametrize("encoder", [[], [MixedEncoder()]], ids=["bare", "encoded"])
def test_learners_of_numbers_are_stored_with_what_they_do_at_missing_cells(learner, encoder, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    if not isinstance(learner, LogisticRegression):
        X[rng.random(X.shape) < 0.3] = np.nan
    y = rng.integers(3, size=120) + 10
    teacher = ScoreClassifier(n_members=1, max_steps=10, hidden=(8,))
    model = make_pipeline(*encoder, learner) if encoder else learner
    taught = DistilledClassifier(model, teacher, random_state=0).fit(X, y)
    save_model(taught, tmp_path / "m.skops")
    stored = load_model(tmp_path / "m.skops")
    np.testing.assert_allclose(stored.predict_proba(X), taught.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(stored.predict(X), taught.predict(X))
    with pytest.raises(ValueError, match="3 features"):
        stored.predict(X[:, :2])


def test_trees_with_a_loop_are_refused(quick):
    X, y = mixed(150, ["no", "yes"])
    model = StoredLearner("forest", random_state=0).fit(X, y)
    inner = np.flatnonzero(model.trees_["feature"] >= 0)
    model.trees_["left"][inner[-1]] = inner[0]
    with pytest.raises(ValueError, match="the file was edited"):
        model.predict_proba(X)


def test_a_forest_that_no_file_could_hold_is_refused(quick, monkeypatch):
    monkeypatch.setattr(stored_learner, "MAX_NODES", 10)
    with pytest.raises(ValueError, match="at most 10 nodes for a model file"):
        StoredLearner("forest", random_state=0).fit(*mixed(150, ["no", "yes"]))


def test_learners_are_the_ones_of_the_command():
    from scorefield.cli.options import TAUGHT

    assert TAUGHT == LEARNERS
