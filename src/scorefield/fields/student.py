"""Student's t as a base with heavier tails than a Gaussian's, fitted by maximum likelihood and chosen on held-out rows.

A Gaussian base leaves a model Gaussian far out (Eq:MND_pdf); Student-t(3) rows are then off by tens of nats there.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy.stats import multivariate_normal, multivariate_t
from scipy.stats import t as student

from scorefield._jax.batching import as_rows
from scorefield._jax.pytrees import leaf, pytree, static
from scorefield.fields.base import Field
from scorefield.fields.gaussian import Gaussian, fit_gaussian
from scorefield.fields.moments import effective_size

DEGREES = (2, 3, 5, 10)
ITERATIONS = 60  # of the EM algorithm, which gains less than a thousandth of a nat after them
LEAST_SHARE = 1e-6  # of a column's variance that its scale keeps: rows of mostly one value would have a scale of zero
HEAVY = 1.0  # excess kurtosis of some column from which on a Gaussian is doubted; Student's t with 10 degrees has it
MIN_ROWS = 10  # per column, for a choice on held-out rows to mean anything


@pytree
class StudentT(Field):
    """Multivariate Student's t, or a product of one-dimensional ones in the coordinates z = (x - mean) whiten.

    Degrees of freedom are whole numbers, so that chi-squared is a sum of squared normals.
    """

    mean: jax.Array
    whiten: jax.Array  # lower triangular
    color: jax.Array  # its inverse
    degrees: int = static()
    per_column: bool = static(default=False)
    conservative = True
    normalized = True

    @property
    def scale(self) -> jax.Array:
        """Square roots of the diagonal of the scale matrix color' color."""
        return jnp.sqrt(jnp.sum(self.color**2, axis=0))

    def _parts(self, x: jax.Array) -> tuple[jax.Array, jax.Array, int]:
        """z, its squares summed over what shares one chi-squared (1,) or (d,), and the size of that."""
        z = (x - self.mean) @ self.whiten
        return (z, z**2, 1) if self.per_column else (z, jnp.sum(z**2, keepdims=True), x.shape[-1])

    def potential(self, x: jax.Array) -> jax.Array:
        _, squares, size = self._parts(x)
        nu = float(self.degrees)
        constant = gammaln((nu + size) / 2) - gammaln(nu / 2) - 0.5 * size * jnp.log(nu * jnp.pi)
        logs = constant - 0.5 * (nu + size) * jnp.log1p(squares / nu)
        return jnp.sum(logs) + jnp.sum(jnp.log(jnp.diagonal(self.whiten)))

    def __call__(self, x: jax.Array) -> jax.Array:
        z, squares, size = self._parts(x)
        return -((self.degrees + size) / (self.degrees + squares) * z) @ self.whiten.T

    def sample(self, key: jax.Array, n: int) -> jax.Array:
        """`n` independent rows (n, d)."""
        key_z, key_chi = jax.random.split(key)
        d = self.mean.shape[0]
        squares = jax.random.normal(key_chi, (n, d if self.per_column else 1, self.degrees)) ** 2
        z = jax.random.normal(key_z, (n, d)) / jnp.sqrt(jnp.mean(squares, axis=2))
        return self.mean + z @ self.color


def fit_student(
    rows: Any, degrees: int, *, per_column: bool = False, noise: float = 0.0, weights: np.ndarray | None = None
) -> StudentT:
    """Maximum likelihood with given degrees of freedom, by EM; the variance of the noise is added to the scale.

    `weights` are those of rows.
    """
    table = as_rows(rows).astype(np.float64)
    n, d = table.shape
    size = 1 if per_column else d
    shares = np.full((n, 1), 1.0) if weights is None else (weights / weights.mean())[:, None]
    mean, scale = np.median(table, axis=0), np.cov(table, rowvar=False, aweights=weights).reshape(d, d)
    floor = LEAST_SHARE * np.diag(np.diag(scale))
    scale = scale + floor
    for _ in range(ITERATIONS):
        gaps = table - mean
        if per_column:
            squares = gaps**2 / np.diag(scale)
        else:
            squares = np.sum(gaps * np.linalg.solve(scale, gaps.T).T, axis=1, keepdims=True)
        pulls = shares * (degrees + size) / (degrees + squares)  # (n, d) or (n, 1)
        mean = np.sum(pulls * table, axis=0) / np.sum(pulls, axis=0)
        gaps = table - mean
        scale = (pulls * gaps).T @ gaps / n + floor
        if per_column:
            scale = np.diag(np.diag(scale))
    whiten = np.linalg.cholesky(np.linalg.inv(scale + noise**2 * np.eye(d)))
    return StudentT(leaf(mean), leaf(whiten), leaf(np.linalg.inv(whiten)), degrees, per_column)


def fit_base(
    kept: Any,
    held: Any,
    *,
    noise: float = 0.0,
    covariance_of_rows: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    held_weights: np.ndarray | None = None,
) -> Gaussian | StudentT:
    """A Gaussian, or the Student's t with the greatest log density of held-out rows, where kurtosis asks for one.

    The gain over the Gaussian must exceed its standard error, where no row counts for more than a nat: the few rows far
    out, which gain most, would make its error as large as its mean. Kurtosis has already ruled out most Gaussian rows.
    """
    gaussian = fit_gaussian(kept, noise=noise, covariance_of_rows=covariance_of_rows, weights=weights)
    table = as_rows(kept)
    n, d = table.shape
    constant = np.ptp(table, axis=0) == 0
    # That of Gaussian rows has a standard error of sqrt(24 / n).
    if n < MIN_ROWS * d or constant.any() or excess_kurtosis(table).max() < HEAVY + 3 * np.sqrt(24 / n):
        return gaussian
    bases = [
        fit_student(table, nu, per_column=own, noise=noise, weights=weights)
        for nu in DEGREES
        for own in (False, True)[: 1 + (d > 1)]
    ]
    table = as_rows(held, minimum=1).astype(np.float64)
    usual = multivariate_normal(np.asarray(gaussian.mean), np.asarray(gaussian.color).T @ np.asarray(gaussian.color))
    gains = [_log_density(base, table) - usual.logpdf(table) for base in bases]
    best = int(np.argmax([np.average(gain, weights=held_weights) for gain in gains]))
    gain = np.clip(gains[best], -1, 1)
    mean = np.average(gain, weights=held_weights)
    deviation = np.sqrt(np.average((gain - mean) ** 2, weights=held_weights))
    return bases[best] if mean > deviation / np.sqrt(effective_size(gain, held_weights)) else gaussian


def _log_density(base: StudentT, rows: np.ndarray) -> np.ndarray:
    """Log density of each row by scipy: candidates are not worth a compilation each."""
    z = (rows - np.asarray(base.mean)) @ np.asarray(base.whiten)
    log_volume = np.sum(np.log(np.diagonal(base.whiten)))
    if base.per_column:
        return student.logpdf(z, base.degrees).sum(axis=1) + log_volume
    return multivariate_t.logpdf(z, shape=np.eye(z.shape[1]), df=base.degrees) + log_volume


def excess_kurtosis(table: np.ndarray) -> np.ndarray:
    """Of each column; zero for a Gaussian."""
    centred = table.astype(np.float64) - table.mean(axis=0, dtype=np.float64)
    return np.mean(centred**4, axis=0) / np.mean(centred**2, axis=0) ** 2 - 3


def base_degrees(field):
    """Degrees of freedom of the tails of a field's base; None for Gaussian ones."""
    return getattr(getattr(field, "base", None), "degrees", None)
