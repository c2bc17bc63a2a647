"""Rows mapped in blocks: empty tables, and values beyond single precision in every model."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

from scorefield import ScoreClassifier, ScoreDensity
from scorefield._jax.batching import map_rows, standardized
from scorefield._jax.pytrees import pytree

FAR = np.array([[1e40, 0], [-1e300, 1e300], [3e38, 0], [1e40, 1e40], [-1e40, 1e40], [1e25, -1e18], [0.3, 0.1]])
QUICK = {"hidden": (16, 16), "max_steps": 200, "random_state": 0}


@pytree
class Pair:
    """One point -> a dictionary of its sum and its double."""

    factor: float

    def __call__(self, x):
        return {"sum": jnp.sum(x), "double": self.factor * x}


@pytest.mark.parametrize("options", [{}, {"standardize": (np.zeros(3), np.ones(3))}], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_rows_give_empty_arrays_of_the_right_shape(dtype, options):
    rows = np.ones((5, 3), dtype)
    some, none = (map_rows(Pair(2.0), table, **options) for table in (rows, rows[:0]))
    for name, trailing in (("sum", ()), ("double", (3,))):
        assert none[name].shape == (0, *trailing)
        assert none[name].dtype == some[name].dtype
        assert some[name].shape == (5, *trailing)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(150, 2)), rng.normal(2.0, 0.5, size=(100, 2))])
    return X, np.repeat([0, 1], [150, 100])


def check_log_density(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        log_p, scores = model.score_samples(FAR), model.grad_log_density(FAR)
    assert not np.isnan(log_p).any()
    assert (log_p[:-1] < log_p[-1]).all()
    assert np.isfinite(log_p[-1])
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", ["gaussian", "kernel", "energy", "mlp", "diffusion"])
@pytest.mark.parametrize("standardize", [True, False])
def test_densities_of_rows_beyond_single_precision(table, name, standardize):
    check_log_density(ScoreDensity(model=name, standardize=standardize, **QUICK).fit(table[0]))


@pytest.mark.parametrize("name", ["kernel", "mlp"])
def test_smoothed_densities_of_rows_beyond_single_precision(table, name):
    check_log_density(ScoreDensity(model=name, smoothing=0.2, **QUICK).fit(table[0]))


@pytest.mark.parametrize(
    "density",
    ["joint", "gaussian", "kernel", "energy", *(pytest.param(m, marks=pytest.mark.slow) for m in ("mlp", "diffusion"))],
)
def test_posteriors_of_rows_beyond_single_precision(table, density):
    if density == "joint":
        model = ScoreClassifier(n_members=2, **QUICK)
    else:
        model = ScoreClassifier(ScoreDensity(model=density, **QUICK), random_state=0)
    model.fit(*table)
    proba = model.predict_proba(FAR)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    assert not np.isnan(model.score_samples(FAR)).any()
    assert np.isfinite(model.grad_log_density(FAR)).all()


def test_only_mapped_rows_are_clipped():
    """A table to fit must not be changed silently: its values beyond single precision stay infinite, to be refused."""
    assert np.isinf(standardized(FAR, np.zeros(2), np.ones(2))).any()
    with pytest.raises(ValueError, match="beyond float32"):
        ScoreDensity(model="gaussian", standardize=False).fit(FAR)
