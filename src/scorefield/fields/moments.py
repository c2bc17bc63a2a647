"""Weighted moments of rows, in double precision."""

import numpy as np


def weighted_mean(rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Mean of each column."""
    if weights is None:
        return rows.mean(axis=0, dtype=np.float64)
    return weights @ rows.astype(np.float64) / weights.sum()


def effective_size(rows: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Number of equally weighted rows whose mean is as certain (Kish 1965)."""
    return len(rows) if weights is None else float(weights.sum() ** 2 / np.sum(weights**2))
