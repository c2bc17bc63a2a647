"""Tables of numbers, categories, spikes, dates and gaps in every estimator; known laws where there are any."""

import copy
import functools
import itertools
import os
import pathlib
import re
import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.utils import get_tags
from sklearn.utils._param_validation import InvalidParameterError

from scorefield import (
    MixedEncoder,
    PriorCorrectedClassifier,
    ScoreClassifier,
    ScoreDensity,
    ScoreFeatures,
    ScoreImputer,
    ScoreOverSampler,
)
from scorefield.data.row_space import tied_categories
from scorefield.models import fitting
from scorefield.studies.benchmark.mixed_tables import TARGETS

LIGHT = {"hidden": (16, 16), "max_steps": 100, "random_state": 0}
DATA = pathlib.Path(os.environ.get("SCOREFIELD_DATA", "")) / "mixed"


def people(n=300, seed=0):
    """A table of every kind of column, with gaps, and labels that depend on age and colour."""
    rng = np.random.default_rng(seed)
    age = rng.gamma(4, 10, n).round()
    colour = rng.choice(["red", "green", "blue"], n, p=[0.5, 0.3, 0.2])
    gain = np.where(rng.random(n) < 0.7, 0.0, rng.lognormal(8, 1, n).round(2))
    frame = pd.DataFrame(
        {
            "id": [f"c{i:05d}" for i in range(n)],
            "age": age.astype(int),
            "colour": pd.Categorical(colour),
            "warm": colour == "red",
            "gain": gain,
            "rooms": rng.integers(1, 6, n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
        }
    )
    label = np.where(age / 40 + (colour == "red") + rng.normal(size=n) > 2.2, "yes", "no")
    frame.loc[rng.random(n) < 0.2, "gain"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame, label


def possible(new, real):
    """Every generated cell is one that the table could have."""
    assert list(new.columns) == list(real.columns)
    assert new["id"].is_unique
    assert new["id"].str.fullmatch(r"c\d{5}").all()
    assert not set(new["id"]) & set(real["id"])
    assert set(new["colour"].dropna()) <= set(real["colour"].dropna())
    for name in ("age", "gain", "rooms", "since"):
        known = new[name].dropna()
        assert (known >= real[name].min()).all(), name
        assert (known <= real[name].max()).all(), name
    assert new["age"].dtype == real["age"].dtype
    assert new["since"].dtype == real["since"].dtype
    assert (new["since"].dt.normalize() == new["since"]).all()
    np.testing.assert_array_equal(new["gain"].dropna(), new["gain"].dropna().round(2))


def test_the_over_sampler_keeps_original_cells_and_makes_possible_rows():
    frame, label = people()
    sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity(**{**LIGHT, "max_steps": 300}), random_state=0)
    more, y_more = sampler.fit_resample(frame, label)
    pd.testing.assert_frame_equal(more.iloc[: len(frame)], frame)
    assert len(set(np.unique(y_more, return_counts=True)[1])) == 1
    new, own = more[sampler.is_synthetic_], frame[label == y_more[-1]]
    possible(new, frame)
    assert abs((new["gain"] == 0).mean() - (own["gain"] == 0).mean()) < 0.15
    assert abs(new["gain"].isna().mean() - own["gain"].isna().mean()) < 0.1
    again = clone(sampler).fit_resample(frame, label)[0]
    pd.testing.assert_frame_equal(more, again)
    parents = sampler.parent_indices_[sampler.is_synthetic_]
    assert (label[parents] == y_more[-1]).all()


@pytest.mark.parametrize(
    "n_rare", [1, pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(5, marks=pytest.mark.slow)]
)
@pytest.mark.usefixtures("untrained")
def test_few_rows_with_gaps(n_rare):
    frame, _ = people(100)
    label = np.repeat(["many", "few"], [100 - n_rare, n_rare])
    frame.loc[frame.index[-1], ["age", "colour"]] = [30, None]
    sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity(**LIGHT), random_state=0)
    told = "only one row" if n_rare == 1 else "lean on the other classes"
    with pytest.warns(UserWarning, match=told):
        more, y_more = sampler.fit_resample(frame, label)
    assert (y_more == "few").sum() == 100 - n_rare
    possible(more[sampler.is_synthetic_], frame)


@pytest.mark.parametrize("container", ["polars", pytest.param("pyarrow", marks=pytest.mark.slow), "numpy"])
@pytest.mark.usefixtures("untrained")
def test_containers_in_and_out(container):
    frame, label = people(100)
    frame = frame.drop(columns="id").astype({"colour": object})
    tables = {
        "polars": lambda: pl.from_pandas(frame),
        "pyarrow": lambda: pl.from_pandas(frame).to_arrow(),
        "numpy": lambda: frame.to_numpy(object),
    }
    table = tables[container]()
    more, _ = ScoreOverSampler(purpose="sharing", density=ScoreDensity(**LIGHT), random_state=0).fit_resample(
        table, label
    )
    assert type(more) is type(table)
    filled = ScoreImputer(method="neighbours", **LIGHT).fit(table).transform(table)
    assert type(filled) is type(table)
    cells = pd.DataFrame(filled, columns=frame.columns) if container == "numpy" else pl.from_arrow(filled) if (
        container == "pyarrow") else filled  # fmt: skip
    cells = cells if isinstance(cells, pd.DataFrame) else cells.to_pandas()
    assert not cells.isna().any().any()
    known = frame.notna().to_numpy()
    assert (cells.to_numpy(object)[known] == frame.to_numpy(object)[known]).all()


@pytest.mark.usefixtures("untrained")
def test_columns_of_any_names_and_orders():
    frame, label = people(100)
    renamed = frame.rename(columns={"age": "a b,;\"'", "gain": "ü"})
    more, _ = ScoreOverSampler(purpose="sharing", density=ScoreDensity(**LIGHT), random_state=0).fit_resample(
        renamed, label
    )
    assert list(more.columns) == list(renamed.columns)


def test_the_classifier_predicts_through_gaps_and_unseen_levels():
    frame, label = people(600)
    model = ScoreClassifier(n_members=1, hidden=(16, 16), max_steps=200, random_state=0).fit(frame[:400], label[:400])
    test = frame[400:].assign(colour=frame["colour"][400:].astype(object))
    proba = model.predict_proba(test)
    base = np.full(len(test), np.mean(label[:400] == "yes"))
    assert log_loss(label[400:], proba, labels=model.classes_) < 0.9 * log_loss(label[400:], base)
    odd = test.head(5).assign(colour="violet", age=pd.array([None] * 5, dtype="Int64"))
    assert np.isfinite(model.predict_proba(odd)).all()
    # An unseen level is a gap.
    np.testing.assert_array_equal(model.predict_proba(odd), model.predict_proba(odd.assign(colour=None)))
    shuffled = test[test.columns[::-1]]
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(shuffled)
    possible(model.sample(40, "yes"), frame[:400])
    filled = model.impute(test)
    assert not filled[["gain", "colour"]].isna().any().any()


def test_weights_move_the_classifier():
    frame, label = people(400)
    plain, balanced, weighted = (
        ScoreClassifier(n_members=1, **{**LIGHT, "max_steps": 200}, class_weight=weights).fit(frame, label, **fit)
        for weights, fit in (
            (None, {}),
            ("balanced", {}),
            (None, {"sample_weight": np.where(label == "yes", 5.0, 1.0)}),
        )
    )
    shares = [model.predict_proba(frame)[:, 1].mean() for model in (plain, balanced, weighted)]
    assert shares[0] < shares[1] - 0.05
    assert shares[0] < shares[2] - 0.05
    assert balanced.priors_ == pytest.approx([0.5, 0.5])


def test_densities_of_mixed_rows_sum_and_integrate_to_one():
    """Two flags, a category and a number: all levels are summed, the number is integrated on a grid."""
    rng = np.random.default_rng(0)
    n = 400
    a = rng.random(n) < 0.3
    colour = np.where(a, rng.choice(["x", "y"], n), rng.choice(["y", "z"], n))
    number = rng.normal(size=n) * np.where(a, 0.5, 1.5) + 2 * a
    spiked = np.where(rng.random(n) < 0.4, 0.0, number)
    frame = pd.DataFrame({"a": a, "colour": colour, "spiked": spiked})
    density = ScoreDensity(**{**LIGHT, "max_steps": 300}).fit(frame)
    grid = np.linspace(-15, 15, 30_001)
    total = at_spikes = 0.0
    for flag, level in itertools.product([False, True], ["x", "y", "z"]):
        rows = pd.DataFrame({"a": flag, "colour": level, "spiked": grid})
        values = np.exp(density.score_samples(rows))
        at = np.abs(grid) < 1e-9  # the spike itself has a mass, not a density
        at_spikes += values[at].sum()
        total += values[at].sum() + np.trapezoid(np.interp(grid, grid[~at], values[~at]), grid)
    tolerance = 4 * density.anchor_error_ + 0.02
    assert total == pytest.approx(1, abs=tolerance)
    assert abs(total - at_spikes - 1) > tolerance  # the control: without the mass of the spike


def test_imputations_follow_the_conditional_law():
    """A bivariate Gaussian with a known conditional mean and variance."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 1500)
    hidden = X.copy()
    gone = rng.random(len(X)) < 0.3
    hidden[gone, 1] = np.nan
    imputer = ScoreImputer(random_state=0, hidden=(64, 64), max_steps=600).fit(hidden)
    draws = imputer.draws(hidden, 3)
    for drawn in draws:
        np.testing.assert_array_equal(drawn[~gone], X[~gone])
    residual = np.concatenate([drawn[gone, 1] - 0.8 * X[gone, 0] for drawn in draws])
    spread = 0.6 / np.sqrt(gone.sum())
    assert abs(residual.mean()) < 5 * spread
    assert residual.std() == pytest.approx(0.6, rel=0.15)  # the spread of draws, which a mean would lose
    slope = np.polyfit(X[gone, 0], draws[0][gone, 1], 1)[0]
    assert slope == pytest.approx(0.8, abs=0.12)
    np.testing.assert_array_equal(imputer.transform(hidden), imputer.transform(hidden))
    typical = copy.copy(imputer).set_params(n_draws=5).transform(hidden)
    errors = [np.abs(filled[gone, 1] - X[gone, 1]).mean() for filled in (typical, draws[0])]
    assert errors[0] < errors[1]


def test_categories_are_imputed_by_what_they_go_with():
    rng = np.random.default_rng(1)
    letter = rng.choice(list("abc"), 600)
    frame = pd.DataFrame({"letter": letter, "upper": np.char.upper(letter), "x": rng.normal(size=600)})
    gone = rng.random(600) < 0.3
    hidden = frame.assign(upper=frame["upper"].where(~gone))
    filled = ScoreImputer(random_state=0, hidden=(32, 32), max_steps=400).fit_transform(hidden)
    assert (filled["upper"] == frame["upper"])[gone].mean() > 0.9  # a third by chance
    assert (filled["upper"] == frame["upper"])[~gone].all()


def test_features_are_the_field_of_the_numbers():
    frame, label = people(200)
    density = ScoreDensity(**{**LIGHT, "max_steps": 50})
    features = ScoreFeatures(density).fit(frame)
    numbers = ["age", "gain", "since"]
    assert features.get_feature_names_out().tolist() == [f"score_{name}" for name in numbers]
    found = features.transform(frame)
    np.testing.assert_array_equal(found, density.fit(frame).grad_log_density(frame))
    assert (found[frame["gain"].isna().to_numpy(), 1] == 0).all()
    both = ScoreFeatures(density, per_class=True, passthrough=True).fit(frame, label)
    names = both.get_feature_names_out().tolist()
    assert names[6:] == [f"score_{label}_{name}" for label in ("no", "yes") for name in numbers]
    table = pd.DataFrame(both.transform(frame), columns=names)
    np.testing.assert_array_equal(table["age"], frame["age"])
    assert not np.allclose(table["score_no_age"], table["score_yes_age"])
    assert get_tags(both).input_tags.string
    assert not get_tags(ScoreFeatures(ScoreDensity("gaussian"))).input_tags.string
    with pytest.raises(ValueError, match="'auto' or 'energy'"):
        ScoreFeatures(ScoreDensity("gaussian")).fit(frame)


def test_corrected_probabilities_after_over_sampling_a_mixed_table():
    frame, label = people(400)
    kept = (label == "no") | (np.arange(400) % 4 == 0)
    frame, label = frame[kept], label[kept]
    sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity(**LIGHT), random_state=0)
    pipeline = make_pipeline(sampler, MixedEncoder("one-hot"), LogisticRegression())
    model = PriorCorrectedClassifier(pipeline).fit(frame, label)
    assert model.priors_after_ == pytest.approx([0.5, 0.5])
    share = (label == "yes").mean()
    assert model.predict_proba(frame)[:, 1].mean() == pytest.approx(share, abs=0.05)
    raised = model.estimator_.predict_proba(frame)[:, 1].mean()
    assert raised > share + 0.1  # the control: without the correction
    assert get_tags(model).input_tags.allow_nan
    blind = PriorCorrectedClassifier(make_pipeline(sampler, LogisticRegression()))  # takes numbers alone
    assert not get_tags(blind).input_tags.allow_nan


def test_wrong_tables_are_refused_at_once():
    frame, label = people(60)
    with pytest.raises(ValueError, match="infinity"):
        ScoreClassifier().fit(frame.assign(age=np.inf, gain=np.inf), label)
    with pytest.raises(ValueError, match="columns that are not numbers"):
        ScoreClassifier(ScoreDensity(model="gaussian")).fit(frame, label)
    with pytest.raises(ValueError, match="'auto' or 'energy'"):
        ScoreDensity(model="gaussian").fit(frame)
    with pytest.raises(ValueError, match="category"):
        ScoreClassifier(columns={"age": "colour"}).fit(frame, label)
    with pytest.raises(ValueError, match="at least one column"):
        ScoreImputer().fit(frame[["id"]])


@pytest.mark.data
@pytest.mark.parametrize("name", ["penguins", "titanic"])
@pytest.mark.usefixtures("untrained")
def test_real_tables(name):
    if not DATA.exists():
        pytest.skip("set SCOREFIELD_DATA to the folder of the real tables")
    table = pd.read_csv(DATA / f"{name}.csv").head(400)
    y = table.pop(TARGETS[name])
    sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity(**LIGHT), random_state=0)
    more, _ = sampler.fit_resample(table, y)
    pd.testing.assert_frame_equal(more.iloc[: len(table)].astype(table.dtypes.to_dict()), table)
    new = more[sampler.is_synthetic_]
    for column in table.columns:
        known = new[column].dropna()
        if column in ("Name", "Ticket", "Cabin"):
            assert len(known) == 0
        elif column == "PassengerId":  # keys go on after the largest
            assert known.is_unique
            assert known.min() > table[column].max()
        elif table[column].dtype.kind in "iuf":
            assert known.between(table[column].min(), table[column].max()).all()
        else:
            assert set(known) <= set(table[column])


@pytest.mark.usefixtures("untrained")
def test_columns_that_tell_the_same_never_contradict_each_other():
    rng = np.random.default_rng(0)
    school = rng.choice(["none", "school", "college"], 300)
    years = pd.Series(school).map({"none": 0, "school": 10, "college": 15})
    frame = pd.DataFrame({"years": years, "x": rng.normal(size=300), "school": school})
    label = np.where(rng.random(300) < 0.2, "rare", "common")
    sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity(**LIGHT), random_state=0)
    new = sampler.fit_resample(frame, label)[0][sampler.is_synthetic_]
    assert set(zip(new["school"], new["years"], strict=True)) <= set(zip(frame["school"], frame["years"], strict=True))
    hidden = frame.assign(years=frame["years"].where(rng.random(300) < 0.7))
    filled = ScoreImputer(method="neighbours", **LIGHT).fit(frame).transform(hidden)
    pd.testing.assert_series_equal(filled["years"], frame["years"], check_dtype=False)


def test_independent_categories_are_not_tied():
    rng = np.random.default_rng(0)
    for n, levels in ((200, 3), (200, 100), (30, 2)):
        codes = np.column_stack([rng.integers(0, levels, n), rng.integers(0, 2, n)]).astype(np.int32)
        assert tied_categories(codes, {0: levels, 1: 2}) == []
    codes = np.column_stack([np.arange(60) % 3, np.arange(60) % 3 == 0]).astype(np.int32)
    ((source, derived, image),) = tied_categories(codes, {0: 4, 1: 2})
    assert (source, derived, image.tolist()) == (0, 1, [1, 0, 0, -1])
    codes[0, 1] = 0  # one contradiction
    assert tied_categories(codes, {0: 3, 1: 2}) == []


def test_gaps_that_tell_the_label_are_heard(monkeypatch):
    """Copies with hidden cells must not teach that gaps mean nothing where they do."""
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.2).astype(int)
    X = pd.DataFrame(rng.normal(size=(600, 6)), columns=list("abcdef"))
    gone = X.mask(rng.random(X.shape) < np.where(y == 1, 0.6, 0.15)[:, None])
    assert fitting.gaps_tell_labels(gone.isna().sum(axis=1).to_numpy(), y)
    assert not fitting.gaps_tell_labels(X.mask(rng.random(X.shape) < 0.3).isna().sum(axis=1).to_numpy(), y)

    def loss():
        model = ScoreClassifier(n_members=1, hidden=(32, 32), max_steps=200, calibration=None, random_state=0)
        return log_loss(y[400:], model.fit(gone[:400], y[:400]).predict_proba(gone[400:]))

    heard = loss()
    monkeypatch.setattr(fitting, "gaps_tell_labels", lambda n_gaps, labels: False)
    assert heard < loss() - 0.02


@pytest.mark.usefixtures("untrained")
def test_identifiers_of_new_rows_are_new_or_blank_and_follow_from_the_seed():
    frame, label = people(120)
    frame["number"] = np.arange(120)
    frame["token"] = [str(uuid.UUID(int=i)) for i in range(120)]
    light = ScoreDensity(**{**LIGHT, "max_steps": 5})
    made = {}
    for ids in ("new", "again", "blank"):
        over = ScoreOverSampler(purpose="sharing", density=light, random_state=0, ids=ids.replace("again", "new"))
        more, _ = over.fit_resample(frame, label)
        made[ids] = more[over.is_synthetic_].reset_index(drop=True)
        pd.testing.assert_frame_equal(more[:120], frame, check_dtype=ids != "blank")
    n = len(made["new"])
    assert made["new"]["number"].tolist() == list(range(120, 120 + n))
    assert made["new"]["number"].dtype == frame["number"].dtype
    assert made["new"]["id"].tolist() == [f"c{i:05d}" for i in range(120, 120 + n)]
    assert made["new"]["token"].is_unique
    pd.testing.assert_frame_equal(made["new"], made["again"])
    keys = ["id", "number", "token"]
    assert made["blank"][keys].isna().all(axis=None)
    pd.testing.assert_frame_equal(made["blank"].drop(columns=keys), made["new"].drop(columns=keys))
    with pytest.raises(InvalidParameterError, match="ids"):
        ScoreOverSampler(ids="old").fit_resample(frame, label)


@pytest.mark.usefixtures("untrained")
def test_identifiers_of_sampled_rows():
    frame, label = people(80)
    model = ScoreClassifier(n_members=1, hidden=(8,), max_steps=5, random_state=0).fit(frame, label)
    density = ScoreDensity(**{**LIGHT, "max_steps": 5}).fit(frame)
    for sample in (functools.partial(model.sample, label="yes"), density.sample):
        assert sample(3)["id"].tolist() == ["c00080", "c00081", "c00082"]
        assert sample(3, ids="blank")["id"].isna().all()
        with pytest.raises(ValueError, match="Expected ids of 'new', 'blank', got 'old'"):
            sample(3, ids="old")


@pytest.mark.usefixtures("untrained")
def test_columns_that_are_left_alone_are_named_and_can_be_filled():
    """A cabin of many levels, as on Titanic, an empty column, and a key; a complete key is not named."""
    frame, _ = people(150)
    rng = np.random.default_rng(0)
    frame["cabin"] = pd.Series([f"{'ABC'[i % 3]}{i // 2}" for i in rng.permutation(150)]).where(rng.random(150) < 0.3)
    frame["none"] = np.nan
    light = {"hidden": (8,), "max_steps": 5, "random_state": 0}
    imputer = ScoreImputer(method="neighbours", **light).fit(frame)
    said = (
        "Missing cells are left alone in 'cabin' (taken for an identifier), 'none' (no known cell). To fill such "
        "columns too, say what they are: columns={'cabin': 'category'}."
    )
    for fill in (imputer.transform, functools.partial(imputer.draws, n=1)):
        with pytest.warns(UserWarning, match=re.escape(said)):
            fill(frame)
    with pytest.warns(UserWarning, match=r"in 'none' \(no known cell\)\.$"):
        full = ScoreImputer(method="neighbours", columns={"cabin": "category"}, **light).fit_transform(frame)
    assert full.drop(columns="none").notna().all(axis=None)
    assert set(full["cabin"]) <= set(frame["cabin"].dropna())
    assert full["cabin"].nunique() > 20  # rare levels too
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imputer.transform(frame.dropna(subset="cabin").assign(none=1.0))
