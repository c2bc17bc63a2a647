"""Models of mixed rows: tables become flat rows, one energy learns them, chains generate rows and fill gaps.

One energy over numbers, categories and labels; see `scorefield.fields.rows` for what a flat row is.
"""

import jax
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng
from scorefield._jax.storage import from_plain, to_plain
from scorefield.data.containers import fill_gaps
from scorefield.data.encoding import Encoded, TableEncoder
from scorefield.data.scaling import NormalScores, reflected
from scorefield.estimators.ensemble import member_splits
from scorefield.estimators.joint_model import class_frame, train_joint
from scorefield.fields.gaussian import shrunk_covariance
from scorefield.fields.joint import AnyClass, ClassEnergy
from scorefield.fields.rows import RowLayout
from scorefield.inference.row_constants import row_constant
from scorefield.sampling.row_chains import walk
from scorefield.training.losses import LabelledRow

MAX_REGRESSED = 128  # numbers per row up to which gaps are filled by regression: each costs a solve of that size
REGRESSIONS = 3  # rounds of regression and covariance, enough for the correlations that the network starts from
SOLVED_AT_ONCE = 1 << 22  # elements of the matrices of one block of rows
TIE_EVIDENCE = 20.0  # nats: independent categories would be tied in every row once in exp(20) tables
HIDDEN_COPIES = 3  # per row, with random cells hidden
MANY_ROWS = 20_000  # beyond them one copy is enough
HIDDEN_SHARE = 0.5  # most of a row's columns that a copy hides
LARGEST_STEP = 1.0  # twice the largest curvature of an energy of noisy rows would make chains leave
STEP = 0.1  # of the numbers' Langevin chain, in units of the noise
NOISE, GENERATOR_MEMBERS, GENERATOR_STEPS = 0.15, 2, 1000  # `benchmarks/credible_rows.py`
MAX_START_ROWS = 1024  # per class
STEPS_PER_COLUMN, FEWEST_STEPS = 6, 60


class RowSpace:
    """How a table becomes flat rows: kinds of columns, normal scores, and correlations that gaps are filled by."""

    def __init__(self, encoder, scores, precision, ties=()):
        self.encoder, self.scores, self.precision, self.ties = encoder, scores, precision, list(ties)
        tied = {derived for _, derived, _ in self.ties}
        self.kept = [k for k in range(len(encoder.level_values)) if k not in tied]
        place = {-1: -1, **{k: i for i, k in enumerate(self.kept)}}
        modelled = [v for v in encoder.variables if v.category not in tied]
        variables = tuple((v.number, place[v.category]) for v in modelled)
        sizes = tuple(v.n_levels for v in modelled if v.category >= 0)
        self.layout = RowLayout(len(scores.knots), sizes, variables)

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

    def encoded(self, rows):
        """Numbers and codes of flat rows; inverse of `rows` but for the encoder."""
        x, known, kept = split_rows(rows, self.layout)
        codes = np.full((len(rows), len(self.encoder.level_values)), -1, np.int32)
        codes[:, self.kept] = kept
        for source, derived, image in reversed(self.ties):
            own = codes[:, source]
            codes[:, derived] = np.where(own >= 0, image[np.maximum(own, 0)], -1)
        return Encoded(self.scores.inverse_transform(np.where(known, x, np.nan)), codes)

    def table(self, rows, like=None, rng=None):
        """A table of flat rows."""
        return self.encoder.decode(self.encoded(rows), like, rng)

    def range_of(self, rows):
        """Least and greatest known number of each column of flat rows; infinite where there is none."""
        x, known, _ = split_rows(rows, self.layout)
        low = np.where(known, x, np.inf).min(axis=0, initial=np.inf)
        high = np.where(known, x, -np.inf).max(axis=0, initial=-np.inf)
        return np.where(np.isfinite(low), low, -np.inf), np.where(np.isfinite(high), high, np.inf)

    def hidden_copies(self, rng, rows):
        """Copies (n, k, d) of flat rows in which up to half of the columns are hidden."""
        x, known, codes = split_rows(rows, self.layout)
        copies = []
        for _ in range(HIDDEN_COPIES if len(rows) <= MANY_ROWS else 1):
            share = rng.uniform(0, HIDDEN_SHARE, (len(rows), 1))
            hidden = rng.uniform(size=(len(rows), len(self.layout.variables))) < share
            z, own = np.where(known, x, np.nan), codes.copy()
            for v, (number, category) in enumerate(self.layout.variables):
                if number >= 0:
                    z[hidden[:, v], number] = np.nan
                if category >= 0:
                    own[hidden[:, v], category] = -1
            copies.append(flat_rows(z, own, self.precision))
        return np.stack(copies, axis=1)

    def log_slopes(self, rows):
        """Log of the volume by which the scores of known numbers shrink or stretch each row, (n,)."""
        return self.scores.log_slopes(self.encoded(rows).numbers).sum(axis=1)

    def to_plain(self):
        """A dictionary of plain values and arrays."""
        parts = {"encoder": self.encoder.to_plain(), "knots": self.scores.knots, "precision": self.precision}
        return {**parts, "ties": self.ties}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`."""
        encoder, scores = TableEncoder.from_plain(plain["encoder"]), NormalScores(plain["knots"])
        return cls(encoder, scores, plain["precision"], plain["ties"])


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
            if (image[codes[known, a]] == codes[known, b]).all() and -repeats * np.log(
                np.sum(shares**2)
            ) > TIE_EVIDENCE:
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


def _typical_rows(draws, layout):
    """Median numbers and commonest codes of complete flat rows (draws, n, d)."""
    p = layout.n_numbers
    numbers, codes = np.where(draws[:, :, p : 2 * p] > 0, draws[:, :, :p], np.nan), draws[:, :, 2 * p :]
    counts = np.stack([(codes == level).sum(axis=0) for level in range(int(codes.max(initial=0)) + 1)])
    typical = counts.argmax(axis=0)
    known = ~np.isnan(numbers).all(axis=0)
    for number, category in layout.variables:
        if number >= 0 and category >= 0:
            known[:, number] = typical[:, category] == 0
    median = np.nanmedian(np.where(known, numbers, 0.0), axis=0)
    return np.hstack([np.where(known, median, 0.0), known, typical]).astype(np.float32)


def _shrunk_precision(rows):
    """Inverse of the shrunk covariance of numbers; constant ones are independent of the others."""
    covariance = np.eye(rows.shape[1])
    varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)
    if len(varying) > 1:
        covariance[np.ix_(varying, varying)] = shrunk_covariance(rows[:, varying]) + 1e-6 * np.eye(len(varying))
    return np.linalg.inv(covariance)


class RowModel:
    """A fitted energy of mixed rows, with rows to start chains from."""

    def __init__(self, space, joint, color, start_rows):
        self.space, self.joint, self.color, self.start_rows = space, joint, color, start_rows

    def logits(self, rows):
        """Log joint densities of all classes less those of the margins, (n, classes)."""
        return map_rows(Method(self.joint, "logits"), rows, points=len(self.joint.members))

    def log_densities(self, rows):
        """Log density of the known cells of each row under the first class, up to the constant, (n,)."""
        energies = map_rows(Method(self.joint, "__call__"), rows, points=len(self.joint.members))
        return energies[:, 0].astype(np.float64) + self.space.log_slopes(rows)

    def scores(self, rows):
        """Fields of all classes in the normal scores of the numbers, (n, classes, p); 0 at gaps."""
        found = map_rows(Method(self.joint, "scores"), rows, points=len(self.joint.members)).astype(np.float64)
        return np.where(split_rows(rows, self.space.layout)[1][:, None], found, 0.0)

    def generated(self, key, n, label):
        """A table of n rows of a class."""
        return self.space.table(self.sample(key, n, label)[0], rng=host_rng(key, Stream.POOLED_LEVELS))

    def sample(self, key, n, label, starts=None, limits=None, **chain):
        """n flat rows of a class, with the indices of the rows that their chains started from.

        Gaps of a start row stay gaps. `limits` are two arrays (p,) that numbers are kept within; `chain` may give the
        step and the number of steps.
        """
        if starts is None:
            starts = self.start_rows[label]
            limits = self.space.range_of(starts)
        rng = host_rng(key, Stream.CHAIN_STARTS)
        rounds = [rng.permutation(len(starts)) for _ in range(-(-n // len(starts)))]
        parents = np.concatenate(rounds)[:n] if rounds else np.zeros(0, int)
        free = np.asarray(map_rows(Method(self.space.layout, "present"), starts[parents])).astype(bool)
        rows = self._walk(key, starts[parents], free, ClassEnergy(self.joint, np.int32(label)), **chain)
        if limits is not None:
            self._bound(rows, *limits)
        return rows, parents

    def _walk(self, key, rows, free, energy, step=STEP, n_steps=None):
        n_steps = n_steps or max(FEWEST_STEPS, STEPS_PER_COLUMN * len(self.space.layout.variables))
        return walk(key, energy, self.color, rows, free, step=step, n_steps=n_steps)

    def _bound(self, rows, low, high):
        """Reflect numbers at their limits, in place."""
        p = self.space.layout.n_numbers
        rows[:, :p] = reflected(rows[:, :p], low, high)

    def impute(self, key, rows, label=None):
        """Flat rows whose gaps are drawn given the known cells: of one class, or of all together."""
        free = ~np.asarray(map_rows(Method(self.space.layout, "present"), rows)).astype(bool)
        wanting = np.flatnonzero(free.any(axis=1))
        filled = rows.copy()
        if len(wanting) == 0:
            return filled
        starts = self._drawn_from_margins(host_rng(key, Stream.IMPUTED), rows[wanting], free[wanting])
        energy = AnyClass(self.joint) if label is None else ClassEnergy(self.joint, np.int32(label))
        drawn = self._walk(key, starts, free[wanting], energy)
        self._bound(drawn, *self.space.range_of(np.concatenate(self.start_rows)))
        # Held numbers are put back: bounds do not apply to them.
        p, (_, known, _) = self.space.layout.n_numbers, split_rows(rows[wanting], self.space.layout)
        drawn[:, :p] = np.where(known, rows[wanting][:, :p], drawn[:, :p])
        filled[wanting] = drawn
        return filled

    def _drawn_from_margins(self, rng, rows, free):
        """Rows whose free columns are drawn from the margins, each on its own."""
        layout, shares = self.space.layout, np.exp(np.asarray(self.joint.base.log_shares, float))
        rows = rows.copy()
        p = layout.n_numbers
        for v, (number, category) in enumerate(layout.variables):
            at = np.flatnonzero(free[:, v])
            levels = rng.choice(shares.shape[1], len(at), p=shares[v] / shares[v].sum())
            if category >= 0:
                rows[at, 2 * p + category] = levels
            if number >= 0:
                own = at[levels == 0]
                rows[own, number] = rng.normal(size=len(own))
                rows[own, p + number] = 1.0
        return rows

    def filled(self, key, table, n_draws=1):
        """A table like the given one: its gaps are drawn, its known cells are as they were.

        With several draws a gap takes their median, or the commonest level.
        """
        rows = self.space.rows(table)
        drawn = [self.impute(jax.random.fold_in(key, draw), rows) for draw in range(n_draws)]
        rows = drawn[0] if n_draws == 1 else _typical_rows(np.stack(drawn), self.space.layout)
        return fill_gaps(table, self.space.table(rows, like=table, rng=host_rng(key, Stream.POOLED_LEVELS)))

    def log_constants(self, key):
        """Constants that make each class's energy a log density of complete rows, with errors, (classes, 2)."""
        layout = self.space.layout
        row = np.concatenate([np.zeros(layout.n_numbers), np.ones(layout.n_numbers), np.zeros(len(layout.sizes))])
        row = row.astype(np.float32)
        energies = [ClassEnergy(self.joint, np.int32(k)) for k in range(len(self.start_rows))]
        return np.array([row_constant(jax.random.fold_in(key, k), own, row) for k, own in enumerate(energies)])

    def to_plain(self):
        """A dictionary of plain values and arrays, for a fitted estimator."""
        parts = {"space": self.space.to_plain(), "joint": to_plain(self.joint), "color": self.color}
        return {**parts, "start_rows": self.start_rows}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`."""
        space = RowSpace.from_plain(plain["space"])
        return cls(space, jax.device_put(from_plain(plain["joint"])), plain["color"], plain["start_rows"])


def fit_row_model(
    key, space, rows, labels, frequencies, *, weights=None, label_weight, n_members, hidden, noise, max_steps,
    callback=None,
):  # fmt: skip
    """A `RowModel` of flat rows, and the members' training records, the training table and the members' splits."""
    splits = member_splits(host_rng(key, Stream.MEMBER_FOLDS), rows, labels, n_members)
    copies = space.hidden_copies(host_rng(key, Stream.HIDDEN_CELLS), rows)
    table = LabelledRow(rows, labels.astype(np.int32), weights, copies)
    numbers, known, _ = split_rows(rows, space.layout)
    frame = class_frame(numbers, labels, noise, known)
    joint, fits = train_joint(
        key, table, splits, frame, frequencies=frequencies, label_weight=label_weight, hidden=hidden,
        max_steps=max_steps, callback=callback, layout=space.layout, two_views=label_weight > 0,
    )  # fmt: skip
    order = host_rng(key, Stream.JOINT_START_ROWS).permutation(len(rows))  # a sorted table must not give one end only
    starts = [rows[order[labels[order] == k]][:MAX_START_ROWS] for k in range(len(frequencies))]
    return RowModel(space, joint, frame.color, starts), fits, table, splits


def fit_generator(key, space, rows, labels, *, hidden, noise=None, max_steps=None, callback=None):
    """A `RowModel` for generating rows and filling gaps, whose labels are given and not learned; and its records."""
    model, fits, *_ = fit_row_model(
        key, space, rows, labels, np.bincount(labels) / len(labels), label_weight=0.0, n_members=GENERATOR_MEMBERS,
        hidden=hidden, noise=NOISE if noise is None else noise,
        max_steps=GENERATOR_STEPS if max_steps is None else max_steps, callback=callback,
    )  # fmt: skip
    return model, fits
