"""Scores of noisy data for a range of noise levels by one network (Song & Ermon 2019)."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import as_rows
from scorefield._jax.pytrees import leaf, pytree, untrained
from scorefield.fields.base import Field
from scorefield.fields.divergence import network_divergence
from scorefield.fields.networks import Network, init_network, last_layer_zero


@pytree
class DiffusionField(Field):
    """Scores of p * N(0, sigma^2 I) for all sigma in a range, by one noise-conditional network.

    In principal axes with variances v, a Gaussian has the score -y / (v + sigma^2). The network learns the residual on
    a unit scale: its inputs are y / sqrt(v + sigma^2) and its outputs are multiplied by
    sqrt(v) / (sigma sqrt(v + sigma^2)), the spread of the denoising target around the Gaussian score. For v = 1
    this is the preconditioning of Karras, Aittala, Aila & Laine (2022).
    """

    network: Network
    mean: jax.Array = untrained()
    axes: jax.Array = untrained()  # columns are unit eigenvectors of the covariance
    variances: jax.Array = untrained()
    sigma_min: jax.Array = untrained()
    sigma_max: jax.Array = untrained()

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.at(self.sigma_min)(x)

    def at(self, sigma: jax.Array | float) -> "NoisyField":
        """The field at noise level `sigma`."""
        return NoisyField(self, jnp.asarray(sigma, jnp.float32))

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.at(self.sigma_min).value_and_divergence(x)

    def inputs(self, x: jax.Array, sigma: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Coordinates y, the network's inputs, its noise features and its output scale."""
        y = (x - self.mean) @ self.axes
        spread = jnp.sqrt(self.variances + sigma**2)
        # From -1 to 1 over the levels.
        position = 2 * jnp.log(sigma / self.sigma_min) / jnp.log(self.sigma_max / self.sigma_min) - 1
        features = jnp.stack([position, *(f(jnp.pi * k * position) for k in (1, 2) for f in (jnp.sin, jnp.cos))])
        return y, y / spread, features, jnp.sqrt(self.variances) / (sigma * spread)


@pytree
class NoisyField(Field):
    """A `DiffusionField` at one noise level."""

    parent: DiffusionField
    sigma: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        y, inputs, features, scale = self.parent.inputs(x, self.sigma)
        residual = self.parent.network(jnp.concatenate([inputs, features]))
        score = scale * residual - y / (self.parent.variances + self.sigma**2)
        return self.parent.axes @ score

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
    """A `DiffusionField` for a table. Default levels are 0.05 and 10 times the spread of its widest principal axis."""
    table = as_rows(rows)
    d = table.shape[1]
    covariance = np.cov(table, rowvar=False, bias=True, dtype=np.float64).reshape(d, d)
    variances, axes = np.linalg.eigh(covariance)
    widest = float(np.sqrt(np.maximum(variances[-1], np.finfo(np.float32).tiny)))
    low = 0.05 * widest if sigma_min is None else float(sigma_min)
    high = max(10 * widest, 2 * low) if sigma_max is None else float(sigma_max)
    if not 0 < low < high:
        raise ValueError(f"Expected 0 < sigma_min < sigma_max, got {low} and {high}.")
    # An axis without spread has no residual to learn; the floor keeps its scale finite.
    variances = np.maximum(variances, (1e-3 * low) ** 2)
    network = init_network(key, (d + 5, *hidden, d), activation=activation)
    levels = {"sigma_min": leaf(low), "sigma_max": leaf(high)}
    return DiffusionField(last_layer_zero(network), *(leaf(a) for a in (table.mean(axis=0), axes, variances)), **levels)
