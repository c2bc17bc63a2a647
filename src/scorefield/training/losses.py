"""Score-matching losses at one point, and the Fisher divergence to a known field.

Exact: Eq:score_matching_2b (with its first line corrected). Sliced: Eq:score_matching_3b. Denoising: Vincent (2011).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import as_rows, bucket, map_rows, pad_rows, rows_per_call
from scorefield._jax.pytrees import Method, compiled, pytree, static
from scorefield.fields.base import Field
from scorefield.fields.diffusion import DiffusionField
from scorefield.fields.joint import JointEnergies
from scorefield.fields.neural import EnergyField
from scorefield.fields.rows import CANDIDATES, pick

RANKED_NORMALS = 2 * CANDIDATES + 1  # normal numbers behind the rank of one cell


def default_noise(n: int, d: int) -> float:
    """A quarter of Scott's bandwidth n^(-1/(d+4)), for columns of unit variance.

    Prevents a network from memorising rows without blurring the density: `benchmarks/density_truth.py`.
    """
    return 0.25 * n ** (-1 / (d + 4))


@pytree
class Exact:
    """1/2 |s|^2 + div s."""

    def __call__(self, field: Field, key: jax.Array, x: jax.Array) -> jax.Array:
        score, divergence = field.value_and_divergence(x)
        return 0.5 * score @ score + divergence


@pytree
class NoisyRows:
    """An objective at rows plus N(0, sigma^2 I) noise; its target is the density smoothed by that noise."""

    objective: Any
    sigma: float

    def __call__(self, field: Field, key: jax.Array, x: jax.Array) -> jax.Array:
        key_noise, key_rest = jax.random.split(key)
        return self.objective(field, key_rest, x + self.sigma * jax.random.normal(key_noise, x.shape))


class WeightedRow(NamedTuple):
    """A row, and its weight where rows have some."""

    x: Any
    weight: Any = None


@pytree
class Weighted:
    """An objective at a `WeightedRow`, times its weight."""

    objective: Any

    def __call__(self, field: Field, key: jax.Array, row: WeightedRow) -> jax.Array:
        return row.weight * self.objective(field, key, row.x)


@pytree
class Sliced:
    """1/2 |s|^2 + v' (grad s) v averaged over random directions v."""

    n_projections: int = static(default=1)
    projection: str = static(default="rademacher")

    def __post_init__(self) -> None:
        if self.n_projections < 1:
            raise ValueError(f"Expected n_projections >= 1, got {self.n_projections}.")
        if self.projection not in ("rademacher", "gaussian"):
            raise ValueError(f"Expected projection 'rademacher' or 'gaussian', got {self.projection!r}.")

    def __call__(self, field: Field, key: jax.Array, x: jax.Array) -> jax.Array:
        draw = jax.random.rademacher if self.projection == "rademacher" else jax.random.normal
        directions = draw(key, (self.n_projections, x.shape[-1])).astype(x.dtype)
        score, tangent = jax.linearize(field, x)
        curvature = jnp.mean(jax.vmap(lambda v: v @ tangent(v))(directions))
        # |s|^2 is the expectation of (v's)^2 for both projections and has no variance.
        return 0.5 * score @ score + curvature


@pytree
class Denoising:
    """sigma^2/2 |s(x + sigma z) + z/sigma|^2, averaged over z and -z to cancel the 1/sigma term of its variance."""

    sigma: float = 0.1

    def __call__(self, field: Field, key: jax.Array, x: jax.Array) -> jax.Array:
        z = jax.random.normal(key, x.shape)
        residuals = jnp.stack([self.sigma * field(x + sign * self.sigma * z) + sign * z for sign in (1.0, -1.0)])
        return 0.25 * jnp.sum(residuals**2)


@pytree
class ContrastiveDenoising:
    """Denoising of an `EnergyField`, plus `contrast` times the logistic loss of noisy rows against draws of its base.

    Scores do not determine the masses of separated modes. The contrast does: its optimum is
    log_ratio = log p - log base including the constant, so the energy is normalised (Gutmann & Hyvarinen 2010).
    """

    sigma: float = 0.1
    contrast: float = 1.0

    def __call__(self, field: EnergyField, key: jax.Array, x: jax.Array) -> jax.Array:
        key_noise, key_base = jax.random.split(key)
        base, z = field.base, jax.random.normal(key_noise, x.shape)
        noisy, mirrored, other = x + self.sigma * z, x - self.sigma * z, base.sample(key_base, 1)[0]
        ratio, slope = jax.value_and_grad(field.log_ratio)(noisy)  # shared by both terms
        residuals = jnp.stack([self.sigma * (base(noisy) + slope) + z, self.sigma * field(mirrored) - z])
        labels = jax.nn.softplus(-ratio) + jax.nn.softplus(field.log_ratio(other))
        return 0.25 * jnp.sum(residuals**2) + self.contrast * labels


@pytree
class MultilevelDenoising:
    """Denoising over log-uniform levels of a `DiffusionField`, on the unit scale of its network's outputs."""

    def __call__(self, field: DiffusionField, key: jax.Array, x: jax.Array) -> jax.Array:
        key_level, key_z = jax.random.split(key)
        low, high = jnp.log(field.sigma_min), jnp.log(field.sigma_max)
        sigma = jnp.exp(jax.random.uniform(key_level, (), minval=low, maxval=high))
        z = jax.random.normal(key_z, x.shape)
        y, inputs, features, scale = field.inputs(x + sigma * z, sigma)
        target = (y / (field.variances + sigma**2) - (z @ field.axes) / sigma) / scale
        residual = field.network(jnp.concatenate([inputs, features])) - target
        return 0.5 * jnp.sum(residual**2)


@compiled
def _losses(key: jax.Array, field: Any, objective: Any, rows: jax.Array) -> jax.Array:
    keys = jax.random.split(key, len(rows))
    return jax.vmap(lambda k, x: objective(field, k, x))(keys, rows)


def mean_loss(key: jax.Array, field: Field, objective: Any, rows: object, weights: np.ndarray | None = None) -> float:
    """Weighted mean of an objective over the rows of a table, with one key per row."""
    table = as_rows(rows, minimum=1)
    size = min(rows_per_call(), bucket(len(table)))
    losses = []
    for start in range(0, len(table), size):
        block = table[start : start + size]
        values = _losses(jax.random.fold_in(key, start), field, objective, pad_rows(block, size))
        losses.append(np.asarray(values)[: len(block)])
    return float(np.average(np.concatenate(losses).astype(np.float64), weights=weights))


def fisher_divergence(field: Field, truth: Field, rows: object) -> float:
    """1/2 E |s(x) - s_true(x)|^2 over rows of the truth (Eq:score_matching_1)."""
    table = as_rows(rows, minimum=1)
    difference = map_rows(Method(field, "__call__"), table) - map_rows(Method(truth, "__call__"), table)
    return float(0.5 * np.mean(np.sum(difference**2, axis=1)))


class LabelledRow(NamedTuple):
    """A row, its class, and where they are used: its weight, and copies (k, d) of it with some cells hidden.

    Of a row that was chosen from a larger table, `log_chances` (classes,) says how likely, had it each of the classes.
    """

    x: jax.Array
    label: jax.Array
    weight: jax.Array | None = None
    hidden: jax.Array | None = None
    log_chances: jax.Array | None = None


def rank_cell(model: JointEnergies, z: jax.Array, row: jax.Array, label: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Minus the log share of a random cell among CANDIDATES draws of its column, and whether the row has the cell.

    `z` are RANKED_NORMALS standard normal numbers. Independent columns have a loss of log CANDIDATES.
    """
    margins: Any = model.base
    column = pick(z[0], jnp.zeros(len(margins.layout.variables)))
    rows, log_margin = margins.draw(z[1:].reshape(2, CANDIDATES), row, column)
    energies = jax.vmap(model)(rows)[:, label] - log_margin
    return -jax.nn.log_softmax(energies)[0], margins.layout.present(row)[column]


@pytree
class CellLoss:
    """[row, label, RANKED_NORMALS normal numbers] -> the loss of `rank_cell`, NaN for a gap."""

    model: JointEnergies

    def __call__(self, packed: jax.Array) -> jax.Array:
        row, label, z = packed[: -RANKED_NORMALS - 1], packed[-RANKED_NORMALS - 1], packed[-RANKED_NORMALS:]
        loss, present = rank_cell(self.model, z, row, label.astype(int))
        return jnp.where(present, loss, jnp.nan)


@pytree
class JointLoss:
    """Denoising under the row's own class, weighted by class, plus the label's cross-entropy.

    The noise is z color with z ~ N(0, I). Denoising is averaged over columns, so that its weight relative to the labels
    does not depend on their number. The cross-entropy is taken at the row without noise, which would blur steps between
    classes. With label_weight 0 the loss is purely generative, with denoising_weight 0 it is that of the labels alone.

    Columns of a mixed row are ranked too: the value of a random column competes with draws from its margin. For
    categories and spikes this takes the place of a score; for numbers it fixes the masses of separate modes.
    """

    color: jax.Array  # (p, p) for p numbers
    label_weight: float
    class_weights: jax.Array  # (classes,) n / (classes * n_k), up to a bound, by the rows that are drawn
    offsets: Any = 0.0  # of the logits, see `LabelLoss`
    denoised_share: float = static(default=1.0)  # of a batch: the cross-entropy needs more rows than denoising
    labels_of_hidden: bool = static(default=True)  # whether copies with hidden cells teach the labels too
    denoising_weight: float = static(default=1.0)  # of the generative term; 0 leaves it out

    def normals(self, model: JointEnergies, key: jax.Array, *shape: int) -> jax.Array:
        """Standard normal numbers of rows, as `generative` takes them: (*shape, numbers of a row)."""
        ranked = 0 if getattr(model.base, "layout", None) is None else RANKED_NORMALS
        return jax.random.normal(key, (*shape, len(self.color) + ranked))

    def generative(self, model: JointEnergies, z: jax.Array, row: LabelledRow) -> jax.Array:
        """Denoising and, for mixed rows, ranking of one column."""
        layout = getattr(model.base, "layout", None)
        x, label = row.x, row.label
        z, z_ranked = jnp.split(z, [len(self.color)])
        noisy = x + z @ self.color if layout is None else layout.moved(x, z @ self.color)
        loss = jnp.zeros(())
        if len(z):
            logits, pull = jax.vjp(model.logits, noisy)
            slope = pull(jax.nn.one_hot(label, len(logits)))[0][: len(z)]
            known = 1.0 if layout is None else layout.split(noisy)[1]
            score = model.base(noisy) + known * slope
            # A gap has no score, and its noise adds a constant: what remains is the loss of the known numbers.
            loss = 0.5 * jnp.mean((self.color @ score + z) ** 2)
        if layout is not None:
            ranking, present = rank_cell(model, z_ranked, noisy, label)
            loss = loss + ranking * present  # a gap has no rank
        loss = loss if self.denoising_weight == 1 else self.denoising_weight * loss
        weight = self.class_weights[label] if row.weight is None else self.class_weights[label] * row.weight
        if row.log_chances is not None:  # densities are those of the table
            weight = weight * jnp.exp(-row.log_chances[label])
        return weight * loss

    def __call__(self, model: JointEnergies, key: jax.Array, row: LabelledRow) -> jax.Array:
        return self.generative(model, self.normals(model, key), row) + self.label_weight * LabelLoss(self.offsets)(
            model, key, row
        )

    def of_batch(self, model: JointEnergies, key: jax.Array, rows: LabelledRow) -> jax.Array:
        """Mean loss of a batch whose first rows alone are denoised, with cells hidden where there are such copies."""
        n = max(1, round(self.denoised_share * len(rows.x)))
        copies, rows = rows.hidden, rows._replace(hidden=None)
        as_they_are = rows
        if copies is not None:
            key, own = jax.random.split(key)
            chosen = copies[jnp.arange(n), jax.random.randint(own, (n,), 0, copies.shape[1])]
            rows = rows._replace(x=rows.x.at[:n].set(chosen))
        first = jax.tree.map(lambda leaf: leaf[:n], rows)
        loss = jnp.zeros(())
        if self.denoising_weight > 0:
            loss = jnp.mean(jax.vmap(self.generative, (None, 0, 0))(model, self.normals(model, key, n), first))
        if len(self.class_weights) == 1:
            return loss
        seen = rows if self.labels_of_hidden else as_they_are
        labels = jax.vmap(LabelLoss(self.offsets), (None, None, 0))(model, key, seen)
        return loss + self.label_weight * jnp.mean(labels)


@pytree
class LabelLoss:
    """Cross-entropy of the label under the softmax of the energies.

    Where a class is drawn f_k times as often as it occurs, the offsets (classes,) are log f_k: the energies remain
    those of the table, as in a logistic regression of case-control samples (Prentice & Pyke 1979). So are the log
    chances of a row that was chosen by its surprise (Fithian & Hastie 2014).
    """

    offsets: Any = 0.0

    def __call__(self, model: JointEnergies, key: jax.Array, row: LabelledRow) -> jax.Array:
        offsets = self.offsets if row.log_chances is None else self.offsets + row.log_chances
        logs = jax.nn.log_softmax(model.logits(row.x) + offsets)
        # Not logs[label], whose slope is a loop over rows on a CPU.
        loss = -jnp.sum(jnp.where(jnp.arange(len(logs)) == row.label, logs, 0.0))
        return loss if row.weight is None else row.weight * loss
