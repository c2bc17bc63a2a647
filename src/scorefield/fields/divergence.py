"""Divergence of vector networks and Laplacian of scalar networks, without a loop over columns.

The trace term of exact score matching, Eq:score_matching_2b.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from scorefield.fields.networks import Network, with_curvature, with_slope


def forward_divergence(function: Callable[[jax.Array], jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Value and divergence of a vector field by forward mode, in d tangent passes."""
    value, tangent = jax.linearize(function, x)
    columns = jax.vmap(tangent)(jnp.eye(x.shape[-1], dtype=x.dtype))
    return value, jnp.trace(columns)


def network_divergence(
    network: Network, x: jax.Array, context: jax.Array | None = None, scales: jax.Array | float = 1.0
) -> tuple[jax.Array, jax.Array]:
    """Value of network([x, context]) and sum_i scales_i d value_i / d x_i.

    With at most two hidden layers the trace has a closed form. For two, with slopes h1, h2 of the activations,
    div = h1' (W2 * (W3 W1)') h2, which takes one more matrix product for any number of columns.
    """
    d, depth = x.shape[-1], len(network.weights)
    inputs = x if context is None else jnp.concatenate([x, context])
    first, last = network.weights[0][:d], network.weights[-1] * scales
    if depth == 1:
        return network(inputs), jnp.trace(first * scales)
    hidden, slope = with_slope(network.activation, inputs @ network.weights[0] + network.biases[0])
    if depth == 2:
        return hidden @ network.weights[1] + network.biases[1], slope @ jnp.sum(first.T * last, axis=1)
    if depth == 3:
        mixing = network.weights[1] * (last @ first).T
        hidden, slope2 = with_slope(network.activation, hidden @ network.weights[1] + network.biases[1])
        return hidden @ network.weights[2] + network.biases[2], (slope @ mixing) @ slope2
    jacobian = first * slope  # (d, width), in forward mode
    for weight, bias in zip(network.weights[1:-1], network.biases[1:-1], strict=True):
        hidden, slope = with_slope(network.activation, hidden @ weight + bias)
        jacobian = (jacobian @ weight) * slope
    return hidden @ network.weights[-1] + network.biases[-1], jnp.sum(jacobian.T * last)


def network_laplacian(
    network: Network, inputs: jax.Array, jacobian: jax.Array | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Value, gradient and Laplacian of a scalar network in one forward pass (a forward Laplacian).

    `jacobian` (d, width) is the Jacobian of `inputs` as a linear map of the point, by default the identity.

    Each layer carries the Jacobian J (d, width) and the Laplacian. An activation with slope a and curvature c turns
    them into a J and a lap + c |J|^2, so that no second backward pass is needed.
    """
    jacobian = jnp.eye(inputs.shape[-1], dtype=inputs.dtype) if jacobian is None else jacobian
    value, laplacian = inputs, jnp.zeros_like(inputs)
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        jacobian, laplacian = jacobian @ weight, laplacian @ weight
        value, slope, curvature = with_curvature(network.activation, value @ weight + bias)
        laplacian = slope * laplacian + curvature * jnp.sum(jacobian**2, axis=0)
        jacobian = slope * jacobian
    weight, bias = network.weights[-1], network.biases[-1]
    return (value @ weight + bias)[0], (jacobian @ weight)[:, 0], (laplacian @ weight)[0]
