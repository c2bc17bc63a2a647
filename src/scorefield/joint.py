"""One trunk with one energy per class, trained by class-wise denoising score matching and the labels.

The generative classifier of Eq:generative_classification_1 whose class constants are learned, so that it needs no
anchor: p(x, y=k) is proportional to base(x) exp(network_k(x)).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from scorefield._tree import pytree
from scorefield.fields import Field, Gaussian
from scorefield.networks import Network, check_activation, init_network


@pytree
class JointEnergies:
    """x -> log joint densities of all classes (classes,), up to one constant.

    The networks of an ensemble are averaged as energies, which is again one energy per class: fields, samples and
    posteriors of the ensemble belong together.
    """

    members: tuple[Network, ...]
    base: Gaussian

    def logits(self, x: jax.Array) -> jax.Array:
        """Log joint densities less log base(x); their softmax is the posterior."""
        base = jax.lax.stop_gradient(self.base)
        z = (x - base.mean) / base.scale
        return sum(network(z) for network in self.members) / len(self.members)  # type: ignore[return-value]

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.lax.stop_gradient(self.base).potential(x) + self.logits(x)

    def scores(self, x: jax.Array) -> jax.Array:
        """The fields of all classes at x: (classes, d)."""
        return jax.lax.stop_gradient(self.base)(x) + jax.jacrev(self.logits)(x)

    def total(self, x: jax.Array) -> jax.Array:
        """log sum over classes: log p(x) up to the constant."""
        return jax.scipy.special.logsumexp(self(x))


@pytree
class ClassEnergy(Field):
    """The field of one class of a joint model."""

    joint: JointEnergies
    label: jax.Array
    conservative = True

    def potential(self, x: jax.Array) -> jax.Array:
        return self.joint(x)[self.label]

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.grad(self.potential)(x)


def init_joint(
    key: jax.Array, base: Gaussian, n_classes: int, *, hidden: Sequence[int], activation: str = "silu"
) -> JointEnergies:
    """One member of layer sizes [d, *hidden, classes] whose last layer is zero: equal classes, the base's density."""
    check_activation(activation, smooth=True)
    network = init_network(key, (base.mean.shape[0], *hidden, n_classes), activation=activation)
    weights = (*network.weights[:-1], jnp.zeros_like(network.weights[-1]))
    return JointEnergies((Network(weights, network.biases, activation),), base)


@pytree
class JointLoss:
    """Denoising of the row's own class, weighted so that every class counts alike, plus the label's cross-entropy.

    Rows are (x, y). Without the label term (label_weight 0) it is the purely generative loss.
    """

    sigma: float
    label_weight: float
    class_weights: jax.Array  # (classes,) n / (classes * n_k)

    def __call__(self, model: JointEnergies, key: jax.Array, row: tuple[jax.Array, jax.Array]) -> jax.Array:
        x, label = row
        z = jax.random.normal(key, x.shape)
        base = jax.lax.stop_gradient(model.base)
        logits, pull = jax.vjp(model.logits, x + self.sigma * z)
        score = base(x + self.sigma * z) + pull(jax.nn.one_hot(label, len(logits)))[0]
        denoising = 0.5 * jnp.sum((self.sigma * score + z) ** 2)
        return self.class_weights[label] * denoising - self.label_weight * jax.nn.log_softmax(logits)[label]
