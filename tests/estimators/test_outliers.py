"""Unusual rows: closed forms on tables of numbers; gaps, extremes and unseen levels in mixed tables."""

import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.neighbors import KernelDensity
from sklearn.utils import get_tags

from scorefield import ScoreDensity, ScoreOutlierDetector

LIGHT = {"hidden": (16, 16), "max_steps": 200}  # one shape, so that fits share their programs
GAUSSIAN = ScoreDensity(model="gaussian")


def rank_correlation(a, b):
    return spearmanr(a, b).statistic


@pytest.fixture(scope="module")
def correlated():
    """Rows of a Gaussian, and minus half their squared Mahalanobis distances under the true law."""
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 1.0]])
    X = rng.multivariate_normal(np.zeros(3), covariance, 600)
    return X, -0.5 * np.einsum("ni,ij,nj->n", X, np.linalg.inv(covariance), X)


@pytest.mark.parametrize("model", ["gaussian", "kernel", pytest.param("energy", marks=pytest.mark.slow)])
def test_the_ranking_on_a_gaussian_is_that_of_the_mahalanobis_distance(correlated, model):
    X, truth = correlated
    detector = ScoreOutlierDetector(ScoreDensity(model=model, **LIGHT), random_state=0).fit(X)
    assert rank_correlation(detector.score_samples(X), truth) > 0.95
    assert rank_correlation(-np.linalg.norm(X, axis=1), truth) < 0.9  # the control: distances without correlations


@pytest.mark.parametrize("model", ["kernel", pytest.param("energy", marks=pytest.mark.slow)])
def test_a_row_between_two_clusters_is_found(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) + np.where(rng.random(500) < 0.5, 5.0, -5.0)[:, None]
    between = np.zeros((1, 3))
    detector = ScoreOutlierDetector(ScoreDensity(model=model), contamination=0.01, random_state=0).fit(X)
    assert detector.predict(between) == [-1]
    assert detector.predict(X.mean(axis=0, keepdims=True) + 5.0) == [1]
    one_gaussian = ScoreOutlierDetector(GAUSSIAN, contamination=0.01).fit(X)
    assert one_gaussian.predict(between) == [1]  # the control: the middle of everything is the most typical row


@pytest.mark.parametrize("share", [0.1, 0.05, 0.5])
def test_contamination_is_the_share_of_training_rows(correlated, share):
    X, _ = correlated
    detector = ScoreOutlierDetector(GAUSSIAN, contamination=share)
    assert np.sum(detector.fit_predict(X) == -1) == round(share * len(X))
    np.testing.assert_array_equal(detector.decision_function(X) < 0, detector.predict(X) == -1)
    np.testing.assert_allclose(detector.score_samples(X) - detector.offset_, detector.decision_function(X))


def test_ties_are_never_outliers():
    X = np.repeat(np.eye(2), [50, 50], axis=0)
    assert (ScoreOutlierDetector(GAUSSIAN, contamination=0.1).fit_predict(X) == 1).all()
    assert (ScoreOutlierDetector(GAUSSIAN).fit_predict(np.ones((20, 2))) == 1).all()


def test_auto_is_the_fence_of_a_box_plot():
    """On a plane half the squared distance is exponential, with quartiles log(4/3) and log(4)."""
    X = np.random.default_rng(0).normal(size=(4000, 2))
    detector = ScoreOutlierDetector(GAUSSIAN).fit(X)
    share = np.exp(-(np.log(4) + 1.5 * np.log(3)))  # of rows beyond the fence
    expected, error = share * len(X), np.sqrt(share * len(X))
    assert abs(np.sum(detector.predict(X) == -1) - expected) < 4 * error
    assert detector.predict([[4.0, 0.0], [2.0, 0.0]]).tolist() == [-1, 1]


@pytest.mark.parametrize("model", ["kernel", pytest.param("energy", marks=pytest.mark.slow)])
def test_outliers_among_the_training_rows_are_found(model):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 3)), 8 * rng.normal(size=(15, 3)) + 12])
    density = ScoreDensity(model=model, **LIGHT)
    found = ScoreOutlierDetector(density, contamination=0.05, random_state=0).fit_predict(X) == -1
    assert found[-15:].mean() > 0.8
    assert found[:-15].mean() < 0.02


def mixed_rows(n=400, seed=0):
    """A correlated pair of numbers, a number with spikes, and a category that goes with the sign of the first."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pd.DataFrame(
        {
            "a": a,
            "b": 100 * (0.9 * a + 0.44 * rng.normal(size=n)) + 1000,
            "gain": np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(3, 1, n)),
            "side": np.where(rng.random(n) < 0.95, np.where(a > 0, "right", "left"), np.where(a > 0, "left", "right")),
        }
    )


@pytest.fixture(scope="module")
def mixed():
    """A detector of mixed rows; one training row has an extreme number."""
    table = mixed_rows()
    table = table.mask(np.random.default_rng(1).random(table.shape) < 0.1)
    table.loc[0] = [2.0, 9000.0, 0.0, "right"]
    return ScoreOutlierDetector(ScoreDensity(**LIGHT), contamination=0.02, random_state=0).fit(table), table


@pytest.mark.slow
def test_gaps_do_not_make_an_outlier(mixed):
    detector, _ = mixed
    fresh = mixed_rows(seed=2)
    complete = detector.score_samples(fresh)
    for hidden in (["a"], ["b", "gain"], ["a", "b", "gain", "side"]):
        scores = detector.score_samples(fresh.assign(**dict.fromkeys(hidden, None)).astype(fresh.dtypes))
        spread = complete.std() / np.sqrt(len(fresh))
        assert abs(scores.mean() - complete.mean()) < 0.35 + 4 * spread, hidden
        assert (scores < detector.offset_).mean() < 0.05
    plain = detector.density_.score_samples(fresh[["a", "b", "gain", "side"]].assign(b=np.nan))
    control = detector.density_.score_samples(fresh)
    assert plain.mean() - control.mean() > 3  # the control: densities of other cells, here less those per unit of b


@pytest.mark.slow
def test_an_odd_cell_beside_gaps_is_found(mixed):
    detector, _ = mixed
    odd = pd.DataFrame(
        {
            "a": [np.nan, 2.0, -1.5, 1.5],
            "b": [3000.0, 800.0, np.nan, np.nan],  # beyond the others; against the correlation
            "gain": [np.nan, np.nan, np.nan, np.nan],
            "side": [None, None, "right", "right"],  # the third is against the sign, the last is as usual
        }
    )
    scores = detector.score_samples(odd)
    assert detector.predict(odd)[:2].tolist() == [-1, -1]
    assert scores[2] < scores[3] - 1.5
    assert detector.predict(odd)[3] == 1


@pytest.mark.slow
def test_extreme_numbers_are_found_among_training_rows_and_new_ones(mixed):
    detector, table = mixed
    lowest = np.sort(detector.score_samples(table))[:2]
    assert detector.score_samples(table[:1]) == pytest.approx(lowest[0])
    assert lowest[1] - lowest[0] > 10
    ladder = pd.DataFrame({"a": 0.0, "b": [1000.0, 1500.0, 3000.0, 9000.0, 1e6], "gain": 0.0, "side": "right"})
    assert (np.diff(detector.score_samples(ladder)) < 0).all()
    by_rank = detector.density_.score_samples(table)
    assert np.sort(by_rank)[1] - by_rank[0] < 5  # the control: by its rank it is an ordinary maximum


def test_units_do_not_matter():
    scores, log_densities = [], []
    for unit in (1.0, 1024.0):
        table = mixed_rows(200)
        table["gain"] *= unit
        detector = ScoreOutlierDetector(ScoreDensity(**LIGHT), random_state=0).fit(table)
        scores.append(detector.score_samples(table))
        log_densities.append(detector.density_.score_samples(table))
    np.testing.assert_allclose(*scores, atol=1e-3)
    assert np.ptp(log_densities[0] - log_densities[1]) > 5  # the control: a number loses log(1024), a spike nothing


@pytest.mark.slow
def test_a_level_that_no_training_row_has_is_odd(mixed):
    detector, _ = mixed
    rows = pd.DataFrame({"a": [1.0, 1.0, 1.0], "b": 1100.0, "gain": 0.0, "side": ["right", "top", None]})
    scores = detector.score_samples(rows)
    assert scores[1] == pytest.approx(scores[2] - np.log(801), abs=1.5)  # one draw of the gap differs from another
    assert detector.predict(rows).tolist() == [1, -1, 1]


@pytest.mark.slow
def test_a_detector_repeats_itself_and_can_be_stored(correlated, mixed):
    X, _ = correlated
    detector, table = mixed
    again = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(again.decision_function(table), detector.decision_function(table))
    light = ScoreOutlierDetector(ScoreDensity(model="kernel"), random_state=3)
    np.testing.assert_array_equal(light.fit(X).score_samples(X), clone(light).fit(X).score_samples(X))
    assert light.density.random_state is None


def test_a_dask_array_is_scored_by_its_partitions(correlated):
    X, _ = correlated
    detector = ScoreOutlierDetector(GAUSSIAN, contamination=0.1).fit(X)
    lazy = detector.predict(da.from_array(X, chunks=(200, 3)))
    assert hasattr(lazy, "compute")
    np.testing.assert_array_equal(lazy.compute(), detector.predict(X))


@pytest.mark.slow
def test_mixed_rows_of_a_dask_array_are_refused(mixed):
    detector, _ = mixed
    with pytest.raises(ValueError, match="Expected a table in memory"):
        detector.predict(da.zeros((5, 4)))


def test_another_density(correlated):
    X, truth = correlated
    detector = ScoreOutlierDetector(KernelDensity(bandwidth=0.5), contamination=0.1)
    assert np.sum(detector.fit_predict(X) == -1) == 60
    assert rank_correlation(detector.score_samples(X), truth) > 0.7


def test_tags_are_those_of_the_density():
    assert get_tags(ScoreOutlierDetector()).input_tags.allow_nan
    assert get_tags(ScoreOutlierDetector()).input_tags.categorical
    assert not get_tags(ScoreOutlierDetector(GAUSSIAN)).input_tags.allow_nan


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.ones((1, 2)), "1 sample"),
        (pd.DataFrame({"a": ["x"] * 9, "b": [np.nan] * 9}), "at least one column that varies"),
    ],
)
def test_tables_without_a_law_are_refused(X, said):
    with pytest.raises(ValueError, match=said):
        ScoreOutlierDetector().fit(X)


def test_a_share_of_most_rows_is_refused(correlated):
    with pytest.raises(ValueError, match="contamination"):
        ScoreOutlierDetector(contamination=0.7).fit(correlated[0])
