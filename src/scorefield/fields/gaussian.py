"""The Gaussian field s = P (mean - x), solved from moments (Eq:MND_pdf)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import as_rows
from scorefield._jax.pytrees import leaf, pytree
from scorefield.fields.base import LOG_2PI, Field
from scorefield.fields.moments import effective_size, weighted_mean


@pytree
class Gaussian(Field):
    """N(mean, covariance) with the linear score s = P (mean - x), where P = whiten whiten' is the precision.

    z = (x - mean) whiten is standard normal and x = mean + z color is its inverse, so that no linear system is solved
    at run time. Created by `gaussian_from_covariance` or `fit_gaussian`.
    """

    mean: jax.Array
    whiten: jax.Array  # lower triangular
    color: jax.Array  # its inverse
    conservative = True
    normalized = True

    @property
    def precision(self) -> jax.Array:
        return self.whiten @ self.whiten.T

    @property
    def scale(self) -> jax.Array:
        """Standard deviations of the columns, from the covariance color' color."""
        return jnp.sqrt(jnp.sum(self.color**2, axis=0))

    def __call__(self, x: jax.Array) -> jax.Array:
        return (self.mean - x) @ self.whiten @ self.whiten.T

    def potential(self, x: jax.Array) -> jax.Array:
        z = (x - self.mean) @ self.whiten
        return jnp.sum(jnp.log(jnp.diagonal(self.whiten))) - 0.5 * (x.shape[-1] * LOG_2PI + z @ z)

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self(x), -jnp.sum(self.whiten**2)

    def whitened(self, rows: Any) -> np.ndarray:
        """Coordinates (n, d) in which this Gaussian is N(0, I)."""
        return (np.asarray(rows) - np.asarray(self.mean)) @ np.asarray(self.whiten)

    def coloured(self, rows: Any) -> np.ndarray:
        """The rows behind `whitened`."""
        return np.asarray(self.mean) + np.asarray(rows) @ np.asarray(self.color)

    def sample(self, key: jax.Array, n: int) -> jax.Array:
        """`n` independent rows (n, d)."""
        return self.mean + jax.random.normal(key, (n, self.mean.shape[0])) @ self.color

    def exact_rows(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """`sample` without a compilation."""
        return np.asarray(self.mean) + rng.normal(size=(n, len(self.mean))) @ np.asarray(self.color)


def gaussian_from_covariance(mean: Any, covariance: Any) -> Gaussian:
    """A `Gaussian` with the given moments, whose correlations are decomposed in double precision."""
    sigma = np.asarray(covariance, np.float64)
    _refuse_constant(np.diag(sigma) == 0)
    scale = np.sqrt(np.diag(sigma))
    correlation = sigma / np.outer(scale, scale)
    if np.linalg.cond(correlation) > 1 / np.finfo(np.float32).eps:
        raise ValueError(
            "Expected linearly independent columns, got a singular covariance; drop one or pass noise > 0."
        )
    whiten = np.linalg.cholesky(np.linalg.inv(correlation))
    color = np.linalg.inv(whiten) * scale
    return Gaussian(*(leaf(a) for a in (mean, whiten / scale[:, None], color)))


def _refuse_constant(constant: np.ndarray) -> None:
    if constant.any():
        column = int(np.argmax(constant))
        raise ValueError(f"Expected columns that vary, got constant column {column}; drop it or pass noise > 0.")


def shrunk_covariance(
    rows: np.ndarray, shrinkage: float | str = "auto", *, weights: np.ndarray | None = None
) -> np.ndarray:
    """Sample covariance with correlations shrunk towards zero, by the OAS weight if `shrinkage="auto"`.

    The weight of Chen, Wiesel, Eldar & Hero (2010) is applied to correlations, so that the units of columns do not
    matter. With more than 20 rows per column it is below its sampling error and set to zero.
    """
    n, d = effective_size(rows, weights), rows.shape[1]
    centred = rows.astype(np.float64) - weighted_mean(rows, weights)
    scale = np.sqrt(weighted_mean(centred**2, weights))
    _refuse_constant(np.ptp(rows, axis=0) == 0)  # exact, unlike a standard deviation of zero
    weighted, total = (centred, n) if weights is None else (centred * weights[:, None], weights.sum())
    correlation = weighted.T @ centred / total / np.outer(scale, scale)
    if shrinkage == "auto":
        spread = np.sum(correlation**2) - d  # tr(S^2) - tr(S)^2 / d for a unit diagonal
        top = (1 - 2 / d) * (spread + d) + d**2
        weight = 0.0 if n > 20 * d else 1.0 if spread <= 0 else min(1.0, top / ((n + 1 - 2 / d) * spread))
    else:
        weight = float(shrinkage)
        if not 0 <= weight <= 1:
            raise ValueError(f"Expected shrinkage in [0, 1] or 'auto', got {shrinkage}.")
    correlation = (1 - weight) * correlation + weight * np.eye(d)
    return correlation * np.outer(scale, scale)


def fit_gaussian(
    rows: Any,
    *,
    shrinkage: float | str = "auto",
    noise: float | np.ndarray = 0.0,
    covariance_of_rows: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Gaussian:
    """Minimiser of the (denoising) score-matching loss over linear fields, from mean and covariance.

    `noise`, a standard deviation or a covariance matrix, is added to the covariance, which also makes that of
    degenerate tables regular. `covariance_of_rows` replaces `shrunk_covariance`, where it is known better. `weights`
    are those of rows.
    """
    table = as_rows(rows)
    d = table.shape[1]
    if np.ndim(noise) == 0 and noise < 0:
        raise ValueError(f"Expected noise >= 0, got {noise}.")
    covariance = noise**2 * np.eye(d) if np.ndim(noise) == 0 else np.array(noise, np.float64)
    # Noise regularises constant columns.
    varying = np.flatnonzero(np.ptp(table, axis=0) > 0) if np.any(covariance) else np.arange(d)
    if covariance_of_rows is not None:
        covariance += covariance_of_rows
    elif len(varying):
        covariance[np.ix_(varying, varying)] += shrunk_covariance(table[:, varying], shrinkage, weights=weights)
    return gaussian_from_covariance(weighted_mean(table, weights), covariance)


def standard_gaussian(d: int) -> Gaussian:
    """N(0, I)."""
    return Gaussian(leaf(np.zeros(d)), leaf(np.eye(d)), leaf(np.eye(d)))


@pytree
class Whitened(Field):
    """A conservative field in the coordinates z of a frame, where x = frame.mean + z frame.color."""

    field: Field
    frame: Gaussian
    conservative = True

    def _point(self, z: jax.Array) -> jax.Array:
        return self.frame.mean + z @ self.frame.color

    def potential(self, z: jax.Array) -> jax.Array:
        return self.field.potential(self._point(z))

    def __call__(self, z: jax.Array) -> jax.Array:
        return self.frame.color @ self.field(self._point(z))
