"""One trunk with one energy per class, trained by class-wise denoising score matching and the labels.

The generative classifier of Eq:generative_classification_1 whose class constants are learned, so that it needs no
anchor: p(x, y=k) is proportional to base(x) exp(network_k(x)).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.pytrees import leaf, pytree, static
from scorefield._jax.random import Stream, host_rng
from scorefield.fields.base import Field
from scorefield.fields.gaussian import Gaussian
from scorefield.fields.networks import Network, check_activation, init_network, last_layer_zero

REACH = 3.0  # standard deviations beyond which a column's values are drawn together: far outliers say no more
THRESHOLDS = 8  # a column
WIDTH = 0.3  # of a threshold at the start, in standard deviations: the noise's default, below which rows are blurred


@pytree
class ColumnNetwork:
    """A network on columns and on smooth thresholds tanh(slope (x - threshold)) of them.

    Trees owe much of their strength on tables to sharp steps in single columns, which a network learns slowly; smooth
    steps placed at the column's quantiles give it them, and leave it differentiable for score matching.
    """

    thresholds: jax.Array  # (len(columns), THRESHOLDS)
    slopes: jax.Array
    network: Network
    columns: tuple[int, ...] = static()  # those with more than two values: a threshold adds nothing to the others

    def __call__(self, x: jax.Array) -> jax.Array:
        x = draw_in(x)
        steps = jnp.tanh(self.slopes * (x[jnp.asarray(self.columns, int)][:, None] - self.thresholds))
        return self.network(jnp.concatenate([x, steps.ravel()]))


def draw_in(x: Any) -> Any:
    """x near zero, REACH times its sign far out; smooth. Takes numpy or jax arrays."""
    # A product rather than a division, which jax would turn into one: both kinds of arrays give the same bits.
    return x / x.__array_namespace__().sqrt(1 + (x * (1 / REACH)) ** 2)


@pytree
class JointEnergies:
    """x -> log joint densities of all classes (classes,), up to one constant.

    The networks of an ensemble are averaged as energies, which is again one energy per class: fields, samples and
    posteriors of the ensemble belong together.
    """

    members: tuple[ColumnNetwork, ...]
    base: Gaussian

    def logits(self, x: jax.Array) -> jax.Array:
        """Log joint densities less log base(x); their softmax is the posterior."""
        return sum(network(x) for network in self.members) / len(self.members)  # type: ignore[return-value]

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


class Columns(NamedTuple):
    """Which columns take thresholds, how many columns there are, and the values that thresholds are placed among."""

    many_valued: tuple[int, ...]
    n_columns: int
    values: np.ndarray


def columns_of(rows: np.ndarray) -> Columns:
    """What members need to know of a table, found once for all of them."""
    many = tuple(j for j in range(rows.shape[1]) if len(np.unique(rows[:, j])) > 2)
    return Columns(many, rows.shape[1], draw_in(rows[:, list(many)]))


def init_joint(
    key: jax.Array, base: Gaussian, table: Columns, n_classes: int, *, hidden: Sequence[int], activation: str = "silu"
) -> JointEnergies:
    """One member whose last layer is zero: equal classes, the base's density. Thresholds lie at quantiles."""
    check_activation(activation, smooth=True)
    columns, d, near = table
    rng = host_rng(key, Stream.THRESHOLDS)
    levels = (np.arange(THRESHOLDS) + rng.uniform(size=(len(columns), THRESHOLDS))) / THRESHOLDS
    places = [np.quantile(values, level) for values, level in zip(near.T, levels, strict=True)]
    thresholds = leaf(np.reshape(places, levels.shape))
    slopes = leaf(np.exp(0.5 * rng.normal(size=levels.shape)) / WIDTH)  # of unequal sharpness
    network = init_network(key, (d + levels.size, *hidden, n_classes), activation=activation)
    return JointEnergies((ColumnNetwork(thresholds, slopes, last_layer_zero(network), columns),), base)
