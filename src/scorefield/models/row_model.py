"""Models of mixed rows: one energy learns flat rows, chains generate rows and fill gaps.

One energy over numbers, categories and labels; see `scorefield.fields.rows` for what a flat row is.
"""

import jax
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method, leaf
from scorefield._jax.random import Stream, host_rng, key_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.containers import fill_gaps
from scorefield.data.row_space import split_rows
from scorefield.data.scaling import reflected
from scorefield.fields.base import Tempered
from scorefield.fields.joint import AnyClass, ClassEnergy
from scorefield.fields.rows import CANDIDATES
from scorefield.inference.row_constants import row_constant
from scorefield.models.joint import JointModel
from scorefield.sampling.row_chains import walk
from scorefield.sampling.samplers import Samples
from scorefield.training.losses import RANKED_NORMALS, CellLoss

LARGEST_STEP = 1.0  # twice the largest curvature of an energy of noisy rows would make chains leave
STEP = 0.1  # of the numbers' Langevin chain, in units of the noise
STEPS_PER_COLUMN, FEWEST_STEPS = 6, 60


@stored_by_public_name
class RowModel(JointModel):
    """A joint energy of mixed rows."""

    def ratios(self, rows):
        """Log densities of the classes up to a constant per row and one per class, (n, classes)."""
        return self.map("logits", rows)

    def energies(self, rows):
        """Log joint densities of all classes in the normal scores of numbers, up to constants, (n, classes)."""
        return self.map("__call__", rows).astype(np.float64)

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
        found = self.map("scores", rows).astype(np.float64)
        return np.where(split_rows(rows, self.space.layout)[1][:, None], found, 0.0)

    def cell_losses(self, key, rows, labels):
        """Loss of one random cell of each row with noise, NaN for gaps, (n,); see `rank_cell`."""
        rng, p = host_rng(key, Stream.DIAGNOSIS), self.space.layout.n_numbers
        noise = rows[:, p : 2 * p] * (rng.normal(size=(len(rows), p)) @ self.color)
        packed = [rows[:, :p] + noise, rows[:, p:], labels[:, None], rng.normal(size=(len(rows), RANKED_NORMALS))]
        points = CANDIDATES * self.n_members
        return map_rows(CellLoss(self.joint), np.hstack(packed).astype(np.float32), points=points)

    def known_rows(self):
        """Up to 1,024 fitted rows of each class."""
        return self.start_rows

    def generated(self, seed, n, label, ids="new"):
        """A table of n rows of a class; `ids` are "new" or "blank"."""
        key = key_from(seed)
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
        rows = self.drawn_from_margins(rng, rows, ~present)
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

    def impute(self, key, rows, label=None, n_steps=None):
        """Flat rows whose gaps are drawn given the known cells: of one class, or of all together."""
        free = ~self._present(rows)
        wanting = np.flatnonzero(free.any(axis=1))
        filled = rows.copy()
        if len(wanting) == 0:
            return filled
        starts = self.drawn_from_margins(host_rng(key, Stream.IMPUTED), rows[wanting], free[wanting])
        energy = AnyClass(self.joint) if label is None else ClassEnergy(self.joint, np.int32(label))
        drawn = self._walk(key, starts, free[wanting], energy, n_steps=n_steps)
        self._bound(drawn, *self.space.range_of(np.concatenate(self.start_rows)))
        # Held numbers are put back: bounds do not apply to them.
        p, (_, known, _) = self.space.layout.n_numbers, split_rows(rows[wanting], self.space.layout)
        drawn[:, :p] = np.where(known, rows[wanting][:, :p], drawn[:, :p])
        filled[wanting] = drawn
        return filled

    def drawn_from_margins(self, rng, rows, free):
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

    def filled(self, key, table):
        """A table like the given one: its gaps are drawn, its known cells are as they were."""
        rows = self.impute(jax.random.fold_in(key, 0), self.space.rows(table))
        return fill_gaps(table, self.space.table(rows, like=table, rng=host_rng(key, Stream.POOLED_LEVELS)))

    def _anchors(self, key):
        """Constants that make each class's energy a log density of complete rows, with errors, (classes, 2)."""
        layout = self.space.layout
        row = np.concatenate([np.zeros(layout.n_numbers), np.ones(layout.n_numbers), np.zeros(len(layout.sizes))])
        row = row.astype(np.float32)
        energies = [ClassEnergy(self.joint, np.int32(k)) for k in range(len(self.start_rows))]
        return np.array([row_constant(jax.random.fold_in(key, k), own, row) for k, own in enumerate(energies)])
