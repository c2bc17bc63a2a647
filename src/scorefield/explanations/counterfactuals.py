"""Counterfactuals: the nearest credible rows that a classifier would put into another class.

Chains start at the row and at rows of the other class that are near it. They move single columns to values that rows of
that class have, by the energy of the class, its odds and the cost of the changes; columns that may not change are held.
"""

import dataclasses
from typing import Any

import narwhals as nw
import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.errors import warn_caller
from scorefield._jax.random import seed_from
from scorefield.data.containers import Table, take_rows
from scorefield.data.row_space import flat_rows, split_rows
from scorefield.explanations.posterior import class_index, is_score_classifier
from scorefield.explanations.row_views import view_of

N_CHAINS, N_STEPS = 16, 60  # per row
LAST_TEMPERATURE = 0.1
NEAREST = 32  # rows of the class among which chains start and values are taken from half of the time
CREDIBLE = 0.05  # least share of the class's own rows that are less probable than a counterfactual
PUSH = 3.0  # nats of log weight for each nat of log odds or log density that is missing
BARRIER = 10.0  # nats for a row that is not credible or not of the class: more than most changes cost
HALVINGS = 3  # of the move of a number, after the chains
SHOWN_ROWS = 5


@dataclasses.dataclass(frozen=True)
class Counterfactuals:
    """Rows of another class near given ones, the cheapest first; the result of :func:`counterfactuals`.

    Attributes
    ----------
    rows : table like X
        The changed rows; other cells are those of X, identifiers too.
    index : ndarray of shape (m,)
        Position in X of the row that each belongs to.
    cost : ndarray of shape (m,)
        Number of changed columns, plus how far numbers move in standard units.
    log_density : ndarray of shape (m,)
        log p(row | target).
    probability : ndarray of shape (m,)
        p(target | row).
    changes : list of dict
        For each row the changed columns, with the values before and after.
    """

    rows: Any
    index: np.ndarray
    cost: np.ndarray
    log_density: np.ndarray
    probability: np.ndarray
    changes: list

    def __len__(self):
        return len(self.index)

    def __str__(self):
        lines, shown = [], np.unique(self.index)[:SHOWN_ROWS]
        for row in shown:
            lines.append(f"row {row}")
            for i in np.flatnonzero(self.index == row):
                moves = [f"{name}: {_short(old)} -> {_short(new)}" for name, (old, new) in self.changes[i].items()]
                lines.append(f"  cost {self.cost[i]:.1f}, probability {self.probability[i]:.2f}: {'; '.join(moves)}")
        more = len(np.unique(self.index)) - len(shown)
        return "\n".join([*lines, *([f"... and {more} more rows"] if more else [])])


def _short(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def counterfactuals(model, X, target=None, fixed=(), n=3, random_state=0):
    """The nearest credible rows of another class.

    Parameters
    ----------
    model : fitted ScoreClassifier
        Of numbers, or of a mixed table with missing values.
    X : array or DataFrame of shape (n_rows, d)
        Rows that the model puts into another class.
    target : label, default=None
        The class that they should be put into; None takes the other one of two.
    fixed : list of names, or of positions for an array
        Columns that may not change.
    n : int
        Most results per row.
    random_state : None, int or generator

    Returns
    -------
    Counterfactuals
        Every cell has a value that occurs in the fitted rows, the model predicts the target, and at least one in twenty
        of the target's own rows is less probable under its density.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreClassifier, ScoreDensity, counterfactuals
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-1, 1, (100, 2)), rng.normal(1, 1, (100, 2))])
    >>> y = np.repeat(["low", "high"], 100)
    >>> model = ScoreClassifier(ScoreDensity(model="gaussian"), random_state=0).fit(X, y)
    >>> rows = X[model.predict(X) == "low"][:2]
    >>> found = counterfactuals(model, rows, target="high", fixed=[1], n=1)
    >>> model.predict(found.rows).tolist(), bool((found.rows[:, 1] == rows[found.index, 1]).all())
    (['high', 'high'], True)
    """
    if not is_score_classifier(model):
        raise TypeError(f"Expected a fitted ScoreClassifier, got {type(model).__name__}.")
    check_is_fitted(model)
    if n < 1:
        raise ValueError(f"Expected n >= 1 counterfactuals of each row, got {n}.")
    view = view_of(model)
    rows, targets = view.read(X), _targets(model, X, target)
    columns, rng = _Columns(view, fixed), np.random.default_rng(seed_from(random_state))
    found, origins, labels = [], [], []
    for label in np.unique(targets):
        own = np.flatnonzero(targets == label)
        made, starts = _Search(view, columns, label, rng).run(rows[own])
        found, origins, labels = [*found, made], [*origins, own[starts]], [*labels, np.full(len(made), label)]
    return _results(view, columns, X, rows, np.concatenate(found), np.concatenate(origins), np.concatenate(labels), n)


def _targets(model, X, target):
    """Index of the class that each row should be put into."""
    predicted = np.searchsorted(model.classes_, model.predict(X))
    if len(predicted) == 0:
        raise ValueError("Expected at least one row, got none.")
    if target is None:
        if len(model.classes_) > 2:
            raise ValueError(f"Expected a target of {model.classes_.tolist()}, got None.")
        return 1 - predicted
    label = class_index(model.classes_, target, None, None)
    reached = np.flatnonzero(predicted == label)
    if len(reached):
        raise ValueError(
            f"Expected rows that are not predicted as {target!r} yet, got {len(reached)} that are, row {reached[0]} "
            "first; leave them out."
        )
    return np.full(len(predicted), label)


class _Columns:
    """Where the columns of rows are, which of them may change, and how far apart two rows are in each of them."""

    def __init__(self, view, fixed):
        self.space = getattr(view, "space", None)
        names, tied = view.names, {}
        if self.space is None:
            self.slots, self.places = [[j] for j in range(len(names))], np.arange(len(names))
            known = np.concatenate(view.known_rows())
            self.scale = np.where(known.std(axis=0) > 0, known.std(axis=0), 1.0)
        else:
            p = self.space.layout.n_numbers
            self.slots = [[*([j, p + j] if j >= 0 else []), *([2 * p + k] if k >= 0 else [])]
                          for j, k in self.space.layout.variables]  # fmt: skip
            self.places = np.array([names.index(name) for name in self.space.names])
            of_category = {v.category: v.name for v in self.space.encoder.variables if v.category >= 0}
            tied = {of_category[derived]: of_category[source] for source, derived, _ in self.space.ties}
        self.followers = {names.index(name): names.index(source) for name, source in tied.items()}
        self.free = self._free(names, fixed, tied)

    def _free(self, names, fixed, tied):
        """Columns of rows that may change."""
        fixed = [fixed] if isinstance(fixed, str) else list(fixed)
        unknown = [name for name in fixed if name not in names]
        if unknown:
            raise ValueError(f"Expected fixed columns of {names}, got {', '.join(map(repr, unknown))}.")
        held = {names.index(tied.get(name, name)) for name in fixed}
        free = [v for v, place in enumerate(self.places) if place not in held]
        if not free:
            raise ValueError("Expected at least one column that may change, got none; leave one out of `fixed`.")
        return free

    def lengths(self, a, b):
        """How far numbers move in each column, in standard units (n, columns)."""
        if self.space is None:
            return np.abs(a - b) / self.scale
        (x, known, _), (y, also, _) = split_rows(a, self.space.layout), split_rows(b, self.space.layout)
        moved = np.where(known & also, np.abs(x - y), 0.0)
        return np.column_stack([moved[:, j] if j >= 0 else np.zeros(len(a)) for j, _ in self.space.layout.variables])

    def changed(self, a, b):
        """True where two rows differ in a column (n, columns)."""
        if self.space is None:
            return a != b
        (x, known, codes), (y, also, others) = split_rows(a, self.space.layout), split_rows(b, self.space.layout)
        numbers, levels = (known != also) | (known & (x != y)), codes != others
        none = np.zeros(len(a), bool)
        return np.column_stack([(numbers[:, j] if j >= 0 else none) | (levels[:, k] if k >= 0 else none)
                                for j, k in self.space.layout.variables])  # fmt: skip

    def values(self, rows):
        """For each column the values of the first slot that rows have: of numbers where they are known."""
        known = np.ones(rows.shape, bool)
        if self.space is not None:
            p = self.space.layout.n_numbers
            known[:, :p] = rows[:, p : 2 * p] > 0
        return [np.unique(rows[known[:, slots[0]], slots[0]]) for slots in self.slots]

    def costs(self, a, b):
        """Number of changed columns plus how far numbers move, (n,)."""
        return self.changed(a, b).sum(axis=1) + self.lengths(a, b).sum(axis=1)

    def take(self, rows, others, chosen):
        """Rows with the `chosen` (n, columns) cells of other rows; regressions on other numbers are renewed."""
        rows = rows.copy()
        for v, slots in enumerate(self.slots):
            at = np.flatnonzero(chosen[:, v])
            rows[np.ix_(at, slots)] = others[np.ix_(at, slots)]
        if self.space is None:
            return rows
        x, known, codes = split_rows(rows, self.space.layout)
        return rows if known.all() else flat_rows(np.where(known, x, np.nan), codes, self.space.precision)


class _Search:
    """Chains from rows towards one class."""

    def __init__(self, view, columns, label, rng):
        self.view, self.columns, self.label, self.rng = view, columns, label, rng
        by_class = view.known_rows()
        self.donors = by_class[label]
        self.least = np.quantile(self._weigh(self.donors)[2], CREDIBLE)
        self.values = columns.values(np.concatenate(by_class))

    def _weigh(self, rows):
        """Whether the class is predicted, its log odds, and its log density at rows."""
        logits, log_likelihood = self.view.model.logits_and_log_likelihood(rows)
        others = np.delete(logits, self.label, axis=1)
        predicted = self.view.model.decide(logits) == self.view.model.classes_[self.label]
        return predicted, logits[:, self.label] - logsumexp(others, axis=1), log_likelihood[:, self.label]

    def _valid(self, rows):
        predicted, _, log_density = self._weigh(rows)
        return predicted & (log_density >= self.least)

    def _log_weights(self, rows, origins):
        predicted, odds, log_density = self._weigh(rows)
        missing = np.maximum(0.0, -odds) + np.maximum(0.0, self.least - log_density)
        invalid = ~predicted | (log_density < self.least)
        return -PUSH * missing - BARRIER * invalid - self.columns.costs(rows, origins)

    def run(self, rows):
        """Credible rows of the class, and the positions of the rows that they are near to."""
        places = np.repeat(np.arange(len(rows)), N_CHAINS)
        origins, nearest = rows[places], self._nearest_donors(rows)[places]
        states = self._starts(origins, nearest)
        weights = self._log_weights(states, origins)
        for temperature in np.geomspace(1.0, LAST_TEMPERATURE, N_STEPS):
            proposed = self._proposed(states, origins, nearest)
            new = self._log_weights(proposed, origins)
            accepted = np.log(self.rng.random(len(new))) < (new - weights) / temperature
            states = np.where(accepted[:, None], proposed, states)
            weights = np.where(accepted, new, weights)
        valid = self._valid(states)
        states, origins, places = states[valid], origins[valid], places[valid]
        return self._spared(states, origins), places

    def _nearest_donors(self, rows):
        """Positions of the nearest rows of the class, (n, NEAREST)."""
        found = [np.argsort(self.columns.costs(self.donors, np.broadcast_to(row, self.donors.shape)))[:NEAREST]
                 for row in rows]  # fmt: skip
        return np.array(found)

    def _starts(self, origins, nearest):
        """Half of the chains start at the row, the others at near rows of the class."""
        at_donor = np.arange(len(origins)) % 2 == 1
        chosen = np.zeros((len(origins), len(self.columns.slots)), bool)
        chosen[np.ix_(at_donor, self.columns.free)] = True
        return self.columns.take(origins, self._drawn_donors(nearest), chosen)

    def _drawn_donors(self, nearest):
        near = nearest[np.arange(len(nearest)), self.rng.integers(nearest.shape[1], size=len(nearest))]
        anywhere = self.rng.integers(len(self.donors), size=len(nearest))
        return self.donors[np.where(self.rng.random(len(nearest)) < 0.5, near, anywhere)]

    def _proposed(self, states, origins, nearest):
        """Rows with up to three columns of a row of the class, or with one column moved back."""
        n, k = len(states), len(self.columns.slots)
        order = self.rng.random((n, k))
        held = np.setdiff1d(np.arange(k), self.columns.free)
        order[:, held] = np.inf
        ranks = order.argsort(axis=1).argsort(axis=1)
        forward = (ranks < self.rng.integers(1, 4, size=n)[:, None]) & np.isfinite(order)
        changed = self.columns.changed(states, origins)
        back = (np.where(changed, order, np.inf).argsort(axis=1).argsort(axis=1) == 0) & changed
        kind = self.rng.random((n, 1))
        proposed = self.columns.take(states, self._drawn_donors(nearest), forward & (kind < 0.5))
        proposed = self.columns.take(proposed, origins, back & (kind >= 0.5) & (kind < 0.75))
        return self.columns.take(proposed, self._halfway(states, origins), back & (kind >= 0.75))

    def _halfway(self, rows, origins):
        """Rows whose numbers are half-way to those of the origins, at values that fitted rows have."""
        middle = rows.copy()
        for values, slots in zip(self.values, self.columns.slots, strict=True):
            j = slots[0]
            wanted = (rows[:, j] + origins[:, j]) / 2
            right = np.searchsorted(values, wanted).clip(1, max(1, len(values) - 1))
            if len(values) > 1:
                low, high = values[right - 1], values[right]
                middle[:, j] = np.where(wanted - low < high - wanted, low, high)
        if self.columns.space is not None:  # codes and spikes have no middle
            p = self.columns.space.layout.n_numbers
            middle[:, p:] = rows[:, p:]
        return middle

    def _spared(self, states, origins):
        """Valid rows with every change undone that is not needed, the largest first, and numbers moved less."""
        for rank in range(len(self.columns.slots)):
            states = self._if_valid(states, origins, origins, rank)
        for rank in range(len(self.columns.slots)):
            for _ in range(HALVINGS):
                states = self._if_valid(states, self._halfway(states, origins), origins, rank)
        return states

    def _if_valid(self, states, others, origins, rank):
        """Rows with one changed column of other rows where that leaves them valid and makes them no dearer."""
        sizes = self.columns.changed(states, origins) * (1 + self.columns.lengths(states, origins))
        chosen = (np.argsort(-sizes, axis=1, kind="stable").argsort(axis=1) == rank) & (sizes > 0)
        at = np.flatnonzero(chosen.any(axis=1))
        if len(at) == 0:
            return states
        tried = self.columns.take(states[at], others[at], chosen[at])
        better = self._valid(tried)
        better &= self.columns.costs(tried, origins[at]) < self.columns.costs(states[at], origins[at])
        states = states.copy()
        states[at[better]] = tried[better]
        return states


def _results(view, columns, X, rows, found, origins, labels, n):
    """The n cheapest distinct rows for each row of X, as a table whose predictions are checked."""
    model = view.model
    changed = np.zeros((len(found), len(view.names)), bool)
    changed[:, columns.places] = columns.changed(found, rows[origins])
    for follower, source in columns.followers.items():
        changed[:, follower] = changed[:, source]
    table = view.table(take_rows(Table(X).native, origins), found, changed)
    again = view.read(table) if len(found) else found
    costs = columns.costs(again, rows[origins])
    reached = np.searchsorted(model.classes_, model.predict(table)) == labels if len(found) else np.zeros(0, bool)
    kept = []
    for row in range(len(rows)):
        own = np.flatnonzero((origins == row) & reached)
        _, first = np.unique(again[own], axis=0, return_index=True)
        kept.extend(own[first][np.argsort(costs[own[first]], kind="stable")][:n])
    missing = np.setdiff1d(np.arange(len(rows)), origins[kept])
    if len(missing) == len(rows):
        raise ValueError(
            "Expected a target that credible rows reach, got none for any row; let more columns change, or look at how "
            "the classes overlap in the free ones."
        )
    if len(missing):
        warn_caller(f"No credible row of the target was found for {len(missing)} rows, row {missing[0]} first.")
    kept = np.array(kept)
    chosen = take_rows(table, kept)
    logits, log_likelihood = model.logits_and_log_likelihood(again[kept])
    own = np.arange(len(kept)), labels[kept]
    return Counterfactuals(
        chosen, origins[kept], costs[kept], log_likelihood[own], softmax(logits, axis=1)[own],
        _changes(X, chosen, origins[kept], dict(zip(view.names_in(X), changed[kept].T, strict=True))),
    )  # fmt: skip


def _changes(X, rows, index, changed):
    """Values before and after, by name, of the changed columns of each row; `changed` maps names to masks."""
    before, after = Table(X), Table(rows)
    changes = [{} for _ in index]
    for name, mask in changed.items():
        at = np.flatnonzero(mask)
        if len(at):
            old, new = _values(before, name), _values(after, name)
            for i in at:
                if old[index[i]] != new[i]:
                    changes[i][name] = (old[index[i]], new[i])
    return changes


def _values(table, name):
    """Python values of a column."""
    if table.container["type"] == "numpy":
        return table.native[:, name].tolist()
    if table.container["type"] == "pandas":
        return table.native.iloc[:, table.names.index(name)].tolist()
    return nw.from_native(table.native, eager_only=True)[name].to_list()
