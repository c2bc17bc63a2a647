"""Rows on disk: one file per seed, with its settings and versions. Files are complete or absent.

A stopped run can be resumed: seeds that have a file with the same settings are not repeated.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import platform
import signal
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import numpy as np

from scorefield._jax.signals import handle_again
from scorefield.data.files import write_whole

PACKAGES = ("scorefield", "jax", "numpy", "scipy", "scikit-learn", "imbalanced-learn", "xgboost", "xgboost-cpu",
            "torch", "ctgan", "ForestDiffusion", "nrgboost", "pytabkit", "tabpfn")  # fmt: skip
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NPROC": "1",  # size of jax's thread pool
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def versions():
    """Versions of Python and of the packages that the numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"Expected plain values in a row, got {type(value).__name__}; convert it to numbers or text.")


def rows_path(folder, experiment, seed, config):
    """File for the rows of one seed; settings other than the experiment's own have their own folder."""
    path = pathlib.Path(folder) / "rows" / experiment.name
    if config != experiment.config:
        path /= "with-" + hashlib.sha256(json.dumps(config, sort_keys=True, default=_plain).encode()).hexdigest()[:8]
    return path / f"seed-{seed:03d}.jsonl"


def read_rows(folder, experiment, seed, config):
    """Header and rows of a finished seed, or None if there are none with these settings."""
    path = rows_path(folder, experiment, seed, config)
    try:
        header, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return None
    except ValueError:
        warnings.warn(f"Expected rows in {path}, got a damaged file; the seed is run again.", stacklevel=2)
        return None
    same = header.get("config") == json.loads(json.dumps(config, default=_plain))
    return (header, rows) if same and header.get("rows") == len(rows) else None


def run_seed(experiment, seed, config, folder):
    """Run one seed, write its rows and return the header."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected here: small classes and short training
        rows = [{"experiment": experiment.name, "seed": seed, **row} for row in experiment.run(seed, config)]
    header = {
        "experiment": experiment.name,
        "seed": seed,
        "config": config,
        "rows": len(rows),
        "seconds": round(time.perf_counter() - begin, 1),
        "versions": versions(),
        "machine": platform.machine(),
    }
    lines = [json.dumps(row, default=_plain) for row in (header, *rows)]
    write_whole(rows_path(folder, experiment, seed, config), "\n".join(lines) + "\n")
    return header


def _attempt(task, folder):
    """Run a task; return None, or one line about its failure, so that the other tasks go on."""
    experiment, seed, config = task
    try:
        run_seed(experiment, seed, config, folder)
    except Exception as error:
        return f"{experiment.name}, seed {seed}: {type(error).__name__}: {' '.join(str(error).split())}"
    return None


def _attempt_in_worker(task, folder):
    try:
        with _ended_by_exception():
            return _attempt(task, folder)
    except SystemExit:
        os._exit(128 + signal.SIGTERM)  # a raised SystemExit would only end the task


@contextlib.contextmanager
def _ended_by_exception():
    """Let SIGTERM raise inside, so that unfinished files are removed.

    Outside of tasks it keeps its default action: there `concurrent.futures` would catch the exception and go on.
    """
    hook, asked = sys.unraisablehook, []

    def end(number, frame):
        asked.append(number)
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit

    def raise_again(lost):
        if issubclass(lost.exc_type, SystemExit):
            signal.signal(signal.SIGTERM, end)
            handle_again(signal.SIGTERM)
        else:
            hook(lost)

    sys.unraisablehook = raise_again
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.unraisablehook = hook
        if asked:  # also where Python dropped what was raised, just before the end
            raise SystemExit


@contextlib.contextmanager
def _ignored(number):
    handler = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, handler)


def run_all(tasks, folder, *, jobs=1, finished=None):
    """Run the (experiment, seed, config) tasks that have no rows yet; return messages about failures.

    `finished` is called with every task when it is done.
    """
    failures, waiting = [], []
    for task in tasks:
        experiment, seed, config = task
        if read_rows(folder, experiment, seed, config) is None:
            waiting.append(task)
        elif finished:
            finished(task)
    for task, failure in _attempts(waiting, folder, jobs):
        if failure:
            failures.append(failure)
        if finished:
            finished(task)
    return failures


def _attempts(tasks, folder, jobs):
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield task, _attempt(task, folder)
        return
    with _one_thread_each():
        spawn = multiprocessing.get_context("spawn")  # jax's threads do not survive a fork
        pool = ProcessPoolExecutor(jobs, spawn)
        try:
            with _ignored(signal.SIGINT):  # workers inherit it: Ctrl-C reaches them too, but this process ends them
                waiting = {pool.submit(_attempt_in_worker, task, folder): task for task in tasks}
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool:
            raise RuntimeError(
                "Expected all processes to finish, got one that was killed, perhaps for lack of memory; finished seeds "
                "are kept: run again with fewer --jobs."
            ) from None
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _one_thread_each():
    """Limit processes started inside to one thread: two that use every core are eight times slower than one."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
