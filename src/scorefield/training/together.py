"""Train the models of several fits at once: those of one shape share one program."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.errors import DivergedError
from scorefield.training.loop import Progress, Trained, train_many
from scorefield.training.minibatches import joined

UNUSUAL = ("jax_enable_x64", "jax_debug_nans", "jax_disable_jit", "jax_default_matmul_precision")
T = TypeVar("T")
Callback = Callable[[Progress], bool | None] | None


class Task(NamedTuple):
    """One model to train; `held_out` is another table, to stop by, and the options are those of `train_many`."""

    key: jax.Array
    model: Any
    table: Any
    objective: Any
    held_out: Any
    options: dict[str, Any]

    def shape(self) -> tuple:
        """What tasks of one program have in common."""
        leaves, structure = jax.tree.flatten((self.model, self.objective))
        columns = [np.shape(leaf)[1:] for leaf in jax.tree.leaves(self.table)]
        shared = [item for item in self.options.items() if item[0] not in ("learning_rate", "callback")]
        sizes = [np.shape(leaf) for leaf in leaves]
        given = self.held_out is None, "learning_rate" in self.options
        return structure, tuple(sizes), tuple(columns), given, tuple(sorted(shared))


def train_together(tasks: Sequence[Task]) -> list[Trained]:
    """Train the models of all tasks, those of one shape in one program; each draws what it would draw alone.

    Of the callbacks of tasks that share a program the first is called, with the losses of all. Of an error,
    `DivergedError.model` is the task's number.
    """
    groups: dict[tuple, list[int]] = {}
    for number, task in enumerate(tasks):
        groups.setdefault(task.shape(), []).append(number)
    results: dict[int, Trained] = {}
    for numbers in groups.values():
        own = [tasks[number] for number in numbers]
        tables, splits = [task.table for task in own], None
        if own[0].held_out is not None:
            both = [joined(task.table, task.held_out) for task in own]
            tables, splits = [table for table, _ in both], [split for _, split in both]
        options = dict(own[0].options)
        if "learning_rate" in options:
            options["learning_rate"] = [task.options["learning_rate"] for task in own]
        callbacks = [task.options["callback"] for task in own if task.options.get("callback")]
        options["callback"] = callbacks[0] if callbacks else None
        keys = jnp.stack([task.key for task in own])
        try:
            models, objectives = [task.model for task in own], [task.objective for task in own]
            fits = train_many(keys, models, tables, objectives, splits=splits, **options)
        except DivergedError as error:
            error.model = numbers[error.model]
            raise
        results.update(zip(numbers, fits, strict=True))
    return [results[number] for number in range(len(tasks))]


def n_threads() -> int:
    """Threads that train models: one for each core, or one where an accelerator trains them in one program.

    One, too, where jax has unusual settings, which may be those of the calling thread.
    """
    if jax.default_backend() != "cpu" or any(getattr(jax.config, name) for name in UNUSUAL):
        return 1
    asked = os.environ.get("NPROC", "")  # what jax goes by
    if asked.isdigit():
        return max(int(asked), 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _with_context(function: Callable[..., T]) -> Callable[..., T]:
    """The function with the default device of the calling thread, for use in another one."""
    device = jax.config.jax_default_device  # type: ignore[attr-defined]

    def called(*args: Any) -> T:
        with jax.default_device(device):
            return function(*args)

    return called


@contextmanager
def in_background(function: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """A function that returns the result of another, which is computed meanwhile where there are threads for it."""
    if n_threads() == 1:
        yield cache(function)
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(_with_context(function)).result


def side_by_side(function: Callable[[int, Callback], T], n: int, callback: Callback) -> list[T]:
    """function(number, callback) for n numbers, in threads: while one traces a program, another compiles.

    The callback is called by one thread at a time, with the losses of all models that train at the time and the mean
    step of all n: those to come have none, those done have all. Once it returns a true value, the others end at their
    next call, those to come at their first one. Once one of the n fails or is interrupted, no other begins.
    """
    lock, over = threading.Lock(), threading.Event()
    under_way: dict[int, Progress] = {}
    n_done = 0

    def watched(number: int, progress: Progress) -> bool | None:
        with lock:
            under_way[number] = progress
            if callback and not over.is_set() and callback(_of_all(under_way.values(), n_done, n)):
                over.set()
            return over.is_set()

    def watching(number: int) -> T:
        nonlocal n_done
        try:
            return function(number, partial(watched, number))
        except BaseException:
            over.set()
            raise
        finally:
            with lock:
                n_done += 1
                under_way.pop(number, None)

    n_workers = min(n_threads(), n)
    if n_workers == 1:
        return [watching(number) for number in range(n)]
    with ThreadPoolExecutor(n_workers) as pool:
        asked = [pool.submit(_with_context(watching), number) for number in range(n)]
        try:
            wait(asked, return_when=FIRST_EXCEPTION)
        except BaseException:  # an interrupt of the calling thread
            over.set()
            raise
        finally:
            for each in asked:
                each.cancel()  # where it has not begun
        return [each.result() for each in asked if not each.cancelled()]


def _of_all(parts: Iterable[Progress], n_done: int, n: int) -> Progress:
    """The progress of n groups of models as that of one: of those under way, those done and those to come."""
    parts = list(parts)
    losses, held = (np.concatenate([getattr(part, name) for part in parts]) for name in ("loss", "held_out_loss"))
    most = parts[0].max_steps
    return Progress((n_done * most + sum(part.step for part in parts)) // n, most, losses, held)
