"""ScoreOverSampler(purpose="sharing") on real kinds of tables, few rows, bad input and extreme settings."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imblearn.pipeline import Pipeline
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from scorefield import AnnealedLangevin, Langevin, ReverseDiffusion, ScoreDensity, ScoreOverSampler
from scorefield.data.checks import cast_numbers
from scorefield.models.selection import some_places
from scorefield.training import loop as training

GAUSSIAN = ScoreDensity(model="gaussian")
SHORT = ScoreDensity(max_steps=50, hidden=(8, 8))  # for mixed tables


def binary(n_major=100, n_minor=20, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(0, 1, (n_major, d)), rng.normal(2, 0.5, (n_minor, d))])
    return X, np.repeat([0, 1], [n_major, n_minor])


def over(**options):
    return ScoreOverSampler(**{"purpose": "sharing", "density": GAUSSIAN, "random_state": 0, **options})


def mixed_frame(n=80, seed=0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    frame = pd.DataFrame(
        {
            "amount": rng.gamma(2, 10, n).astype(np.float32),
            "age": rng.integers(18, 90, n),
            "small": rng.integers(0, 255, n).astype(np.uint8),
            "nullable": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "colour": pd.Categorical(colour),
            "warm": colour == "red",
            "constant": 3.5,
        },
        index=[f"row{i}" for i in range(n)],
    )
    frame["copy"] = frame["amount"]
    return frame, pd.Series(np.where(np.arange(n) < 60, "ok", "fraud"), index=frame.index, name="label")


def test_rows_and_bookkeeping():
    X, y = binary()
    sampler = over()
    X_more, y_more = sampler.fit_resample(X, y)
    assert np.bincount(y_more).tolist() == [100, 100]
    np.testing.assert_array_equal(X_more[:120], X)
    assert sampler.is_synthetic_.sum() == 80
    assert not sampler.is_synthetic_[:120].any()
    assert (sampler.parent_indices_[:120] == -1).all()
    parents = sampler.parent_indices_[120:]
    assert (y[parents] == 1).all()
    assert np.bincount(parents, minlength=120)[100:].tolist() == [4] * 20  # every row is a parent equally often
    assert sampler.priors_before_ == {0: 100 / 120, 1: 20 / 120}
    assert sampler.priors_after_ == {0: 0.5, 1: 0.5}
    assert set(sampler.densities_) == {1}
    new = X_more[120:]
    assert np.abs(new.mean(axis=0) - X[100:].mean(axis=0)).max() < 0.4
    assert np.unique(new, axis=0).shape == new.shape  # new rows, no copies
    near = over(sampler=Langevin(1e-6, 1, 0.0))
    X_near, _ = near.fit_resample(X, y)
    np.testing.assert_allclose(X_near[120:], X[near.parent_indices_[120:]], atol=0.02)


@pytest.fixture(scope="module")
def overlapping():
    """Two Gaussian classes whose densities are known; the second is rare."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-1, 1, (600, 2)), rng.normal(1, 1, (60, 2))])
    return X, np.repeat([0, 1], [600, 60])


def drawn_where(table, where, **options):
    sampler = ScoreOverSampler(
        purpose="sharing", density=ScoreDensity("gaussian"), where=where, random_state=0, **options
    )
    X, _ = sampler.fit_resample(*table)
    return X[sampler.is_synthetic_]


def test_where_rows_are_kept(overlapping):
    everywhere = drawn_where(overlapping, "everywhere")
    kept = {where: drawn_where(overlapping, where) for where in ("clear", "core", "boundary", "diverse")}
    assert {len(rows) for rows in kept.values()} == {len(everywhere)}

    def log_density(rows):  # of the rare class, up to a constant
        return -((rows - 1) ** 2).sum(axis=1) / 2

    def log_odds(rows):  # with the frequencies of the classes
        return 2 * rows.sum(axis=1) - np.log(10)

    def nearest(rows):
        return np.sort(np.sqrt(((rows[:, None] - rows) ** 2).sum(axis=-1)), axis=1)[:, 1].mean()

    assert log_density(kept["core"]).mean() > log_density(everywhere).mean() + 0.3
    assert np.abs(log_odds(kept["boundary"])).mean() < 0.8 * np.abs(log_odds(everywhere)).mean()
    assert log_odds(kept["clear"]).mean() > log_odds(everywhere).mean() + 1
    assert nearest(kept["diverse"]) > 1.2 * nearest(everywhere)
    # The others do not do what one asks for: each measure tells its rule from the rest.
    assert (
        max(log_density(rows).mean() for where, rows in kept.items() if where != "core")
        < log_density(kept["core"]).mean()
    )
    assert min(nearest(kept["diverse"]) / nearest(rows) for where, rows in kept.items() if where != "diverse") > 1.2


@pytest.mark.slow
def test_where_in_a_mixed_table():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [150, 40])
    X = pd.DataFrame({"x": rng.normal(y == "b", 1), "c": np.where(rng.random(190) < 0.5 + 0.3 * (y == "b"), "u", "v")})
    made = {}
    for where in ("everywhere", "core", "boundary", "diverse"):
        sampler = ScoreOverSampler(
            purpose="sharing", density=ScoreDensity(hidden=(16, 16), max_steps=100), where=where, random_state=0
        )
        table, _ = sampler.fit_resample(X, y)
        made[where] = table[sampler.is_synthetic_]
        assert len(made[where]) == 110
    assert made["core"]["x"].std() < made["everywhere"]["x"].std() < made["diverse"]["x"].std()

    def distance(rows):  # absolute log odds of the truth
        odds = rows["x"] - 0.5 + np.where(rows["c"] == "u", np.log(0.8 / 0.5), np.log(0.2 / 0.5)) + np.log(40 / 150)
        return np.abs(odds).mean()

    assert distance(made["boundary"]) < 0.8 * distance(made["everywhere"])


def test_an_unknown_place_is_refused(overlapping):
    with pytest.raises(ValueError, match="where"):
        drawn_where(overlapping, "nowhere")


def test_clear_rows_have_great_log_odds():
    """Two classes side by side: kept rows lie farther from the other class, and all of them in their own."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (3000, 2)), rng.normal([2, 0], 1, (100, 2))])
    y = np.repeat(["no", "yes"], [3000, 100])
    plain, choosy = over(), over(where="clear")
    (A, b), (C, d) = plain.fit_resample(X, y), choosy.fit_resample(X, y)
    assert (b == d).all()
    assert C[3100:, 0].mean() > A[3100:, 0].mean() + 0.2
    assert len(choosy.parent_indices_) == len(d)
    assert (y[choosy.parent_indices_[3100:]] == "yes").all()


def test_rivals_are_bounded():
    places = some_places(np.random.default_rng(0), 10_000, 2000)
    assert len(np.unique(places)) == len(places) == 2000
    assert some_places(np.random.default_rng(0), 5, 2000).tolist() == [0, 1, 2, 3, 4]


def test_clear_rows_see_a_boundary_that_distances_do_not():
    """A ring around the rare class in the one column that matters, among ten wide ones that do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 11)) * ([1.0] + [5.0] * 10)
    y = (np.abs(X[:, 0]) < 0.25).astype(int)
    drawn, kept = (
        ScoreOverSampler(
            purpose="sharing", density=ScoreDensity("gaussian"), where=where, bounds=None, random_state=0
        ).fit_resample(X, y)
        for where in ("everywhere", "clear")
    )
    inside = [np.mean(np.abs(rows[len(X) :, 0]) < 0.25) for rows, _ in (drawn, kept)]
    assert inside[1] > 0.97 > inside[0]


@pytest.mark.parametrize(
    "strategy", ["auto", "minority", "not majority", "not minority", "all", {1: 50, 2: 60}, lambda y: {2: 44}]
)
def test_multi_class_strategies(strategy):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.repeat([0, 1, 2], [70, 30, 20])
    from imblearn.over_sampling import RandomOverSampler

    _, expected = RandomOverSampler(sampling_strategy=strategy, random_state=0).fit_resample(X, y)
    X_more, y_more = over(sampling_strategy=strategy).fit_resample(X, y)
    assert np.bincount(y_more).tolist() == np.bincount(expected).tolist()
    assert len(X_more) == len(y_more)


def test_float_strategy():
    X, y = binary()
    assert np.bincount(over(sampling_strategy=0.5).fit_resample(X, y)[1]).tolist() == [100, 50]


@pytest.mark.parametrize(
    "density",
    [ScoreDensity(max_steps=300, hidden=(64, 64)), pytest.param(None, marks=pytest.mark.slow)],
    ids=["short", "default"],
)
def test_data_frame_in_data_frame_out(density):
    frame, label = mixed_frame()
    sampler = over(density=density)
    more, labels = sampler.fit_resample(frame, label)
    assert list(more.columns) == list(frame.columns)
    assert (more.dtypes == frame.dtypes).all()
    assert labels.name == "label"
    assert labels.value_counts().to_dict() == {"ok": 60, "fraud": 60}
    assert list(more.index) == list(range(120)) == list(labels.index)
    pd.testing.assert_frame_equal(more.iloc[:80].reset_index(drop=True), frame.reset_index(drop=True))
    new = more.iloc[80:]
    assert set(new["colour"]) <= set(frame["colour"].iloc[60:])
    assert ((new["colour"] == "red") == new["warm"]).all()  # categories of a row belong together
    assert (new["constant"] == 3.5).all()
    assert np.isfinite(new.select_dtypes("number").astype(float)).all().all()
    assert np.abs(new["copy"] - new["amount"]).max() < 3 * frame["amount"].std()


@pytest.mark.slow
def test_declared_categories():
    frame, label = mixed_frame()
    frame = frame.drop(columns=["warm"]).astype({"colour": object})
    more, _ = over(density=SHORT, columns={"colour": "category"}).fit_resample(frame, label)
    assert set(more["colour"]) <= {"red", "green", "blue"}
    assert more["colour"].dtype == frame["colour"].dtype
    X, y = binary(d=2)
    codes = np.random.default_rng(0).choice([3.0, 7.0], len(X))
    more, _ = over(density=SHORT, columns={2: "category"}).fit_resample(np.column_stack([X, codes]), y)
    assert set(more[:, 2]) == {3.0, 7.0}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8])
def test_array_dtypes(dtype):
    X, y = binary()
    more, _ = over().fit_resample((10 * X).astype(dtype), y)
    assert more.dtype == dtype


def test_bounds():
    X, y = binary()
    wild = Langevin(0.5, 20, 0.95)
    free, _ = over(sampler=wild, bounds=None).fit_resample(X, y)
    assert free[120:].max() > X.max()
    more, _ = over(sampler=wild, bounds="observed").fit_resample(X, y)
    assert (more[120:] <= X.max(axis=0)).all()
    assert (more[120:] >= X.min(axis=0)).all()
    more, _ = over(sampler=wild, bounds=(1.9, [2.0, 2.1, 2.2])).fit_resample(X, y)
    assert more[120:].min() >= 1.9
    assert (more[120:].max(axis=0) <= [2.0, 2.1, 2.2]).all()
    for bad in ((1.0,), (2.0, 1.0), (np.nan, 1.0), (0.0, [1.0, 2.0])):
        with pytest.raises(ValueError, match="bounds"):
            over(bounds=bad).fit_resample(X, y)


@pytest.mark.parametrize("bounds", ["observed", None, (-10, 200)])
def test_polars_and_pandas_give_the_same_rows(bounds):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": 3 * rng.permutation(90)})
    y = np.repeat([0, 1], [60, 30])
    more, _ = over(bounds=bounds).fit_resample(frame, y)
    others, _ = over(bounds=bounds).fit_resample(pl.from_pandas(frame), y)
    np.testing.assert_array_equal(others.to_pandas(), more)
    assert len(more) == 120


def test_the_core_of_a_class_of_one_row():
    """It has no density by which one row would be more typical than another."""
    X, y = binary(40, 1)
    with pytest.warns(UserWarning, match="only one row"):
        more, _ = over(where="core").fit_resample(X, y)
    assert more.shape == (80, 3)


@pytest.mark.parametrize("n_minor", [1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 5)), 10])
@pytest.mark.parametrize("d", [1, 30])
@pytest.mark.parametrize("duplicated", [False, True])
def test_few_rows_never_crash(n_minor, d, duplicated):
    X, y = binary(60, n_minor, d)
    if duplicated:
        X[60:] = X[60]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        more, labels = ScoreOverSampler(purpose="sharing", random_state=0).fit_resample(X, y)
    assert np.isfinite(more).all()
    assert np.bincount(labels).tolist() == [60, 60]
    texts = " ".join(str(w.message) for w in caught)
    if duplicated or n_minor == 1:
        assert "noise around one row" in texts
        assert "ScoreOutlierDetector" in texts
    elif n_minor < 10:
        assert "shrunk correlations" in texts
    # New rows stay near their class: within ten spreads of the whole table.
    assert np.abs(more[60 + n_minor :] - X[60:].mean(axis=0)).max() < 10 * X.std()


@pytest.mark.parametrize("n_rows", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("untrained")
def test_one_rare_row_of_a_mixed_table_is_called_so(n_rows):
    X, y = binary(60, 3)
    X[60:] = X[60]
    table = pd.DataFrame(X, columns=[*"abc"]).assign(colour=[*"rgb"] * 20 + ["r"] * 3).iloc[: 60 + n_rows]
    few = over(sampling_strategy={1: 5}, density=ScoreDensity(max_steps=5))
    rows = "only one row" if n_rows == 1 else "3 rows, all of them equal"
    with pytest.warns(UserWarning, match=f"Class 1 has {rows}: its new rows are noise around one row"):
        few.fit_resample(table, y[: 60 + n_rows])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        few.fit_resample(table.assign(other=np.arange(60 + n_rows) % 7), [0] * 58 + [1] * (2 + n_rows))
    assert not any("one row" in str(w.message) for w in caught)


@pytest.mark.parametrize(
    "model", ["gaussian", "energy", *(pytest.param(m, marks=pytest.mark.slow) for m in ("kernel", "mlp", "diffusion"))]
)
def test_a_step_size_far_too_large_returns_no_nonsense(model):
    X, y = binary()
    density = ScoreDensity(model=model, max_steps=100, hidden=(8, 8))
    with pytest.warns(UserWarning, match="diverged") as seen:
        more, _ = over(density=density, sampler=Langevin(step_size=1e3)).fit_resample(X, y)
    assert np.isfinite(more).all()
    assert {warning.filename for warning in seen} == {__file__}


def test_a_step_size_far_too_large_for_mixed_rows():
    frame, label = mixed_frame()
    with pytest.warns(UserWarning, match="diverged"):
        more, _ = over(density=SHORT, sampler=Langevin(step_size=1e3)).fit_resample(frame, label)
    assert np.isfinite(more.select_dtypes("number").astype(float)).all().all()
    assert set(more["colour"]) <= {"red", "green", "blue"}
    with pytest.raises(ValueError, match="sampler to be None or Langevin"):
        over(density=SHORT, sampler=ReverseDiffusion()).fit_resample(frame, label)


def test_samplers_from_noise_have_no_parents():
    X, y = binary(200, 60)
    density = ScoreDensity(model="diffusion", max_steps=200, hidden=(16, 16))
    for sampler in (ReverseDiffusion(10), AnnealedLangevin(n_levels=5, steps_per_level=5)):
        made = over(density=density, sampler=sampler)
        more, _ = made.fit_resample(X, y)
        assert (made.parent_indices_ == -1).all()
        assert np.isfinite(more).all()


def test_extreme_units():
    X, y = binary()
    more, _ = over(density=None).fit_resample(X * [1e30, 1.0, 1e-30], y)
    assert np.isfinite(more).all()
    np.testing.assert_allclose(more[120:].mean(axis=0) / [1e30, 1.0, 1e-30], X[100:].mean(axis=0), atol=0.6)


def test_same_seed_same_bits():
    X, y = binary(n_minor=30)
    first, again, other = (
        ScoreOverSampler(purpose="sharing", random_state=seed).fit_resample(X, y)[0] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first[130:] != other[130:]).any()


def test_nothing_to_do():
    X, y = binary(50, 50)
    sampler = over()
    more, _ = sampler.fit_resample(X, y)
    assert len(more) == 100
    assert not sampler.is_synthetic_.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (np.where(X > 2.5, np.inf, X), y), "inf"),
        (lambda X, y: (sparse.csr_matrix(X), y), "[Ss]parse"),
        (lambda X, y: (pd.DataFrame(X, columns=list("abc")).assign(z=1 + 2j), y), "column 'z': expected numbers"),
        (lambda X, y: (pd.DataFrame(X, columns=["a", "a", "b"]), y), "unique column names"),
        (lambda X, y: (X, np.zeros(len(y), int)), "class"),
        (lambda X, y: (X, y[:-1]), "inconsistent"),
        (lambda X, y: (X[:, :0], y), "0 feature"),
        (lambda X, y: (pd.DataFrame(X, columns=list("abc")).iloc[:, :0], y), "0 feature"),
    ],
)
def test_bad_tables(change, message):
    X, y = binary()
    with pytest.raises((ValueError, TypeError), match=message):
        over().fit_resample(*change(X, y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling_strategy": "most"}, "sampling_strategy"),
        ({"sampling_strategy": {1: -5}}, "negative|cannot"),
        ({"sampling_strategy": {0: 10, 1: 50}}, "greater or equal"),
        ({"sampling_strategy": {7: 10}}, "7"),
        ({"sampling_strategy": 0.01}, "remove"),
        ({"columns": {9: "category"}}, "names of columns"),
        ({"density": 3}, "density"),
        ({"sampler": Langevin(step_size=-1.0)}, "step_size"),
        ({"sampler": Langevin(discard=1.0)}, "discard"),
        ({"sampler": ReverseDiffusion()}, "noise-conditional"),
    ],
)
def test_bad_settings(options, message):
    X, y = binary()
    with pytest.raises((ValueError, TypeError), match=message):
        over(**options).fit_resample(X, y)


def test_grid_search_compiles_once_per_architecture():
    """density__model, sampler__step_size and sampling_strategy in a pipeline: new folds and values reuse programs."""
    X, y = binary(150, 60, 2)
    pipeline = Pipeline([
        ("over", over(density=ScoreDensity(max_steps=100, hidden=(8, 8)), sampler=Langevin())),
        ("model", LogisticRegression()),
    ])  # fmt: skip
    grid = {
        "over__density__model": ["gaussian", "energy"],
        "over__sampler__step_size": [0.01, 0.1],
        "over__sampling_strategy": [0.7, 1.0],
    }

    def compiled():
        return training._train_chunk._cache_size()

    pipeline.set_params(over__density__model="energy").fit(X, y)
    before = compiled()
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert compiled() == before
    assert set(search.best_params_) == set(grid)
    pipeline.set_params(over__density__hidden=(9, 9)).fit(X, y)
    assert compiled() == before + 1  # negative control: another architecture


def test_near_duplicated_columns_stay_together():
    """A copied column makes the field stiff: the default step must follow, or chains leave along the difference."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=(2300, 1))
    X = np.concatenate([rng.normal(size=(4000, 2)), np.hstack([first, first])])
    y = np.repeat([0, 1], [4000, 2300])
    more, _ = over().fit_resample(X, y)
    new = more[len(X) :]
    assert np.abs(new).max() < 2 * np.abs(first).max()
    assert np.std(new[:, 0] - new[:, 1]) < 0.3


def test_integer_columns_respect_bounds():
    X, y = binary()
    more, _ = over(bounds=(15.5, 24.5)).fit_resample((10 * X).astype(int), y)
    assert more[120:].min() >= 16
    assert more[120:].max() <= 24


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint32, np.int64, np.uint64])
def test_the_last_integer_of_a_type_is_kept(dtype):
    limits = np.iinfo(dtype)
    found = cast_numbers(np.array([float(limits.max), float(limits.min), 2.0 * limits.max]), np.dtype(dtype))
    assert found.dtype == dtype
    if np.dtype(dtype).itemsize < 8:
        assert found.tolist() == [limits.max, limits.min, limits.max]
    else:  # the largest double within the type
        assert found[0] == found[2] > limits.max - 2**11
        assert found[1] == limits.min


def test_generators_serve_as_random_state():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1], [50, 10])
    first, second, other = (
        ScoreOverSampler(
            purpose="sharing", density=ScoreDensity("gaussian"), random_state=np.random.default_rng(seed)
        ).fit_resample(X, y)[0]
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_only_score_densities_are_accepted():
    """Anything with the methods that were looked for would have failed later, at one of six attributes."""

    class Impostor:
        def fit(self, X):
            return self

        def draw(self, n):
            return None

    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.repeat([0, 1], [50, 10])
    with pytest.raises(ValueError, match=r"must be None or an instance of 'scorefield[.]ScoreDensity'"):
        ScoreOverSampler(purpose="sharing", density=Impostor()).fit_resample(X, y)


def test_rows_are_rounded_and_bounded_before_they_are_chosen():
    """The log odds grow without end to the right, where rows are reflected at the range of the table."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [400, 60])
    X = pd.DataFrame({"x": rng.normal(2.0 * y, 1.0), "visits": rng.poisson(3, 460)})
    sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity("gaussian"), where="clear", random_state=0,
                               columns={"visits": "whole number"})  # fmt: skip
    made = sampler.fit_resample(X, y)[0][sampler.is_synthetic_]
    everywhere = sampler.set_params(where="everywhere").fit_resample(X, y)[0][sampler.is_synthetic_]
    assert made["x"].max() <= X["x"].max()
    assert made["visits"].between(X["visits"].min(), X["visits"].max()).all()
    # Half of the draws are kept: the least is about their median, whose rank has a standard error of .04; four allowed.
    assert made["x"].min() > everywhere["x"].quantile(0.34)
    assert everywhere["x"].min() < everywhere["x"].quantile(0.34)  # the control


def test_flags_and_spikes_of_an_array_stay_what_they_are():
    """Columns of an array are numbers to the model; their cells are nevertheless those that can be."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [300, 60])
    flag = (rng.random(360) < np.where(y == 1, 0.7, 0.2)).astype(float)
    spiked = np.where(rng.random(360) < 0.5, 0.0, rng.gamma(2.0, size=360))
    X = np.column_stack([(flag - flag.mean()) / flag.std(), spiked, rng.normal(size=360)])
    sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity("gaussian"), random_state=0)
    more, _ = sampler.fit_resample(X, y)
    made, own = more[sampler.is_synthetic_], X[y == 1]
    np.testing.assert_array_equal(more[:360], X)
    assert set(np.unique(made[:, 0])) == set(np.unique(X[:, 0]))
    for i, value in ((0, X[:, 0].max()), (1, 0.0)):
        assert np.mean(made[:, i] == value) == pytest.approx(np.mean(own[:, i] == value), abs=1.001 / len(made))
    assert len(np.unique(made[:, 2])) == len(made)


def test_an_array_of_flags_stays_one():
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 4)) < 0.4, np.repeat([0, 1], [160, 40])
    more, _ = ScoreOverSampler(purpose="sharing", density=ScoreDensity("gaussian"), random_state=0).fit_resample(X, y)
    assert more.dtype == bool
    assert 0 < more[200:].mean() < 1


def test_half_of_the_clear_rows_stay_near_their_parents():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(460, 6)), np.repeat([0, 1], [400, 60])
    X[y == 1] += 1.0

    def distances(**options):
        sampler = ScoreOverSampler(
            purpose="sharing", density=ScoreDensity("gaussian"), random_state=0, bounds=None, **options
        )
        made = sampler.fit_resample(X, y)[0][sampler.is_synthetic_]
        return np.linalg.norm(made - X[sampler.parent_indices_[sampler.is_synthetic_]], axis=1)

    far, near = np.array_split(distances(where="clear"), 2)
    assert np.quantile(near, 0.9) < np.quantile(far, 0.1)
    far, near = np.array_split(distances(where="clear", sampler=Langevin(0.02, 50, 0.98)), 2)
    assert np.median(near) == pytest.approx(np.median(far), rel=0.2)  # a given sampler draws all rows


@pytest.mark.parametrize("n_new", [2, 400])
def test_a_flag_stays_with_its_number(n_new):
    """The flag of a row tells which of two distant modes it is from, however few rows are made."""
    rng = np.random.default_rng(0)
    flag = np.repeat([0.0, 1.0], 60)
    rare = np.column_stack([flag, 6 * flag + rng.normal(size=120)])
    X = np.concatenate([rng.normal(3, 4, size=(120 + n_new, 2)), rare])
    X[: 120 + n_new, 0] = rng.random(120 + n_new) < 0.5
    y = np.repeat([0, 1], [120 + n_new, 120])
    for seed in range(4 if n_new < 10 else 1):
        sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity("mixture"), random_state=seed)
        made = sampler.fit_resample(X, y)[0][sampler.is_synthetic_]
        assert len(made) == n_new
        assert np.mean((made[:, 1] > 3) == (made[:, 0] == 1)) > 0.95


def test_clear_rows_of_levels_are_not_mostly_copies():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [400, 80])
    X = rng.integers(0, 4, size=(480, 6)) + 0.25
    X[y == 1, :2] = rng.integers(1, 4, size=(80, 2)) + 0.25
    sampler = ScoreOverSampler(
        purpose="sharing", density=ScoreDensity("gaussian"), where="clear", bounds=None, random_state=0
    )
    made = sampler.fit_resample(X, y)[0][sampler.is_synthetic_]
    same = (made == X[sampler.parent_indices_[sampler.is_synthetic_]]).all(axis=1)
    assert np.isin(made, X).all()
    assert same.mean() < 0.1


def test_numbers_that_a_frame_calls_numbers_stay_so():
    """In polars as in pandas; an array has no kinds, so that its flags are flags."""
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"f": rng.integers(0, 2, 300) + 0.5, "x": rng.normal(size=300)}), np.repeat([0, 1], [240, 60])
    sampler = ScoreOverSampler(
        purpose="sharing", density=ScoreDensity("gaussian"), columns={"f": "number"}, random_state=0
    )
    pandas_rows = sampler.fit_resample(X, y)[0].to_numpy()
    polars_rows = sampler.fit_resample(pl.from_pandas(X), y)[0].to_numpy()
    np.testing.assert_array_equal(pandas_rows, polars_rows)
    assert not np.isin(pandas_rows[300:, 0], [0.5, 1.5]).all()
    assert np.isin(
        ScoreOverSampler(purpose="sharing", random_state=0).fit_resample(X.to_numpy(), y)[0][:, 0], [0.5, 1.5]
    ).all()
