"""One trunk with one energy per class, trained by class-wise denoising score matching and the labels.

The generative classifier of Eq:generative_classification_1 whose class constants are learned, so that it needs no
anchor: p(x, y=k) is proportional to base(x) exp(network_k(x)).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import bucket, pad_rows
from scorefield._jax.pytrees import pytree, static
from scorefield._jax.random import Stream, host_rng
from scorefield.fields.base import Field
from scorefield.fields.gaussian import Gaussian
from scorefield.fields.networks import Network, check_activation, init_network

REACH = 3.0  # standard deviations beyond which a column's values are drawn together: far outliers say no more
THRESHOLDS = 8  # per column
WIDTH = 0.3  # of a threshold at the start, in standard deviations: the noise's default, below which rows are blurred


@pytree
class ColumnNetwork:
    """A network on columns, on rotated columns, and on smooth thresholds tanh(slope (x - threshold)) of both.

    Trees owe much of their strength on tables to sharp steps in single columns, which a network learns slowly; smooth
    steps placed at the column's quantiles give it them, and leave it differentiable for score matching. Rotated
    columns do the same for differences of correlated columns.
    """

    thresholds: jax.Array  # (len(columns), THRESHOLDS)
    slopes: jax.Array
    rotation: jax.Array  # (d, k) of data, not trained; k = 0 for none
    network: Network
    columns: tuple[int, ...] = static()  # those with more than two values: a threshold adds nothing to the others

    def __call__(self, x: jax.Array) -> jax.Array:
        x = view(x, jax.lax.stop_gradient(self.rotation))
        steps = jnp.tanh(self.slopes * (x[jnp.asarray(self.columns, int)][:, None] - self.thresholds))
        return self.network(jnp.concatenate([x, steps.ravel()]))


def draw_in(x: jax.Array) -> jax.Array:
    """x near zero, REACH times its sign far out; smooth."""
    return x / jnp.sqrt(1 + (x / REACH) ** 2)


def view(x: jax.Array, rotation: jax.Array) -> jax.Array:
    """Columns and rotated columns of rows (..., d), both drawn in."""
    return draw_in(jnp.concatenate([x, x @ rotation], axis=-1))


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

    def logits_and_energies(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`logits` and the log joint densities, in one pass."""
        logits = self.logits(x)
        return logits, jax.lax.stop_gradient(self.base).potential(x) + logits

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
    """What members need to know of a table: the columns that they see, and where thresholds may lie."""

    rotation: np.ndarray  # (d, k)
    many_valued: tuple[int, ...]
    n_inputs: int
    values: np.ndarray


def columns_of(rows: np.ndarray, rotation: np.ndarray | None = None) -> Columns:
    """`Columns` of a table, found once for all members; `rotation` (d, k) adds k rotated columns."""
    d = rows.shape[1]
    rotation = np.zeros((d, 0), np.float32) if rotation is None else np.asarray(rotation, np.float32)
    padded = pad_rows(rows, bucket(len(rows)))  # so that other numbers of rows compile nothing
    values = np.asarray(view(jnp.asarray(padded), jnp.asarray(rotation)))[: len(rows)]
    many = tuple(j for j in range(values.shape[1]) if j >= d or len(np.unique(rows[:, j])) > 2)
    return Columns(rotation, many, values.shape[1], values[:, list(many)])


def init_joint(
    key: jax.Array, base: Gaussian, table: Columns, n_classes: int, *, hidden: Sequence[int], activation: str = "silu"
) -> JointEnergies:
    """One member whose last layer is zero: equal classes, the base's density. Thresholds lie at quantiles."""
    check_activation(activation, smooth=True)
    rng = host_rng(key, Stream.THRESHOLDS)
    shape = (len(table.many_valued), THRESHOLDS)
    levels = (np.arange(THRESHOLDS) + rng.uniform(size=shape)) / THRESHOLDS
    places = [np.quantile(values, level) for values, level in zip(table.values.T, levels, strict=True)]
    thresholds = jnp.asarray(np.reshape(places, shape), jnp.float32)
    slopes = jnp.asarray(np.exp(0.5 * rng.normal(size=shape)) / WIDTH, jnp.float32)  # of unequal sharpness
    network = init_network(key, (table.n_inputs + levels.size, *hidden, n_classes), activation=activation)
    weights = (*network.weights[:-1], jnp.zeros_like(network.weights[-1]))
    network = Network(weights, network.biases, activation)
    member = ColumnNetwork(thresholds, slopes, jnp.asarray(table.rotation), network, table.many_valued)
    return JointEnergies((member,), base)
