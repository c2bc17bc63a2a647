"""Rows on disk: one file a seed, whole or absent, with the settings and versions that made it.

A run that was stopped goes on where it was: a seed whose file has the same settings is not repeated.
"""

import contextlib
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import platform
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from scorefield.files import write_whole

PACKAGES = ("scorefield", "jax", "numpy", "scipy", "scikit-learn", "imbalanced-learn", "xgboost-cpu")
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def versions():
    """Versions of what the numbers depend on."""
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
    raise TypeError(f"Expected plain values in a row, got {type(value).__name__}.")


def rows_path(folder, name, seed):
    """Where the rows of one seed lie."""
    return pathlib.Path(folder) / "rows" / name / f"seed-{seed:03d}.jsonl"


def read_rows(folder, name, seed, config):
    """The header and rows of a finished seed, or None where there are none of these settings."""
    path = rows_path(folder, name, seed)
    try:
        header, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return None
    except ValueError:
        warnings.warn(f"{path} is no file of rows; the seed is run again.", stacklevel=2)
        return None
    same = header.get("config") == json.loads(json.dumps(config, default=_plain))
    return (header, rows) if same and header.get("rows") == len(rows) else None


def run_seed(experiment, seed, config, folder):
    """Run one seed and write its rows; returns the header."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small classes and short budgets are part of the settings here
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
    write_whole(rows_path(folder, experiment.name, seed), "\n".join(lines) + "\n")
    return header


def _run_named(name, seed, config, folder):
    from scorefield.paper.registry import EXPERIMENTS

    return run_seed(EXPERIMENTS[name], seed, config, folder)


def run_all(tasks, folder, *, jobs=1, finished=None):
    """Run (experiment, seed, config) tasks that have no rows yet; `finished` is called with every task in turn."""
    open_tasks = []
    for task in tasks:
        experiment, seed, config = task
        if read_rows(folder, experiment.name, seed, config) is None:
            open_tasks.append(task)
        elif finished:
            finished(task)
    if jobs == 1:
        for experiment, seed, config in open_tasks:
            run_seed(experiment, seed, config, folder)
            if finished:
                finished((experiment, seed, config))
        return
    # Fresh processes: jax's threads do not survive a fork.
    with _one_thread_each(), ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_run_named, e.name, seed, c, folder): (e, seed, c) for e, seed, c in open_tasks}
        try:
            for future in as_completed(futures):
                future.result()
                if finished:
                    finished(futures[future])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextlib.contextmanager
def _one_thread_each():
    """Processes started inside use one thread: two that each want every core are eight times slower than one."""
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
