"""Rows of large tables: which are chosen, and that odds and densities stay those of the whole table."""

import numpy as np
import pytest
from scipy.special import expit, logit

from scorefield import ScoreClassifier
from scorefield.data.parts import places_of
from scorefield.models import fitting, row_choice
from scorefield.models.row_choice import choose_ranks, choose_rows, even_part, standing_for_table
from scorefield.training.losses import LabelledRow

SHIFT, RARE = 1.5, 0.02


def rng():
    return np.random.default_rng(0)


def logistic_sample(n):
    """Rows of a known law: two Gaussians of unit variance, whose log odds are linear."""
    random = np.random.default_rng(1)
    y = (random.uniform(size=n) < RARE).astype(int)
    return random.normal(size=(n, 2)) + y[:, None] * np.array([SHIFT, 0.0]), y


@pytest.fixture(scope="module")
def sample():
    return logistic_sample(60_000)


@pytest.fixture(scope="module")
def choice(sample):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_choice, "WHOLE", 50)
        patch.setattr(row_choice, "RARE_ROWS", 100)
        return choose_rows(rng(), *sample, 5)


def test_rare_rows_are_kept_and_common_ones_drawn_by_known_chances(sample, choice):
    (X, y), (places, log_chances) = sample, choice
    assert (np.diff(places) > 0).all()
    assert y[places].sum() == y.sum()
    assert (log_chances[:, 1] == 0).all()
    common = y[places] == 0
    chances = np.exp(log_chances[common, 0].astype(float))
    assert abs(common.sum() - 5 * y.sum()) < 4 * np.sqrt(5 * y.sum())  # no more variance than a Poisson number's
    assert abs((1 / chances).sum() - (y == 0).sum()) < 4 * np.sqrt(((1 - chances) / chances**2).sum())
    assert (1 / chances).max() <= 2 / (5 * y.sum() / (y == 0).sum()) * (1 + 1e-6)  # half of them are drawn evenly
    chosen = X[places[common], 0]
    assert chosen.mean() > 0.3  # rows that look like rare ones, by which Fithian and Hastie choose
    weights = 1 / chances / (1 / chances).sum()
    assert abs(weights @ chosen) < 4 * np.sqrt(np.sum(weights**2 * chosen**2))  # by weight they have the mean of all, 0


def logistic_regression(X, y, offsets):
    """Constant and slopes of greatest likelihood, and their standard errors, by Newton's method."""
    inputs = np.column_stack([np.ones(len(X)), X])
    found = np.array([logit(y.mean()) - offsets.mean(), *np.zeros(X.shape[1])])
    for _ in range(25):
        p = expit(inputs @ found + offsets)
        information = inputs.T @ (inputs * (p * (1 - p))[:, None])
        found = found + np.linalg.solve(information, inputs.T @ (y - p))
    return found, np.sqrt(np.diag(np.linalg.inv(information)))


def test_a_linear_model_of_the_chosen_rows_has_the_true_odds(sample, choice):
    """With log chances as offsets its coefficients are those of the law; without them they are not."""
    (X, y), (places, log_chances) = sample, choice
    truth = np.array([np.log(RARE / (1 - RARE)) - SHIFT**2 / 2, SHIFT, 0.0])
    offsets = (log_chances[:, 1] - log_chances[:, 0]).astype(float)
    found, errors = logistic_regression(X[places], y[places], offsets)
    assert (np.abs(found - truth) < 4 * errors).all()
    constants = np.log((y == 1).mean() / (y == 0).mean()) - np.log(y[places].mean() / (1 - y[places].mean()))
    for wrong in (np.zeros(len(places)), np.full(len(places), -constants)):  # nothing, and that of an even draw
        found, errors = logistic_regression(X[places], y[places], wrong)
        assert (np.abs(found - truth) > 8 * errors).any()


@pytest.mark.parametrize(
    ("counts", "common_per_rare"), [([1000, 20], None), ([300, 300, 300], 1), ([40, 5], 1), ([200, 20], 10)]
)
def test_tables_that_are_learned_whole(counts, common_per_rare, monkeypatch):
    monkeypatch.setattr(row_choice, "RARE_ROWS", 0)
    monkeypatch.setattr(row_choice, "WHOLE", 50)
    monkeypatch.setattr(row_choice, "WHOLE_EVEN", 50)
    labels = np.repeat(np.arange(len(counts)), counts)
    assert choose_rows(rng(), np.zeros((len(labels), 1)), labels, common_per_rare) is None
    assert even_part(rng(), labels, common_per_rare, mixed=True) is None


def test_few_rare_rows_and_mixed_ones_are_met_by_even_draws(monkeypatch):
    monkeypatch.setattr(row_choice, "WHOLE_EVEN", 50)
    monkeypatch.setattr(row_choice, "RARE_ROWS", 25)
    labels = np.repeat([0, 1, 2], [1000, 20, 10])
    assert even_part(rng(), labels, 10) is None
    assert np.bincount(labels[even_part(rng(), labels, 10, mixed=True)]).tolist() == [300, 20, 10]
    monkeypatch.setattr(row_choice, "RARE_ROWS", 31)
    assert np.bincount(labels[even_part(rng(), labels, 10)]).tolist() == [300, 20, 10]
    assert even_part(rng(), labels, None) is None
    assert choose_rows(rng(), np.zeros((1030, 1)), labels, 1) is None


def test_first_models_know_of_classes_that_one_of_them_has_not_seen(monkeypatch):
    """A class of one row is in one half alone."""
    monkeypatch.setattr(row_choice, "WHOLE", 50)
    monkeypatch.setattr(row_choice, "RARE_ROWS", 20)
    labels = np.repeat([0, 1, 2], [1000, 20, 1])
    X = rng().normal(size=(len(labels), 2)) + labels[:, None]
    places, log_chances = choose_rows(rng(), X, labels, 10)
    assert np.bincount(labels[places])[1:].tolist() == [20, 1]
    assert abs(np.sum(labels[places] == 0) - 210) < 4 * np.sqrt(210)
    assert np.isfinite(log_chances).all()


def test_even_draws_of_tables_beyond_memory(monkeypatch):
    monkeypatch.setattr(row_choice, "MOST_ROWS", 100)
    monkeypatch.setattr(row_choice, "MOST_MIXED", 60)
    counts = np.array([500, 10, 70])
    ranks = choose_ranks(rng(), counts, None)
    assert [None if own is None else len(own) for own in ranks] == [45, None, 45]
    assert [None if own is None else len(own) for own in choose_ranks(rng(), counts, None, mixed=True)] == [
        25,
        None,
        25,
    ]
    assert choose_ranks(rng(), [30, 30, 40], None) == [None] * 3
    labels = rng().permutation(np.repeat([0, 1, 2], counts))
    whole = even_part(rng(), labels, None)
    assert np.bincount(labels[whole]).tolist() == [45, 10, 45]
    found, before = [], np.zeros(3, int)
    for start, end in ((0, 100), (100, 100), (100, 101), (101, 580)):
        part = labels[start:end]
        found.append(start + places_of(part, ranks, before))
        before += np.bincount(part, minlength=3)
    assert np.concatenate(found).tolist() == whole.tolist()
    assert even_part(rng(), labels[:90], None) is None


def test_weights_by_which_chosen_rows_stand_for_the_table():
    label, log_chances = np.array([0, 0, 1]), np.log([[0.5, 1.0], [0.25, 1.0], [0.5, 1.0]]).astype(np.float32)
    table = LabelledRow(np.zeros((3, 1)), label, np.array([1.0, 2.0, 3.0]), None, log_chances)
    np.testing.assert_allclose(standing_for_table(table).weight, np.array([2, 8, 3]) / (13 / 3), rtol=1e-6)
    assert standing_for_table(table).log_chances is None
    plain = table._replace(log_chances=None)
    assert standing_for_table(plain) is plain


@pytest.fixture(scope="module")
def small():
    return logistic_sample(8_000)


QUICK = {"n_members": 1, "max_steps": 150, "common_per_rare": 10, "random_state": 0}


def test_probabilities_and_densities_are_those_of_the_whole_table(small, monkeypatch):
    monkeypatch.setattr(row_choice, "WHOLE", 50)
    monkeypatch.setattr(row_choice, "RARE_ROWS", 100)
    X, y = small
    model = ScoreClassifier(**QUICK).fit(X, y)
    assert abs(model.n_rows_learned_ - 11 * y.sum()) < 4 * np.sqrt(10 * y.sum())
    assert model.model_.frequencies[1] == y.mean()
    # The number of rare rows that a model is calibrated on has a standard error of 1 / sqrt(rare rows); 4 are allowed.
    error = 1 / np.sqrt(y.sum())
    assert abs(np.log(model.predict_proba(X)[:, 1].mean() / y.mean())) < 4 * error
    held = model.held_out_proba_[:, 1]
    held, own = held[~np.isnan(held)], y[~np.isnan(held)]
    assert 0 < len(held) < len(X)
    # Chosen rows have the probabilities of the table too, of which the rare ones among them are not representative.
    assert abs(held[own == 0].mean() - model.predict_proba(X)[np.isnan(model.held_out_proba_[:, 1]), 1].mean()) < 0.05
    starts = model.model_.space.raw_rows(model.model_.start_rows[0])[:, 0]
    assert abs(starts.mean()) < 4 / np.sqrt(len(starts))  # as in the table, where the mean is 0
    everything = ScoreClassifier(**QUICK | {"max_steps": 1, "common_per_rare": None}).fit(X, y)
    assert everything.n_rows_learned_ == len(X)

    def without_chances(*given):
        found = choose_rows(*given)
        return found._replace(log_chances=np.zeros_like(found.log_chances))

    monkeypatch.setattr(fitting, "choose_rows", without_chances)  # the control: the odds of the chosen rows
    wrong = ScoreClassifier(**QUICK).fit(X, y)
    assert np.log(wrong.predict_proba(X)[:, 1].mean() / y.mean()) > 8 * error


def test_an_even_part_has_the_shares_of_the_whole_table_by_weight(small, monkeypatch):
    monkeypatch.setattr(row_choice, "MOST_ROWS", 1000)
    X, y = small
    weights = np.where(y == 1, 0.5, 1.0)
    model = ScoreClassifier(**QUICK, calibration=None).fit(X, y, weights)
    assert model.n_rows_learned_ == 1000
    share = weights[y == 1].sum() / weights.sum()
    np.testing.assert_allclose(model.model_.frequencies, [1 - share, share])
    assert abs(np.log(model.predict_proba(X)[:, 1].mean() / share)) < 4 / np.sqrt(y.sum())
    shift = model.model_.intercepts
    model.model_.intercepts = np.zeros(2)
    assert abs(np.log(model.predict_proba(X)[:, 1].mean() / share)) > 8 / np.sqrt(y.sum())
    generative = ScoreClassifier(**QUICK | {"max_steps": 20}, label_weight=0.0).fit(X, y)
    assert generative.model_.frequencies[1] == pytest.approx(y.mean())
    assert shift[0] > shift[1]
