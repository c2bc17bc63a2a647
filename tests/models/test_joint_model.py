"""Members that see columns by what they tell of the label, and those that are left out."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from scorefield import ScoreClassifier
from scorefield._jax.batching import map_rows
from scorefield.fields.gaussian import standard_gaussian
from scorefield.fields.joint import columns_of, init_joint
from scorefield.models import joint_model
from scorefield.training.losses import LabelledRow
from scorefield.training.minibatches import Split


def few_rows_of_many_columns(rng, n, d=120):
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, 3] += 2 * y
    return X, y


def test_the_column_that_matters_is_found_among_many(monkeypatch):
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = few_rows_of_many_columns(rng, 80), few_rows_of_many_columns(rng, 1000)

    def loss():
        model = ScoreClassifier(n_members=2, hidden=(64, 64), calibration=None, random_state=0).fit(X, y)
        return log_loss(y_test, model.predict_proba(X_test))

    own = loss()
    monkeypatch.setattr(joint_model, "column_gains", lambda seen, labels, weights: np.ones(seen.shape[1]))
    assert own < loss() - 0.05


def test_gains_move_into_the_weights(key, rng):
    X = rng.normal(size=(50, 3)).astype(np.float32)
    member = init_joint(
        key, standard_gaussian(3), columns_of(X), 2, hidden=(8,), gains=np.array([1.0, 0.5, 0.1])
    ).members[0]
    last = rng.normal(size=np.shape(member.network.weights[-1])).astype(np.float32)  # zeros at the start
    member.network.weights[-1][...] = last
    folded = member.without_gains()
    assert folded.gains is None
    np.testing.assert_allclose(map_rows(folded, X), map_rows(member, X), atol=1e-5)


@pytest.mark.slow
def test_members_that_add_noise_are_left_out():
    """Two columns of a hundred decide: members that see all columns alike predict clearly worse than the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1600, 100))
    y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=1600) > 0).astype(int)
    told, even = (ScoreClassifier(random_state=0, **options).fit(X[:, :d], y)
                  for d, options in ((100, {}), (2, {"calibration": None})))  # fmt: skip
    assert len(told.model_.joint.members) == 4
    assert len(even.model_.joint.members) == 8  # without calibration nobody judges them


def logits_of_two_kinds(rng, n, factor):
    """Logits of eight members for n labels each; of odd members the second half is multiplied by a factor."""
    labels = rng.integers(0, 2, 8 * n)
    held = np.split(np.arange(8 * n), 8)
    good = np.stack([-(2 * labels - 1.0), 2 * labels - 1.0], axis=1) + rng.normal(size=(8 * n, 2))
    half = np.where(np.arange(n) < n // 2, 1.0, factor)[:, None]
    logits = [good[own] * (half if m % 2 else 1.0) for m, own in enumerate(held)]
    return logits, labels, [Split(own, own) for own in held]


def test_kinds_are_told_apart_by_their_losses(rng):
    logits, labels, splits = logits_of_two_kinds(rng, 200, -2.0)
    table = LabelledRow(np.zeros((1600, 1)), labels)
    assert joint_model._members_to_keep(logits, table, splits).tolist() == [0, 2, 4, 6]
    weights = np.where(np.arange(1600) % 200 < 100, 1.0, 0.0)  # of the half that they predict as well as the others
    table = LabelledRow(np.zeros((1600, 1)), labels, weights)
    assert len(joint_model._members_to_keep(logits, table, splits)) == 8
    for seed in range(20):  # the same law: none is left out by chance
        logits, labels, splits = logits_of_two_kinds(np.random.default_rng(seed), 50, 1.0)
        assert len(joint_model._members_to_keep(logits, LabelledRow(np.zeros((400, 1)), labels), splits)) == 8


def test_a_single_member_is_kept(rng):
    logits, labels, splits = logits_of_two_kinds(rng, 50, 1.0)
    table = LabelledRow(np.zeros((400, 1)), labels)
    assert joint_model._members_to_keep(logits[:1], table, splits[:1]).tolist() == [0]
