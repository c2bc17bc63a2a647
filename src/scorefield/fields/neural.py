"""Score fields by networks: unconstrained vector networks and energies (Eq:score_function_definition_1)."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from scorefield._jax.pytrees import pytree, untrained
from scorefield.fields.base import Field
from scorefield.fields.divergence import forward_divergence, network_divergence, network_laplacian
from scorefield.fields.gaussian import Gaussian
from scorefield.fields.networks import Network, check_activation, init_network, last_layer_zero
from scorefield.fields.student import StudentT

BOUND = 5.0  # of inputs on a Student's t, in units of its scale


@pytree
class VectorField(Field):
    """The paper's score model, an unconstrained network; it need not be conservative (see `path_gap`)."""

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

    The network grows at most linearly and the log of the Gaussian base falls quadratically, so that exp(potential)
    always has a finite integral. On a Student's t, whose log falls more slowly, the inputs u are bounded as
    u / sqrt(1 + (u / BOUND)^2), so that the network is too. Inputs are scaled to be independent of units and offsets;
    whitened inputs were measurably worse.
    """

    network: Network
    base: Gaussian | StudentT = untrained()
    conservative = True
    unit_inputs = True

    def log_ratio(self, x: jax.Array) -> jax.Array:
        """potential(x) - log base(x)."""
        base = self.base
        inputs = (x - base.mean) / base.scale
        if isinstance(base, StudentT):
            inputs = inputs / jnp.sqrt(1 + (inputs / BOUND) ** 2)
        return self.network(inputs)[0]

    def potential(self, x: jax.Array) -> jax.Array:
        return self.base.potential(x) + self.log_ratio(x)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.base(x) + jax.grad(self.log_ratio)(x)

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        base = self.base
        if isinstance(base, StudentT):
            return forward_divergence(self, x)
        score, divergence = base.value_and_divergence(x)
        _, gradient, laplacian = network_laplacian(self.network, (x - base.mean) / base.scale, jnp.diag(1 / base.scale))
        return score + gradient, divergence + laplacian


def init_energy_field(
    key: jax.Array, base: Gaussian | StudentT, *, hidden: Sequence[int], activation: str = "silu"
) -> EnergyField:
    """An `EnergyField` whose last layer is zero, so that training starts at the base density."""
    check_activation(activation, smooth=True)
    network = init_network(key, (base.mean.shape[0], *hidden, 1), activation=activation)
    return EnergyField(last_layer_zero(network), base)
