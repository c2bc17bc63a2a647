"""diagnose: good models pass, models with a known fault are caught, and what cannot be measured says why."""

import pickle

import numpy as np
import pandas as pd
import pytest

from scorefield import ScoreClassifier, ScoreDensity, ScoreOverSampler
from scorefield._jax.storage import to_plain
from scorefield.data.row_space import split_rows
from scorefield.diagnose import diagnosed
from scorefield.diagnose.diagnosis import BAD, GOOD, LOOK, NOT_MEASURED, chain_checks, label_checks
from scorefield.estimators.table_input import read_new
from scorefield.fields.gaussian import gaussian_from_covariance
from scorefield.fields.joint import columns_of, init_joint
from scorefield.models.calibration import calibration_error, usual_calibration_error
from scorefield.models.joint_model import class_frame, joint_base
from scorefield.models.row_density import RowDensity
from scorefield.models.row_model import RowModel
from scorefield.sampling.samplers import Samples

SLOW = pytest.mark.slow
COVARIANCE = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 1.0]])
LIGHT = {"hidden": (16, 16), "random_state": 0}


@pytest.fixture
def without_chains(monkeypatch):
    """Chains have tests of their own."""
    monkeypatch.setattr(diagnosed, "chain_checks", lambda draw: [])


def correlated(rng, n):
    return rng.multivariate_normal([1.0, 0.0, -1.0], COVARIANCE, size=n)


def ring(rng, n):
    """Rows that no Gaussian follows."""
    angle = rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) * (2 + 0.3 * rng.normal(size=n))[:, None]


def people(rng, n):
    """A category, a number that goes with it, one that is often zero, and gaps."""
    kind = rng.choice(["a", "b", "c"], n)
    size = 3.0 * (kind == "a") + rng.normal(size=n)
    table = pd.DataFrame({
        "kind": kind,
        "size": size,
        "weight": 0.9 * size + 0.4 * rng.normal(size=n),
        "fee": np.where(rng.random(n) < 0.5, 0.0, rng.lognormal(size=n)),
    })  # fmt: skip
    return table.mask(rng.random(table.shape) < 0.1)


def test_a_good_density_passes(rng):
    density = ScoreDensity(model="gaussian", random_state=0).fit(correlated(rng, 1000))
    found = density.diagnose(correlated(rng, 600))
    assert found.verdict == GOOD
    assert found.score_gain == pytest.approx(1, abs=0.05)
    assert found["score_gain"].note == ""  # neither better nor worse than itself
    assert found["r_hat"].verdict == NOT_MEASURED
    assert found["r_hat"].note == "rows are drawn from the model itself"
    assert str(found).startswith("Judged on 600 held-out rows.\ncheck ")
    assert len(str(found).splitlines()) == 2 + len(found.checks)


def test_a_density_that_ignores_correlations_is_caught(rng):
    """By hand, with the true margins, and by columns that were shuffled before the fit."""
    held_out = correlated(rng, 600)
    by_hand = ScoreDensity(model="gaussian", standardize=False, random_state=0).fit(correlated(rng, 1000))
    by_hand.model_.plain_field = to_plain(gaussian_from_covariance([1.0, 0.0, -1.0], np.eye(3)))
    shuffled = ScoreDensity(model="gaussian", random_state=0).fit(rng.permuted(correlated(rng, 1000), axis=0))
    for density in (by_hand, shuffled):
        assert density.diagnose(held_out)["stein_p_value"].verdict == BAD
    assert by_hand.diagnose(held_out)["score_gain"].verdict == BAD


def test_an_untrained_network_is_caught(rng, without_chains):
    density = ScoreDensity(model="mlp", max_steps=1, anchor="gaussian", **LIGHT).fit(correlated(rng, 300))
    found = density.diagnose(correlated(rng, 300))
    assert found["score_gain"].verdict == found["stein_p_value"].verdict == BAD


@SLOW
def test_an_energy_is_caught_before_training_and_passes_after_it(rng):
    rows, held_out = ring(rng, 1000), ring(rng, 500)
    untrained = ScoreDensity(model="energy", max_steps=1, **LIGHT).fit(rows).diagnose(held_out)
    assert untrained.stein_p_value < 0.05  # its mean and covariance are right
    assert untrained.score_gain == pytest.approx(1, abs=0.1)  # it begins at its Gaussian base
    trained = ScoreDensity(model="energy", max_steps=1500, **LIGHT).fit(rows).diagnose(held_out)
    assert trained["stein_p_value"].verdict != BAD
    assert trained.stein_p_value > untrained.stein_p_value
    assert trained["score_gain"].note == "better than a Gaussian"
    assert trained.path_gap == 0
    assert trained.acceptance > 0.5
    assert trained["diverged"].verdict == GOOD
    assert trained.r_hat > 1


def test_training_rows_are_called_optimistic(rng):
    density = ScoreDensity(model="gaussian", random_state=0).fit(correlated(rng, 60))
    found = density.diagnose()
    assert found.rows.startswith("60 training rows, which is optimistic")
    assert "few rows" in found["stein_p_value"].note
    tiny = density.diagnose(correlated(rng, 5))
    assert [tiny[key].verdict for key in ("score_gain", "stein_p_value")] == [NOT_MEASURED] * 2
    assert density.diagnose().to_dict() == found.to_dict()  # the same random state, the same numbers


def test_the_result_can_be_stored_and_read(rng):
    found = ScoreDensity(model="gaussian", random_state=0).fit(correlated(rng, 100)).diagnose()
    copy = pickle.loads(pickle.dumps(found))
    assert repr(copy) == repr(found)
    assert copy.to_dict()["score_gain"]["value"] == found.score_gain
    assert "score_gain" in dir(found)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        found.nothing  # noqa: B018
    with pytest.raises(KeyError, match="Expected a key of"):
        found["nothing"]


def independent_columns(key, table):
    """A density of mixed rows that is not trained: its energy is that of the margins."""
    density = ScoreDensity(random_state=0)
    rows, _, space = read_new(density, table)
    numbers, known, _ = split_rows(rows, space.layout)
    frame = class_frame(numbers, np.zeros(len(rows), int), 0.15, known)
    joint = init_joint(key, joint_base(rows, frame, space.layout), columns_of(numbers), 1, hidden=(4,))
    density.model_ = RowDensity(RowModel(space, joint, frame.color, [rows], anchors=np.array([[0.0, 0.0]])))
    return density


def test_a_model_of_mixed_rows_that_ignores_relations_is_caught(rng, key, without_chains):
    found = independent_columns(key, people(rng, 300)).diagnose(people(rng, 400))
    assert found.cell_gain == pytest.approx(0, abs=1e-5)
    assert found["cell_gain"].verdict == LOOK
    assert found["stein_p_value"].verdict == BAD
    assert found["score_gain"].note == "worse than a Gaussian"


@SLOW
def test_mixed_tables_with_gaps(rng):
    held_out = people(rng, 400)
    trained = ScoreDensity(max_steps=600, hidden=(32, 32), random_state=0).fit(people(rng, 800)).diagnose(held_out)
    assert trained["cell_gain"].verdict == GOOD
    assert trained["score_gain"].verdict == GOOD
    assert trained["stein_p_value"].verdict != BAD
    shuffled = people(rng, 800).apply(lambda column: rng.permutation(column.to_numpy()))
    ignorant = ScoreDensity(max_steps=100, **LIGHT).fit(shuffled).diagnose(held_out)
    assert ignorant.cell_gain < 0.2 * trained.cell_gain  # chance correlations of the shuffled columns
    assert ignorant["stein_p_value"].verdict == BAD


@SLOW
def test_tables_of_categories_alone(rng):
    table = pd.DataFrame({"a": rng.choice(list("xyz"), 100), "b": rng.choice(list("uv"), 100)})
    found = ScoreDensity(max_steps=5, **LIGHT).fit(table).diagnose()
    assert found["stein_p_value"].note == "the table has no numbers"
    assert found["cell_gain"].verdict in (LOOK, BAD)  # there is nothing to learn


def classes(rng, n):
    y = np.where(rng.random(n) < 0.25, "rare", "usual")
    return correlated(rng, n) + 1.5 * (y == "rare")[:, None], y


def test_separate_densities_of_a_classifier(rng):
    X, y = classes(rng, 600)
    model = ScoreClassifier(ScoreDensity("gaussian"), random_state=0).fit(X, y)
    found = model.diagnose(*classes(rng, 600))
    assert [found[key].verdict for key in ("log_loss", "calibration_error")] == [GOOD, GOOD]
    assert found["stein_p_value_rare"].verdict == found["score_gain_usual"].verdict == GOOD
    assert found["score_gain_rare"].name == "class 'rare': score-matching gain"
    assert model.diagnose()["log_loss"].note == "needs X_held_out and y_held_out"
    with pytest.raises(ValueError, match="Expected both X_held_out and y_held_out"):
        model.diagnose(X)
    with pytest.raises(ValueError, match=r"Expected labels of \['rare', 'usual'\] in y_held_out, got 'other'"):
        model.diagnose(X, np.full(len(X), "other"))


@pytest.mark.parametrize("mixed", [False, pytest.param(True, marks=SLOW)])
def test_the_joint_model_of_a_classifier(rng, mixed, without_chains):
    X, y = classes(rng, 400)
    if mixed:
        X = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=rng.choice(["u", "v"], len(X)))
        X.loc[::7, "a"] = np.nan
    model = ScoreClassifier(n_members=1, max_steps=100, **LIGHT).fit(X[:200], y[:200])
    found = model.diagnose(X[200:], y[200:])
    assert found["log_loss"].verdict == GOOD
    assert found.score_gain > 0
    assert ("cell_gain" in found.to_dict()) == mixed


def test_labels_that_were_shuffled_are_caught(rng):
    X, y = classes(rng, 600)
    model = ScoreClassifier(ScoreDensity("gaussian"), calibration=None, random_state=0).fit(X, y)
    X_new, y_new = classes(rng, 600)
    found = model.diagnose(X_new, rng.permutation(y_new))
    assert found["log_loss"].verdict == found["calibration_error"].verdict == BAD


@SLOW
@pytest.mark.parametrize("mixed", [False, True])
def test_chains_of_the_joint_model(rng, mixed):
    X, y = classes(rng, 200)
    X = pd.DataFrame(X, columns=["a", "b", "c"])
    X = X.assign(d=rng.choice(["u", "v"], len(X))) if mixed else X
    found = ScoreClassifier(n_members=1, max_steps=100, **LIGHT).fit(X, y).diagnose()
    assert found["r_hat_rare"].verdict != BAD
    assert found["diverged_rare"].verdict == GOOD


@pytest.mark.parametrize("mixed", [False, pytest.param(True, marks=SLOW)])
def test_an_oversampler(rng, mixed, request):
    if not mixed:
        request.getfixturevalue("without_chains")
    X, y = classes(rng, 300)
    X = pd.DataFrame(X, columns=["a", "b", "c"]).assign(constant=1.0)
    if mixed:
        X["d"] = rng.choice(["u", "v"], len(X))
    density = ScoreDensity(max_steps=20, **LIGHT) if mixed else ScoreDensity("gaussian")
    over = ScoreOverSampler(purpose="sharing", density=density, random_state=0)
    over.fit_resample(X[:200], y[:200])
    for held_out in ((), (X[200:], y[200:])):
        found = over.diagnose(*held_out)
        gain = found["score_gain" if mixed else "score_gain_rare"]
        assert gain.verdict in (GOOD, NOT_MEASURED) or mixed
        assert not mixed or found["diverged_rare"].value == 0
        assert "anchor_error_rare" not in found.to_dict()
    if not mixed:
        with pytest.raises(ValueError, match="Expected 4 columns in X_held_out, got 3"):
            over.diagnose(X[200:][["a", "b", "c"]], y[200:])


def test_calibration_error_of_known_probabilities(rng):
    """Labels drawn from the probabilities stay below the usual error 19 times in 20; over-confident ones do not."""
    truth = rng.uniform(0.05, 0.95, 400)
    above = []
    for _ in range(100):
        labels = (rng.random(400) < truth).astype(int)
        proba = np.column_stack([1 - truth, truth])
        above.append(calibration_error(proba, labels) > usual_calibration_error(rng, proba, n_draws=100))
    assert np.mean(above) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)
    sharp = truth**3 / (truth**3 + (1 - truth) ** 3)
    confident = np.column_stack([1 - sharp, sharp])
    assert calibration_error(confident, labels) > usual_calibration_error(rng, confident) + 0.05
    near_half = 0.5 + np.linspace(-1e-9, 1e-9, 10)
    distinct = np.column_stack([1 - near_half, near_half])
    assert calibration_error(distinct, np.tile([0, 1], 5)) == pytest.approx(0.5)  # a bin for each of ten rows


def test_calibration_error_does_not_depend_on_the_order_of_rows(rng):
    """Of tied probabilities, as trees and class frequencies give, the error is that of each group of equal ones."""
    chance = np.repeat([0.2, 0.7], 50)
    labels = np.concatenate([np.repeat([0, 1], [40, 10]), np.repeat([0, 1], [25, 25])])  # frequencies .2 and .5
    proba = np.column_stack([1 - chance, chance])
    assert calibration_error(proba, labels) == pytest.approx((0 + 0.2) / 2)
    for _ in range(5):
        order = rng.permutation(100)
        assert calibration_error(proba[order], labels[order]) == pytest.approx(0.1)
    usual = np.tile([0.65, 0.35], (100, 1))
    assert calibration_error(usual, np.sort(labels)) == pytest.approx(0)
    several = np.stack([labels, labels[::-1]])
    each = [calibration_error(proba, one) for one in several]
    np.testing.assert_allclose(calibration_error(proba, several), each)


def test_verdicts_on_labels(rng, key):
    labels = rng.integers(0, 2, 500)
    even = np.log(np.full((500, 2), 0.5))
    loss, error = label_checks(key, even, labels, np.array([0.5, 0.5]))
    assert (loss.verdict, error.verdict) == (LOOK, GOOD)  # as the class frequencies, and calibrated
    assert loss.value == pytest.approx(np.log(2))


def test_verdicts_on_chains(rng):
    independent = rng.normal(size=(8, 400, 2))
    stuck = independent + 3 * np.arange(8)[:, None, None]

    def checks(chains, acceptance=0.6, n_diverged=0):
        samples = Samples(chains[:, -1], np.arange(8), n_diverged, 0.1, acceptance, chains)
        return {check.key: check.verdict for check in chain_checks(lambda: samples)}

    assert set(checks(independent).values()) == {GOOD}
    assert checks(stuck)["r_hat"] == checks(stuck)["effective_draws"] == LOOK
    assert checks(independent, acceptance=0.05)["acceptance"] == BAD
    assert checks(independent, n_diverged=8)["diverged"] == BAD
