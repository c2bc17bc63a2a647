"""Fully connected networks as pytrees, with the activation derivatives that score matching needs.

The neural score models of the paper's experiments, [d, 128, 256, 128, d] and [10, 128, 128, 10], are of this kind.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._tree import host_rng, pytree, static

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
}


def check_activation(name: str, *, smooth: bool = False) -> None:
    """Refuse an unknown activation, or a kinked one where second derivatives are needed."""
    if name not in ACTIVATIONS:
        raise ValueError(f"Expected an activation of {sorted(ACTIVATIONS)}, got {name!r}.")
    if smooth and name == "relu":
        raise ValueError("Expected a smooth activation for an energy, got 'relu': its curvature is zero; use 'silu'.")


def with_slope(name: str, u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Activation and its first derivative, elementwise."""
    return jax.jvp(ACTIVATIONS[name], (u,), (jnp.ones_like(u),))


def with_curvature(name: str, u: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Activation, first and second derivative, elementwise."""
    (h, slope), (_, curvature) = jax.jvp(lambda v: with_slope(name, v), (u,), (jnp.ones_like(u),))
    return h, slope, curvature


@pytree
class Network:
    """x -> act(... act(x W1 + b1) ...) WL + bL for one point x."""

    weights: tuple[jax.Array, ...]
    biases: tuple[jax.Array, ...]
    activation: str = static(default="silu")

    def __call__(self, x: jax.Array) -> jax.Array:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = ACTIVATIONS[self.activation](x @ weight + bias)
        return x @ self.weights[-1] + self.biases[-1]


def init_network(key: jax.Array, sizes: Sequence[int], *, activation: str = "silu") -> Network:
    """Weights with variance 1/fan_in, which keeps unit-scale inputs so; no hidden layer gives a linear map."""
    check_activation(activation)
    if len(sizes) < 2 or any(size < 1 for size in sizes):
        raise ValueError(f"Expected at least two positive layer sizes, got {tuple(sizes)}.")
    rng = host_rng(key, 1)
    weights = tuple(jnp.asarray(rng.normal(size=(a, b)) / np.sqrt(a), jnp.float32) for a, b in pairwise(sizes))
    return Network(weights, tuple(jnp.zeros(b) for b in sizes[1:]), activation)
