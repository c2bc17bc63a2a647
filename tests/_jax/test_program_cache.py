"""Compiled programs in a folder: they are found again, give the same bits, and the command keeps them by itself."""

import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from scorefield import ScoreDensity, cache_programs
from scorefield._jax.program_cache import OPTIONS, default_folder


@pytest.fixture
def restored():
    """Put jax's own settings back after a test."""
    names = ("jax_compilation_cache_dir", *OPTIONS)
    before = {name: getattr(jax.config, name) for name in names}
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def test_programs_are_found_again_and_give_the_same_bits(tmp_path, restored, monkeypatch):
    monkeypatch.setitem(OPTIONS, "jax_persistent_cache_min_compile_time_secs", 0)  # which are kept is no matter of time
    X = np.random.default_rng(0).normal(size=(60, 7))
    folder = cache_programs(tmp_path / "programs")
    jax.clear_caches()  # what other tests compiled is not in the folder
    scores = []
    for _ in range(2):
        density = ScoreDensity("energy", hidden=(9,), max_steps=100, random_state=0).fit(X)
        scores.append(density.score_samples(X))
        found = {path.name for path in folder.iterdir() if not path.name.endswith("-atime")}
        assert found
        if len(scores) == 1:
            first = found
            jax.clear_caches()
    assert found == first  # nothing was compiled anew
    np.testing.assert_array_equal(*scores)


@pytest.mark.skipif(jax.version.__version_info__ < (0, 10), reason="older versions are noisy with a cache")
def test_the_command_keeps_programs_in_the_cache_folder_of_the_user(tmp_path):
    code = "from scorefield._jax.program_cache import cache_by_environment as c; c(); import os, jax; "
    code += "print(jax.config.jax_compilation_cache_dir)"
    own = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}

    def chosen(**environment):
        run = subprocess.run([sys.executable, "-c", code], env={**own, **environment}, capture_output=True, text=True)
        return run.stdout.strip()

    assert chosen(XDG_CACHE_HOME=str(tmp_path)).startswith(str(tmp_path / "scorefield"))
    assert chosen(JAX_COMPILATION_CACHE_DIR="elsewhere") == "elsewhere"
    (tmp_path / "file").touch()
    assert chosen(XDG_CACHE_HOME=str(tmp_path / "file")) == "None"  # a home that cannot be written to


def test_processors_have_folders_of_their_own(monkeypatch):
    from scorefield._jax import program_cache

    here = default_folder()
    monkeypatch.setattr(program_cache, "_processor", lambda: "another one")
    assert default_folder() != here
    assert isinstance(here, pathlib.Path)
