"""Importing the package starts neither JAX's backend nor a thread, so that a process may fork afterwards."""

import subprocess
import sys

START = """
import os, signal, threading
import scorefield
for name in scorefield.__all__:
    getattr(scorefield, name)
"""
NOTHING_STARTED = """
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized(), "the backend is up"
assert threading.active_count() == 1, threading.enumerate()
"""
FORK = """
import numpy as np
X = np.random.default_rng(0).normal(size=(60, 2))
child = os.fork()
if child == 0:
    signal.alarm(120)  # a child that hangs is killed
    sampler = scorefield.MALA(chain_length=10)
    model = scorefield.ScoreDensity(model="energy", hidden=(4,), max_steps=100, sampler=sampler, random_state=0).fit(X)
    os._exit(0 if np.isfinite(model.sample(5)).all() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)


def test_public_names_start_no_backend_and_no_thread():
    found = run(START + NOTHING_STARTED)
    assert found.returncode == 0, found.stderr


def test_a_fork_after_the_imports_can_fit():
    found = run(START + FORK)
    assert found.returncode == 0, found.stderr


def test_the_checks_notice_a_backend():
    found = run(START + "import jax; jax.devices()" + NOTHING_STARTED)
    assert "the backend is up" in found.stderr
