"""Fits of several densities at once: collect the networks to train, train them together, finish each fit."""

import contextlib
from typing import NamedTuple

import jax

from scorefield._jax.errors import DivergedError
from scorefield.training.losses import WeightedRow
from scorefield.training.together import Task, train_together


class Prepared(NamedTuple):
    """A table ready to be learned from: standardised rows, the split that models are chosen by, networks to train."""

    key: jax.Array
    rows: WeightedRow  # of arrays
    noise: float
    kept: WeightedRow
    held: WeightedRow
    tasks: dict[str, Task | None]  # by the candidate's name; None where it is solved in closed form


def fit_together(trainings, tables, names=None):
    """The `FieldDensity` of each training on its table; all networks of one shape train in one program.

    A table is a pair of rows and their weights, or None. Every fit draws the random numbers that it would draw alone.
    `names` are put before the errors of each.
    """
    names = [""] * len(trainings) if names is None else names
    prepared = []
    for training, (X, weights), name in zip(trainings, tables, names, strict=True):
        with errors_begin_with(name):
            prepared.append(training.prepared(X, weights))
    wanted = [(number, model) for number, each in enumerate(prepared) for model, task in each.tasks.items() if task]
    try:
        results = train_together([prepared[number].tasks[model] for number, model in wanted])
    except DivergedError as error:
        with errors_begin_with(names[wanted[error.model][0]]):
            raise
    trained = dict(zip(wanted, results, strict=True))
    densities = []
    for number, (training, name) in enumerate(zip(trainings, names, strict=True)):
        with errors_begin_with(name):
            fits = {m: fit for (owner, m), fit in trained.items() if owner == number}
            densities.append(training.finished(prepared[number], fits))
    return densities


@contextlib.contextmanager
def errors_begin_with(name):
    """Put a name before the messages of value errors."""
    try:
        yield
    except ValueError as error:
        if not name:
            raise
        raise ValueError(f"{name}: {error}") from error
