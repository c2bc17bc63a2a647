"""What a field gains in the denoising score-matching loss over no field, row by row, beside a Gaussian's gain.

Vincent (2011) with noise z color: the loss of a field s is 1/2 |color s(x + z color) + z|^2, and 1/2 |z|^2 without one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

N_DRAWS = 8  # antithetic pairs of noise per row
ROUNDS = 20  # of expectation and maximisation: half of the numbers unknown leaves an error of 2^-20
RIDGE = 1e-9  # keeps the covariance of columns that agree regular


class GaussianScores(NamedTuple):
    """Scores of rows with gaps under a Gaussian with a mean per class and one covariance."""

    means: np.ndarray  # (classes, p)
    covariance: np.ndarray  # (p, p)

    def __call__(self, numbers: np.ndarray, known: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Field of the known numbers, (n, p); 0 at gaps."""
        scores = np.zeros(numbers.shape)
        centred = numbers - self.means[labels]
        patterns, places = np.unique(known, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            own, at = np.flatnonzero(places.ravel() == number), np.flatnonzero(pattern)
            solved = np.linalg.solve(self.covariance[np.ix_(at, at)], centred[np.ix_(own, at)].T)
            scores[np.ix_(own, at)] = -solved.T
        return scores


def fit_gaussian_scores(
    numbers: np.ndarray, known: np.ndarray, labels: np.ndarray, n_classes: int, noise: np.ndarray
) -> GaussianScores:
    """The Gaussian of rows with gaps plus noise of a covariance (p, p)."""
    mask = known.astype(np.float64)
    x = np.where(known, numbers, 0.0).astype(np.float64)
    means = np.zeros((n_classes, x.shape[1]))
    for k in range(n_classes):
        own = labels == k
        means[k] = x[own].sum(axis=0) / np.maximum(mask[own].sum(axis=0), 1)
    return GaussianScores(means, _covariance_with_gaps(mask * (x - means[labels]), known) + noise)


def _covariance_with_gaps(centred: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Covariance of centred rows whose unknown numbers are zero, by expectation and maximisation.

    Covariances over the rows that have both numbers would not be positive where columns nearly agree.
    """
    patterns, places = np.unique(known, axis=0, return_inverse=True)
    spread = np.sum(centred**2, axis=0) / np.maximum(known.sum(axis=0), 1)
    covariance = np.diag(np.maximum(spread, RIDGE))
    for _ in range(1 if known.all() else ROUNDS):
        total = np.zeros_like(covariance)
        for number, pattern in enumerate(patterns):
            rows, a, b = centred[places.ravel() == number], np.flatnonzero(pattern), np.flatnonzero(~pattern)
            slopes = np.linalg.solve(covariance[np.ix_(a, a)], covariance[np.ix_(a, b)])
            rows[:, b] = rows[:, a] @ slopes
            total += rows.T @ rows
            total[np.ix_(b, b)] += len(rows) * (covariance[np.ix_(b, b)] - covariance[np.ix_(b, a)] @ slopes)
        covariance = total / len(centred) + RIDGE * np.eye(len(total))
    return covariance


def denoising_gains(
    rng: np.random.Generator,
    fields: list[Callable[[np.ndarray], np.ndarray]],
    numbers: np.ndarray,
    known: np.ndarray,
    color: np.ndarray,
    *,
    n_draws: int = N_DRAWS,
) -> np.ndarray:
    """Denoising loss without a field less that of each field, (n, fields), averaged over draws of noise.

    The fields map numbers (n, p) to scores (n, p) and see the same noise. The gain is computed without the loss of no
    field, which would swallow it where noise is small.
    """
    gains = np.zeros((len(numbers), len(fields)))
    for _ in range(n_draws):
        z = rng.normal(size=numbers.shape)
        shift = known * (z @ color)
        for column, field in enumerate(fields):
            ahead, behind = (
                np.where(known, field(numbers + sign * shift), 0.0).astype(np.float64) @ color.T for sign in (1, -1)
            )
            loss = 0.25 * np.sum(ahead**2 + behind**2, axis=1) + 0.5 * np.sum(z * (ahead - behind), axis=1)
            gains[:, column] -= loss / n_draws
    return gains
