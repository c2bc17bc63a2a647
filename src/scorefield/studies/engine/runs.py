"""Rows on disk: one file for each experiment, with settings and versions of every seed. Files are complete or absent.

A file holds the seeds one after the other: a line of settings and versions, then the seed's rows. A stopped run can be
resumed: seeds that are in the file with the same settings are not repeated. A seed whose settings name `parts` can be
run a part at a time: only the parts that are not in the file are run, and their rows join the seed's others.
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
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import numpy as np

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


PARTS = "parts"  # of the settings: what to run of a seed, which is no setting of its rows


def _settings(config):
    return {name: value for name, value in config.items() if name != PARTS}


def rows_path(folder, experiment, config):
    """File for the rows of an experiment; settings other than the experiment's own have their own file."""
    name, config = experiment.name, _settings(config)
    if config != _settings(experiment.config):
        name += "-with-" + hashlib.sha256(json.dumps(config, sort_keys=True, default=_plain).encode()).hexdigest()[:8]
    return pathlib.Path(folder) / "rows" / f"{name}.jsonl"


def _seeds(path):
    """Seed to header and rows, for the seeds that are whole in a file."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    parts, n_damaged = [], 0
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            n_damaged += 1
            continue
        if "versions" in entry:
            parts.append((entry, []))
        elif parts and entry["seed"] == parts[-1][0]["seed"]:
            parts[-1][1].append(entry)
        else:
            n_damaged += 1
    whole = {header["seed"]: (header, rows) for header, rows in parts if header["rows"] == len(rows)}
    if n_damaged or len(whole) < len(parts):
        warnings.warn(f"Expected whole seeds in {path}, got damaged ones; they are run again.", stacklevel=3)
    return whole


def read_rows(folder, experiment, config):
    """Seed to header and rows, for the finished seeds with these settings."""
    same = json.loads(json.dumps(_settings(config), default=_plain))
    seeds = _seeds(rows_path(folder, experiment, config))
    return {seed: part for seed, part in seeds.items() if part[0]["config"] == same}


def run_seed(experiment, seed, config):
    """Run one seed; return its header and rows as they are written to its file."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected here: small classes and short training
        rows = [{"experiment": experiment.name, "seed": seed, **row} for row in experiment.run(seed, config)]
    header = {
        "experiment": experiment.name,
        "seed": seed,
        "config": _settings(config),
        **({PARTS: config[PARTS]} if PARTS in config else {}),
        "rows": len(rows),
        "seconds": round(time.perf_counter() - begin, 1),
        "versions": versions(),
        "machine": platform.machine(),
    }
    return json.loads(json.dumps([header, rows], default=_plain))


def _add(part, path):
    """Add the header and rows of a seed to a file, in the order of the seeds.

    The file is read again each time: another command may have added seeds of its own.
    """
    seeds = _seeds(path)
    seed = part[0]["seed"]
    seeds[seed] = _joined(seeds[seed], part) if seed in seeds and PARTS in part[0] else part
    lines = [json.dumps(entry) for _, (header, rows) in sorted(seeds.items()) for entry in (header, *rows)]
    write_whole(path, "\n".join(lines) + "\n")


def _joined(before, part):
    """Header and rows of a seed with further parts; versions are those of the last run."""
    (earlier, rows), (header, more) = before, part
    if earlier["config"] != header["config"] or PARTS not in earlier:
        return part
    seconds = round(earlier["seconds"] + header["seconds"], 1)
    parts = [*earlier[PARTS], *header[PARTS]]
    return {**header, PARTS: parts, "rows": len(rows) + len(more), "seconds": seconds}, [*rows, *more]


def _remaining(task, there):
    """The task without the parts that are done, or None where nothing remains."""
    experiment, seed, config = task
    if seed not in there:
        return task
    if PARTS not in config:
        return None
    done = there[seed][0].get(PARTS, [])
    missing = [part for part in config[PARTS] if part not in done]
    return (experiment, seed, {**config, PARTS: missing}) if missing else None


def _attempt(task):
    """Run a task; return what it made and None, or None and one line about its failure, so that others go on."""
    experiment, seed, config = task
    try:
        return run_seed(experiment, seed, config), None
    except Exception as error:
        return None, f"{experiment.name}, seed {seed}: {type(error).__name__}: {' '.join(str(error).split())}"


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
    failures, waiting, there = [], [], {}
    for task in tasks:
        experiment, _, config = task
        path = rows_path(folder, experiment, config)
        if path not in there:
            there[path] = read_rows(folder, experiment, config)
        remaining = _remaining(task, there[path])
        if remaining:
            waiting.append(remaining)
        elif finished:
            finished(task)
    with contextlib.closing(_attempts(waiting, jobs)) as attempts:  # so that an error here ends the processes too
        for task, (part, failure) in attempts:
            if failure:
                failures.append(failure)
            else:
                _add(part, rows_path(folder, task[0], task[2]))
            if finished:
                finished(task)
    return failures


def _attempts(tasks, jobs):
    """Yield each task with what `_attempt` returns. Only this process writes files, so others may be ended at once."""
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield task, _attempt(task)
        return
    with _one_thread_each():
        spawn = multiprocessing.get_context("spawn")  # jax's threads do not survive a fork
        pool = ProcessPoolExecutor(jobs, spawn)
        try:
            with _ignored(signal.SIGINT):  # workers inherit it: Ctrl-C reaches them too, but this process ends them
                waiting = {pool.submit(_attempt, task): task for task in tasks}
            killed = False
            for future in as_completed(waiting):
                if isinstance(future.exception(), BrokenProcessPool):
                    killed = True  # the futures that were done before still come
                else:
                    yield waiting[future], future.result()
            if killed:
                raise RuntimeError(
                    "Expected all processes to finish, got one that was killed, perhaps for lack of memory; finished "
                    "seeds are kept: run again with fewer --jobs."
                )
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _one_thread_each():
    """Limit processes started inside to one thread: two that use every core are eight times slower than one.

    Other flags of XLA stay, so that processes compute the bits of their parent.
    """
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    flags = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD['XLA_FLAGS']}".strip()
    os.environ.update(ONE_THREAD | {"XLA_FLAGS": flags})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
