"""Truths that the tests measure against."""

import jax
import numpy as np
import pytest

from scorefield._jax import pytrees
from scorefield.fields.mixtures import mixture


@pytest.fixture(scope="session", autouse=True)
def all_programs_kept():
    """Tests compare the numbers of programs before and after a fit, which must not be forgotten in between."""
    pytrees.MAX_PROGRAMS = 1 << 20


@pytest.fixture(scope="session")
def skewed_mixture():
    """Two overlapping components of unequal mass and shape: a symmetric target could not detect a reversed sign."""
    return mixture([0.7, 0.3], [[-0.5, 0.3], [1.2, -0.8]], [[[0.8, 0.3], [0.3, 0.5]], [[0.4, -0.1], [-0.1, 0.6]]])


@pytest.fixture(scope="session")
def paper_classes():
    """The paper's two 2-D Gaussian classes, centred at (0, 0) and (4, 4)."""
    return (
        mixture([1.0], [[0.0, 0.0]], [[[1.0, -0.5], [-0.5, 1.0]]]),
        mixture([1.0], [[4.0, 4.0]], [[[1.0, 0.5], [0.5, 1.0]]]),
    )


@pytest.fixture(scope="session")
def key():
    return jax.random.key(20221)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
