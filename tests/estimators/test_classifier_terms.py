"""What ScoreClassifier's probabilities are made of, and the parameters that leave a part out."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from scorefield import ScoreClassifier, ScoreDensity
from scorefield._jax.batching import map_rows

LIGHT = {"hidden": (16, 16), "max_steps": 200, "n_members": 2, "random_state": 0}


@pytest.fixture(scope="module")
def steps():
    """Labels that a step in one column decides, which rules see first, and a direction, which networks see first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    odds = 3 * (X[:, 0] > 0.5) - 1.5 + 2 * X[:, 1:].sum(axis=1)
    return X, np.where(rng.logistic(size=300) < odds, "yes", "no")


@pytest.fixture(scope="module")
def fitted(steps):
    return ScoreClassifier(**LIGHT).fit(*steps)


def parts_of(model, X):
    """Logits of the networks and of the rules at rows of numbers."""
    joint, units = model.model_.joint, model.model_.space.units
    networks = np.mean([map_rows(member, X, standardize=units) for member in joint.members], axis=0)
    return networks, None if joint.rules is None else map_rows(joint.rules, X, standardize=units)


def test_probabilities_are_those_of_networks_and_rules(steps, fitted):
    X, _ = steps
    networks, rules = parts_of(fitted, X)
    share = fitted.rules_share_
    assert 0.05 < share < 1
    expected = softmax(((1 - share) * networks + share * rules) / fitted.model_.temperature, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-4)
    bayes = softmax(fitted.log_likelihood(X) + np.log(fitted.priors_), axis=1)
    assert np.abs(fitted.predict_proba(X) - bayes).max() > 0.05  # as the documents say


def test_bayes_rule_is_that_of_a_model_without_labels(steps):
    X, y = steps
    model = ScoreClassifier(**LIGHT, label_weight=0, calibration=None).fit(X, y)
    bayes = softmax(model.log_likelihood(X) + np.log(model.priors_), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), bayes, atol=1e-3)
    assert model.rules_share_ == 0


def test_rules_are_left_out_apart_from_the_temperature(steps, fitted):
    X, y = steps
    model = ScoreClassifier(**LIGHT, rules=None).fit(X, y)
    networks, rules = parts_of(model, X)
    assert rules is None
    assert model.rules_share_ == 0
    assert model.model_.temperature != 1
    np.testing.assert_allclose(model.predict_proba(X), softmax(networks / model.model_.temperature, axis=1), atol=1e-4)
    np.testing.assert_array_equal(networks, parts_of(fitted, X)[0])  # the networks are the same
    assert fitted.diagnose(X, y).rules_share == fitted.rules_share_
    assert model.diagnose(X, y).rules_share == 0


@pytest.mark.parametrize("mixed", [False, True])
def test_a_model_of_the_labels_alone_has_no_density(steps, mixed):
    X, y = steps
    X = pd.DataFrame(X, columns=[*"abcd"]).assign(e=np.where(X[:, 1] > 0, "up", "down")) if mixed else X
    model = ScoreClassifier(**LIGHT, denoising_weight=0).fit(X, y)
    assert model.score(X, y) > 0.75
    calls = [model.score_samples, model.log_likelihood, model.grad_log_density, model.log_proba_and_density]
    calls += [model.diagnose, *([model.impute] if mixed else [])]
    for call in calls:
        with pytest.raises(ValueError, match="denoising_weight=0, which learns the labels alone"):
            call(X)
    with pytest.raises(ValueError, match="learns the labels alone"):
        model.sample(3, "yes")


def test_terms_that_leave_nothing_are_refused(steps):
    with pytest.raises(ValueError, match="got 0 for both; the model would learn nothing"):
        ScoreClassifier(label_weight=0, denoising_weight=0).fit(*steps)
    with pytest.raises(ValueError, match='Expected density="joint" with denoising_weight=2, got ScoreDensity'):
        ScoreClassifier(ScoreDensity("gaussian"), denoising_weight=2).fit(*steps)


def test_rows_are_judged_by_a_member_that_did_not_train_on_them(steps, fitted):
    X, y = steps
    one = ScoreClassifier(**(LIGHT | {"n_members": 1}), rules=None, priors="equal").fit(X, y)
    held = ~np.isnan(one.held_out_proba_[:, 0])
    assert 0.1 < held.mean() < 0.3
    np.testing.assert_allclose(one.held_out_proba_[held], one.predict_proba(X[held]), atol=1e-4)
    assert (~np.isnan(fitted.held_out_proba_[:, 0])).mean() > 1.5 * held.mean()
    # Labels without any relation to the rows are not predicted, however well they can be remembered.
    noise = np.random.default_rng(1).integers(0, 2, len(X))
    model = ScoreClassifier(hidden=(32, 32), n_members=5, random_state=0, max_steps=300).fit(X, noise)
    known = ~np.isnan(model.held_out_proba_[:, 0])
    assert known.mean() == 1
    right = (model.held_out_proba_[:, 1] > 0.5) == noise
    assert abs(right.mean() - 0.5) < 3 * 0.5 / np.sqrt(len(X))
