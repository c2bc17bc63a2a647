"""What ScoreClassifier's probabilities are made of, and the parameters that leave a part out."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from scorefield import ScoreClassifier, ScoreDensity
from scorefield._jax.batching import map_rows
from scorefield.models import fitting

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


@pytest.mark.parametrize("mixed", [False, True], ids=["numbers", "mixed"])
def test_held_out_probabilities_are_in_the_order_of_the_table(steps, mixed):
    """Repeated rows are learned in an order of their own, and weights repeat rows or leave them out."""
    X, y = steps
    X, y = X.copy(), y.copy()
    X[7], y[7] = X[5], y[5]
    table = pd.DataFrame(X, columns=list("abcd")).assign(town=np.where(X[:, 3] > 1, "Oslo", "Rome")) if mixed else X
    light = {**LIGHT, "n_members": 5, "max_steps": 50}

    def right(proba, rows):
        return np.mean((proba[rows, 1] > 0.5) == (y[rows] == "yes"))

    held_out = ScoreClassifier(**light).fit(table, y).held_out_proba_
    np.testing.assert_array_equal(held_out[7], held_out[5])
    assert right(held_out, np.arange(300)) > 0.7
    assert right(np.random.default_rng(0).permutation(held_out), np.arange(300)) < 0.6  # the control
    weights = np.tile([0, 1, 2], 100)
    weighted = ScoreClassifier(**light).fit(table, y, sample_weight=weights).held_out_proba_
    np.testing.assert_array_equal(np.isnan(weighted[:, 0]), weights == 0)
    assert right(weighted, np.flatnonzero(weights)) > 0.7


@pytest.fixture(scope="module")
def visits():
    """Thirty customers of six visits; the customer alone tells the label, and its columns tell the customer."""
    rng = np.random.default_rng(0)
    customers = np.repeat(np.arange(30), 6)
    X = rng.normal(size=(30, 3))[customers] + 0.01 * rng.normal(size=(180, 3))
    return X, rng.permutation(np.arange(30) % 3 == 0)[customers].astype(int), np.array([f"c{c}" for c in customers])


@pytest.mark.parametrize("label_weight", [1.0, pytest.param(0.0, marks=pytest.mark.slow)])
def test_groups_stay_on_one_side_of_every_split(monkeypatch, visits, label_weight):
    X, y, customers = visits
    seen = []
    original = fitting.member_splits

    def watched(rng, rows, labels, n_members, **options):
        splits = original(rng, rows, labels, n_members, **options)
        seen.append((rows, splits))
        return splits

    monkeypatch.setattr(fitting, "member_splits", watched)
    model = ScoreClassifier(**{**LIGHT, "max_steps": 3}, label_weight=label_weight)

    model.fit(X, y, groups=customers)
    assert seen
    for _, splits in seen[:1]:
        for own in splits:
            assert not set(customers[own.kept]) & set(customers[own.held])
            assert set(y[own.kept]) == set(y[own.held]) == {0, 1}
    assert len(seen) == (1 if label_weight else 4)  # three folds to calibrate by
    assert all(len(rows) % 6 == 0 for rows, _ in seen)
    seen.clear()
    model.fit(X, y)
    assert any(set(customers[own.kept]) & set(customers[own.held]) for own in seen[0][1])  # the control


def test_groups_tell_what_rows_without_them_hide(visits):
    """Held out visits of known customers look easy: their labels are known from other visits."""
    X, y, customers = visits
    light = {**LIGHT, "n_members": 5}

    def log_loss(**groups):
        proba = ScoreClassifier(**light).fit(X, y, **groups).held_out_proba_
        return -np.mean(np.log(proba[np.arange(len(y)), y]))

    frequencies = -(np.log(1 / 3) / 3 + np.log(2 / 3) * 2 / 3)
    assert log_loss() < 0.5 * frequencies
    assert log_loss(groups=customers) > 0.9 * frequencies


def test_groups_that_cannot_be_kept_are_refused(visits):
    X, y, customers = visits
    model = ScoreClassifier(**LIGHT)
    with pytest.raises(ValueError, match="Expected two or more groups, got one"):
        model.fit(X, y, groups=np.zeros(len(y)))
    with pytest.raises(ValueError, match="a group for every row, got 1 missing"):
        model.fit(X, y, groups=np.where(np.arange(len(y)) == 3, None, customers))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y, groups=customers[1:])
    with pytest.raises(ValueError, match='density="joint" with groups, got ScoreDensity'):
        ScoreClassifier(ScoreDensity("gaussian")).fit(X, y, groups=customers)
    with pytest.raises(ValueError, match="table in memory with groups, got one in parts"):
        model.fit("rows.parquet", "y", groups=customers)
