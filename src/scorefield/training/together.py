"""Train the models of several fits at once: those of one shape share one program."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.errors import DivergedError
from scorefield.training.loop import Progress, Trained, train_many
from scorefield.training.minibatches import joined

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
    """Threads that are worth starting: one for each core, or one where an accelerator trains models in one program."""
    if jax.default_backend() != "cpu":
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(os.environ.get("NPROC", allowed))  # NPROC is what jax goes by


def side_by_side(function: Callable[[int, Callback], T], n: int, callback: Callback) -> list[T]:
    """function(number, callback) for n numbers, in as many threads: while one traces a program, another compiles.

    The callback is called by one thread at a time. An error of the calling thread, such as an interrupt, ends the
    others at their next call.
    """
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    lock, over = threading.Lock(), threading.Event()

    def watched(progress: Progress) -> bool | None:
        with lock:
            return over.is_set() or (callback(progress) if callback else None)

    def in_thread(number: int) -> T:
        with jax.default_device(device):  # a context of the calling thread
            return function(number, watched)

    with ThreadPoolExecutor(max(n - 1, 1)) as pool:
        others = [pool.submit(in_thread, number) for number in range(1, n)]
        try:
            return [function(0, watched), *(other.result() for other in others)]
        except BaseException:
            over.set()
            raise
