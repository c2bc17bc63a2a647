"""Fully connected networks as pytrees, with the activation derivatives for score matching.

Includes the paper's score models [d, 128, 256, 128, d] and [10, 128, 128, 10].
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.pytrees import leaf, pytree, static
from scorefield._jax.random import Stream, host_rng

T = TypeVar("T")
ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
}


def check_activation(name: str, *, smooth: bool = False) -> None:
    """Raise for an unknown activation, or for ReLU if `smooth` is required."""
    if name not in ACTIVATIONS:
        raise ValueError(f"Expected an activation of {sorted(ACTIVATIONS)}, got {name!r}.")
    if smooth and name == "relu":
        raise ValueError("Expected a smooth activation for an energy, got 'relu': its curvature is zero; use 'silu'.")


def with_slope(name: str, u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Elementwise activation and its first derivative."""
    return jax.jvp(ACTIVATIONS[name], (u,), (jnp.ones_like(u),))


def with_curvature(name: str, u: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Elementwise activation and its first and second derivatives."""
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


@pytree
class HalfNetwork(Network):
    """A network computed in bfloat16 with inputs and outputs in their own type.

    On an accelerator it moves half the bytes, which dominates the cost of small networks.
    """

    def __call__(self, x: jax.Array) -> jax.Array:
        return super().__call__(x.astype(jnp.bfloat16)).astype(x.dtype)


def in_half(tree: T) -> T:
    """A model with its networks in half precision; other leaves, such as a base Gaussian, are unchanged."""

    def halve(node: Any) -> Any:
        if not isinstance(node, Network):
            return node
        half = jax.tree.map(lambda weights: np.asarray(weights).astype(jnp.bfloat16), node)
        return HalfNetwork(half.weights, half.biases, half.activation)

    return jax.tree.map(halve, tree, is_leaf=lambda node: isinstance(node, Network))


def init_network(key: jax.Array, sizes: Sequence[int], *, activation: str = "silu") -> Network:
    """A network with weights of variance 1/fan_in, which preserves the scale of inputs, and biases of zero."""
    check_activation(activation)
    if len(sizes) < 2 or any(size < 1 for size in sizes):
        raise ValueError(f"Expected at least two positive layer sizes, got {tuple(sizes)}.")
    rng = host_rng(key, Stream.NETWORK_WEIGHTS)
    weights = tuple(leaf(rng.normal(size=(a, b)) / np.sqrt(a)) for a, b in pairwise(sizes))
    return Network(weights, tuple(leaf(np.zeros(b)) for b in sizes[1:]), activation)


def last_layer_zero(network: Network) -> Network:
    """The network with a last layer of zeros, so that training starts at the zero function."""
    weights = (*network.weights[:-1], leaf(np.zeros(network.weights[-1].shape)))
    return Network(weights, network.biases, network.activation)
