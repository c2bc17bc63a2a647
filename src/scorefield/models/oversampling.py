"""Over-sampling of a table: candidates of each class, of which some are kept, as a table like the one that came.

One way for numbers and mixed rows, for tables in memory and for parts of larger ones, for learners and for sharing.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from scorefield._jax.random import seed_from
from scorefield.data.containers import Table, append_rows, replace_cells, take_rows
from scorefield.data.encoding import TableEncoder
from scorefield.data.possible_cells import given_limits
from scorefield.data.scaling import column_spread
from scorefield.data.spaces import as_numbers, is_mixed
from scorefield.models.proposals import ClassDensities, RowEnergy, TeacherSteps
from scorefield.models.selection import MAX_RIVALS, draws_for, even_shares, some_places
from scorefield.models.teachers import fitted_teacher, probabilities
from scorefield.models.teaching import chosen_by_weight

BATCH_ROWS = 1 << 16  # new rows that are drawn and judged at a time
CANDIDATES = 6  # for each row that is kept for a learner
MANY_CANDIDATES = 200_000  # of a class, from which on there are twice as many as rows that are kept
BATCH = 1 << 14  # rows that are kept for a learner at a time: candidates take memory
POWER = 4.0  # of the teacher's probability, in proportion to which rows are kept


@dataclasses.dataclass
class Task:
    """A table in memory, and the number of new rows of each of its classes; also what is asked of the whole table."""

    X: Any
    y: np.ndarray
    wanted: dict
    weights: np.ndarray | None = None  # of the rows, for a teacher

    @functools.cached_property
    def _numbers(self):
        return as_numbers(self.X)

    def spread(self):
        """Deviations of the columns of numbers."""
        return column_spread(self._numbers)

    def ranges(self):
        """Least and greatest values of the columns of numbers."""
        return self._numbers.min(axis=0), self._numbers.max(axis=0)

    def rivals(self, label, rng):
        """Numbers of some rows of the other classes."""
        places = np.flatnonzero(self.y != label)
        return self._numbers[places[some_places(rng, len(places), MAX_RIVALS)]]

    def refuse_boundary(self):
        """Nothing: rows near the boundary can be told with all classes in memory."""

    def with_constants(self, table, numbers, new):
        """A new table as it is: a column that is constant in the numbers is so in new rows."""
        return table

    def set_keys(self, encoder):
        """Nothing: identifiers continue those of the table that the encoder was fitted to."""


@dataclasses.dataclass
class Settings:
    """How new rows are made; the classes of the classifier and of the density are told by the estimator."""

    purpose: str
    where: str
    density: Any
    sampler: Any
    teacher: Any
    bounds: Any
    columns: dict | None
    ids: str
    random_state: Any
    classifier: type
    density_class: type
    owner: Any = None  # the estimator whose progress is reported
    last_is_free: bool = False  # whether the last column stays as drawn, whatever its cells may be
    mixed: bool | None = None  # whether the table is a mixed one; None finds out

    @property
    def from_teacher(self):
        """Whether a teacher's steps give the candidates; otherwise a density or a sampler that was given does."""
        return self.purpose == "learning" and self.density is None and self.sampler is None

    @property
    def gives_limits(self):
        """Whether bounds were given as numbers."""
        return not (self.bounds is None or isinstance(self.bounds, str))

    def limits(self, d):
        """Given bounds as two arrays (d,), or None for no bounds and for those of the table."""
        return given_limits(self.bounds, d) if self.gives_limits else None

    def seed(self):
        """A seed of numpy's generators."""
        return seed_from(self.random_state) % (1 << 31)

    def density_or_default(self):
        """The density to clone."""
        return self.density_class() if self.density is None else self.density

    def fitted_teacher(self, task, seed):
        """The teacher, fitted to the rows of a task."""
        teacher = self.classifier(columns=self.columns) if self.teacher is None else self.teacher
        return fitted_teacher(np.random.default_rng(seed), teacher, task.X, task.y, task.weights)


class Made(NamedTuple):
    """New rows: a table like the one of the task, labels, parents, and what they were made by."""

    table: Any
    labels: np.ndarray
    parents: np.ndarray
    source: Any = None  # `ClassDensities`, `RowEnergy` or `TeacherSteps`; None where no row was asked for
    teacher: Any = None
    soft_labels: np.ndarray | None = None  # of all rows, those of the task first
    weights: np.ndarray | None = None


def over_sample(task, settings):
    """The new rows that a `Task` asks for, as `Made`."""
    if settings.mixed is None:
        settings = dataclasses.replace(settings, mixed=is_mixed(task.X, settings.columns))
    if not any(task.wanted.values()):
        if settings.mixed:
            TableEncoder(settings.columns).fit(task.X)  # a column that cannot be read is refused all the same
        return Made(None, task.y[:0], np.zeros(0, np.intp))
    of_law = RowEnergy if settings.mixed else ClassDensities
    source = (TeacherSteps if settings.from_teacher else of_law)(task, settings)
    make = _for_learning if settings.purpose == "learning" else _for_sharing
    return make(task, settings, source)


def _labels_of(task):
    labels = [np.full(n, label, dtype=task.y.dtype) for label, n in task.wanted.items() if n]
    return np.concatenate([task.y[:0], *labels])


def _for_sharing(task, settings, source):
    """Rows of each class by its law, or those of them that lie where they are asked for; batches bound the memory."""
    drawn, parents = [], []
    for label, n in task.wanted.items():
        if not n:
            continue
        keep, samplers = source.keeper(label), source.samplers(label)
        for sampler, share in zip(samplers, even_shares(n, len(samplers)), strict=True):
            for start in range(0, share, BATCH_ROWS):
                size = min(BATCH_ROWS, share - start)
                many = round(draws_for(settings.where) * size)
                made, starts = source.drawn(label, many, at=start, sampler=sampler)
                kept = np.arange(size) if keep is None or many == size else keep(made, size)
                drawn.append(made[kept])
                parents.append(starts[kept])
    return Made(source.table(np.concatenate(drawn)), _labels_of(task), np.concatenate(parents), source)


def _for_learning(task, settings, source):
    """Rows in proportion to a power of a teacher's probability of their class, and the weights that undo it."""
    seed, classes = source.seed, np.unique(task.y)
    teacher = settings.fitted_teacher(task, seed) if source.teacher is None else source.teacher
    rows, parents, soft, undone = [], [], [np.eye(len(classes))[np.searchsorted(classes, task.y)]], []
    for position, (label, n) in enumerate(task.wanted.items()):
        k, rng = int(np.searchsorted(classes, label)), np.random.default_rng([seed, position, 3])
        for batch, (size, many) in enumerate(_batches(n)):
            drawn, starts = source.drawn(label, many, rng, at=batch)
            made = source.table(drawn, label)
            proba = probabilities(teacher, classes, made)
            log_weights = POWER * np.log(np.maximum(proba[:, k], np.finfo(float).tiny))
            chosen = chosen_by_weight(rng, log_weights, size)
            rows.append(take_rows(made, chosen.places))
            parents.append(starts[chosen.places])
            soft.append(proba[chosen.places])
            undone.append(chosen.weights * (size / chosen.weights.sum()))
    table = _with_new_keys(task, settings, functools.reduce(append_rows, rows), seed)
    weights = np.concatenate([np.ones(len(task.y)), *undone])
    return Made(
        table, _labels_of(task), np.concatenate(parents), source, teacher, np.concatenate(soft), weights
    )  # fmt: skip


def _batches(n):
    """Numbers of rows to keep and of candidates."""
    share = max(2.0, min(CANDIDATES, MANY_CANDIDATES / n)) if n else 0.0
    for begin in range(0, n, BATCH):
        size = min(BATCH, n - begin)
        yield size, round(share * size)


def _with_new_keys(task, settings, rows, seed):
    """New rows with identifiers of their own, as `ids` says, and without the texts of their parents."""
    if not settings.mixed:
        return rows
    encoder = TableEncoder(settings.columns).fit(task.X)
    if not encoder.set_aside:
        return rows
    if settings.ids == "new":
        task.set_keys(encoder)
    anew = encoder.decode(encoder.encode(rows), task.X, seed, settings.ids)
    return replace_cells(rows, anew, dict.fromkeys(encoder.set_aside, np.ones(len(Table(rows).native), bool)))
