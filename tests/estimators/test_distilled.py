"""DistilledClassifier: what learners are taught, by known teachers, and every kind of learner and table."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from scorefield import DistilledClassifier, ScoreClassifier
from scorefield.models.students import weight_argument

LIGHT = ScoreClassifier(n_members=2, max_steps=30, hidden=(8,), random_state=0)


class Known(ClassifierMixin, BaseEstimator):
    """The posterior of two unit Gaussians at -1 and 1 with shares of .8 and .2, in the first column; or another."""

    def __init__(self, flipped=False):
        self.flipped = flipped

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.weights_ = sample_weight
        return self

    def predict_proba(self, X):
        odds = 2 * np.asarray(X, float)[:, 0] + np.log(0.2 / 0.8)
        rare = 1 / (1 + np.exp(odds if self.flipped else -odds))
        return np.column_stack([1 - rare, rare])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class Recorder(ClassifierMixin, BaseEstimator):
    """A learner that keeps what it was taught."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weights_, self.classes_ = X, np.asarray(y), sample_weight, np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def two_gaussians(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(int)
    return np.column_stack([rng.normal(2 * y - 1, 1), rng.normal(size=n)]), y


def mixed(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes"], n, p=[0.75, 0.25])
    colour = np.where(rng.random(n) < 0.3 + 0.4 * (y == "yes"), "red", "blue")
    table = pd.DataFrame({"size": rng.normal(y == "yes", 1), "colour": colour, "hue": np.where(colour == "red", 1, 2)})
    table.loc[rng.random(n) < 0.1, "size"] = np.nan
    return table, y


def taught(X, y, teacher=None, **options):
    model = DistilledClassifier(Recorder(), Known() if teacher is None else teacher, random_state=0, **options)
    return model.fit(X, y)


def test_what_a_learner_is_taught():
    """Real rows with their labels, then each new row once per class, weighted by the known posterior."""
    X, y = two_gaussians()
    lesson = taught(X, y).estimator_
    np.testing.assert_array_equal(lesson.X_[:300], X)
    np.testing.assert_array_equal(lesson.y_[:300], y)
    assert (lesson.weights_[:300] == 1).all()
    new, labels, weights = lesson.X_[300:], lesson.y_[300:], lesson.weights_[300:]
    expected = Known().fit(X, y).predict_proba(new)[np.arange(len(new)), labels]
    np.testing.assert_allclose(weights, expected, atol=2e-3)  # a class below a thousandth is left out
    assert weights.sum() == pytest.approx(1200)
    wrong = Known(flipped=True).fit(X, y).predict_proba(new)[np.arange(len(new)), labels]
    assert np.abs(weights - wrong).max() > 0.5  # negative control


def test_a_tree_gets_nearer_to_the_truth():
    X, y = two_gaussians()
    X_test, _ = two_gaussians(4000, seed=1)
    truth = Known().fit(X, y).predict_proba(X_test)

    def loss(model):
        found = np.clip(model.fit(X, y).predict_proba(X_test), 1e-3, None)
        return -np.mean(np.sum(truth * np.log(found), axis=1))

    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
    losses = [loss(DistilledClassifier(tree, teacher, random_state=0)) for teacher in (Known(), Known(flipped=True))]
    assert losses[0] < loss(tree) < losses[1]


def test_the_default_teacher_is_near_the_truth():
    X, y = two_gaussians(600)
    model = DistilledClassifier(GaussianNB(), ScoreClassifier(n_members=2), random_state=0).fit(X, y)
    found, truth = model.teacher_.predict_proba(X)[:, 1], Known().fit(X, y).predict_proba(X)[:, 1]
    assert np.abs(found - truth).mean() < 0.5 * np.abs(y.mean() - truth).mean()
    assert model.agreement_ > 0.9


@pytest.mark.parametrize(
    "student",
    [
        GaussianNB(),
        KNeighborsClassifier(),
        LinearSVC(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
        MLPClassifier((4,), max_iter=5),
        GridSearchCV(
            make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, cv=3
        ),
        CalibratedClassifierCV(GaussianNB(), cv=3),
    ],
    ids=lambda student: type(student).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learners_of_every_kind(student):
    X, y = two_gaussians(150)
    model = DistilledClassifier(student, LIGHT, random_state=0).fit(X, y)
    assert model.n_new_rows_ == (38 if weight_argument(student) is None else 600)
    assert 0 <= model.agreement_ <= 1
    assert set(model.predict(X)) <= {0, 1}
    assert hasattr(model, "predict_proba") == hasattr(student, "predict_proba")
    again = DistilledClassifier(clone(student), LIGHT, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))


def test_a_learner_without_weights_gets_rows_in_proportion():
    X, y = two_gaussians()
    nearest = KNeighborsClassifier(1)
    model = DistilledClassifier(nearest, Known(), n_new_rows=4000, random_state=0).fit(X, y)
    rows, labels = model.estimator_._fit_X, model.estimator_._y
    assert len(rows) == 4300
    p = Known().fit(X, y).predict_proba(rows[300:])[:, 1]
    assert abs(labels[300:].mean() - p.mean()) < 4 * np.sqrt((p * (1 - p)).mean() / 4000)


@pytest.mark.usefixtures("untrained")
def test_mixed_tables_with_missing_values():
    X, y = mixed()
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    student = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=5))
    model = DistilledClassifier(student, LIGHT, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (200, 2)
    assert set(model.predict(X)) <= {"no", "yes"}
    table = taught(X, y, LIGHT).estimator_.X_
    assert list(table.columns) == list(X.columns)
    assert (table.dtypes == X.dtypes).all()
    new = table.iloc[200:]
    assert ((new["colour"] == "red") == (new["hue"] == 1)).all()  # columns that determine each other stay together
    assert set(new["size"].dropna()) <= set(X["size"].dropna())
    assert new["size"].isna().any()


@pytest.mark.usefixtures("untrained")
def test_rows_of_numbers_stay_possible():
    X, y = two_gaussians()
    flags, counts = np.random.default_rng(0).integers(0, 2, 300), np.random.default_rng(1).poisson(300, 300)
    X = np.column_stack([X, flags, counts])
    new = taught(X, y, LIGHT).estimator_.X_[300:]
    assert set(new[:, 2]) == {0.0, 1.0}
    assert (new[:, 3] == np.rint(new[:, 3])).all()
    assert (new >= X.min(axis=0)).all()
    assert (new <= X.max(axis=0)).all()
    assert len(np.unique(new[:, 0])) > 1000  # chains, no copies


@pytest.mark.usefixtures("untrained")
def test_several_classes():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 240, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(240, 2)) + (y == "b")[:, None] - (y == "c")[:, None]
    model = DistilledClassifier(GaussianNB(), LIGHT, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_weights_reach_the_teacher_and_the_learner():
    X, y = two_gaussians()
    weights = np.where(np.arange(300) < 100, 0.0, np.where(y == 1, 0.9, 0.3))
    model = DistilledClassifier(Recorder(), Known(), random_state=0).fit(X, y, sample_weight=weights)
    shares = weights[100:] / weights[100:].mean()
    np.testing.assert_allclose(model.teacher_.weights_, shares)
    np.testing.assert_array_equal(model.estimator_.X_[:200], X[100:])
    np.testing.assert_allclose(model.estimator_.weights_[:200], shares)
    assert model.estimator_.weights_[200:].sum() == pytest.approx(800)
    with pytest.raises(ValueError, match="teacher that takes sample_weight, got KNeighborsClassifier"):
        DistilledClassifier(Recorder(), KNeighborsClassifier()).fit(X, y, sample_weight=weights)


def test_a_weight_of_three_is_three_rows():
    X, y = two_gaussians()
    weights = np.where(y == 1, 3, 1)
    weighted = DistilledClassifier(Recorder(), Known(), random_state=0).fit(X, y, sample_weight=weights)
    shuffled = np.random.default_rng(0).permutation(np.repeat(np.arange(300), weights))
    repeated = DistilledClassifier(Recorder(), Known(), random_state=0).fit(X[shuffled], y[shuffled])
    np.testing.assert_array_equal(weighted.estimator_.X_, repeated.estimator_.X_)
    np.testing.assert_array_equal(weighted.estimator_.y_, repeated.estimator_.y_)
    otherwise = DistilledClassifier(Recorder(), Known(), random_state=0).fit(X, y)  # the control
    assert len(otherwise.estimator_.X_) < len(weighted.estimator_.X_)


def test_balance_makes_the_classes_weigh_the_same():
    X, y = two_gaussians()
    lesson = taught(X, y, balance=True).estimator_
    real = [lesson.weights_[:300][y == k].sum() for k in (0, 1)]
    assert real[0] == pytest.approx(real[1])
    plain = taught(X, y).estimator_
    ratio = [np.unique((lesson.weights_ / plain.weights_)[lesson.y_ == k].round(9)) for k in (0, 1)]
    assert all(len(values) == 1 for values in ratio)  # one factor per class, for real and new rows
    assert (ratio[1] / ratio[0])[0] == pytest.approx(np.sum(y == 0) / np.sum(y == 1))


def test_linear_learners_see_classes_in_proportion():
    X, y = two_gaussians()
    seen = []

    class Linear(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append((np.asarray(y), sample_weight))
            return super().fit(X, y, sample_weight)

    DistilledClassifier(Linear(), Known(), random_state=0).fit(X, y)
    taught_labels, weights = seen[0]
    share = np.average(taught_labels[300:], weights=weights[300:])
    assert abs(share - y.mean()) < 0.1
    assert weights[300:].sum() == pytest.approx(300)  # as much as the real rows
    lesson = taught(X, y).estimator_
    assert (
        np.average(lesson.y_[300:], weights=lesson.weights_[300:]) > share + 0.04
    )  # half of their parents are rare: five standard errors


@pytest.mark.parametrize(
    ("estimator", "teacher", "message"),
    [
        (FrozenEstimator(GaussianNB()), Known(), "a learner to be fitted, got a FrozenEstimator"),
        (LinearRegression(), Known(), "a classifier as estimator, got LinearRegression"),
        (GaussianNB(), LinearSVC(), "teacher"),
        (GaussianNB(), "lacking", r"a teacher of the classes \[0, 1\], got one of \[1, 2\]"),
    ],
)
def test_what_is_refused(estimator, teacher, message):
    X, y = two_gaussians()
    if teacher == "lacking":
        teacher = FrozenEstimator(GaussianNB().fit(X, y + 1))
    with pytest.raises(ValueError, match=message):
        DistilledClassifier(estimator, teacher).fit(X, y)


def test_a_fitted_teacher_is_kept():
    X, y = two_gaussians()
    teacher = Known().fit(X, y)
    model = DistilledClassifier(GaussianNB(), FrozenEstimator(teacher), random_state=0).fit(X[:100], y[:100])
    assert model.teacher_.estimator is teacher


@pytest.mark.parametrize(("early_stopping", "held"), [("auto", 0), (True, 30), (False, 0)])
def test_boosting_stops_by_real_rows(early_stopping, held):
    X, y = two_gaussians()
    seen = {}

    class Boosting(HistGradientBoostingClassifier):
        def fit(self, X, y, sample_weight=None, *, X_val=None, y_val=None):
            seen.update(n=len(X), X=X, X_val=X_val, stops=self.early_stopping)
            return super().fit(X, y, sample_weight, X_val=X_val, y_val=y_val)

    student = Boosting(max_iter=3, early_stopping=early_stopping)
    DistilledClassifier(student, Known(), n_new_rows=6000, random_state=0).fit(X, y)
    assert seen["n"] > 10_000  # where "auto" would stop by rows of its own
    assert seen["stops"] == bool(held)
    if held:
        assert len(seen["X_val"]) == held
        real = {tuple(row) for row in seen["X"][: 300 - held]}
        assert not real & {tuple(row) for row in seen["X_val"]}
    else:
        assert seen["X_val"] is None


def test_a_search_is_judged_by_real_rows_without_relatives():
    X, y = two_gaussians(120)
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=4)
    model = DistilledClassifier(search, Known(), random_state=0).fit(X, y)
    splits = model.estimator_.cv
    assert sorted(np.concatenate([held for _, held in splits])) == list(range(120))
    for kept, held in splits:
        assert not set(kept) & set(held)
        assert (held < 120).all()
        assert len(kept) > 1.2 * len(held)


@pytest.mark.parametrize(
    ("student", "message"),
    [
        (MLPClassifier((4,), max_iter=3, early_stopping=True), "MLPClassifier holds out rows to stop early"),
        (make_pipeline(HistGradientBoostingClassifier(max_iter=2, early_stopping=True)), "switched off"),
        (StackingClassifier([("bayes", GaussianNB())]), "StackingClassifier splits the rows"),
        (CalibratedClassifierCV(GaussianNB(), ensemble=False), "CalibratedClassifierCV splits the rows"),
        (GridSearchCV(CalibratedClassifierCV(GaussianNB()), {"cv": [2]}, cv=2), "GridSearchCV splits the rows"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learners_that_split_rows_themselves_are_warned_of(student, message):
    X, y = two_gaussians(100)
    with pytest.warns(UserWarning, match=message):
        DistilledClassifier(student, Known(), random_state=0).fit(X, y)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes in y, got 1 class"):
        DistilledClassifier(GaussianNB(), Known()).fit(np.eye(3), np.zeros(3))


def test_a_search_over_the_teacher_and_the_learner():
    X, y = two_gaussians(120)
    model = DistilledClassifier(DecisionTreeClassifier(), LIGHT, random_state=0)
    grid = {"estimator__max_depth": [1, 3], "n_new_rows": [50, 100], "teacher__n_members": [1]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert set(search.best_params_) == set(grid)
