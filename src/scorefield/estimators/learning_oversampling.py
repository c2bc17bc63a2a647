"""How `ScoreOverSampler` makes rows for a learner: candidates, kept in proportion to a teacher's probability."""

import functools

import numpy as np

from scorefield._jax.errors import warn_caller
from scorefield.data.checks import plain
from scorefield.data.containers import Table, append_rows, replace_cells, take_rows
from scorefield.data.encoding import TableEncoder
from scorefield.data.scaling import reflected
from scorefield.data.spaces import is_mixed
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.mixed_oversampling import FEW_ROWS
from scorefield.models.new_rows import NewRows
from scorefield.models.selection import one_row_warning, some_places
from scorefield.models.teachers import fitted_teacher, probabilities
from scorefield.models.teaching import HARD_STEPS, chosen_by_weight, spread_choice

CANDIDATES = 6  # for each row that is kept
MANY_CANDIDATES = 200_000  # of a class, from which on there are twice as many as rows that are kept
BATCH = 1 << 14  # rows that are kept at a time: candidates take memory
POWER = 4.0  # of the probability, in proportion to which rows are kept
MAX_ASKED = 50_000  # rows whose probabilities are asked for, to start chains from those that may belong to a class


class OverSamplesForLearning:
    """Mixin of `ScoreOverSampler`: `purpose="learning"`."""

    def _proposes(self):
        """Whether candidates come from a density or a sampler that was given."""
        return self.density is not None or self.sampler is not None

    def _rows_for_learning(self, X, y, seed, columns=None, possible=None, draws=None, weights=None, keys_of=None):
        """New rows as a table like X, their labels, and the indices of their parents.

        ``draws`` maps labels to functions of n that return candidates as a table and their parents; without it they
        come from short steps of the teacher's energy. ``weights`` are those of the rows for the teacher, ``keys_of`` is
        as in `_mixed_rows`.
        """
        if not any(self.sampling_strategy_.values()):
            return None, y[:0], []
        classes = np.unique(y)
        teacher = ScoreClassifier(columns=columns) if self.teacher is None else self.teacher
        self.teacher_ = fitted_teacher(np.random.default_rng(seed), teacher, X, y, weights)
        new = None if draws else NewRows(X, self.teacher_, possible, columns)
        within = self._within_limits(X, columns) if new is not None and new.energy is None else None
        likely = None if draws else functools.cache(functools.partial(_asked_rows, self.teacher_, classes, X, seed))
        rows, labels, parents, soft, undone = [], [y[:0]], [], [np.eye(len(classes))[np.searchsorted(classes, y)]], []
        for position, (label, n) in enumerate(self.sampling_strategy_.items()):
            if not n:
                continue
            own, k = np.flatnonzero(y == label), int(np.searchsorted(classes, label))
            rng = np.random.default_rng([seed, position, 3])
            if not draws and (len(own) == 1 or (new.energy is not None and not np.ptp(new.numbers[own], axis=0).any())):
                warn_caller(one_row_warning(plain(label), len(own), "steps of the teacher's energy"))
            elif not draws and len(own) < FEW_ROWS:
                warn_caller(f"Class {plain(label)!r} has only {len(own)} rows; new ones lean on the other classes.")
            draw = draws[label] if draws else functools.partial(_stepped, new, rng, own, k, within, likely)
            for size, many in _batches(n):
                made, starts = draw(many)
                proba = probabilities(self.teacher_, classes, made)
                log_weights = POWER * np.log(np.maximum(proba[:, k], np.finfo(float).tiny))
                chosen = chosen_by_weight(rng, log_weights, size)
                rows.append(take_rows(made, chosen.places))
                parents.append(starts[chosen.places])
                soft.append(proba[chosen.places])
                undone.append(chosen.weights * (size / chosen.weights.sum()))
            labels.append(np.full(n, label, dtype=y.dtype))
        self.soft_labels_ = np.concatenate(soft)
        self.sample_weight_ = np.concatenate([np.ones(len(y)), *undone])
        made = self._with_new_keys(X, functools.reduce(append_rows, rows), columns, seed, keys_of)
        return made, np.concatenate(labels), parents

    def _with_new_keys(self, X, rows, columns, seed, keys_of):
        """New rows with identifiers of their own, as `ids` says, and without the texts of their parents."""
        if not is_mixed(X, columns):
            return rows
        encoder = TableEncoder(columns).fit(X)
        if not encoder.set_aside:
            return rows
        if keys_of is not None and self.ids == "new":
            encoder.set_keys(keys_of(encoder.identifiers))
        anew = encoder.decode(encoder.encode(rows), X, seed, self.ids)
        return replace_cells(rows, anew, dict.fromkeys(encoder.set_aside, np.ones(len(Table(rows).native), bool)))

    def _within_limits(self, X, columns):
        """A function that reflects the numbers of a mixed table at given bounds; None where there are none."""
        if self.bounds is None or isinstance(self.bounds, str):
            return None  # cells are those of real rows
        encoder = TableEncoder(columns).fit(X)
        low, high = self._limits(sum(v.number >= 0 for v in encoder.variables))

        def within(rng, table):
            numbers, codes = encoder.encode(table)
            return encoder.decode((reflected(numbers, low, high), codes), X, rng)

        return within


def _asked_rows(teacher, classes, X, seed):
    """Places of some rows of a table, and the teacher's probabilities of the classes there."""
    n = len(Table(X).native)
    places = some_places(np.random.default_rng([seed, 4]), n, MAX_ASKED)
    return places, probabilities(teacher, classes, take_rows(X, places))


def _stepped(new, rng, own, k, within, likely, n):
    """n candidates of class k by short steps from rows, and those rows.

    Half of them start from the rows of the class in turn, half from rows of any class in proportion to the probability
    of class k: they lie where the class may be and has few rows. Few rows of a class are not enough for that.
    """
    n_own = n if len(own) < FEW_ROWS else n - n // 2
    parents = np.concatenate([rng.permutation(own) for _ in range(-(-n_own // len(own)))])[:n_own]
    if n_own < n:
        places, proba = likely()
        parents = np.concatenate([parents, places[spread_choice(rng, n - n_own, proba[:, k], len(places))]])
    made = new.drawn(rng, parents, np.full(n, k), HARD_STEPS, own)
    return made if within is None else within(rng, made), parents


def _batches(n):
    """Numbers of rows to keep and of candidates."""
    share = max(2.0, min(CANDIDATES, MANY_CANDIDATES / n))
    for begin in range(0, n, BATCH):
        size = min(BATCH, n - begin)
        yield size, round(share * size)
