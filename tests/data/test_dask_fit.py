"""Fits to dask dataframes: the same bits as in memory, parts without rare rows, mixed tables, workers that die."""

import itertools

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from scorefield import DistilledClassifier, ScoreClassifier, ScoreDensity
from scorefield.data.dask_table import DaskTable
from scorefield.models import row_choice
from scorefield.models.row_choice import choose_ranks

REASON = "dask is an extra: pip install scorefield[dask]"
dask = pytest.importorskip("dask", reason=REASON)
dd = pytest.importorskip("dask.dataframe", reason=REASON)
pd = pytest.importorskip("pandas", reason="dask dataframes are made of pandas'")

LIGHT = {"n_members": 1, "hidden": (16,), "max_steps": 50, "random_state": 0}
ENDS = (0, 700, 700, 701, 1500, 3000)  # of partitions, of which one is empty and one has a single row


@pytest.fixture(autouse=True)
def bounds(monkeypatch):
    monkeypatch.setattr(row_choice, "MOST_ROWS", 1000)
    monkeypatch.setattr(row_choice, "MOST_MIXED", 800)
    monkeypatch.setattr(row_choice, "WHOLE", 200)
    monkeypatch.setattr(row_choice, "RARE_ROWS", 50)


@pytest.fixture(scope="module")
def table():
    """Numbers; the rare rows are all in the first and the last partition."""
    rng = np.random.default_rng(0)
    rare = np.zeros(3000, bool)
    rare[rng.choice(600, 40, replace=False)] = rare[2000 + rng.choice(900, 40, replace=False)] = True
    frame = pd.DataFrame(rng.normal(size=(3000, 2)) + 1.5 * rare[:, None], columns=["a", "b"])
    return frame.assign(fraud=np.where(rare, "yes", "no"))


@pytest.fixture(scope="module")
def mixed(table):
    """Missing numbers in one partition alone, a level of which only common rows of the last one know, and a flag."""
    rng = np.random.default_rng(1)
    colour = np.where(rng.random(3000) < 0.3, "red", "blue")
    colour[-3:] = "green"
    known = rng.random(3000) < np.where(np.arange(3000) < 1500, 1, 0.8)
    return table.assign(a=table["a"].where(known), colour=colour, old=rng.random(3000) < 0.5)


def in_parts(table, ends=ENDS):
    parts = [dask.delayed(table.iloc[start:end]) for start, end in itertools.pairwise(ends)]
    return dd.from_delayed(parts, meta=table.iloc[:0])


def features(table):
    return table.drop(columns="fraud")


def test_same_bits_as_in_memory_and_for_other_partitions(table):
    expected = ScoreClassifier(**LIGHT).fit(features(table), table["fraud"])
    frame = in_parts(table)
    by_name = ScoreClassifier(**LIGHT).fit(frame, "fraud")
    by_series = ScoreClassifier(**LIGHT).fit(
        features(in_parts(table, (0, 10, 3000))), in_parts(table, (0, 10, 3000))["fraud"]
    )
    for model in (by_name, by_series):
        np.testing.assert_array_equal(model.predict_proba(features(table)), expected.predict_proba(features(table)))
        assert model.n_rows_learned_ == expected.n_rows_learned_ < 1000
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.predict(features(table)).dtype == expected.predict(features(table)).dtype
        np.testing.assert_array_equal(model.frequencies_, expected.frequencies_)
    lazy = by_name.predict_proba(features(frame)).compute()
    np.testing.assert_allclose(lazy, expected.predict_proba(features(table)), atol=1e-5)
    weighted = ScoreClassifier(**LIGHT, class_weight="balanced")
    in_memory = weighted.fit(features(table), table["fraud"]).predict_proba(features(table))
    found = weighted.fit(frame, "fraud").predict_proba(features(table))
    np.testing.assert_allclose(found, in_memory, atol=1e-4)  # means of weights are rounded in another order
    assert (in_memory != expected.predict_proba(features(table))).any()  # the control


def test_chosen_rows_are_those_of_the_ranks(table):
    """Partitions of which no row is chosen are not computed a second time."""
    computed = []

    def noted(part):
        computed.append(len(part))
        return part

    delayed = [dask.delayed(noted)(table.iloc[start:end]) for start, end in itertools.pairwise(ENDS)]
    source = DaskTable(dd.from_delayed(delayed, meta=table.iloc[:0], verify_meta=False), "fraud")
    assert source.counts.tolist() == [2920, 80]
    computed.clear()
    ranks = [np.array([0, 5, 2919]), None]
    rows, codes = source.rows_of(ranks)
    common, rare = (np.flatnonzero(table["fraud"] == label) for label in ("no", "yes"))
    places = np.sort([*common[ranks[0]], *rare])
    pd.testing.assert_frame_equal(rows, features(table).iloc[places].reset_index(drop=True))
    assert source.classes[codes].tolist() == table["fraud"].iloc[places].tolist()
    assert sum(computed) < 2 * 3000
    assert [len(own) for own in choose_ranks(np.random.default_rng(0), source.counts, None) if own is not None] == [920]


@pytest.mark.parametrize("y", ["name", "series"])
def test_rows_and_labels_of_small_files_stay_paired(table, tmp_path, y):
    """Dask reads several small files as one partition where few columns are asked for, such as the labels alone."""
    for number, (start, end) in enumerate(itertools.pairwise((0, 1000, 2000, 3000))):
        table.iloc[start:end].to_parquet(tmp_path / f"{number}.parquet")
    frame = dd.read_parquet(tmp_path)
    source = DaskTable(frame, "fraud") if y == "name" else DaskTable(features(frame), frame["fraud"])
    rows, codes = source.rows_of([None, None])
    assert source.classes[codes].tolist() == table["fraud"].tolist()
    pd.testing.assert_frame_equal(rows, features(table).reset_index(drop=True))


def test_mixed_tables(mixed):
    """Chosen with the odds of the whole; missing values and levels that only other rows have are predicted with."""
    frame = in_parts(mixed)
    model = ScoreClassifier(**LIGHT | {"max_steps": 100}).fit(frame, "fraud")
    assert model.model_.space.layout is not None
    assert model.n_rows_learned_ <= 800
    lazy = model.predict_proba(features(frame))
    found = lazy.compute()
    np.testing.assert_allclose(found, model.predict_proba(features(mixed)), atol=1e-5)
    assert np.isfinite(found).all()
    assert abs(np.log(found[:, 1].mean() * 3000 / 80)) < 4 / np.sqrt(80)
    assert model.predict(features(frame)).compute().tolist() == model.predict(features(mixed)).tolist()
    again = ScoreClassifier(**LIGHT | {"max_steps": 100}).fit(frame, "fraud")
    np.testing.assert_array_equal(again.predict_proba(features(mixed)), model.predict_proba(features(mixed)))
    with pytest.raises(ValueError, match=r"with the fitted columns .*, got .* select those"):
        model.predict(frame)
    numbers = mixed[["a", "b", "fraud"]].assign(a=mixed["a"].where(np.arange(3000) < 2999, np.nan).fillna(0.0))
    numbers.loc[2999, "a"] = np.nan  # in a row that is not chosen, as the next line shows
    sparse = ScoreClassifier(**LIGHT | {"max_steps": 2, "random_state": 3}).fit(in_parts(numbers), "fraud")
    assert np.isfinite(sparse.predict_proba(features(numbers)[-1:])).all()


def test_a_distilled_classifier_has_the_odds_of_the_whole_table(table):
    model = DistilledClassifier(DecisionTreeClassifier(min_samples_leaf=20), ScoreClassifier(**LIGHT), random_state=0)
    model.fit(in_parts(table), "fraud")
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.frequencies_[1] == pytest.approx(80 / 3000)
    found = model.predict_proba(features(table))[:, 1]
    assert abs(np.log(found.mean() * 3000 / 80)) < 4 / np.sqrt(80)
    with pytest.raises(ValueError, match="Expected no sample_weight"):
        model.fit(in_parts(table), "fraud", np.ones(3000))


@pytest.mark.parametrize(
    ("change", "y", "message"),
    [
        (lambda f: f, "none", "label column among"),
        (lambda f: f[["fraud"]], "fraud", "columns beside the target"),
        (lambda f: f, np.zeros(3000), "name of a column or a dask Series"),
        (lambda f: f["a"].to_dask_array(lengths=True), "fraud", "from_dask_array"),
        (lambda f: f.assign(fraud="no"), "fraud", "two classes in y, got 1 class: 'no'"),
        (lambda f: f.assign(fraud=f["fraud"].where(f["a"] > -2, None)), "fraud", "missing in 'fraud'"),
        (lambda f: f.partitions[1], "fraud", "empty partitions alone"),
    ],
)
def test_frames_that_cannot_be_learned_from(table, change, y, message):
    with pytest.raises(ValueError, match=message):
        ScoreClassifier(**LIGHT).fit(change(in_parts(table)), y)


def test_labels_that_do_not_fit(table):
    frame = in_parts(table)
    for labels, message in (
        (in_parts(table, (0, 3000))["fraud"], "as many partitions in y as in X, got 1 and 5"),
        (in_parts(table, (0, 1, 700, 701, 1500, 3000))["fraud"], "as many labels as rows in each partition"),
    ):
        with pytest.raises(ValueError, match=message):
            ScoreClassifier(**LIGHT).fit(features(frame), labels)
    with pytest.raises(ValueError, match='density="joint" with a table in parts'):
        ScoreClassifier(ScoreDensity("gaussian")).fit(frame, "fraud")
