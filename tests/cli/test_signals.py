"""Signals to real processes: exit codes, no traceback, no unfinished file."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no POSIX signals")

TERM = pytest.param(signal.SIGTERM, 143, id="SIGTERM")
SLOW_TERM = pytest.param(signal.SIGTERM, 143, id="SIGTERM", marks=pytest.mark.slow)
INT = pytest.param(signal.SIGINT, 130, id="SIGINT")
SLOW_INT = pytest.param(signal.SIGINT, 130, id="SIGINT", marks=pytest.mark.slow)
SIGNALS = pytest.mark.parametrize(("number", "code"), [TERM, SLOW_INT])


# A process started in the background inherits an ignored SIGINT, which the command respects.
NOT_IGNORED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
RUN = NOT_IGNORED + "import runpy; runpy.run_module('scorefield', run_name='__main__', alter_sys=True)"


def start(*arguments, **options):
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def wait_for(process, condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Large enough that its output takes a while to write."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("table") / "big.csv"
    numbers = pd.DataFrame({"a": rng.normal(size=150_000), "b": rng.normal(size=150_000), "y": [0, 0, 1] * 50_000})
    numbers.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(("number", "code"), [SLOW_TERM, INT])
def test_a_stopped_command_leaves_no_partial_file(tmp_path, table, number, code):
    output = tmp_path / "out.csv"
    output.write_text("old")
    options = ("--purpose", "sharing", "--model", "gaussian", "--force", "-q")  # no teacher to wait for
    process = start("resample", table, "--target", "y", "-o", output, *options)
    wait_for(process, lambda: list(tmp_path.glob(".out.csv.*")))
    process.send_signal(number)
    assert process.communicate() == ("", "")
    assert process.returncode == code
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert output.read_text() == "old"


SCRIPT = (
    NOT_IGNORED
    + """
import gc, os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

def interrupted(phase, info):
    if {module!r} in sys.modules:
        gc.callbacks.remove(interrupted)
        os.kill(os.getpid(), {number})
        for _ in range(100):  # the handler runs here, where Python cannot raise
            pass

{setup}
runpy.run_module("scorefield", run_name="__main__", alter_sys=True)
"""
)


def run_script(setup, module, number, *arguments):
    script = SCRIPT.format(setup=setup, module=module, number=int(number))
    return subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True)


@SIGNALS
@pytest.mark.parametrize(
    "module",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name != "jax"))
        for name in ("typer", "rich", "jax", "sklearn.base")
    ],
)
def test_a_signal_during_imports(tmp_path, module, number, code):
    options = ("--target", "y", "-o", tmp_path / "out.csv", "-q")
    (tmp_path / "in.csv").write_text("a,y\n" + "".join(f"{i / 7},{i % 3 // 2}\n" for i in range(60)))
    done = run_script("sys.meta_path.insert(0, Interrupting())", module, number, "resample", tmp_path / "in.csv",
                      *options)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@SIGNALS
def test_a_signal_inside_a_callback_is_not_lost(tmp_path, number, code):
    """jax has a callback of the garbage collector, and Python drops what is raised in one."""
    options = ("--target", "y", "-o", tmp_path / "out.csv", "-q")
    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.normal(size=90), "y": [0, 0, 1] * 30}).to_csv(tmp_path / "in.csv", index=False)
    done = run_script("gc.callbacks.append(interrupted)", "scorefield.cli.commands", number, "resample",
                      tmp_path / "in.csv", *options)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@SIGNALS
def test_worker_processes_end_with_the_command(tmp_path, number, code):
    process = start("reproduce", "logistic-1d", "--seeds", "2000", "--jobs", "2", "--out", tmp_path,
                    start_new_session=True)  # fmt: skip
    try:
        rows = tmp_path / "rows" / "logistic-1d.jsonl"
        wait_for(process, lambda: rows.exists() and len(rows.read_text().splitlines()) > 6)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # a terminal sends Ctrl-C to all processes of the command
        else:
            process.send_signal(number)
        _, errors = process.communicate(timeout=120)  # until the workers have closed their standard error too
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, errors) == (code, "")
    assert not list(tmp_path.rglob("*.partial"))


def test_ignored_signals_stay_ignored(tmp_path):
    """As under nohup: the command is not ended by a signal that its parent told it to ignore."""
    (tmp_path / "in.csv").write_text("a,y\n" + "".join(f"{i / 7},{i % 3 // 2}\n" for i in range(60)))
    setup = "signal.signal(signal.SIGHUP, signal.SIG_IGN); gc.callbacks.append(interrupted)"
    done = run_script(setup, "scorefield.cli.commands", signal.SIGHUP, "resample", tmp_path / "in.csv", "--target", "y",
                      "-o", tmp_path / "out.csv", "--model", "gaussian", "-q")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.csv").exists()
