"""Temperatures and intercepts that make held-out labels most likely, and the calibration error of probabilities.

Guo, Pleiss, Sun & Weinberger (2017). If a model predicts all held-out labels without error, the most likely
temperature is zero and a single later error would cost an unbounded loss. As in Platt's (1999) scaling, one row of each
class is therefore added in all as doubt.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

# A handful of held-out rows would send both to their limits.
TEMPERATURES = (0.2, 50.0)
PRIOR_DEVIATION = 3.0  # of intercepts and of log temperatures: the pull of less than one row
N_BINS = 10  # of the calibration error


def soft_labels(labels, weights, n_classes):
    """Labels as shares of the classes (n, classes): a row of every class is spread over all rows."""
    spread = 1 / weights.sum()
    return (np.eye(n_classes)[labels] + spread) / (1 + n_classes * spread)


def _cross_entropy(scaled, wanted, weights):
    """Cross-entropy of the softmax of (n, classes), weighted and summed, and its slopes."""
    total = logsumexp(scaled, axis=1, keepdims=True)
    residual = weights[:, None] * (np.exp(scaled - total) - wanted)
    return weights @ np.sum(wanted * (total - scaled), axis=1), residual


def fit_temperature(logits, labels, weights=None, *, intercepts=False):
    """The temperature T and constants a (classes,) that minimise the cross-entropy of softmax(logits / T + a).

    Without ``intercepts`` the constants are zero.
    """
    n_classes = logits.shape[1]
    known = np.isfinite(logits).all(axis=1)  # elsewhere a density is zero, at any temperature
    weights = np.ones(known.sum()) if weights is None else weights[known]
    wanted = soft_labels(labels[known], weights, n_classes)
    logits = logits[known] - logits[known].max(axis=1, keepdims=True)

    def unpack(free):
        constants = np.concatenate([[0.0], free[1:]]) if intercepts else np.zeros(n_classes)
        return np.exp(free[0]), constants

    def loss(free):
        temperature, constants = unpack(free)
        value, residual = _cross_entropy(logits / temperature + constants, wanted, weights)
        slope = [-np.sum(residual * logits) / temperature, *(residual.sum(axis=0)[1:] if intercepts else ())]
        return value + 0.5 * np.sum((free / PRIOR_DEVIATION) ** 2), np.array(slope) + free / PRIOR_DEVIATION**2

    start = np.zeros(n_classes if intercepts else 1)
    bounds = [tuple(np.log(TEMPERATURES)), *[(None, None)] * (len(start) - 1)]
    return unpack(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def fit_share(logits, others, labels, weights=None):
    """The share s of other logits, and the temperature T, that minimise the cross-entropy of ((1 - s) l + s o) / T.

    A convex problem in the weights (1 - s) / T and s / T, which are not negative.
    """
    weights = np.ones(len(labels)) if weights is None else weights
    both = np.stack([each - each.max(axis=1, keepdims=True) for each in (logits, others)])
    wanted = soft_labels(labels, weights, logits.shape[1])
    centre = np.array([1.0, 0.0])  # the logits as they are; a weak pull to it keeps the problem bounded

    def loss(free):
        value, residual = _cross_entropy(np.tensordot(free, both, 1), wanted, weights)
        away = (free - centre) / PRIOR_DEVIATION
        return value + 0.5 * away @ away, np.tensordot(both, residual, 2) + away / PRIOR_DEVIATION

    bounds = [(0.0, 1 / TEMPERATURES[0])] * 2
    found = minimize(loss, [0.5, 0.5], jac=True, method="L-BFGS-B", bounds=bounds).x
    total = max(found.sum(), 1e-9)
    return float(found[1] / total), float(np.clip(1 / total, *TEMPERATURES))


def calibration_error(proba, labels):
    """Expected calibration error: probability less frequency in bins of equal size, averaged over rows and classes.

    ``labels`` are indices (..., n) of classes, for many labellings of the rows at once. Rows of equal probability count
    with their common frequency, so that the error does not depend on the order of the rows.
    """
    n, n_classes = proba.shape
    edges = np.linspace(0, n, min(N_BINS, n) + 1).astype(int)[:-1]
    errors = []
    for k in range(n_classes):
        order = np.argsort(proba[:, k], kind="stable")
        _, starts, counts = np.unique(proba[order, k], return_index=True, return_counts=True)
        frequency = np.add.reduceat(labels[..., order] == k, starts, axis=-1, dtype=float) / counts
        surplus = proba[order, k] - np.repeat(frequency, counts, axis=-1)
        errors.append(np.abs(np.add.reduceat(surplus, edges, axis=-1)).sum(axis=-1) / n)
    return np.mean(errors, axis=0)


def usual_calibration_error(rng, proba, *, n_draws=200):
    """The 95 % quantile of the error of labels that are drawn from the probabilities (Brocker & Smith 2007)."""
    shares = np.cumsum(proba, axis=1)
    uniform = rng.uniform(size=(n_draws, len(proba))) * shares[:, -1]
    return float(np.quantile(calibration_error(proba, (uniform[..., None] > shares).sum(axis=-1)), 0.95))
