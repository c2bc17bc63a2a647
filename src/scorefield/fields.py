"""Score fields s(x) = grad log p(x) as callable pytrees: Gaussian, vector network, energy, noise-conditional network.

Eq:score_function_definition_1 and, for the Gaussian, Eq:MND_pdf of the paper.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._tree import as_rows, pytree
from scorefield.divergence import forward_divergence, network_divergence, network_laplacian
from scorefield.networks import Network, check_activation, init_network

LOG_2PI = float(np.log(2 * np.pi))


class Field:
    """A map from one point (d,) to its score (d,). Subclasses write `__call__`; batches are the caller's vmap.

    A field with a potential, s = grad potential, is conservative: log-density differences need no integral.
    """

    conservative: ClassVar[bool] = False
    normalized: ClassVar[bool] = False  # the potential is a log density, not merely one up to a constant
    unit_inputs: ClassVar[bool] = False  # its network sees centred values of unit scale: three digits serve them

    def __call__(self, x: jax.Array) -> jax.Array:
        raise NotImplementedError

    def potential(self, x: jax.Array) -> jax.Array:
        raise ValueError(f"{type(self).__name__} has no potential; integrate the field along a line instead.")

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return forward_divergence(self, x)


@pytree
class Gaussian(Field):
    """N(mean, covariance) with the linear score s = P (mean - x), where P = whiten whiten' is the precision.

    Rows map to independent unit normals z = (x - mean) whiten and back by x = mean + z color, so that no linear
    system is solved at run time. Make one with `gaussian_from_covariance` or `fit_gaussian`.
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
        """Standard deviations of the columns: the covariance is color' color."""
        return jnp.sqrt(jnp.sum(self.color**2, axis=0))

    def __call__(self, x: jax.Array) -> jax.Array:
        return (self.mean - x) @ self.whiten @ self.whiten.T

    def potential(self, x: jax.Array) -> jax.Array:
        z = (x - self.mean) @ self.whiten
        return jnp.sum(jnp.log(jnp.diagonal(self.whiten))) - 0.5 * (x.shape[-1] * LOG_2PI + z @ z)

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self(x), -jnp.sum(self.whiten**2)

    def sample(self, key: jax.Array, n: int) -> jax.Array:
        """`n` independent rows (n, d)."""
        return self.mean + jax.random.normal(key, (n, self.mean.shape[0])) @ self.color


def gaussian_from_covariance(mean: Any, covariance: Any) -> Gaussian:
    """A `Gaussian` with the given moments; decomposed in double precision at unit scale, whatever the units."""
    sigma = np.asarray(covariance, np.float64)
    scale = np.sqrt(np.diag(sigma))
    correlation = sigma / np.outer(scale, scale)
    if np.linalg.cond(correlation) > 1 / np.finfo(np.float32).eps:
        raise ValueError(
            "Expected linearly independent columns, got a singular covariance; drop one or pass noise > 0."
        )
    whiten = np.linalg.cholesky(np.linalg.inv(correlation))
    color = np.linalg.inv(whiten) * scale
    return Gaussian(*(jnp.asarray(a, jnp.float32) for a in (mean, whiten / scale[:, None], color)))


def shrunk_covariance(rows: np.ndarray, shrinkage: float | str = "auto") -> np.ndarray:
    """Sample covariance whose correlations are shrunk towards zero, by the OAS weight when `shrinkage="auto"`.

    The weight of Chen, Wiesel, Eldar & Hero (2010) is applied to correlations, so that column units do not matter,
    and only up to 20 rows a column: beyond that it is below its own sampling error.
    """
    n, d = rows.shape
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    scale = np.sqrt(np.mean(centred**2, axis=0))
    constant = np.flatnonzero(np.ptp(rows, axis=0) == 0)  # exact, where a standard deviation has rounding
    if len(constant):
        column = int(constant[0])
        raise ValueError(f"Expected columns that vary, got constant column {column}; drop it or pass noise > 0.")
    correlation = centred.T @ centred / n / np.outer(scale, scale)
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


def fit_gaussian(rows: Any, *, shrinkage: float | str = "auto", noise: float = 0.0) -> Gaussian:
    """The minimiser of the (denoising) score-matching loss over linear fields: mean and inverse covariance.

    With `noise` > 0 the rows are those of the table plus N(0, noise^2 I), which also makes degenerate tables regular.
    """
    table = as_rows(rows)
    if noise < 0:
        raise ValueError(f"Expected noise >= 0, got {noise}.")
    d = table.shape[1]
    varying = np.flatnonzero(np.ptp(table, axis=0) > 0) if noise else np.arange(d)  # noise makes the others regular
    covariance = noise**2 * np.eye(d)
    if len(varying):
        covariance[np.ix_(varying, varying)] += shrunk_covariance(table[:, varying], shrinkage)
    return gaussian_from_covariance(table.mean(axis=0, dtype=np.float64), covariance)


def standard_gaussian(d: int) -> Gaussian:
    """N(0, I)."""
    return Gaussian(jnp.zeros(d), jnp.eye(d), jnp.eye(d))


@pytree
class VectorField(Field):
    """The paper's score model: an unconstrained network. It need not be conservative; see `integration.path_gap`."""

    network: Network

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.network(x)

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return network_divergence(self.network, x)


def init_vector_field(key: jax.Array, d: int, *, hidden: Sequence[int], activation: str = "silu") -> VectorField:
    """A `VectorField` of layer sizes [d, *hidden, d]."""
    return VectorField(init_network(key, (d, *hidden, d), activation=activation))


@pytree
class EnergyField(Field):
    """s = grad potential with potential(x) = log base(x) + network((x - base.mean) / base.scale).

    The network grows at most linearly and the Gaussian base falls quadratically, so exp(potential) always has a
    finite integral; scaled inputs make the model indifferent to units and offsets (whitened ones were measurably
    worse). The base is data, not a parameter: no gradient reaches it.
    """

    network: Network
    base: Gaussian
    conservative = True
    unit_inputs = True

    def log_ratio(self, x: jax.Array) -> jax.Array:
        """potential(x) - log base(x)."""
        base = jax.lax.stop_gradient(self.base)
        return self.network((x - base.mean) / base.scale)[0]

    def potential(self, x: jax.Array) -> jax.Array:
        return jax.lax.stop_gradient(self.base).potential(x) + self.log_ratio(x)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.lax.stop_gradient(self.base)(x) + jax.grad(self.log_ratio)(x)

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        base = jax.lax.stop_gradient(self.base)
        score, divergence = base.value_and_divergence(x)
        _, gradient, laplacian = network_laplacian(self.network, (x - base.mean) / base.scale, jnp.diag(1 / base.scale))
        return score + gradient, divergence + laplacian


def init_energy_field(
    key: jax.Array, base: Gaussian, *, hidden: Sequence[int], activation: str = "silu"
) -> EnergyField:
    """An `EnergyField` that starts near its base: the last layer is zero, so training begins at a known density."""
    check_activation(activation, smooth=True)
    network = init_network(key, (base.mean.shape[0], *hidden, 1), activation=activation)
    weights = (*network.weights[:-1], jnp.zeros_like(network.weights[-1]))
    return EnergyField(Network(weights, network.biases, activation), base)


@pytree
class DiffusionField(Field):
    """Scores of p * N(0, sigma^2 I) for all sigma in a range, by one noise-conditional network.

    In the principal axes of the data, with variances v, a Gaussian has the score -y / (v + sigma^2). The network
    learns the rest at unit scale: its inputs are y / sqrt(v + sigma^2) and its outputs are multiplied by
    sqrt(v) / (sigma sqrt(v + sigma^2)), the spread of the denoising target around the Gaussian answer. For v = 1
    this is the preconditioning of Karras, Aittala, Aila & Laine (2022).
    """

    network: Network
    mean: jax.Array
    axes: jax.Array  # columns are unit eigenvectors of the covariance
    variances: jax.Array
    sigma_min: jax.Array
    sigma_max: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.at(self.sigma_min)(x)

    def at(self, sigma: jax.Array | float) -> "NoisyField":
        """The field of the data with noise of level `sigma`."""
        return NoisyField(self, jnp.asarray(sigma, jnp.float32))

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.at(self.sigma_min).value_and_divergence(x)

    def inputs(self, x: jax.Array, sigma: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Coordinates y, the network's inputs, its noise features and its output scale."""
        fixed = jax.lax.stop_gradient((self.mean, self.axes, self.variances, self.sigma_min, self.sigma_max))
        mean, axes, variances, low, high = fixed
        y = (x - mean) @ axes
        spread = jnp.sqrt(variances + sigma**2)
        position = 2 * jnp.log(sigma / low) / jnp.log(high / low) - 1  # -1 ... 1 over the range of levels
        features = jnp.stack([position, *(f(jnp.pi * k * position) for k in (1, 2) for f in (jnp.sin, jnp.cos))])
        return y, y / spread, features, jnp.sqrt(variances) / (sigma * spread)


@pytree
class NoisyField(Field):
    """A `DiffusionField` at one noise level."""

    parent: DiffusionField
    sigma: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        y, inputs, features, scale = self.parent.inputs(x, self.sigma)
        residual = self.parent.network(jnp.concatenate([inputs, features]))
        score = scale * residual - y / (self.parent.variances + self.sigma**2)
        return jax.lax.stop_gradient(self.parent.axes) @ score

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = self.parent.variances + self.sigma**2
        y, inputs, features, scale = self.parent.inputs(x, self.sigma)
        residual, divergence = network_divergence(self.parent.network, inputs, features, scales=scale / jnp.sqrt(total))
        score = self.parent.axes @ (scale * residual - y / total)
        return score, divergence - jnp.sum(1 / total)


def init_diffusion_field(
    key: jax.Array,
    rows: Any,
    *,
    hidden: Sequence[int],
    activation: str = "silu",
    sigma_min: float | None = None,
    sigma_max: float | None = None,
) -> DiffusionField:
    """A `DiffusionField` for a table. Levels default to 0.05 and 10 times the spread of its widest principal axis."""
    table = as_rows(rows)
    d = table.shape[1]
    covariance = np.cov(table, rowvar=False, bias=True, dtype=np.float64).reshape(d, d)
    variances, axes = np.linalg.eigh(covariance)
    widest = float(np.sqrt(np.maximum(variances[-1], np.finfo(np.float32).tiny)))
    low = 0.05 * widest if sigma_min is None else float(sigma_min)
    high = max(10 * widest, 2 * low) if sigma_max is None else float(sigma_max)
    if not 0 < low < high:
        raise ValueError(f"Expected 0 < sigma_min < sigma_max, got {low} and {high}.")
    # An axis without spread carries no residual to learn; the floor only keeps its scale finite.
    variances = np.maximum(variances, (1e-3 * low) ** 2)
    network = init_network(key, (d + 5, *hidden, d), activation=activation)
    weights = (*network.weights[:-1], jnp.zeros_like(network.weights[-1]))
    return DiffusionField(
        Network(weights, network.biases, activation),
        mean=jnp.asarray(table.mean(axis=0)),
        axes=jnp.asarray(axes, jnp.float32),
        variances=jnp.asarray(variances, jnp.float32),
        sigma_min=jnp.float32(low),
        sigma_max=jnp.float32(high),
    )
