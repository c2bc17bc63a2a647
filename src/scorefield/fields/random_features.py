"""An exponential family on random cosine features around a Gaussian, fitted in closed form. For few rows.

The loss of Eq:score_matching_2b is quadratic in the coefficients (Strathmann et al. 2015; features of Rahimi & Recht
2007). So is its denoising form, whose mean over the noise has a closed form.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import as_rows
from scorefield._jax.pytrees import leaf, pytree
from scorefield._jax.random import Stream, host_rng
from scorefield.fields.base import Field
from scorefield.fields.gaussian import Gaussian, fit_gaussian

N_FEATURES = 300
N_FOLDS = 5
BANDWIDTHS = (0.35, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)  # in standard deviations of the data
RIDGES = tuple(10.0**power for power in np.arange(-5.0, 1.5, 0.5))
BLOCK = 8192  # rows per block of the sums


@pytree
class KernelField(Field):
    """potential(x) = log base(x) + sum_j coefficients_j cos(w_j' x + phases_j).

    The features are bounded, so that exp(potential) has a finite integral for all coefficients.
    """

    base: Gaussian
    frequencies: jax.Array  # (d, m)
    phases: jax.Array  # (m,)
    coefficients: jax.Array  # (m,)
    conservative = True

    def potential(self, x: jax.Array) -> jax.Array:
        return self.base.potential(x) + jnp.cos(x @ self.frequencies + self.phases) @ self.coefficients

    def __call__(self, x: jax.Array) -> jax.Array:
        slopes = -jnp.sin(x @ self.frequencies + self.phases) * self.coefficients
        return self.base(x) + self.frequencies @ slopes

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        curvature = -jnp.cos(x @ self.frequencies + self.phases) * self.coefficients
        return self(x), curvature @ jnp.sum(self.frequencies**2, axis=0) - jnp.trace(self.base.precision)


class KernelFit(NamedTuple):
    """The field, the chosen bandwidth and ridge, and the held-out losses (bandwidths, ridges).

    Losses are relative to the Gaussian base: the features improve on it where they are negative.
    """

    field: KernelField
    bandwidth: float
    ridge: float
    held_out_loss: np.ndarray


def _sums(
    rows: np.ndarray, base: Gaussian, w: np.ndarray, phases: np.ndarray, noise: float, weights: np.ndarray | None = None
):
    """Weighted sums over rows of the matrix A and the vector b in the loss 1/2 c'Ac + b'c, averaged over the noise.

    With a_j = w_j'x + phase_j and noise z, E cos(a_j + sigma w_j'z) = exp(-sigma^2 |w_j|^2 / 2) cos a_j; products of
    sines are differences of such cosines.
    """
    squares, gram = np.sum(w**2, axis=0), w.T @ w
    damp = np.exp(-0.5 * noise**2 * squares)
    mean, precision = (np.asarray(a, np.float64) for a in (base.mean, base.precision))
    sines, cosines, b = np.zeros_like(gram), np.zeros_like(gram), np.zeros(len(phases))
    for start in range(0, len(rows), BLOCK):
        x = rows[start : start + BLOCK].astype(np.float64)
        angle = x @ w + phases
        sin, cos = np.sin(angle), np.cos(angle)
        sin_weighted, cos_weighted = sin, cos
        if weights is not None:
            own = weights[start : start + BLOCK, None]
            sin_weighted, cos_weighted = own * sin, own * cos
        sines += sin_weighted.T @ sin
        cosines += cos_weighted.T @ cos
        along = np.sum(w * (precision @ w), axis=0) * noise**2 - squares
        b += damp * (along * cos_weighted.sum(axis=0) - np.sum(sin_weighted * ((mean - x) @ precision @ w), axis=0))
    difference = np.exp(-0.5 * noise**2 * (squares[:, None] + squares - 2 * gram))
    total = np.exp(-0.5 * noise**2 * (squares[:, None] + squares + 2 * gram))
    a = 0.5 * gram * (difference * (cosines + sines) - total * (cosines - sines))
    return a, b


def _solve(a: np.ndarray, b: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """-(A + ridge I)^-1 b for all ridges by one eigendecomposition: (ridges, features)."""
    values, vectors = np.linalg.eigh(a)
    return -((vectors.T @ b) / (np.maximum(values, 0) + ridges[:, None])) @ vectors.T


def fit_kernel(
    key: jax.Array,
    rows: Any,
    *,
    noise: float = 0.0,
    n_features: int = N_FEATURES,
    bandwidths: tuple[float, ...] = BANDWIDTHS,
    ridges: tuple[float, ...] = RIDGES,
    covariance_of_rows: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> KernelFit:
    """Fit the coefficients, with the bandwidth and ridge of least score-matching loss in five-fold cross-validation.

    `weights` are those of rows, with a mean of 1.
    """
    table = as_rows(rows)
    if noise < 0 or n_features < 1:
        raise ValueError(f"Expected noise >= 0 and n_features >= 1, got {noise} and {n_features}.")
    n, d = table.shape
    base = fit_gaussian(table, noise=noise, covariance_of_rows=covariance_of_rows, weights=weights)
    rng = host_rng(key, Stream.RANDOM_FEATURES)
    # Frequencies are scaled by the spread of each column, so that one grid of bandwidths suits all units.
    scale = np.sqrt(np.diag(np.linalg.inv(np.asarray(base.precision, np.float64))))[:, None]
    directions = rng.normal(size=(d, n_features)) / scale
    phases = rng.uniform(0, 2 * np.pi, n_features)
    fold = rng.permutation(np.arange(n) % N_FOLDS)
    grid = np.asarray(ridges, np.float64)
    losses = np.zeros((len(bandwidths), len(grid)))
    solutions = []
    for i, bandwidth in enumerate(bandwidths):
        w = directions / bandwidth
        sums = [
            _sums(table[fold == k], base, w, phases, noise, None if weights is None else weights[fold == k])
            for k in range(N_FOLDS)
        ]
        a, b = sum(s[0] for s in sums), sum(s[1] for s in sums)
        for k, (a_k, b_k) in enumerate(sums):
            n_k = np.sum(fold == k) if weights is None else weights[fold == k].sum()
            if 0 < n_k < n:
                c = _solve((a - a_k) / (n - n_k), (b - b_k) / (n - n_k), grid)
                losses[i] += (0.5 * np.sum(c @ a_k * c, axis=1) + c @ b_k) / n
        solutions.append(_solve(a / n, b / n, grid))
    i, j = divmod(int(np.argmin(losses)), len(grid))
    field = KernelField(base, *(leaf(v) for v in (directions / bandwidths[i], phases, solutions[i][j])))
    return KernelFit(field, float(bandwidths[i]), float(grid[j]), losses)
