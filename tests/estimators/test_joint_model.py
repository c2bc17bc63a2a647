"""Members that see columns by what they tell of the label."""

import numpy as np
from sklearn.metrics import log_loss

from scorefield import ScoreClassifier
from scorefield._jax.batching import map_rows
from scorefield.estimators import joint_model
from scorefield.fields.gaussian import standard_gaussian
from scorefield.fields.joint import columns_of, init_joint


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
