"""Moments of a streamed table in one pass, and a buffer of its rows that a fit draws from.

A fit needs two things of a table that it cannot hold: sums over all rows, and at every step a batch that could be any
of its rows. The sums come from one pass; the batches come from a buffer that starts as a uniform sample of the file and
is renewed, while training goes on, from row groups in random order.
"""

import numpy as np

from scorefield._jax.random import Stream, host_rng
from scorefield.data.scaling import column_scale
from scorefield.data.splits import fold_of_each_row

# A chunk of training draws 50 steps x 128 rows for each of 8 members, 51,200 rows. A buffer of over twice that seldom
# gives two members the same row, and takes 52 MB with 100 columns. A table of no more rows is read whole.
BUFFER_ROWS = 1 << 17
REFRESH = 8  # parts of the buffer, one renewed before each chunk: 16,384 rows for the 6,400 that a member has drawn
READ_ROWS = 1 << 20  # for a part at most, but for the last row group: one row group of pyarrow's default size
KEPT_ROWS = 200_000  # of classes that are held whole, all together: about as much memory again as the buffer


class Moments:
    """Means and co-moments of rows that come in parts, merged as in Chan, Golub & LeVeque (1983).

    Columns are shifted and scaled by the first part's mean and width, so that neither offsets nor units cost digits.
    """

    def __init__(self):
        self.n = 0

    def add(self, rows):
        if not self.n:
            self.shift = rows.mean(axis=0)
            widest = np.abs(rows - self.shift).max(axis=0)
            self.unit = np.where(widest > 0, widest, 1.0)
            self.centre, self.products = np.zeros(rows.shape[1]), np.zeros((rows.shape[1],) * 2)
        z = (rows - self.shift) / self.unit
        centre, n = z.mean(axis=0), self.n + len(z)
        z -= centre
        step = centre - self.centre
        self.products += z.T @ z + np.outer(step, step) * (self.n * len(z) / n)
        self.centre = self.centre + step * (len(z) / n)
        self.n = n

    @property
    def mean(self):
        return self.shift + self.unit * self.centre

    def units(self, dtype):
        """The mean and scale of every column, and the covariance of rows in these units."""
        deviation = self.unit * np.sqrt(np.diag(self.products) / self.n)
        if not np.isfinite(deviation).all():
            column = int(np.argmin(np.isfinite(deviation)))
            raise ValueError(f"Expected squares within double precision, got column {column} beyond it; rescale it.")
        scale = column_scale(self.mean, deviation, dtype)
        relative = self.unit / scale
        return self.mean, scale, self.products / self.n * np.outer(relative, relative)


def fits_in_memory(table):
    """True if a `ParquetTable` has no more rows than the buffer."""
    return table.n_rows <= BUFFER_ROWS


def kept_whole(counts):
    """Boolean mask of the classes kept in memory: the smallest ones, up to KEPT_ROWS rows in total."""
    order = np.argsort(counts, kind="stable")
    kept = np.zeros(len(counts), bool)
    kept[order] = np.cumsum(np.asarray(counts)[order]) <= KEPT_ROWS
    return kept


def _least(pool, new, size):
    """The `size` rows with the lowest ranks: with random ranks, a uniform sample of all rows seen."""
    merged = [np.concatenate(pair) for pair in zip(pool, new, strict=True)]
    if len(merged[0]) <= size:
        return merged
    keep = np.argpartition(merged[-1], size - 1)[:size]
    return [leaf[keep] for leaf in merged]


class RowBuffer:
    """Rows of a `ParquetTable` in standard units, with the class shares of the file.

    Each class has a pool: all of its rows where they are few, else a uniform sample. `refill` takes row groups in
    random order and replaces their rows in the pools by others of the same row group and class, so that the pools stay
    a fair sample however the file is sorted. (How many rows of a group a pool has stays as the first sample drew it;
    that matters only for groups so small that it drew hardly any.) Every row belongs to one of `n_folds` folds for
    good, so that a model which never sees a fold can be stopped by it.
    """

    def __init__(self, key, table, n_folds):
        self.key, self.source, self.n_folds = key, table, n_folds
        self.kept = kept_whole(table.counts)
        # One more than the share: `draw` rounds shares up or down at random.
        self.sizes = np.where(self.kept, table.counts, table.counts * BUFFER_ROWS // table.n_rows + 1)
        self.draws = self.visits = 0
        self._first_pass()
        streamed = [groups for groups, kept in zip(self.groups, self.kept, strict=True) if not kept]
        self.renewable = np.unique(np.concatenate(streamed)) if streamed else np.empty(0, int)
        self.order = []

    def _folded(self, group):
        """Batches of a row group with the folds of their rows: equal rows have one, in every group and reading."""
        seeds = host_rng(self.key, Stream.BUFFER_FOLDS).integers(1 << 64, size=len(self.source.names), dtype=np.uint64)
        for rows, labels in self.source.parts(group):
            yield rows, labels, fold_of_each_row(seeds, rows, self.n_folds)

    def _sample(self, pools, rng, group, sizes, moments=None):
        """Merge the rows of a group into the pools (rows, folds, groups, ranks) of their classes, up to their sizes."""
        for rows, labels, folds in self._folded(group):
            if moments is not None:
                moments.add(rows)
            ranks, groups = rng.random(len(rows)), np.full(len(rows), group, np.int32)
            for k in np.flatnonzero(np.bincount(labels, minlength=len(sizes)) * sizes):
                own = labels == k
                pools[k] = _least(pools[k], [leaf[own] for leaf in (rows, folds, groups, ranks)], sizes[k])
        return pools

    def _empty(self):
        d = len(self.source.names)
        return [[np.empty((0, d)), np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0)] for _ in self.sizes]

    def _first_pass(self):
        """Moments of all rows, and the pools."""
        rng, moments, pools = host_rng(self.key, Stream.BUFFER_RANKS), Moments(), self._empty()
        for group in range(len(self.source.groups)):
            pools = self._sample(pools, rng, group, self.sizes, moments)
        self.mean, self.scale, self.covariance = moments.units(self.source.dtype)
        self.rows = [self._to_units(pool[0]) for pool in pools]
        self.folds, self.groups = ([pool[i] for pool in pools] for i in (1, 2))

    def _to_units(self, rows):
        return ((rows - self.mean) / self.scale).astype(np.float32)

    def draw(self):
        """BUFFER_ROWS rows of the pools: (rows, class numbers) and the folds of the rows.

        Class shares are those of the file: exact up to one row, and exact on average over draws.
        """
        rng = host_rng(self.key, Stream.BUFFER_DRAWS, self.draws)
        self.draws += 1
        ends = np.floor(np.cumsum([0, *self.source.counts]) / self.source.n_rows * BUFFER_ROWS + rng.random())
        chosen = [rng.permutation(len(pool))[: int(n)] for pool, n in zip(self.rows, np.diff(ends), strict=True)]
        labels = np.repeat(np.arange(len(chosen), dtype=np.int32), [len(index) for index in chosen])
        rows, folds = (
            np.concatenate([pool[index] for pool, index in zip(pools, chosen, strict=True)])
            for pools in (self.rows, self.folds)
        )
        return (rows, labels), folds

    def refill(self):
        """Renew a part of the pools of large classes, then draw."""
        fresh = read = 0
        while len(self.renewable) and fresh < BUFFER_ROWS // REFRESH and read < READ_ROWS:
            if not self.order:
                self.order = host_rng(self.key, Stream.BUFFER_ORDER, self.visits).permutation(self.renewable).tolist()
            group = self.order.pop()
            fresh += self._renew(group)
            read += self.source.groups[group][2]
        return self.draw()

    def _renew(self, group):
        """Replace the rows of one row group by others of it; returns how many."""
        places = [
            np.flatnonzero((groups == group) & (not kept)) for groups, kept in zip(self.groups, self.kept, strict=True)
        ]
        sizes = np.array([len(own) for own in places])
        pools = self._sample(self._empty(), host_rng(self.key, Stream.BUFFER_REFILLS, self.visits), group, sizes)
        self.visits += 1
        for k in np.flatnonzero(sizes):
            self.rows[k][places[k]], self.folds[k][places[k]] = self._to_units(pools[k][0]), pools[k][1]
        return int(sizes.sum())

    def pooled(self):
        """All rows of the pools: (rows, class numbers). Small classes have a larger share than in the file."""
        labels = np.repeat(np.arange(len(self.rows), dtype=np.int32), [len(pool) for pool in self.rows])
        return np.concatenate(self.rows), labels
