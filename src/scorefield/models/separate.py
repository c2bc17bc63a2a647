"""One density per class of rows of numbers, of any kind, and Bayes' rule on them."""

import copy
import inspect

import numpy as np

from scorefield._jax.storage import stored_by_public_name
from scorefield.data.spaces import space_from_plain
from scorefield.inference.functions import Plus, SideBySide, Times

STATE = ("densities", "frequencies", "temperature", "intercepts")


@stored_by_public_name
class SeparateModel:
    """Fitted densities of the classes, as estimators, with the shares of the classes."""

    history = ()  # each density has its own
    by_labels = False

    def __init__(self, space, densities, frequencies, *, temperature=1.0, intercepts=None):
        self.space, self.densities, self.frequencies = space, densities, frequencies
        self.temperature = temperature
        self.intercepts = np.zeros(len(densities)) if intercepts is None else intercepts

    def _calibrated(self, logs):
        with np.errstate(invalid="ignore"):
            logits = (logs + np.log(self.frequencies)) / self.temperature + self.intercepts
        # All densities are zero: fall back to the shares of the classes.
        return np.where(np.isfinite(logits).any(axis=1, keepdims=True), logits, np.log(self.frequencies))

    def logits(self, rows):
        """Calibrated log posteriors for the class shares of the fitted rows, up to a constant per row (n, classes)."""
        return self._calibrated(self.log_density(rows))

    def log_density(self, rows):
        """log p(row | class) (n, classes)."""
        return np.column_stack([density.score_samples(rows) for density in self.densities]).astype(np.float64)

    def logits_and_log_density(self, rows):
        """Both, in one pass over the rows."""
        logs = self.log_density(rows)
        return self._calibrated(logs), logs

    def scores(self, rows):
        """The score field of every class (n, classes, d)."""
        self._need_fields()
        return np.stack([density.grad_log_density(rows) for density in self.densities], axis=1)

    def posterior(self, shift):
        """`logits` plus a shift (classes,), as a jax function of one point."""
        self._need_fields()
        logs = SideBySide(tuple(density.log_density_function() for density in self.densities))
        constants = np.log(self.frequencies) / self.temperature + self.intercepts
        return Plus(Times(logs, 1 / self.temperature), constants + shift)

    def known_rows(self):
        """Up to 1,024 fitted rows of each class."""
        self._need_fields()
        return [density.known_rows() for density in self.densities]

    def generated(self, seed, n, label, ids="new"):
        """A table of n rows of a class, which has no identifiers."""
        density, seed = self.densities[label], seed % (1 << 31)
        if "random_state" in inspect.signature(density.sample).parameters:
            return density.sample(n, random_state=seed)
        drawn = copy.copy(density).set_params(random_state=seed).sample(n)  # scikit-learn's mixtures
        return drawn[0] if isinstance(drawn, tuple) else drawn

    def _need_fields(self):
        for density in self.densities:
            if not hasattr(density, "log_density_function"):
                raise TypeError(f"Expected ScoreDensity densities for derivatives, got {type(density).__name__}.")

    def to_plain(self):
        """A dictionary of plain values, arrays and the densities."""
        return {**{name: getattr(self, name) for name in STATE}, "space": self.space.to_plain()}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`."""
        return cls(**{**plain, "space": space_from_plain(plain["space"])})
