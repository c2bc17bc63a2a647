"""Anchors: what turns a log density that is known up to a constant into a normalised one.

The paper's initial density p(x0) (its sections 2 and 4.2), and an importance-sampled normaliser.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, logsumexp

from scorefield._tree import Method, as_rows, map_rows
from scorefield.fields import LOG_2PI, shrunk_covariance
from scorefield.truth import GaussianMixture

LogDensity = Callable[[jax.Array], jax.Array]
MAX_KERNELS = 256  # rows behind the importance proposal
WIDENING = 2.0  # of the proposal's covariance: its tails must not be thinner than the model's


class Anchor(NamedTuple):
    """log p(x) = unnormalised(x) + offset, and how well the offset is known."""

    offset: float
    effective_size: float  # rows in the ball, or effective draws; the relative error is about 1 / sqrt of it


def _at_point(log_density: LogDensity, point: np.ndarray, log_p: float, size: float) -> Anchor:
    value = float(map_rows(log_density, point[None])[0])
    if not np.isfinite(value):
        raise ValueError("Expected a finite log density at the anchor, got NaN or infinity; refit the field.")
    return Anchor(log_p - value, size)


def gaussian_anchor(log_density: LogDensity, rows: object) -> Anchor:
    """The paper's p(mean) = (2 pi)^-d/2 |Sigma|^-1/2: right for Gaussian data, a guess otherwise."""
    table = as_rows(rows)
    log_det = np.linalg.slogdet(shrunk_covariance(table))[1]
    return _at_point(log_density, table.mean(axis=0), -0.5 * (log_det + table.shape[1] * LOG_2PI), len(table))


def log_ball_volume(d: int, radius: float) -> float:
    """log of pi^d/2 r^d / Gamma(d/2 + 1)."""
    return 0.5 * d * np.log(np.pi) + d * np.log(radius) - float(gammaln(0.5 * d + 1))


def counting_anchor(
    log_density: LogDensity, rows: object, *, radius: float | None = None, samples: object = None
) -> Anchor:
    """p(mean) = share of points within `radius` of the mean, divided by the ball's volume.

    Counts `samples` (Langevin draws, say) where given, else the rows. Without a radius the ball holds the sqrt(n)
    nearest points: its bias falls with n while its count grows.
    """
    table = as_rows(rows)
    points = table if samples is None else as_rows(samples, name="samples")
    centre = table.mean(axis=0)
    distances = np.sort(np.linalg.norm(points - centre, axis=1))
    if radius is None:
        radius = float(distances[int(np.sqrt(len(points)))])
    if not radius > 0:
        raise ValueError(f"Expected radius > 0, got {radius}; rows at the mean itself need an explicit radius.")
    count = int(np.searchsorted(distances, radius, side="right"))
    if count == 0:
        raise ValueError(
            f"Expected points within {radius:g} of the mean, got none (the nearest is {distances[0]:.3g} away); "
            "use a larger radius, Langevin samples or the importance anchor."
        )
    log_p = np.log(count / len(points)) - log_ball_volume(table.shape[1], radius)
    return _at_point(log_density, centre, float(log_p), count)


def importance_proposal(rows: object) -> GaussianMixture:
    """A wide Gaussian and a kernel estimate on a few rows, half each: every mode is covered, and so are the tails."""
    table = as_rows(rows)
    n, d = table.shape
    covariance = shrunk_covariance(table)
    centres = table[np.linspace(0, n - 1, min(n, MAX_KERNELS)).astype(int)]
    # Scott's bandwidth for the number of kernels, widened like the Gaussian part.
    narrow = len(centres) ** (-2 / (d + 4)) * covariance
    weights = np.concatenate([[0.5], np.full(len(centres), 0.5 / len(centres))])
    means = np.concatenate([table.mean(axis=0, keepdims=True), centres])
    covariances = np.concatenate([[covariance], np.broadcast_to(narrow, (len(centres), d, d))])
    return GaussianMixture(*(jnp.asarray(a, jnp.float32) for a in (weights, means, WIDENING * covariances)))


def importance_anchor(key: jax.Array, log_density: LogDensity, rows: object, *, n_draws: int = 16384) -> Anchor:
    """-log Z with Z = E_q[exp(log_density) / q] over draws of `importance_proposal`, and its effective sample size."""
    proposal = importance_proposal(rows)
    draws = np.asarray(proposal.sample(key, n_draws))
    log_weights = map_rows(log_density, draws) - map_rows(Method(proposal, "potential"), draws, chunk=1024)
    log_weights = log_weights.astype(np.float64)
    if not np.isfinite(log_weights).any():
        raise ValueError("Expected a finite log density over the data, got none; refit the field.")
    log_weights = np.where(np.isfinite(log_weights), log_weights, -np.inf)
    total = float(logsumexp(log_weights))
    size = float(np.exp(2 * total - logsumexp(2 * log_weights)))
    return Anchor(float(np.log(n_draws)) - total, size)
