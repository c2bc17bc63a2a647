"""What an estimator holds after `fit`, whatever was learned from the table: the interface of all models."""

from typing import Any, Protocol

import numpy as np


class TableModel(Protocol):
    """A model of the rows of a table and of their classes.

    Rows are those of its space, see `scorefield.data.spaces`. Models keep numpy arrays; what they cache on a device is
    no part of their pickled state.
    """

    space: Any
    history: list[dict]  # of the trained networks
    temperature: float  # and constants of the classes by which probabilities are calibrated
    intercepts: np.ndarray

    def logits(self, rows: np.ndarray) -> np.ndarray:
        """Calibrated log posteriors for the class shares of the fitted rows, up to a constant per row (n, classes)."""

    def log_density(self, rows: np.ndarray) -> np.ndarray:
        """log p(row | class), in the units of the table (n, classes)."""

    def logits_and_log_density(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both, in one pass over the rows."""

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """The score field of every class (n, classes, d)."""

    def posterior(self, shift: Any) -> Any:
        """`logits` plus a shift (classes,), as a jax function of one point."""

    def generated(self, seed: int, n: int, label: int, ids: str = "new") -> Any:
        """A table of n rows of a class, by its number; identifiers of mixed tables are "new" or "blank"."""

    def known_rows(self) -> list[np.ndarray]:
        """Some fitted rows of each class."""

    def to_plain(self) -> dict:
        """A dictionary of plain values and arrays, from which `from_plain` of the class makes the model again."""
