"""ScoreOverSampler(purpose="learning"): rows kept by a known teacher, their soft labels, and weights that undo it."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from scorefield import Langevin, ScoreClassifier, ScoreDensity, ScoreOverSampler
from scorefield.models import oversampling

LIGHT = ScoreClassifier(n_members=1, max_steps=20, hidden=(8,))


class Known(ClassifierMixin, BaseEstimator):
    """The posterior of two unit Gaussians at -1 and 1 with equal shares, in the first column."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        rare = 1 / (1 + np.exp(-2 * np.asarray(X, float)[:, 0]))
        return np.column_stack([1 - rare, rare])


def two_gaussians(n_common=2000, n_rare=400, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n_common, n_rare])
    return np.column_stack([rng.normal(2 * y - 1, 1), rng.normal(size=len(y))]), y


def made_by(sampler, X, y):
    more, labels = sampler.fit_resample(X, y)
    return more[sampler.is_synthetic_], labels[sampler.is_synthetic_]


def test_rows_soft_labels_and_weights_of_a_known_law():
    """Candidates of a Gaussian field are kept by a power of the posterior; the weights give its law back."""
    X, y = two_gaussians()
    density = ScoreDensity("gaussian")
    sampler = ScoreOverSampler(density=density, teacher=Known(), bounds=None, random_state=0)
    new, labels = made_by(sampler, X, y)
    assert (labels == 1).all()
    assert set(sampler.densities_) == {1}
    soft = sampler.soft_labels_[sampler.is_synthetic_]
    np.testing.assert_allclose(soft, Known().fit(X, y).predict_proba(new))
    np.testing.assert_array_equal(sampler.soft_labels_[: len(y)], np.eye(2)[y])
    weights = sampler.sample_weight_[sampler.is_synthetic_]
    assert (sampler.sample_weight_[: len(y)] == 1).all()
    assert weights.sum() == pytest.approx(len(new))
    drawn, _ = made_by(ScoreOverSampler(purpose="sharing", density=density, bounds=None, random_state=1), X, y)

    def error(values, weights):
        return np.sqrt(np.sum((weights * (values - np.average(values, weights=weights))) ** 2)) / weights.sum()

    ones = np.ones(len(drawn))
    for power in (1, 2):
        kept, free = new[:, 0] ** power, drawn[:, 0] ** power
        tolerance = 4 * np.hypot(error(kept, weights), error(free, ones))
        assert abs(np.average(kept, weights=weights) - free.mean()) < tolerance
    assert new[:, 0].mean() - drawn[:, 0].mean() > 4 * np.hypot(error(new[:, 0], ones), error(drawn[:, 0], ones))


def test_rows_are_kept_by_a_power_of_the_probability(monkeypatch):
    X, y = two_gaussians(1000, 200)
    means = []
    for power in (0.0, 2.0, 8.0):
        monkeypatch.setattr(oversampling, "POWER", power)
        new, _ = made_by(ScoreOverSampler(density=ScoreDensity("gaussian"), teacher=Known(), random_state=0), X, y)
        means.append(new[:, 0].mean())
    assert means[0] < means[1] < means[2]


def test_default_rows_are_near_their_parents_and_new():
    X, y = two_gaussians(400, 80)
    sampler = ScoreOverSampler(teacher=LIGHT, random_state=0)
    new, _ = made_by(sampler, X, y)
    parents = sampler.parent_indices_[sampler.is_synthetic_]
    assert (sampler.parent_indices_[: len(y)] == -1).all()
    assert len(np.unique(new, axis=0)) == len(new)
    near = np.abs(new - X[parents]).mean()
    assert near < 0.5 * np.abs(new - X[np.random.default_rng(0).permutation(parents)]).mean()
    assert (new >= X.min(axis=0)).all()
    assert (new <= X.max(axis=0)).all()
    assert sampler.densities_ == {}
    assert sampler.sample_weight_[sampler.is_synthetic_].sum() == pytest.approx(320)


@pytest.mark.parametrize("n_rare", [8, 80])
def test_half_of_the_chains_start_where_the_class_may_be(n_rare, monkeypatch):
    """From rows of any class in proportion to the class's probability; from its own where it has few."""
    monkeypatch.setattr(oversampling, "POWER", 0.0)  # every candidate may be kept
    X, y = two_gaussians(400, n_rare)
    sampler = ScoreOverSampler(sampling_strategy={1: 4000}, teacher=Known(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows
        sampler.fit_resample(X, y)
    of_others = np.mean(y[sampler.parent_indices_[sampler.is_synthetic_]] == 0)
    rare = Known().fit(X, y).predict_proba(X)[:, 1]
    expected = 0.5 * rare[y == 0].sum() / rare.sum() if n_rare == 80 else 0.0
    assert abs(of_others - expected) <= 4 * np.sqrt(expected * (1 - expected) / 3920)


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, pl.from_pandas])
@pytest.mark.usefixtures("untrained")
def test_containers_of_numbers(container):
    X, y = two_gaussians(60, 20)
    counts = np.random.default_rng(0).poisson(50, 80)
    frame = pd.DataFrame({"x": X[:, 0], "visits": counts, "y": X[:, 1]})
    table = frame.to_numpy() if container is np.asarray else container(frame)
    more, _ = ScoreOverSampler(teacher=LIGHT, random_state=0).fit_resample(table, y)
    assert type(more) is type(table)
    assert more.shape == (120, 3)
    new = np.asarray(more)[80:]
    assert (new[:, 1] == np.rint(new[:, 1])).all()
    np.testing.assert_array_equal(np.asarray(more)[:80].astype(float), frame.to_numpy())


@pytest.mark.parametrize("density", [None, ScoreDensity(max_steps=20, hidden=(8,))])
@pytest.mark.usefixtures("untrained")
def test_mixed_tables(density):
    rng = np.random.default_rng(0)
    y = pd.Series(np.repeat(["no", "yes"], [90, 30]), name="label")
    X = pd.DataFrame({"x": rng.normal(y == "yes", 1), "c": rng.choice(["u", "v"], 120)})
    X.loc[::7, "x"] = np.nan
    sampler = ScoreOverSampler(density=density, teacher=LIGHT, random_state=0)
    more, labels = sampler.fit_resample(X, y)
    assert labels.value_counts().to_dict() == {"no": 90, "yes": 90}
    pd.testing.assert_frame_equal(more.iloc[:120], X)
    new = more.iloc[120:]
    assert set(new["c"]) <= {"u", "v"}
    assert sampler.soft_labels_.shape == (180, 2)
    np.testing.assert_allclose(sampler.soft_labels_[120:], sampler.teacher_.predict_proba(new), atol=1e-6)
    assert hasattr(sampler, "row_model_") == (density is not None)


@pytest.mark.usefixtures("untrained")
def test_given_bounds_hold_in_a_mixed_table():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [90, 30])
    X = pd.DataFrame({"x": rng.normal(y, 1), "c": rng.choice(["u", "v"], 120)})
    sampler = ScoreOverSampler(teacher=LIGHT, bounds=(-0.5, 0.5), random_state=0)
    new = sampler.fit_resample(X, y)[0].iloc[120:]
    assert new["x"].between(-0.5, 0.5).all()


def test_given_bounds_hold_in_every_container():
    X, y = two_gaussians(80, 30)
    table = pd.DataFrame(X, columns=["a", "b"])
    made = [
        ScoreOverSampler(teacher=LIGHT, bounds=(-0.5, 0.5), random_state=0).fit_resample(container, y)[0]
        for container in (X, table, pl.from_pandas(table))
    ]
    assert np.abs(made[0][110:]).max() <= 0.5
    for more in made[1:]:
        np.testing.assert_allclose(np.asarray(more), made[0], atol=1e-12)


@pytest.mark.parametrize("n_rare", [1, 2, 3])
@pytest.mark.parametrize("duplicated", [False, True])
def test_few_rows(n_rare, duplicated):
    X, y = two_gaussians(40, n_rare)
    X[40:] = X[40] if duplicated else X[40:]
    sampler = ScoreOverSampler(teacher=LIGHT, random_state=0)
    said = "noise around one row" if duplicated or n_rare == 1 else f"Class 1 has only {n_rare} rows"
    with pytest.warns(UserWarning, match=said):
        more, labels = sampler.fit_resample(X, y)
    assert np.bincount(labels).tolist() == [40, 40]
    assert np.isfinite(more).all()
    assert np.isfinite(sampler.sample_weight_).all()


@pytest.mark.usefixtures("untrained")
def test_several_classes_and_a_dict():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.repeat([0, 1, 2], [70, 30, 20])
    sampler = ScoreOverSampler(sampling_strategy={2: 25, 1: 50}, teacher=LIGHT, random_state=0)
    _, labels = sampler.fit_resample(X, y)
    assert np.bincount(labels).tolist() == [70, 50, 25]
    assert sampler.soft_labels_.shape == (145, 3)
    parents = sampler.parent_indices_[120:]
    assert (labels[parents] == labels[120:]).mean() > 0.5
    assert ((parents >= 0) & (parents < 120)).all()


def test_more_rows_than_one_batch(monkeypatch):
    monkeypatch.setattr(oversampling, "BATCH", 64)
    X, y = two_gaussians(300, 100)
    sampler = ScoreOverSampler(teacher=Known(), random_state=0)
    new, _ = made_by(sampler, X, y)
    assert len(new) == 200
    assert sampler.sample_weight_[400:].sum() == pytest.approx(200)


def test_same_seed_same_bits():
    X, y = two_gaussians(100, 30)
    first, again, other = (made_by(ScoreOverSampler(teacher=LIGHT, random_state=seed), X, y)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_nothing_to_do_fits_no_teacher():
    X, y = two_gaussians(30, 30)
    sampler = ScoreOverSampler(random_state=0)
    more, _ = sampler.fit_resample(X, y)
    assert len(more) == 60
    assert not hasattr(sampler, "teacher_")


def test_settings_that_would_not_act_are_refused():
    X, y = two_gaussians(30, 10)
    for options, message in (
        ({"where": "clear"}, "where='everywhere' with purpose='learning'"),
        ({"purpose": "sharing", "teacher": LIGHT}, "no teacher with purpose='sharing'"),
        ({"purpose": "both"}, "purpose"),
    ):
        with pytest.raises(ValueError, match=message):
            ScoreOverSampler(**options).fit_resample(X, y)


def test_a_teacher_that_lacks_the_class_is_refused():
    X, y = two_gaussians(30, 10)
    teacher = FrozenEstimator(Known().fit(X, y + 1))
    with pytest.raises(ValueError, match=r"a teacher of the classes \[0, 1\], got one of \[1, 2\]"):
        ScoreOverSampler(teacher=teacher).fit_resample(X, y)


def test_an_earlier_purpose_leaves_nothing_behind():
    X, y = two_gaussians(60, 20)
    sampler = ScoreOverSampler(teacher=Known(), random_state=0)
    sampler.fit_resample(X, y)
    sampler.set_params(purpose="sharing", teacher=None, density=ScoreDensity("gaussian")).fit_resample(X, y)
    assert not {"teacher_", "soft_labels_", "sample_weight_"} & set(vars(sampler))


def test_a_given_sampler_proposes():
    X, y = two_gaussians(100, 30)
    options = {"density": ScoreDensity("gaussian"), "teacher": Known(), "bounds": None, "random_state": 0}
    near = ScoreOverSampler(sampler=Langevin(1e-8, 1, 0.0), **options)
    new, _ = made_by(near, X, y)
    np.testing.assert_allclose(new, X[near.parent_indices_[130:]], atol=0.01)


def test_diagnosis_is_that_of_the_teacher():
    X, y = two_gaussians(60, 20)
    sampler = ScoreOverSampler(teacher=LIGHT, random_state=0)
    sampler.fit_resample(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sampler.diagnose(X, y)
        assert [c.name for c in found.checks] == [c.name for c in sampler.teacher_.diagnose(X, y).checks]
    sampler.set_params(teacher=Known()).fit_resample(X, y)
    with pytest.raises(TypeError, match="ScoreClassifier as teacher for diagnose, got Known"):
        sampler.diagnose()
