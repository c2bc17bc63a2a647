"""Compiled programs are bounded in number, whatever the shapes of the tables that are fitted."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scorefield import ScoreClassifier, ScoreDensity
from scorefield._jax import pytrees
from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import pytree


@pytree
class Sum:
    shift: float

    def __call__(self, x):
        return jnp.sum(x) + self.shift


def live_programs():
    """Programs that jax holds, whoever compiled them."""
    gc.collect()
    return len(jax.devices()[0].client.live_executables())


def test_programs_are_bounded(monkeypatch):
    """Each number of columns is a program. Few of them are kept, and forgotten ones are compiled again."""
    monkeypatch.setattr(pytrees, "MAX_PROGRAMS", 5)
    seen = []
    for d in [*range(1, 20), 1, 2]:
        np.testing.assert_allclose(map_rows(Sum(1.0), np.ones((3, d), np.float32)), d + 1)
        seen.append(pytrees.cached_programs())
    assert max(seen[1:]) == 6
    monkeypatch.setattr(pytrees, "MAX_PROGRAMS", 1000)
    for d in range(1, 20):
        map_rows(Sum(1.0), np.ones((3, d), np.float32))
    assert pytrees.cached_programs() >= 19  # negative control: with a high bound all are kept


def test_forgotten_programs_are_freed(monkeypatch):
    for d in range(1, 20):
        map_rows(Sum(2.0), np.ones((3, d), np.float32))
    before, cached = live_programs(), pytrees.cached_programs()
    assert cached >= 19
    monkeypatch.setattr(pytrees, "MAX_PROGRAMS", 0)
    map_rows(Sum(2.0), np.ones((3, 1), np.float32))
    assert pytrees.cached_programs() == 1
    assert live_programs() <= before - cached + 1


@pytest.mark.parametrize(
    "name",
    [
        "gaussian",
        "kernel",
        "joint",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("energy", "mlp", "diffusion")),
    ],
)
def test_fits_compile_nothing_outside_the_bound(name, rng):
    """A fit of another shape adds programs to those that are counted, and none to jax's own."""

    def other_programs(d):
        X, options = rng.normal(size=(50, d)), {"hidden": (d + 1,), "max_steps": 1, "random_state": 0}
        if name == "joint":
            ScoreClassifier(n_members=1, **options).fit(X, X[:, 0] > 0).predict_proba(X)
        else:
            density = ScoreDensity(name, **options).fit(X)
            density.score_samples(X)
            density.sample(3)
        return live_programs() - pytrees.cached_programs()

    assert other_programs(2) >= other_programs(3)


def test_a_fit_compiles_few_programs_and_predicting_few_rows_none(rng):
    """Each program takes tenths of a second, the training step most: they are what a first fit waits for."""
    X = rng.normal(size=(60, 5))
    y = X[:, 0] > 0

    def more_programs(job):
        before = pytrees.cached_programs()
        job()
        return pytrees.cached_programs() - before

    model = ScoreClassifier(n_members=2, hidden=(7,), max_steps=1, random_state=0)
    # Keys and places of chunks, rows there, states, training, held-out losses, a take of rows, held-out logits.
    assert 2 <= more_programs(lambda: model.fit(X, y)) <= 8
    assert more_programs(lambda: model.fit(X[:50], y[:50])) == 0
    assert more_programs(lambda: model.predict_proba(X)) == 0
    assert more_programs(lambda: model.score_samples(X)) >= 1  # negative control


def test_a_compiler_without_an_option_compiles_without_it(monkeypatch):
    monkeypatch.setattr(pytrees, "COMPILER_OPTIONS", {"xla_cpu_no_such_option": True})
    double = pytrees.compiled(lambda x: 2 * x)
    assert double(np.float32(3)) == 6
    assert double._cache_size() == 1


@pytest.mark.parametrize(("flags", "kept"), [("", 2), ("--xla_backend_optimization_level=0", 1), ("--xla_other=1", 2)])
def test_flags_in_the_environment_win_but_in_loops(monkeypatch, flags, kept):
    asked = []
    monkeypatch.setenv("XLA_FLAGS", flags)
    monkeypatch.setattr(pytrees, "_jitted", lambda function, chosen, options: asked.append(chosen))
    for options in ({}, {"loops": True}, {"runs_long": True}):
        pytrees.compiled(abs, **options)
    assert [len(chosen) for chosen in asked] == [kept, 2, 1]
