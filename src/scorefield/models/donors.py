"""Sharp values for missing cells: each is copied from a fitted row, its donor, that resembles the row as drawn.

The energy is learned from rows with noise, so that its draws lie near possible values and not on them. Donors are rows
of the fitted table in which the cell is known.
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor

from scorefield.data.row_space import split_rows

NEIGHBOURS = 5  # rows, of which one is the donor
TREES, LEAF_ROWS, TRIED_COLUMNS = 10, 3, 0.6  # of a forest whose leaves hold donors
ROUNDS, MATCHES = 40, 5  # of boosting; rows of nearest prediction, of which one is the donor
SWEEPS = {"leaves": 1, "matching": 2}  # over the columns
DISTANCES_AT_ONCE = 1 << 22


class Cells(NamedTuple):
    """Rows with all cells, as they are copied and as distances and trees see them."""

    raw: np.ndarray  # like flat rows, with numbers in the units of the table (n, 2 p + q), in double precision
    seen: list  # of each column (n, k): a normal score, the indicators of levels, or both

    def copy_from(self, at, v, layout, donors, chosen):
        """Copy the cells of column v of chosen donors to the rows `at`, in place."""
        places = _places(layout, v)
        self.raw[np.ix_(at, places)] = donors.raw[np.ix_(chosen, places)]
        self.seen[v][at] = donors.seen[v][chosen]

    def without(self, v):
        """What all columns but one show (n, d)."""
        others = [own for u, own in enumerate(self.seen) if u != v]
        return np.hstack(others) if others else np.zeros((len(self.raw), 1))

    def taken(self, index):
        """Some of the rows, as a copy."""
        return Cells(self.raw[index], [own[index] for own in self.seen])


def cells_of(space, rows, numbers=None):
    """`Cells` of complete flat rows; `numbers` are those of the table, NaN where the row's own is taken."""
    decoded = space.encoded(rows).numbers
    if numbers is not None:
        decoded = np.where(np.isnan(numbers), decoded, numbers)
    z, known, codes = split_rows(rows, space.layout)
    raw = np.hstack([np.where(known, decoded, 0.0), known, codes])
    return Cells(raw, [_shown(space.layout, v, z, known, codes) for v in range(len(space.layout.variables))])


def table_of(space, raw, like, rng):
    """A table like another one of the `raw` part of `Cells`."""
    numbers, known, _ = split_rows(raw, space.layout)
    encoded = space.encoded(raw)  # of which the codes: those that others determine are added
    return space.encoder.decode(encoded._replace(numbers=np.where(known, numbers, np.nan)), like, rng)


def _shown(layout, v, z, known, codes):
    number, category = layout.variables[v]
    shown = []
    if number >= 0:
        shown.append(np.where(known[:, number], z[:, number], 0.0)[:, None])
    if category >= 0:
        size, own = layout.sizes[category], codes[:, category, None]
        if layout.ordered[category]:  # as far apart as normal scores of evenly filled levels, roughly
            shown.append(own * (3.0 / max(1, size - 1)))
        else:  # two levels are one unit apart
            shown.append((own == np.arange(size)) / np.sqrt(2))
    return np.hstack(shown)


def _places(layout, v):
    """Positions in a flat row of what belongs to a column."""
    (number, category), p = layout.variables[v], layout.n_numbers
    return ([number, p + number] if number >= 0 else []) + ([2 * p + category] if category >= 0 else [])


class Pool(NamedTuple):
    """Rows that cells are copied from."""

    cells: Cells
    known: np.ndarray  # (n, columns): cells of the table, which may be copied


def with_donors(rng, layout, method, pool, cells, free):
    """`Cells` whose free ones (n, columns) are copied from rows of a `Pool`; what no row knows stays as it is."""
    if method == "neighbours":
        return _from_neighbours(rng, layout, pool, cells, free)
    donors_for = {"leaves": _leaf_donors, "matching": _matched_donors}[method]
    every = np.arange(len(pool.known))
    both = Cells(*(pool.cells.taken(every)))  # whose own missing cells follow
    cells = cells.taken(np.arange(len(free)))
    for _ in range(SWEEPS[method]):
        for v in rng.permutation(len(layout.variables)):
            known, mine, theirs = np.flatnonzero(pool.known[:, v]), np.flatnonzero(free[:, v]), every[~pool.known[:, v]]
            if not len(known) or not len(mine) + len(theirs):
                continue
            others = both.without(v)
            wanted = np.concatenate([others[theirs], cells.without(v)[mine]])
            chosen = known[donors_for(rng, layout, v, others[known], both.taken(known), wanted)]
            both.copy_from(theirs, v, layout, both, chosen[: len(theirs)])
            cells.copy_from(mine, v, layout, both, chosen[len(theirs) :])
    return cells


def _from_neighbours(rng, layout, pool, cells, free):
    """Each cell is that of one of the rows nearest in the other columns, which count by what they tell of it."""
    filled = cells.taken(np.arange(len(free)))
    for v in range(len(layout.variables)):
        known, at = np.flatnonzero(pool.known[:, v]), np.flatnonzero(free[:, v])
        if not len(known) or not len(at):
            continue
        theirs, mine = pool.cells.without(v)[known], cells.without(v)[at]
        weights = _told(theirs, pool.cells.seen[v][known])
        size = max(1, DISTANCES_AT_ONCE // len(known))
        for start in range(0, len(at), size):
            block = slice(start, start + size)
            near = _nearest(rng, mine[block] * weights, theirs * weights)
            filled.copy_from(at[block], v, layout, pool.cells, known[near])
    return filled


def _told(others, own):
    """Weights of columns in a distance: their greatest absolute correlation with what a column shows (d,)."""
    a, b = others - others.mean(axis=0), own - own.mean(axis=0)
    spread = np.sqrt((a**2).sum(axis=0)[:, None] * (b**2).sum(axis=0))
    told = np.abs(a.T @ b / np.where(spread > 0, spread, 1.0)).max(axis=1)
    return told if told.max() > 0 else np.ones(len(told))


def _nearest(rng, wanted, rows):
    """Index of one of the NEIGHBOURS rows nearest to each wanted one; ties are broken at random."""
    order = rng.permutation(len(rows))
    k = min(NEIGHBOURS, len(rows))
    distance = cdist(wanted, rows[order], "sqeuclidean")
    near = np.argpartition(distance, k - 1, axis=1)[:, :k]
    return order[near[np.arange(len(wanted)), rng.integers(k, size=len(wanted))]]


def _leaf_donors(rng, layout, v, others, known, wanted):
    """One of the known rows in the leaf of a random tree of a forest, for each wanted row."""
    forest = RandomForestRegressor(
        TREES, min_samples_leaf=LEAF_ROWS, max_features=TRIED_COLUMNS, random_state=_seed(rng)
    )
    own = known.seen[v]
    forest.fit(others, own[:, 0] if own.shape[1] == 1 else own)
    leaves, theirs = forest.apply(others), forest.apply(wanted)
    tree, chosen = rng.integers(TREES, size=len(wanted)), np.zeros(len(wanted), int)
    for t in range(TREES):
        at, order = np.flatnonzero(tree == t), np.argsort(leaves[:, t], kind="stable")
        ends = [np.searchsorted(leaves[order, t], theirs[at, t], side) for side in ("left", "right")]
        # A leaf of the bootstrap sample may hold no other row than those that made it, which are known ones.
        chosen[at] = order[_between(rng, *ends)]
    return chosen


def _matched_donors(rng, layout, v, others, known, wanted):
    """Levels by their probabilities, numbers of one of the known rows of nearest prediction."""
    number, category = layout.variables[v]
    z, codes = known.seen[v][:, 0], None
    chosen, numeric, own = np.zeros(len(wanted), int), np.arange(len(wanted)), np.arange(len(others))
    if category >= 0:
        codes = known.raw[:, 2 * layout.n_numbers + category].astype(int)
        drawn = _drawn_levels(rng, others, codes, wanted)
        order = rng.permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        chosen = order[_between(rng, *(np.searchsorted(codes[order], drawn, side) for side in ("left", "right")))]
        numeric = np.flatnonzero(drawn == 0) if number >= 0 else numeric[:0]
        own = np.flatnonzero(codes == 0)
    if number >= 0 and len(numeric):
        model = HistGradientBoostingRegressor(max_iter=ROUNDS, early_stopping=False, random_state=_seed(rng))
        model.fit(others[own], z[own])
        chosen[numeric] = own[_matched(rng, model.predict(others[own]), model.predict(wanted[numeric]))]
    return chosen


def _drawn_levels(rng, others, codes, wanted):
    """Levels drawn from their probabilities; a column with one level in all known rows has that."""
    if (codes == codes[0]).all():
        return np.full(len(wanted), codes[0])
    model = HistGradientBoostingClassifier(max_iter=ROUNDS, early_stopping=False, random_state=_seed(rng))
    below = model.fit(others, codes).predict_proba(wanted).cumsum(axis=1)
    place = (rng.random((len(wanted), 1)) * below[:, -1:] > below).sum(axis=1)
    return model.classes_[place.clip(0, len(model.classes_) - 1)]


def _matched(rng, known, wanted):
    """Index of one of the MATCHES known predictions nearest to each wanted one; ties are broken at random."""
    order = rng.permutation(len(known))
    order = order[np.argsort(known[order], kind="stable")]
    known, k = known[order], min(MATCHES, len(known))
    low, high = (np.searchsorted(known, wanted, side) for side in ("left", "right"))
    window = low[:, None] + np.arange(-k, k)
    inside = (window >= 0) & (window < len(known))
    window = window.clip(0, len(known) - 1)
    distance = np.where(inside, np.abs(known[window] - wanted[:, None]), np.inf)
    near = np.argsort(distance, axis=1, kind="stable")[:, :k]
    place = window[np.arange(len(wanted)), near[np.arange(len(wanted)), rng.integers(k, size=len(wanted))]]
    tied = high - low >= k
    place[tied] = _between(rng, low[tied], high[tied])
    return order[place]


def _between(rng, low, high):
    """A random index of each range."""
    return low + np.floor(rng.random(len(low)) * (high - low)).astype(int)


def _seed(rng):
    return int(rng.integers(np.iinfo(np.int32).max))


def energy_distance(true, drawn, judged):
    """Energy distance of rows to the same with the cells judged (n, columns) as they were drawn; lower is better.

    It compares laws of whole rows: least in expectation for cells drawn from their law given the rest of the row, where
    a mean error would prefer the mean (Szekely & Rizzo 2013).
    """
    seen = zip(true.seen, drawn.seen, judged.T, strict=True)
    a, b = np.hstack(true.seen), np.hstack([np.where(own[:, None], new, old) for old, new, own in seen])
    return float(2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean())
