"""What every model of a table promises, whatever it has learned."""

import copy
import pickle

import jax
import numpy as np
import pandas as pd
import pytest

from scorefield import ScoreClassifier, ScoreDensity
from scorefield._jax.batching import map_rows
from scorefield.models import joint

JOINT = {"n_members": 2, "hidden": (8,), "calibration": None, "random_state": 0}
SEPARATE = ScoreDensity(model="gaussian", random_state=0)


def numbers():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    return rng.normal(size=(90, 2)) * [1, 20] + y[:, None], y


def people():
    X, y = numbers()
    job = np.array(["cook", "nurse", "clerk"])[y]
    return pd.DataFrame({"age": np.where(y == 1, np.nan, X[:, 0]), "pay": X[:, 1], "job": np.roll(job, 7)}), y


MODELS = {
    "numbers": (ScoreClassifier(**JOINT), numbers),
    "numbers without labels": (ScoreClassifier(**JOINT, label_weight=0), numbers),
    "mixed rows": (ScoreClassifier(**JOINT), people),
    "separate densities": (ScoreClassifier(SEPARATE, calibration=None), numbers),
}


@pytest.fixture(scope="module", params=MODELS)
def model_and_rows(request, random_networks):
    estimator, table = MODELS[request.param]
    X, y = table()
    with random_networks():
        model = estimator.fit(X, y).model_
    rows = model.space.rows(X) if model.space.layout is not None else X
    return model, rows[:20]


def test_a_model_keeps_its_promises(model_and_rows, keeps_the_promises_of_a_model):
    keeps_the_promises_of_a_model(*model_and_rows)


def test_what_is_cached_on_a_device_is_no_part_of_a_model(model_and_rows):
    """Its plain form holds arrays of numpy and plain values, as before its first use."""
    model, rows = model_and_rows
    model.logits(rows)
    leaves = jax.tree.leaves({name: part for name, part in model.to_plain().items() if name != "densities"})
    assert not [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
    size = len(pickle.dumps(model))
    assert len(pickle.dumps(copy.deepcopy(model))) == size
    model.logits(rows)
    assert len(pickle.dumps(model)) == size


def test_pickles_name_models_by_stable_paths(model_and_rows):
    model, _ = model_and_rows
    assert type(model).__module__ == "scorefield"
    assert b"scorefield.models" not in pickle.dumps(model)


def test_a_posterior_is_the_logits_at_a_point(model_and_rows):
    model, rows = model_and_rows
    shift = np.array([0.5, 0.0, -1.0])
    found = map_rows(model.posterior(shift), rows)
    expected = model.logits(rows) + shift
    centre = [values - values.mean(axis=1, keepdims=True) for values in (found, expected)]
    np.testing.assert_allclose(*centre, atol=2e-4)


def test_logits_of_few_rows_need_no_compiled_program(model_and_rows, monkeypatch):
    """They are the same numbers as those of many rows, which do."""
    model, rows = model_and_rows
    if not isinstance(model, joint.JointModel):
        pytest.skip("separate densities have compiled programs of their own")
    with monkeypatch.context() as patch:
        patch.setattr(model, "map", None)
        few = model.logits(rows)
        np.testing.assert_array_equal(np.concatenate([model.logits(row[None]) for row in rows]), few)
    monkeypatch.setattr(joint, "FEW_ROWS", 0)
    np.testing.assert_allclose(model.logits(rows), few, rtol=0, atol=1e-5 * np.abs(few).max())
    monkeypatch.setattr(model, "map", None)
    with pytest.raises(TypeError):  # negative control: it is `map` that compiled programs are called by
        model.logits(rows)
