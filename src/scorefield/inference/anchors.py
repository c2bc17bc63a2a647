"""Anchors: the constants that normalise log densities.

The paper's initial density p(x0) (its sections 2 and 4.2), and a normaliser by (annealed) importance sampling.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, logsumexp

from scorefield._jax.batching import as_rows, map_rows
from scorefield._jax.pytrees import Method, leaf, pytree, static
from scorefield._jax.random import Stream, host_rng
from scorefield.fields.base import LOG_2PI
from scorefield.fields.gaussian import Gaussian, gaussian_from_covariance, shrunk_covariance
from scorefield.fields.moments import effective_size, weighted_mean
from scorefield.inference.annealing import annealed_log_weights

LogDensity = Callable[[jax.Array], jax.Array]
MAX_KERNELS = 256  # rows used as kernels of the importance proposal
N_DRAWS = 16384
MAX_POINTS = 1 << 22  # field evaluations per anchor: seconds for a network with two layers of 128 units
MIN_DRAWS = 2048  # a relative error of about 2 % if the proposal is close
ENOUGH = 200.0  # effective draws: an error of .07 nats
N_ANNEALED, FIRST_LEVELS = 1024, 128  # draws, and levels that are raised fourfold until there are enough effective ones
WIDENING = 2.0  # factor on the proposal's covariance, whose tails must not be lighter than the model's


class Anchor(NamedTuple):
    """The offset in log p(x) = unnormalised(x) + offset, and its accuracy."""

    offset: float
    effective_size: float  # rows in the ball, or effective draws
    error: float  # standard error of the offset in nats


def _at_point(log_density: LogDensity, point: np.ndarray, log_p: float, size: float, error: float) -> Anchor:
    value = float(map_rows(log_density, point[None])[0])
    if not np.isfinite(value):
        raise ValueError("Expected a finite log density at the anchor, got NaN or infinity; refit the field.")
    return Anchor(log_p - value, size, error)


def gaussian_anchor(log_density: LogDensity, rows: object, *, weights: np.ndarray | None = None) -> Anchor:
    """The paper's p(mean) = (2 pi)^-d/2 |Sigma|^-1/2, exact for Gaussian data only."""
    table = as_rows(rows)
    n, d = effective_size(table, weights), table.shape[1]
    # Shrinkage would make the determinant larger; it is needed only where the sample covariance is singular.
    log_det = np.linalg.slogdet(shrunk_covariance(table, 0.0 if n > d else "auto", weights=weights))[1]
    # The log determinant of a Gaussian's sample covariance has a standard error of sqrt(2 d / n).
    centre = table.mean(axis=0) if weights is None else weighted_mean(table, weights).astype(np.float32)
    return _at_point(log_density, centre, -0.5 * (log_det + d * LOG_2PI), n, float(np.sqrt(d / (2 * n))))


def log_ball_volume(d: int, radius: float) -> float:
    """log(pi^d/2 r^d / Gamma(d/2 + 1))."""
    return 0.5 * d * np.log(np.pi) + d * np.log(radius) - float(gammaln(0.5 * d + 1))


def counting_anchor(
    log_density: LogDensity,
    rows: object,
    *,
    radius: float | None = None,
    samples: object = None,
    weights: np.ndarray | None = None,
) -> Anchor:
    """p(mean) = share of points within `radius` of the mean, divided by the ball's volume.

    Counts `samples` (such as Langevin draws) if given, otherwise the rows. By default the ball contains the sqrt(n)
    nearest points, so that its bias decreases and its count increases with n. `weights` are those of rows.
    """
    table = as_rows(rows)
    points = table if samples is None else as_rows(samples, name="samples")
    centre = table.mean(axis=0) if weights is None else weighted_mean(table, weights).astype(np.float32)
    distances = np.linalg.norm(points - centre, axis=1)
    order = np.argsort(distances)
    distances = distances[order]
    if radius is None:
        radius = float(distances[int(np.sqrt(len(points)))])
    if not radius > 0:
        raise ValueError(f"Expected radius > 0, got {radius}; pass a radius explicitly.")
    count = int(np.searchsorted(distances, radius, side="right"))
    if count == 0:
        raise ValueError(
            f"Expected points within {radius:g} of the mean, got none (the nearest is {distances[0]:.3g} away); "
            "use a larger radius, Langevin samples or the importance anchor."
        )
    inside = np.ones(count) if weights is None or samples is not None else weights[order[:count]] / weights.mean()
    log_p = np.log(inside.sum() / len(points)) - log_ball_volume(table.shape[1], radius)
    size = effective_size(inside, inside)
    error = float(np.sqrt(max(1 / size - 1 / len(points), 0.0)))
    return _at_point(log_density, centre, float(log_p), size, error)


@pytree
class Proposal:
    """Equal mixture of a wide Gaussian, which covers the tails, and a kernel estimate, which covers every mode.

    Kernels share one covariance, so that their log densities are squared distances in whitened coordinates. With
    `degrees` of freedom the wide part is a Student's t, for densities with such tails.
    """

    base: Gaussian  # already widened
    centres: jax.Array  # (k, d), whitened
    bandwidth: float  # of the kernels, whitened
    degrees: int | None = static(default=None)

    def log_density(self, x: jax.Array) -> jax.Array:
        z = (x - self.base.mean) @ self.base.whiten
        d = z.shape[-1]
        squares = jnp.sum(self.centres**2, axis=1) - 2 * self.centres @ z + z @ z
        log_kernels = -0.5 * squares / self.bandwidth**2 - d * jnp.log(self.bandwidth)
        halves = jnp.stack([self._log_wide(z), jax.scipy.special.logsumexp(log_kernels) - jnp.log(len(self.centres))])
        log_unit = jnp.sum(jnp.log(jnp.diagonal(self.base.whiten))) - 0.5 * d * LOG_2PI
        return jax.scipy.special.logsumexp(halves) - jnp.log(2.0) + log_unit

    def _log_wide(self, z: jax.Array) -> jax.Array:
        """Log density of the wide part, less that of a standard Gaussian at zero."""
        if self.degrees is None:
            return -0.5 * z @ z
        nu, d = self.degrees, z.shape[-1]
        constant = float(gammaln((nu + d) / 2) - gammaln(nu / 2)) - 0.5 * d * np.log(nu / 2)
        return constant - 0.5 * (nu + d) * jnp.log1p(z @ z / nu)

    def sample(self, key: jax.Array, n: int) -> np.ndarray:
        rng, centres = host_rng(key, Stream.IMPORTANCE_DRAWS), np.asarray(self.centres)
        noise = rng.normal(size=(n, centres.shape[1]))
        narrow = centres[rng.integers(0, len(centres), n)] + self.bandwidth * noise
        wide = noise if self.degrees is None else noise / np.sqrt(rng.chisquare(self.degrees, (n, 1)) / self.degrees)
        z = np.where(rng.random((n, 1)) < 0.5, wide, narrow)
        return (np.asarray(self.base.mean) + z @ np.asarray(self.base.color)).astype(np.float32)


def importance_proposal(rows: object, *, degrees: int | None = None) -> Proposal:
    """A `Proposal` for a table, with Scott's bandwidth and, if given, tails of Student's t."""
    table = as_rows(rows)
    n, d = table.shape
    base = gaussian_from_covariance(table.mean(axis=0), WIDENING * shrunk_covariance(table))
    n_kernels = min(n, MAX_KERNELS)
    # Repeated to a fixed length, so that all tables share one compiled program.
    chosen = table[np.resize(np.linspace(0, n - 1, n_kernels).astype(int), MAX_KERNELS)]
    centres = (chosen - np.asarray(base.mean)) @ np.asarray(base.whiten)
    return Proposal(base, leaf(centres), float(n_kernels ** (-1 / (d + 4))), degrees)


def importance_anchor(
    key: jax.Array, log_density: LogDensity, rows: object, *, n_draws: int = N_DRAWS, points: int = 1
) -> Anchor:
    """The normaliser by importance sampling from `importance_proposal(rows)`; see `importance_constant`."""
    return importance_constant(key, log_density, importance_proposal(rows), n_draws=n_draws, points=points)


def importance_constant(
    key: jax.Array,
    log_density: LogDensity,
    proposal: Proposal,
    *,
    n_draws: int = N_DRAWS,
    points: int = 1,
    anneal: bool = True,
) -> Anchor:
    """-log Z with Z = E_q[exp(log_density) / q] over draws of a proposal q, its effective sample size and error.

    Where the effective size is low, draws are annealed instead, through as many levels as the error asks for. A mode
    that holds little of the volume that the proposal covers, as one much narrower than the others in many columns, can
    still be missed; the error cannot see it. `points` is the number of field evaluations per log density; if it is
    large, fewer draws are made.
    """
    n_draws = min(n_draws, max(MAX_POINTS // points, MIN_DRAWS))
    draws = proposal.sample(key, n_draws)
    log_weights = map_rows(log_density, draws, points=points) - map_rows(
        Method(proposal, "log_density"), draws, points=MAX_KERNELS
    )
    found = _from_weights(log_weights.astype(np.float64))
    n_levels = FIRST_LEVELS
    while anneal and found.effective_size < ENOUGH and n_levels * N_ANNEALED * points <= MAX_POINTS:
        key, level_key = jax.random.split(key)
        starts = proposal.sample(level_key, N_ANNEALED)
        found = _from_weights(annealed_log_weights(key, log_density, proposal, starts, n_levels))
        n_levels *= 4
    return found


def _from_weights(log_weights: np.ndarray) -> Anchor:
    """The anchor from importance weights whose mean is Z."""
    n = len(log_weights)
    if not np.isfinite(log_weights).any():
        raise ValueError("Expected a finite log density over the data, got none; refit the field.")
    log_weights = np.where(np.isfinite(log_weights), log_weights, -np.inf)
    total = float(logsumexp(log_weights))
    size = float(np.exp(2 * total - logsumexp(2 * log_weights)))
    return Anchor(float(np.log(n)) - total, size, float(np.sqrt(max(1 / size - 1 / n, 0.0))))
