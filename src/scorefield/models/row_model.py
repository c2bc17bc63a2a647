"""Models of mixed rows: one energy learns flat rows, chains generate rows and fill gaps.

One energy over numbers, categories and labels; see `scorefield.fields.rows` for what a flat row is.
"""

import jax
import numpy as np
from scipy.stats import kruskal

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method, leaf
from scorefield._jax.random import Stream, host_rng
from scorefield._jax.storage import from_plain, to_plain
from scorefield.data.containers import fill_gaps
from scorefield.data.row_space import RowSpace, split_rows
from scorefield.data.scaling import reflected
from scorefield.fields.base import Tempered
from scorefield.fields.joint import AnyClass, ClassEnergy
from scorefield.fields.rows import CANDIDATES
from scorefield.inference.row_constants import row_constant
from scorefield.models.ensemble import member_splits
from scorefield.models.joint_model import class_frame, train_joint
from scorefield.sampling.row_chains import walk
from scorefield.sampling.samplers import Samples
from scorefield.training.losses import RANKED_NORMALS, CellLoss, LabelledRow

LARGEST_STEP = 1.0  # twice the largest curvature of an energy of noisy rows would make chains leave
STEP = 0.1  # of the numbers' Langevin chain, in units of the noise
NOISE, GENERATOR_MEMBERS, GENERATOR_STEPS = 0.15, 2, 1000  # `benchmarks/credible_rows.py`
MAX_START_ROWS = 1024  # per class
STEPS_PER_COLUMN, FEWEST_STEPS = 6, 60
# p-value below which, and share of the variance of ranks above which, gaps are taken to tell the label.
GAPS_BY_CHANCE, LEAST_TOLD = 0.001, 0.005


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


class RowModel:
    """A fitted energy of mixed rows, with rows to start chains from."""

    def __init__(self, space, joint, color, start_rows):
        self.space, self.joint, self.color, self.start_rows = space, joint, color, start_rows

    def logits(self, rows):
        """Logits of the classes, (n, classes)."""
        return map_rows(Method(self.joint, "logits"), rows, points=len(self.joint.members))

    def energies(self, rows):
        """Log joint densities of all classes in the normal scores of numbers, up to constants, (n, classes)."""
        return map_rows(Method(self.joint, "__call__"), rows, points=len(self.joint.members)).astype(np.float64)

    def log_densities(self, rows):
        """Log density of the known cells of each row under the first class, up to the constant, (n,)."""
        return self.energies(rows)[:, 0] + self.space.log_slopes(rows)

    def completed_scores(self, key, table, n_draws):
        """Log density of each row of a table in normal scores, as the mean over draws of its gaps, (n,)."""
        rows = self.space.with_long_tails().rows(table)
        energies, gaps = self.energies(rows)[:, 0], ~self._present(rows).all(axis=1)
        if gaps.any():
            drawn = self.impute(key, np.repeat(rows[gaps], n_draws, axis=0), label=0)
            energies[gaps] = self.energies(drawn)[:, 0].reshape(-1, n_draws).mean(axis=1)
        return energies

    def _present(self, rows):
        """True for every column of each row that has a value."""
        return np.asarray(map_rows(Method(self.space.layout, "present"), rows)).astype(bool)

    def scores(self, rows):
        """Fields of all classes in the normal scores of the numbers, (n, classes, p); 0 at gaps."""
        found = map_rows(Method(self.joint, "scores"), rows, points=len(self.joint.members)).astype(np.float64)
        return np.where(split_rows(rows, self.space.layout)[1][:, None], found, 0.0)

    def cell_losses(self, key, rows, labels):
        """Loss of one random cell of each row with noise, NaN for gaps, (n,); see `rank_cell`."""
        rng, p = host_rng(key, Stream.DIAGNOSIS), self.space.layout.n_numbers
        noise = rows[:, p : 2 * p] * (rng.normal(size=(len(rows), p)) @ self.color)
        packed = [rows[:, :p] + noise, rows[:, p:], labels[:, None], rng.normal(size=(len(rows), RANKED_NORMALS))]
        points = CANDIDATES * len(self.joint.members)
        return map_rows(CellLoss(self.joint), np.hstack(packed).astype(np.float32), points=points)

    def generated(self, key, n, label, ids):
        """A table of n rows of a class; `ids` are "new" or "blank"."""
        return self.space.table(self.sample(key, n, label)[0], rng=host_rng(key, Stream.POOLED_LEVELS), ids=ids)

    def sample(self, key, n, label, starts=None, limits=None, **chain):
        """n flat rows of a class, with the indices of the rows that their chains started from.

        Gaps of a start row stay gaps. `limits` are two arrays (p,) that numbers are kept within; `chain` may give the
        step, the number of steps and the temperature.
        """
        if starts is None:
            starts = self.start_rows[label]
            limits = self.space.range_of(starts)
        rng = host_rng(key, Stream.CHAIN_STARTS)
        rounds = [rng.permutation(len(starts)) for _ in range(-(-n // len(starts)))]
        parents = np.concatenate(rounds)[:n] if rounds else np.zeros(0, int)
        free = self._present(starts[parents])
        rows = self._walk(key, starts[parents], free, ClassEnergy(self.joint, np.int32(label)), **chain)
        if limits is not None:
            self._bound(rows, *limits)
        return rows, parents

    def long_chains(self, key, label, n_chains, n_states):
        """`Samples` of chains of one class, whose states lie as far apart as a generated row from its start.

        States are the numbers and the codes. Gaps of the start rows are drawn from the margins first.
        """
        rng, own = host_rng(key, Stream.CHAIN_STARTS), self.start_rows[label]
        rows = own[np.resize(rng.permutation(len(own)), n_chains)]
        present = np.asarray(map_rows(Method(self.space.layout, "present"), rows)).astype(bool)
        rows = self._drawn_from_margins(rng, rows, ~present)
        energy, states = ClassEnergy(self.joint, np.int32(label)), []
        for state in range(n_states):
            rows = self._walk(jax.random.fold_in(key, state), rows, np.ones_like(present), energy)
            numbers, known, codes = split_rows(rows, self.space.layout)
            states.append(np.hstack([np.where(known, numbers, 0.0), codes]))
        chains = np.stack(states, axis=1)
        n_diverged = int((~np.isfinite(chains)).any(axis=(1, 2)).sum())
        return Samples(rows, np.full(n_chains, -1), n_diverged, None, None, chains)

    def _walk(self, key, rows, free, energy, step=STEP, n_steps=None, temperature=1.0):
        n_steps = n_steps or max(FEWEST_STEPS, STEPS_PER_COLUMN * len(self.space.layout.variables))
        energy = energy if temperature == 1 else Tempered(energy, leaf(temperature))
        return walk(key, energy, self.joint.base, self.color, rows, free, step=step, n_steps=n_steps)

    def _bound(self, rows, low, high):
        """Reflect numbers at their limits, in place."""
        p = self.space.layout.n_numbers
        rows[:, :p] = reflected(rows[:, :p], low, high)

    def impute(self, key, rows, label=None):
        """Flat rows whose gaps are drawn given the known cells: of one class, or of all together."""
        free = ~self._present(rows)
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
    callback=None, with_rules=False, denoising_weight=1.0,
):  # fmt: skip
    """A `RowModel` of flat rows, and the `TrainedJoint` that it is made of."""
    splits = member_splits(host_rng(key, Stream.MEMBER_FOLDS), rows, labels, n_members)
    copies = space.hidden_copies(host_rng(key, Stream.HIDDEN_CELLS), rows)
    table = LabelledRow(rows, labels.astype(np.int32), weights, copies)
    numbers, known, _ = split_rows(rows, space.layout)
    frame = class_frame(numbers, labels, noise, known)
    joint = train_joint(
        key, table, splits, frame, frequencies=frequencies, label_weight=label_weight, hidden=hidden,
        max_steps=max_steps, callback=callback, layout=space.layout, two_views=label_weight > 0,
        labels_of_hidden=not gaps_tell_labels(space.n_gaps(rows), labels), with_rules=with_rules,
        denoising_weight=denoising_weight,
    )  # fmt: skip
    order = host_rng(key, Stream.JOINT_START_ROWS).permutation(len(rows))  # a sorted table must not give one end only
    starts = [rows[order[labels[order] == k]][:MAX_START_ROWS] for k in range(len(frequencies))]
    return RowModel(space, joint.model, frame.color, starts), joint


def gaps_tell_labels(n_gaps, labels):
    """Whether rows of some class have clearly more gaps than others: hidden cells would teach that they do not."""
    if np.ptp(n_gaps) == 0 or np.ptp(labels) == 0:
        return False
    found = kruskal(*(n_gaps[labels == k] for k in np.unique(labels)))
    return found.pvalue < GAPS_BY_CHANCE and found.statistic / (len(labels) - 1) > LEAST_TOLD


def fit_generator(key, space, rows, labels, *, hidden, weights=None, noise=None, max_steps=None, callback=None):
    """A `RowModel` for generating rows and filling gaps, whose labels are given and not learned; and its records."""
    model, joint = fit_row_model(
        key, space, rows, labels, np.bincount(labels, weights) / len(labels), weights=weights, label_weight=0.0,
        n_members=GENERATOR_MEMBERS, hidden=hidden, noise=NOISE if noise is None else noise,
        max_steps=GENERATOR_STEPS if max_steps is None else max_steps, callback=callback,
    )  # fmt: skip
    return model, joint.fits
