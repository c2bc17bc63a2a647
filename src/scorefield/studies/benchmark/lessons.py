"""What the arms of `learning` share in one split: the teachers, the new rows, and tables to fit a learner to.

The controls are built here by hand from the parts of DistilledClassifier, so that each differs from it in one thing.
"""

import functools

import numpy as np
from sklearn.base import clone

from scorefield.data.containers import Table, append_rows, copy_cells, take_rows
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.evaluation.metrics import measured
from scorefield.models.new_rows import NewRows
from scorefield.models.students import is_linear, weight_argument, weight_of_new
from scorefield.models.teaching import SOFT_STEPS, parents_by_class, repeated, soft_lesson

ROWS_PER_ROW = 4  # new rows for each real one, as DistilledClassifier makes them
SPUNGE_SHARE, SPUNGE_NOISE, SPUNGE_COLUMNS = 0.1, 0.1, 10  # of cells, in deviations; least columns to redraw in


class Lessons:
    """Teachers and new rows of one split; each is made once, when the first arm needs it.

    Parameters
    ----------
    split : object
        With training rows ``X``, labels ``y`` of zeros and ones, and folds ``inner`` of them.
    peers : dict
        Name to the unfitted classifier of each other teacher.
    seed : int
    """

    def __init__(self, split, peers, seed):
        self.split, self.peers, self.seed = split, peers, seed
        self.seconds: dict[str, float] = {}  # name of a shared part to its seconds

    def timed(self, name, make):
        """What `make` returns; its seconds are kept, since every arm that uses it would have to spend them."""
        with measured() as cost:
            found = make()
        self.seconds[name] = cost.seconds
        return found

    @functools.cached_property
    def teacher(self):
        model = ScoreClassifier(random_state=self.seed)
        return self.timed("teacher", lambda: model.fit(self.split.X, self.split.y))

    @functools.cached_property
    def out_of_fold(self):
        """Probabilities (n, 2) of the training rows by teachers that have not seen them."""

        def make():
            proba = np.empty((len(self.split.y), 2))
            for kept, held in self.split.inner:
                model = ScoreClassifier(random_state=self.seed)
                model.fit(take_rows(self.split.X, kept), self.split.y[kept])
                proba[held] = model.predict_proba(take_rows(self.split.X, held))
            return proba

        return self.timed("out of fold", make)

    @functools.cache  # noqa: B019  lives as long as its split
    def peer(self, name):
        """Another teacher, fitted to the training rows."""
        return self.timed(name, lambda: clone(self.peers[name]).fit(self.split.X, self.split.y))

    @functools.cache  # noqa: B019
    def new_rows(self, kind, in_proportion):
        """New rows and the rows that they start from, in random order."""
        X, y, rng = self.split.X, self.split.y, np.random.default_rng([self.seed, 1])
        parents = parents_by_class(rng, y, ROWS_PER_ROW * len(y), in_proportion=in_proportion)
        if kind == "spunge":
            return spunge_rows(rng, X, parents), parents
        return NewRows(X, self.teacher).drawn(rng, parents, y[parents], SOFT_STEPS, np.arange(len(y))), parents

    def taught(self, model, proba_of, kind="chains"):
        """The model fitted to the real rows and to new ones, whose labels are ``proba_of(rows, parents)``."""
        new, parents = self.new_rows(kind, is_linear(model))
        lesson = soft_lesson(proba_of(new, parents))
        X, y = self.split.X, self.split.y
        table = append_rows(X, take_rows(new, lesson.rows))
        weights = np.concatenate([np.ones(len(y)), weight_of_new(model, len(y), lesson) * lesson.weights])
        return self.fitted(model, table, np.concatenate([y, lesson.classes]), weights), len(weights)

    def relabelled(self, model, own_share):
        """The model fitted to the real rows alone, with out-of-fold labels beside a share of their own labels."""
        proba = own_share * np.eye(2)[self.split.y] + (1 - own_share) * self.out_of_fold
        lesson = soft_lesson(proba)
        table = take_rows(self.split.X, lesson.rows)
        return self.fitted(model, table, lesson.classes, lesson.weights), len(lesson.weights)

    def fitted(self, model, table, labels, weights):
        """The model fitted to weighted rows; one that takes no weights gets rows in proportion to them."""
        fresh, name = clone(model), weight_argument(model)
        if name is not None:
            return fresh.fit(table, labels, **{name: weights})
        places = repeated(np.random.default_rng([self.seed, 2]), weights)
        return fresh.fit(take_rows(table, places), labels[places])


def spunge_rows(rng, X, parents):
    """Rows as AutoGluon's `distill` makes them (experimental there, "spunge"), written from its description.

    A tenth of a row's cells is redrawn from the columns, then a tenth of its numbers gets noise of a tenth of the
    column's standard deviation; in tables of fewer than ten columns nothing is redrawn.
    """
    names = Table(X).names
    sources = np.repeat(parents[:, None], len(names), axis=1)
    if len(names) >= SPUNGE_COLUMNS:
        redrawn = rng.random(sources.shape) < SPUNGE_SHARE
        sources[redrawn] = rng.integers(0, len(X), int(redrawn.sum()))
    made = copy_cells(X, sources)
    if isinstance(X, np.ndarray):
        noisy = rng.random(made.shape) < SPUNGE_SHARE
        return made + noisy * SPUNGE_NOISE * X.std(axis=0) * rng.standard_normal(made.shape)
    for name in X.select_dtypes("number"):
        noise = SPUNGE_NOISE * X[name].std(ddof=0) * rng.standard_normal(len(made))
        made[name] = made[name].astype(float) + np.where(rng.random(len(made)) < SPUNGE_SHARE, noise, 0.0)
    return made
