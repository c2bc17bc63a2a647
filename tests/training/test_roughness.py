"""Fields that fool exact score matching, and fields that only look as if they did."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scorefield import ScoreDensity
from scorefield._jax.pytrees import pytree
from scorefield.fields.base import Field
from scorefield.fields.mixtures import mixture
from scorefield.training.roughness import roughness


@pytree
class FallingAtRows(Field):
    """The standard Gaussian's score, less 30 (x - row) within .02 of every row."""

    rows: jax.Array

    def __call__(self, x):
        gaps = x - self.rows
        return -x - 30 * jnp.sum(gaps * jnp.exp(-0.5 * jnp.sum(gaps**2, axis=1, keepdims=True) / 0.02**2), axis=0)


def test_a_field_that_falls_at_the_rows_is_found_out(key, rng):
    rows = rng.normal(size=(100, 2)).astype(np.float32)
    found = roughness(key, FallingAtRows(rows), rows)
    assert found.loss < -30  # where -1 is optimal
    assert found.fooled
    fresh = rng.normal(size=(100, 2)).astype(np.float32)
    assert not roughness(key, FallingAtRows(rows), fresh).fooled  # no gain there, and none to lose


@pytest.mark.parametrize("d", [1, 10])
def test_true_scores_of_narrow_modes_are_not_rough(key, d):
    truth = mixture([0.8, 0.2], [-3 * np.ones(d), 3 * np.ones(d)], [0.03**2 * np.eye(d)] * 2)
    found = roughness(key, truth, np.asarray(truth.sample(key, 300)))
    assert found.loss < -400 * d  # -d / (2 w^2) = -556 d
    assert not found.fooled


def test_a_fit_to_single_rows_is_announced():
    rows = np.random.default_rng(0).normal(size=(60, 1))
    options = {
        "standardize": False,
        "early_stopping": False,
        "random_state": 0,
        "anchor": "gaussian",
        "hidden": (64, 64),
    }
    with pytest.warns(UserWarning, match="learned single rows"):
        ScoreDensity("mlp", objective="exact", max_steps=1500, **options).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ScoreDensity("mlp", objective="exact", max_steps=50, **options).fit(rows)
