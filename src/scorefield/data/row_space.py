"""Tables as flat rows of normal scores, known numbers and codes, and back; see `scorefield.fields.rows`.

Gaps of numbers are filled by regression, and categories that determine each other are kept once.
"""

import numpy as np

from scorefield._jax.storage import stored_by_public_name
from scorefield.data.encoding import Encoded, TableEncoder
from scorefield.data.scaling import NormalScores
from scorefield.fields.gaussian import shrunk_covariance
from scorefield.fields.rows import RowLayout

MAX_REGRESSED = 128  # numbers per row up to which gaps are filled by regression: each costs a solve of that size
REGRESSIONS = 3  # rounds of regression and covariance, enough for the correlations that the network starts from
SOLVED_AT_ONCE = 1 << 22  # elements of the matrices of one block of rows
TIE_EVIDENCE = 20.0  # nats: independent categories would be tied in every row once in exp(20) tables
HIDDEN_COPIES = 3  # per row, with random cells hidden
MANY_ROWS = 20_000  # beyond them one copy is enough
HIDDEN_SHARE = 0.75  # most of a row's columns that a copy hides; less makes rows of mostly gaps over-confident


@stored_by_public_name
class RowSpace:
    """How a table becomes flat rows: kinds of columns, normal scores, and correlations that gaps are filled by."""

    is_mixed = True
    dtype = np.dtype(np.float64).str  # of what is told of rows
    units = None  # rows are flat ones already

    def __init__(self, encoder, scores, precision, ties=()):
        self.encoder, self.scores, self.precision, self.ties = encoder, scores, precision, list(ties)
        tied = {derived for _, derived, _ in self.ties}
        self.kept = [k for k in range(len(encoder.level_values)) if k not in tied]
        place = {-1: -1, **{k: i for i, k in enumerate(self.kept)}}
        modelled = [v for v in encoder.variables if v.category not in tied]
        variables = tuple((v.number, place[v.category]) for v in modelled)
        self.names = [v.name for v in modelled]  # of the columns of the layout
        sizes = tuple(v.n_levels for v in modelled if v.category >= 0)
        ordered = tuple(v.kind == "ordered" for v in modelled if v.category >= 0)
        self.layout = RowLayout(len(scores.knots), sizes, variables, ordered)

    @classmethod
    def fit(cls, table, columns=None):
        """Learn the columns of a table; `columns` maps names to kinds."""
        encoder = TableEncoder(columns).fit(table)
        if not encoder.variables:
            raise ValueError("Expected at least one column that varies and is not an identifier, got none.")
        numbers, codes = encoder.encode(table)
        scores = NormalScores.fit(numbers)
        z = scores.transform(numbers)
        precision = np.eye(z.shape[1])
        if 1 < z.shape[1] <= MAX_REGRESSED:
            for _ in range(REGRESSIONS):
                precision = _shrunk_precision(regressed(z, precision))
        plain = {v.category: v.n_levels for v in encoder.variables if v.category >= 0 and v.number < 0}
        return cls(encoder, scores, precision, tied_categories(codes, plain))

    def rows(self, table):
        """Flat rows (n, 2 p + q) in single precision."""
        numbers, codes = self.encoder.encode(table)
        for source, derived, image in self.ties:
            # A gap of the source whose level the tied column tells.
            levels, counts = np.unique(image[image >= 0], return_counts=True)
            for level in levels[counts == 1]:
                codes[(codes[:, source] < 0) & (codes[:, derived] == level), source] = np.flatnonzero(image == level)[0]
        return flat_rows(self.scores.transform(numbers), codes[:, self.kept], self.precision)

    def in_units_of(self, rows):
        """The space itself: its units are those of the whole table."""
        return self

    def model_rows(self, rows):
        """Rows as a model sees them."""
        return rows

    def numbers(self, rows):
        """Numbers of flat rows, and where they are known."""
        return split_rows(rows, self.layout)[:2]

    def encoded(self, rows):
        """Numbers and codes of flat rows; inverse of `rows` but for the encoder."""
        x, known, kept = split_rows(rows, self.layout)
        codes = np.full((len(rows), len(self.encoder.level_values)), -1, np.int32)
        codes[:, self.kept] = kept
        for source, derived, image in reversed(self.ties):
            own = codes[:, source]
            codes[:, derived] = np.where(own >= 0, image[np.maximum(own, 0)], -1)
        return Encoded(self.scores.inverse_transform(np.where(known, x, np.nan)), codes)

    def table(self, rows, like=None, rng=None, ids="blank"):
        """A table of flat rows; `ids` as in `TableEncoder.decode`."""
        return self.encoder.decode(self.encoded(rows), like, rng, ids)

    def range_of(self, rows):
        """Least and greatest known number of each column of flat rows; infinite where there is none."""
        x, known, _ = split_rows(rows, self.layout)
        low = np.where(known, x, np.inf).min(axis=0, initial=np.inf)
        high = np.where(known, x, -np.inf).max(axis=0, initial=-np.inf)
        return np.where(np.isfinite(low), low, -np.inf), np.where(np.isfinite(high), high, np.inf)

    def n_gaps(self, rows):
        """Gaps of each flat row, (n,)."""
        _, known, codes = split_rows(rows, self.layout)
        return sum(
            (codes[:, category] < 0) if category >= 0 else ~known[:, number]
            for number, category in self.layout.variables
        )

    def hidden_copies(self, rng, rows):
        """Copies (n, k, d) of flat rows in which up to three quarters of the columns are hidden."""
        copies = []
        for _ in range(HIDDEN_COPIES if len(rows) <= MANY_ROWS else 1):
            share = rng.uniform(0, HIDDEN_SHARE, (len(rows), 1))
            copies.append(self.with_hidden(rows, rng.uniform(size=(len(rows), len(self.layout.variables))) < share))
        return np.stack(copies, axis=1)

    def with_hidden(self, rows, hidden):
        """Flat rows of which some cells (n, columns) are missing."""
        x, known, codes = split_rows(rows, self.layout)
        z = np.where(known, x, np.nan)
        for v, (number, category) in enumerate(self.layout.variables):
            if number >= 0:
                z[hidden[:, v], number] = np.nan
            if category >= 0:
                codes[hidden[:, v], category] = -1
        return flat_rows(z, codes, self.precision)

    def shuffled(self, rng, rows):
        """Flat rows whose columns are permuted independently; gaps are filled anew."""
        x, known, codes = split_rows(rows, self.layout)
        z = np.where(known, x, np.nan)
        for number, category in self.layout.variables:
            order = rng.permutation(len(rows))
            if number >= 0:
                z[:, number] = z[order, number]
            if category >= 0:
                codes[:, category] = codes[order, category]
        return flat_rows(z, codes, self.precision)

    def log_volume(self, rows):
        """Log of the volume by which the scores of known numbers shrink or stretch each row, (n, 1)."""
        return self.scores.log_slopes(self.encoded(rows).numbers).sum(axis=1, keepdims=True)

    def with_long_tails(self):
        """The same space, with normal scores of extremes that grow with their distance from the bulk."""
        return RowSpace(self.encoder, self.scores.with_long_tails(), self.precision, self.ties)

    def to_plain(self):
        """A dictionary of plain values and arrays."""
        parts = {"encoder": self.encoder.to_plain(), "knots": self.scores.knots, "precision": self.precision}
        return {**parts, "ties": self.ties}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`."""
        encoder, scores = TableEncoder.from_plain(plain["encoder"]), NormalScores(plain["knots"])
        return cls(encoder, scores, plain["precision"], plain["ties"])

    def __getstate__(self):
        return self.to_plain()

    def __setstate__(self, plain):
        vars(self).update(vars(self.from_plain(plain)))


def tied_categories(codes, sizes):
    """Categories that another one determines in every row, as (source, derived, level of each source level).

    `sizes` are the numbers of levels of the columns of `codes` to look at.

    A code of an education that stands beside its name, for example: drawn apart they would contradict each other. A tie
    needs more rows than chance could explain, and gaps where its source has them and nowhere else.
    """
    ties, derived = [], set()
    for b in reversed(sizes):  # the later column of a pair is the derived one
        shares = np.bincount(codes[codes[:, b] >= 0, b]) / max(1, np.sum(codes[:, b] >= 0))
        for a in sizes:
            known = codes[:, a] >= 0
            if a == b or a in derived or ((codes[:, b] >= 0) != known).any():
                continue
            image = np.full(sizes[a], -1, np.int32)
            image[codes[known, a]] = codes[known, b]
            repeats = known.sum() - np.sum(image >= 0)
            evidence = -repeats * np.log(np.sum(shares**2))
            if (image[codes[known, a]] == codes[known, b]).all() and evidence > TIE_EVIDENCE:
                ties.append((a, b, image))
                derived.add(b)
                break
    return ties


def split_rows(rows, layout):
    """Numbers, where they are known, and codes of flat rows."""
    p = layout.n_numbers
    return rows[:, :p].astype(float), rows[:, p : 2 * p] > 0, rows[:, 2 * p :].astype(np.int32)


def flat_rows(z, codes, precision):
    """Flat rows of normal scores with NaN and of codes; gaps get their regression on the known numbers."""
    filled = regressed(z, precision)
    return np.hstack([filled, ~np.isnan(z), codes]).astype(np.float32)


def regressed(z, precision):
    """Numbers with NaN replaced by their mean given the others, for centred rows with this precision matrix."""
    gaps = np.isnan(z)
    filled = np.where(gaps, 0.0, z)
    places = np.flatnonzero(gaps.any(axis=1))
    if z.shape[1] > MAX_REGRESSED:
        return filled
    size = max(1, SOLVED_AT_ONCE // max(1, z.shape[1] ** 2))
    for start in range(0, len(places), size):
        block = places[start : start + size]
        mask = gaps[block].astype(float)
        matrix = precision * mask[:, :, None] * mask[:, None, :]
        matrix += np.eye(z.shape[1]) * (1 - mask)[:, None, :]
        right = -mask * (filled[block] @ precision)
        filled[block] += np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
    return filled


def _shrunk_precision(rows):
    """Inverse of the shrunk covariance of numbers; constant ones are independent of the others."""
    covariance = np.eye(rows.shape[1])
    varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)
    if len(varying) > 1:
        covariance[np.ix_(varying, varying)] = shrunk_covariance(rows[:, varying]) + 1e-6 * np.eye(len(varying))
    return np.linalg.inv(covariance)
