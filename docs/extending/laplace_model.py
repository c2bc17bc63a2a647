"""One Laplace density per class of rows of numbers."""

import jax
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield._jax.storage import from_plain, to_plain
from scorefield.data.spaces import space_from_plain
from scorefield.fields.laplace import fit_laplace
from scorefield.inference.functions import Plus, SideBySide


class LaplaceClasses:
    """Bayes' rule on one Laplace density for each class."""

    history = ()

    def __init__(self, space, fields, frequencies, starts):
        self.space, self.fields, self.frequencies, self.starts = space, fields, frequencies, starts
        self.temperature, self.intercepts = 1.0, np.zeros(len(fields))

    @classmethod
    def fit(cls, space, rows, labels):
        parts = [rows[labels == k] for k in range(labels.max() + 1)]
        fields = [jax.tree.map(np.asarray, fit_laplace(part)) for part in parts]
        return cls(space, fields, np.bincount(labels) / len(labels), parts)

    def log_density(self, rows):
        columns = [map_rows(Method(field, "potential"), rows) for field in self.fields]
        return np.column_stack(columns).astype(np.float64)

    def logits(self, rows):
        return self.log_density(rows) + np.log(self.frequencies)

    def logits_and_log_density(self, rows):
        logs = self.log_density(rows)
        return logs + np.log(self.frequencies), logs

    def scores(self, rows):
        return np.stack([map_rows(field, rows) for field in self.fields], axis=1)

    def posterior(self, shift):
        logs = SideBySide(tuple(Method(field, "potential") for field in self.fields))
        return Plus(logs, np.log(self.frequencies) + shift)

    def generated(self, seed, n, label, ids="new"):
        field = self.fields[label]
        drawn = np.random.default_rng(seed).laplace(size=(n, len(field.centre)))
        return self.space.table(field.centre + field.width * drawn)

    def known_rows(self):
        return self.starts

    def to_plain(self):
        fields = [to_plain(field) for field in self.fields]
        parts = {"fields": fields, "frequencies": self.frequencies, "starts": self.starts}
        return {**parts, "space": self.space.to_plain()}

    @classmethod
    def from_plain(cls, plain):
        fields = [from_plain(field) for field in plain["fields"]]
        return cls(space_from_plain(plain["space"]), fields, plain["frequencies"], plain["starts"])
