"""Rows of large tables: which are chosen, and that probabilities stay those of the whole table."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from scorefield import ScoreClassifier
from scorefield.models import row_choice
from scorefield.models.row_choice import choose_rows


def rng():
    return np.random.default_rng(0)


def test_rare_rows_are_kept_and_common_ones_are_drawn(monkeypatch):
    monkeypatch.setattr(row_choice, "WHOLE", 50)
    labels = np.repeat([0, 1, 2], [1000, 20, 10])
    places, shift = choose_rows(rng(), labels, None, 10)
    assert np.bincount(labels[places]).tolist() == [300, 20, 10]  # ten for each of thirty rarer rows
    assert (np.diff(places) > 0).all()
    np.testing.assert_allclose(np.exp(shift), np.array([1000, 20, 10]) / 1030 / (np.array([300, 20, 10]) / 330))


@pytest.mark.parametrize(
    ("counts", "common_per_rare"), [([1000, 20], None), ([300, 300, 300], 1), ([40, 5], 1), ([200, 20], 10)]
)
def test_tables_that_are_learned_whole(counts, common_per_rare, monkeypatch):
    monkeypatch.setattr(row_choice, "WHOLE", 50)
    assert choose_rows(rng(), np.repeat(np.arange(len(counts)), counts), None, common_per_rare) is None


def test_weights_count_in_the_shares(monkeypatch):
    monkeypatch.setattr(row_choice, "WHOLE", 50)
    labels, weights = np.repeat([0, 1], [1000, 20]), np.repeat([1.0, 3.0], [1000, 20])
    places, shift = choose_rows(rng(), labels, weights, 10)
    odds = np.log(1000 / 60) - np.log(200 / 60)
    np.testing.assert_allclose(shift[0] - shift[1], odds)
    assert len(places) == 220


def logistic_sample(n):
    """Rows of a known law: two Gaussians of unit variance, whose log odds are linear."""
    random = np.random.default_rng(1)
    y = (random.uniform(size=n) < 0.02).astype(int)
    return random.normal(size=(n, 2)) + y[:, None] * np.array([1.5, 0.0]), y


def true_probability(X):
    return 1 / (1 + np.exp(-(np.log(0.02 / 0.98) + 1.5 * X[:, 0] - 1.5**2 / 2)))


def test_a_linear_model_of_the_chosen_rows_has_the_true_odds(monkeypatch):
    """The shift alone makes up for the choice; without it probabilities are several times too large."""
    monkeypatch.setattr(row_choice, "WHOLE", 50)
    X, y = logistic_sample(200_000)
    places, shift = choose_rows(rng(), y, None, 10)
    fitted = LogisticRegression(C=np.inf).fit(X[places], y[places])
    logits = fitted.decision_function(X)
    corrected, uncorrected = (1 / (1 + np.exp(-logits - own)) for own in (shift[1] - shift[0], 0.0))
    # 4,000 rare and 40,000 common rows tell a constant with a standard error of about .02; five of them are allowed.
    assert abs(np.log(corrected.mean() / true_probability(X).mean())) < 0.1
    assert np.log(uncorrected.mean() / true_probability(X).mean()) > 1


def test_probabilities_of_the_classifier_are_those_of_the_whole_table(monkeypatch):
    monkeypatch.setattr(row_choice, "WHOLE", 50)
    X, y = logistic_sample(8_000)
    model = ScoreClassifier(n_members=1, max_steps=150, random_state=0).fit(X, y)
    assert model.n_rows_learned_ == 11 * np.sum(y)
    proba = model.predict_proba(X)[:, 1]
    # The number of rare rows of a model is calibrated on has a standard error of 1 / sqrt(rare rows); four are allowed.
    error = 1 / np.sqrt(y.sum())
    assert abs(np.log(proba.mean() / y.mean())) < 4 * error
    shifted = model.set_params(priors=None)
    shifted.model_.intercepts = np.zeros(2)  # the control: the odds of the chosen rows
    assert np.log(shifted.predict_proba(X)[:, 1].mean() / y.mean()) > 8 * error
    everything = ScoreClassifier(n_members=1, max_steps=1, common_per_rare=None, random_state=0).fit(X, y)
    assert everything.n_rows_learned_ == len(X)
