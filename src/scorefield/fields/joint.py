"""A network with one energy per class, trained by denoising score matching and the labels.

The generative classifier of Eq:generative_classification_1, with p(x, y=k) proportional to base(x) exp(network_k(x)).
Class constants are learned from the labels, so that classes need no anchors of their own.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.pytrees import leaf, pytree, static, untrained
from scorefield._jax.random import Stream, host_rng
from scorefield.fields.base import Field
from scorefield.fields.gaussian import Gaussian
from scorefield.fields.networks import Network, check_activation, init_network, last_layer_zero
from scorefield.fields.rows import ColumnMargins, RowLayout

REACH = 3.0  # bound of `draw_in` in standard deviations, which limits the effect of outliers
THRESHOLDS = 8  # per column
WIDTH = 0.3  # initial width of a threshold in standard deviations: the default noise, which blurs finer steps


@pytree
class ColumnNetwork:
    """A network on columns, on rotated columns, and on smooth thresholds tanh(slope (x - threshold)) of both.

    Trees work well on tables because of sharp steps in single columns, which networks learn slowly. Smooth steps at the
    quantiles of columns provide them and keep the network differentiable for score matching. Rotated columns do the
    same for differences of correlated columns. The gain of an input says how much of it the network sees in training.
    """

    thresholds: jax.Array  # (len(columns), THRESHOLDS)
    slopes: jax.Array
    rotation: jax.Array = untrained()  # (d, k); k = 0 for none
    network: Network
    columns: tuple[int, ...] = static()  # those with more than two values; thresholds add nothing to others
    layout: RowLayout | None = None  # of rows with categories or gaps; None for rows of numbers
    gains: jax.Array | None = untrained(default=None)  # factors on all inputs of the network; None for 1

    def __call__(self, row: jax.Array) -> jax.Array:
        return self.at_inputs(row if self.layout is None else self.layout.inputs(row))

    def at_inputs(self, inputs: jax.Array) -> jax.Array:
        """Values at numbers and indicators, which may lie between those of rows."""
        d = len(self.rotation)
        x = view(inputs[:d], self.rotation)
        steps = jnp.tanh(self.slopes * (x[jnp.asarray(self.columns, int)][:, None] - self.thresholds))
        seen = jnp.concatenate([x, steps.ravel(), inputs[d:]])
        return self.network(seen if self.gains is None else self.gains * seen)

    def without_gains(self) -> "ColumnNetwork":
        """The same function with the gains within the weights of the first layer."""
        if self.gains is None:
            return self
        first, *others = self.network.weights
        network = dataclasses.replace(self.network, weights=(self.gains[:, None] * first, *others))
        return dataclasses.replace(self, network=network, gains=None)


def draw_in(x: Any) -> Any:
    """Smooth clipping of numpy or jax arrays: about x near zero, REACH sign(x) far out."""
    # XLA replaces division by a constant with this product; with numpy it gives the same bits.
    return x / x.__array_namespace__().sqrt(1 + (x * (1 / REACH)) ** 2)


def view(x: Any, rotation: Any) -> Any:
    """Columns and rotated columns of rows (..., d) of numpy or jax, both drawn in."""
    return draw_in(x.__array_namespace__().concatenate([x, x @ rotation], axis=-1))


@pytree
class JointEnergies:
    """x -> log joint densities of all classes (classes,), up to one constant.

    The members' energies are averaged, which gives one energy per class and consistent fields and samples. The
    posterior is that of the energies, or has a share of a rule model of the labels beside them.
    """

    members: tuple[ColumnNetwork, ...]
    base: Gaussian | ColumnMargins = untrained()
    rules: ColumnNetwork | None = None
    share: Any = None  # of the rule model in the logits of the posterior; None without one

    def log_ratios(self, x: jax.Array) -> jax.Array:
        """Log joint densities minus log base(x)."""
        return self._mean(lambda network: network(x))

    def _mean(self, function: Callable[[ColumnNetwork], jax.Array]) -> jax.Array:
        """The mean of a function of the members; those of one shape go through one program, which compiles sooner."""
        groups: dict[tuple, list[ColumnNetwork]] = {}
        for network in self.members:
            leaves, structure = jax.tree.flatten(network)
            groups.setdefault((structure, *map(jnp.shape, leaves)), []).append(network)
        sums = [jnp.sum(jax.vmap(function)(jax.tree.map(lambda *parts: jnp.stack(parts), *own)), axis=0)
                if len(own) > 1 else function(own[0]) for own in groups.values()]  # fmt: skip
        return sum(sums[1:], start=sums[0]) / len(self.members)

    def logits(self, x: jax.Array) -> jax.Array:
        """Logits of the posterior."""
        return self._posterior(self.log_ratios(x), lambda network: network(x))

    def logits_at_inputs(self, inputs: jax.Array) -> jax.Array:
        """`logits` of the numbers and indicators of a row, see `RowLayout.inputs`."""

        def at(network: ColumnNetwork) -> jax.Array:
            return network.at_inputs(inputs)

        return self._posterior(self._mean(at), at)

    def _posterior(self, ratios: Any, at: Callable[[ColumnNetwork], jax.Array]) -> jax.Array:
        """Logits of the posterior from the log ratios at a row, where `at` evaluates a network."""
        return ratios if self.rules is None else (1 - self.share) * ratios + self.share * at(self.rules)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.base.potential(x) + self.log_ratios(x)

    def logits_and_energies(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`logits` and the log joint densities, in one pass."""
        ratios = self.log_ratios(x)
        logits = self._posterior(ratios, lambda network: network(x))
        return logits, self.base.potential(x) + ratios

    def scores(self, x: jax.Array) -> jax.Array:
        """The fields of all classes at x: (classes, d), in the numbers of a mixed row."""
        base = self.base(x)
        return base + jax.jacrev(self.log_ratios)(x)[:, : len(base)]

    def total(self, x: jax.Array) -> jax.Array:
        """log p(x) up to the constant: logsumexp over classes."""
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


@pytree
class AnyClass:
    """The energy of the mixture of all classes of a joint model; offsets (classes,) change the classes' shares."""

    joint: JointEnergies
    offsets: jax.Array | None = None

    def potential(self, x: jax.Array) -> jax.Array:
        if self.offsets is None:
            return self.joint.total(x)
        return jax.scipy.special.logsumexp(self.joint(x) + self.offsets)


class Columns(NamedTuple):
    """Columns that members see, those of them with thresholds at their quantiles, and their values."""

    rotation: np.ndarray  # (d, k)
    many_valued: tuple[int, ...]
    values: np.ndarray  # (n, d + k)

    @property
    def n_inputs(self) -> int:
        return self.values.shape[1]


def columns_of(rows: np.ndarray, rotation: np.ndarray | None = None) -> Columns:
    """`Columns` of a table, shared by all members; `rotation` (d, k) adds k rotated columns."""
    d = rows.shape[1]
    rotation = leaf(np.zeros((d, 0)) if rotation is None else rotation)
    values = draw_in(np.hstack([rows, rows @ rotation]))
    many = tuple(j for j in range(values.shape[1]) if j >= d or len(np.unique(rows[:, j])) > 2)
    return Columns(rotation, many, values)


def init_joint(
    key: jax.Array, base: Gaussian | ColumnMargins, table: Columns, n_classes: int, *, hidden: Sequence[int],
    activation: str = "silu", gains: np.ndarray | None = None, priors: np.ndarray | None = None,
) -> JointEnergies:  # fmt: skip
    """One member with thresholds at random quantiles and a last layer of zeros: all classes start at the base.

    `gains` are those of the columns of the table and of the indicators of its layout. With `priors` (classes,) the
    classes start at their shares of the base.
    """
    check_activation(activation, smooth=True)
    rng = host_rng(key, Stream.THRESHOLDS)
    shape = (len(table.many_valued), THRESHOLDS)
    levels = (np.arange(THRESHOLDS) + rng.uniform(size=shape)) / THRESHOLDS
    many_valued = table.values.T[list(table.many_valued)]
    places = [np.quantile(values, level) for values, level in zip(many_valued, levels, strict=True)]
    thresholds = leaf(np.reshape(places, shape))
    slopes = leaf(np.exp(0.5 * rng.normal(size=shape)) / WIDTH)  # of varied sharpness
    layout = base.layout if isinstance(base, ColumnMargins) else None
    n_inputs = table.n_inputs + levels.size + (layout.n_indicators if layout else 0)
    network = last_layer_zero(init_network(key, (n_inputs, *hidden, n_classes), activation=activation))
    if priors is not None:
        network = dataclasses.replace(network, biases=(*network.biases[:-1], leaf(np.log(priors))))
    every = None
    if gains is not None:
        x, indicators = gains[: table.n_inputs], gains[table.n_inputs :]
        every = leaf(np.concatenate([x, np.repeat(x[list(table.many_valued)], THRESHOLDS), indicators]))
    member = ColumnNetwork(thresholds, slopes, leaf(table.rotation), network, table.many_valued, layout, every)
    return JointEnergies((member,), base)
