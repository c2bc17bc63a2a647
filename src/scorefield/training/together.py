"""Train the models of several fits at once: those of one shape share one program."""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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
    """Threads for models of one shape: one for each core, or one where an accelerator trains them in one program."""
    if jax.default_backend() != "cpu":
        return 1
    asked = os.environ.get("NPROC", "")  # what jax goes by
    if asked.isdigit():
        return max(int(asked), 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(function: Callable[[int, Callback], T], n: int, callback: Callback) -> list[T]:
    """function(number, callback) for n numbers, in as many threads: while one traces a program, another compiles.

    The callback is called by one thread at a time, with the losses of all models that still train and the step of the
    slowest. An error in one of them, such as an interrupt, ends the others at their next call. Where jax has unusual
    settings, which may be those of the calling thread, the numbers are done in turn.
    """
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    lock, over = threading.Lock(), threading.Event()
    under_way: dict[int, Progress] = {}

    def watched(number: int, progress: Progress) -> bool | None:
        with lock:
            under_way[number] = progress
            return over.is_set() or (callback(_of_all(under_way.values())) if callback else None)

    def watching(number: int) -> T:
        try:
            with jax.default_device(device):  # a context of the calling thread
                return function(number, partial(watched, number))
        except BaseException:
            over.set()
            raise
        finally:
            with lock:
                under_way.pop(number, None)

    if n == 1 or any(getattr(jax.config, name) for name in UNUSUAL):
        return [function(number, callback) for number in range(n)]
    with ThreadPoolExecutor(n - 1) as pool:
        try:
            others = [pool.submit(watching, number) for number in range(1, n)]
            first = watching(0)
        except BaseException:
            over.set()
            raise
        return [first, *(other.result() for other in others)]


def _of_all(parts: Iterable[Progress]) -> Progress:
    """The progress of several groups of models as that of one."""
    parts = list(parts)
    losses, held = (np.concatenate([getattr(part, name) for part in parts]) for name in ("loss", "held_out_loss"))
    return Progress(min(part.step for part in parts), parts[0].max_steps, losses, held)
