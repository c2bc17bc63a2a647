"""Truths that the tests measure against."""

import jax
import numpy as np
import pytest

from scorefield.fields.mixtures import mixture


@pytest.fixture(scope="session")
def skewed_mixture():
    """Two overlapping parts of unequal mass and shape: a symmetric target could not detect a reversed sign."""
    return mixture([0.7, 0.3], [[-0.5, 0.3], [1.2, -0.8]], [[[0.8, 0.3], [0.3, 0.5]], [[0.4, -0.1], [-0.1, 0.6]]])


@pytest.fixture(scope="session")
def key():
    return jax.random.key(20221)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
