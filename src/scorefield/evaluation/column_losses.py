"""How well a model expects each cell of a row, given the rest of the row; and cells drawn anew from that law.

A cell competes with draws from the margin of its column, in proportion to the energy less the log margin.
"""

import numpy as np
from scipy.special import log_softmax, ndtri
from scipy.stats import rankdata

from scorefield.data.row_space import flat_rows, split_rows

CANDIDATES = 8  # draws that a cell competes with
MOST_CELLS = 1 << 18  # rows at which the energy is evaluated at a time
SQRT_2PI = float(np.sqrt(2 * np.pi))
MOST_LEVELS = 8  # of a category whose shares are compared one by one


class CellViews:
    """Rows of a fitted model as their columns: losses of cells, cells drawn anew, and what a column's values are."""

    def __init__(self, model):
        if hasattr(model, "_need_density"):
            model._need_density()
        self.model = model
        self.table_model = model.model_ if hasattr(model, "classes_") else model.model_.row_model
        self.space = model.model_.space
        self.mixed = self.space.is_mixed
        self.frequencies = getattr(model, "frequencies_", None)
        if self.mixed:
            self.names = list(self.space.names)
        else:
            self.names = list(getattr(model, "feature_names_in_", range(model.n_features_in_)))

    def read(self, table):
        """The rows of a table in double precision."""
        return np.asarray(self.model._read(table), np.float64)

    def logits(self, rows):
        """Calibrated log posteriors for the class shares of the fitted rows."""
        return self.table_model.logits(rows)

    def _energies(self, rows):
        """Log densities of rows up to a constant."""
        if self.table_model is not None and hasattr(self.table_model, "joint"):
            return self.table_model.map("total", rows).astype(np.float64)
        return np.asarray(self.model.score_samples(rows), np.float64)

    def fit_margins(self, rows):
        """Learn the margins that numbers are drawn from, from the rows of all tables that are compared."""
        if not self.mixed:
            self.mean, self.deviation = rows.mean(axis=0), np.maximum(rows.std(axis=0), np.finfo(np.float32).tiny)

    def losses(self, rng, rows):
        """Minus the log share of each cell among draws of its column (n, columns); NaN for a missing cell."""
        return np.column_stack([
            np.where(self._known(rows, column), -log_softmax(self._weights(rng, rows, column)[0], axis=1)[:, 0], np.nan)
            for column in range(len(self.names))
        ])  # fmt: skip

    def redrawn(self, rng, rows, column):
        """Rows with one column drawn anew given the others, which tells nothing of what was there."""
        weights, candidates = self._weights(rng, rows, column)
        chosen = 1 + np.argmax(weights[:, 1:] + rng.gumbel(size=(len(rows), CANDIDATES)), axis=1)
        return candidates[np.arange(len(rows)), chosen]

    def _weights(self, rng, rows, column):
        """Log weights of each cell and of draws of its column (n, 1 + CANDIDATES), and the rows that have them."""
        draw = self._mixed_candidates if self.mixed else self._number_candidates
        candidates, log_margins = draw(rng, np.repeat(rows[:, None], 1 + CANDIDATES, axis=1), column)
        flat = candidates.reshape(-1, rows.shape[1])
        parts = [self._energies(flat[start : start + MOST_CELLS]) for start in range(0, len(flat), MOST_CELLS)]
        return np.concatenate(parts).reshape(log_margins.shape) - log_margins, candidates

    def _number_candidates(self, rng, candidates, column):
        z = (candidates[:, :, column] - self.mean[column]) / self.deviation[column]
        z[:, 1:] = rng.normal(size=z[:, 1:].shape)
        candidates[:, 1:, column] = self.mean[column] + self.deviation[column] * z[:, 1:]
        return candidates, -0.5 * z**2

    def _mixed_candidates(self, rng, candidates, column):
        base, layout = self.table_model.joint.base, self.space.layout
        number, category = layout.variables[column]
        shape, d = candidates.shape[:2], candidates.shape[2]
        x, known, codes = split_rows(candidates.reshape(-1, d), layout)
        x = np.where(known, x, np.nan).reshape(*shape, -1)
        codes = codes.reshape(*shape, -1)
        levels, log_margins = np.zeros(shape, int), np.zeros(shape)
        if category >= 0:
            log_shares = np.asarray(base.log_shares, float)[column]
            shares = np.exp(log_shares)
            levels[:] = np.maximum(codes[:, :, category], 0)
            levels[:, 1:] = rng.choice(len(shares), (shape[0], shape[1] - 1), p=shares / shares.sum())
            codes[:, 1:, category] = levels[:, 1:]
            log_margins += log_shares[levels]
        if number >= 0:
            deviation = float(np.asarray(base.deviations)[number])
            drawn = np.where(levels[:, 1:] == 0, deviation * rng.normal(size=levels[:, 1:].shape), np.nan)
            x[:, 1:, number] = drawn
            z = x[:, :, number] / deviation
            log_margins += np.where(levels == 0, -0.5 * np.nan_to_num(z) ** 2 - np.log(deviation * SQRT_2PI), 0.0)
        flat = flat_rows(
            x.reshape(shape[0] * shape[1], -1), codes.reshape(shape[0] * shape[1], -1), self.space.precision
        )
        return flat.astype(np.float64).reshape(*shape, d), log_margins

    def _known(self, rows, column):
        """True where a row has a value in the column."""
        if not self.mixed:
            return np.ones(len(rows), bool)
        _, known, codes = split_rows(rows, self.space.layout)
        number, category = self.space.layout.variables[column]
        return codes[:, category] >= 0 if category >= 0 else known[:, number]

    def features(self, rows):
        """What the distributions of single columns are compared by (n, k), and the column of each.

        Normal scores of numbers and their squares, common levels, and missing cells.
        """
        found, owners = [], []
        for column in range(len(self.names)):
            own = self._column_features(rows, column)
            found += own
            owners += [column] * len(own)
        return np.column_stack(found), np.array(owners)

    def _column_features(self, rows, column):
        if not self.mixed:
            z = _normal_scores(rows[:, column])
            return [z, z**2]
        x, is_number, codes = split_rows(rows, self.space.layout)
        number, category = self.space.layout.variables[column]
        found, known = [], self._known(rows, column)
        if not known.all():
            found.append((~known).astype(float))
        if number >= 0:
            z = np.full(len(rows), np.nan)
            z[is_number[:, number]] = _normal_scores(x[is_number[:, number], number])
            found += [z, z**2]
        if category >= 0:
            levels, counts = np.unique(codes[known, category], return_counts=True)
            common = levels[np.argsort(-counts, kind="stable")[:MOST_LEVELS]]
            found += [np.where(known, codes[:, category] == level, np.nan) for level in common]
        return found


def _normal_scores(values):
    """Normal scores by the ranks of numbers."""
    return ndtri((rankdata(values) - 0.5) / max(len(values), 1))
