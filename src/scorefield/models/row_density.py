"""The density of a mixed table: one energy of its rows, with the methods of `FieldDensity`."""

import numpy as np

from scorefield._jax.storage import stored_by_public_name
from scorefield.models.requests import ModelRequests
from scorefield.models.row_model import RowModel


@stored_by_public_name
class RowDensity:
    """A `RowModel` of one class as a density.

    Parameters
    ----------
    row_model : RowModel
    """

    name, path_gap = "energy", 0.0

    def __init__(self, row_model):
        self.row_model = row_model

    @property
    def space(self):
        """The space of the rows."""
        return self.row_model.space

    @property
    def history(self):
        """Losses and steps of the first network."""
        return self.row_model.history[0]

    @property
    def candidates(self):
        """The energy alone: mixed tables have no other model."""
        return [{"model": self.name, "held_out_loss": None, "chosen": True}]

    def normalized(self):
        """The anchor's constant, effective size and error."""
        constant, error = self.row_model.log_constants[0], self.row_model.anchors[0, 1]
        return [float(constant), float(1 / max(error, 1e-3) ** 2), float(error)]

    def log_density(self, rows):
        """Log density of each row (n,)."""
        return self.row_model.energies(rows)[:, 0] + self.space.log_volume(rows)[:, 0] + self.normalized()[0]

    def scores(self, rows):
        """The score field of the normal scores of numbers at each row (n, p)."""
        return self.row_model.scores(rows)[:, 0]

    def completed_scores(self, X, key, n_draws):
        """How usual each row of a table is, by draws of its missing cells, in normal scores that suit extremes."""
        unseen, n_rows = self.space.encoder.unseen_levels(X), self.row_model.n_rows
        return self.row_model.completed_scores(key, X, n_draws) - unseen * np.log(2 * n_rows + 1)

    def generated(self, state, n, ids, sampler):
        """A table of n rows, by the chains of the energy."""
        return self.row_model.generated(state, n, 0, ids)

    def requested(self, seed, n, given, constraints, ids, sampler):
        """A table of n rows that meet conditions and relations."""
        return ModelRequests(self.row_model).sample(seed, n, given, constraints, 0, ids)[0]

    def to_plain(self):
        """A dictionary of plain values and arrays."""
        return {"row_model": self.row_model.to_plain()}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`."""
        return cls(RowModel.from_plain(plain["row_model"]))

    def __getstate__(self):
        return self.to_plain()

    def __setstate__(self, plain):
        vars(self).update(vars(self.from_plain(plain)))
