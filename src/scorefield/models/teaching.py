"""New rows for a learner: short chains of a teacher's energy, redrawn cells, and rows chosen by probability.

Langevin steps are the paper's. A learner sees the rows with the teacher's probabilities as labels, as Fakoor et al.
(2020) do with Gibbs draws, or those that the teacher is sure of with hard labels.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import bucket, pad_rows, rows_per_call
from scorefield._jax.pytrees import compiled

STEP = 0.01  # of the chains, in squared standard deviations of a column
SOFT_STEPS, HARD_STEPS = 4, 12  # of rows with probabilities as labels, and of rows of a class
REDRAWN = 0.2  # share of a row's cells
LEAST_WEIGHT = 1e-3  # of a class at a row: below it the class adds a row to the learner's table and nothing to learn
FURTHEST = 30.0  # standard deviations that a chain may leave a row by; teachers clip there too


@partial(compiled, static_argnames=("n_steps",))
def _chains(
    key: jax.Array, energy: Any, rows: jax.Array, labels: jax.Array, free: jax.Array, drift: jax.Array,
    spread: jax.Array, *, n_steps: int,
) -> jax.Array:  # fmt: skip
    def slope(row, label):
        return jax.grad(lambda x: energy(x)[label])(row)

    def advance(rows, key):
        noise = jax.random.normal(key, rows.shape) @ spread
        moved = rows + free * ((free * jax.vmap(slope)(rows, labels)) @ drift + noise)
        return jnp.clip(moved, -FURTHEST, FURTHEST), None

    return jax.lax.scan(advance, rows, jax.random.split(key, n_steps))[0]


def short_chains(key, joint, color, rows, labels, free, n_steps):
    """Rows after some Langevin steps of their class's energy, in standardised columns.

    `joint` are the energies of the classes; each block of rows follows one member, which costs a fraction of all of
    them and gives the rows of a mixture. Cells that are not `free` are held. `color` is that of the noise z color
    that the energies were learned with: in directions narrower than a step, steps are as long as the noise.
    """
    alike = _members_of_one_shape(joint)
    drift, spread = _steps_by_direction(color)
    size = min(rows_per_call(), bucket(len(rows)))
    moved = np.empty(rows.shape, np.float32)
    for block, start in enumerate(range(0, len(rows), size)):
        at = slice(start, start + size)
        parts = (pad_rows(part[at], size) for part in (rows.astype(np.float32), labels.astype(np.int32), free))
        energy = alike[block % len(alike)]
        own = _chains(jax.random.fold_in(key, block), energy, *parts, drift, spread, n_steps=n_steps)
        moved[at] = np.asarray(own)[: len(moved[at])]
    return moved


def _members_of_one_shape(joint):
    """The members of the commonest shape as energies of their own: each shape compiles a program."""
    shapes = [(jax.tree.structure(m), *map(np.shape, jax.tree.leaves(m))) for m in joint.members]
    commonest = max(shapes, key=shapes.count)
    return [
        jax.device_put(dataclasses.replace(joint, members=(member,), rules=None, share=None))
        for member, shape in zip(joint.members, shapes, strict=True)
        if shape == commonest
    ]


def _steps_by_direction(color):
    """Matrices of the drift and of the noise of a step: STEP in every direction that is not narrower than it."""
    variances, directions = np.linalg.eigh(color.T.astype(np.float64) @ color)
    steps = np.minimum(STEP, np.maximum(variances, 0.0))
    drift = (directions * steps) @ directions.T
    spread = (directions * np.sqrt(2 * steps)) @ directions.T
    return drift.astype(np.float32), spread.astype(np.float32)


def parents_by_class(rng, codes, n, weights=None, *, in_proportion=False):
    """Rows that n new ones start from, the same number of each class or as many as it has; in random order.

    `weights` are those of the rows.
    """
    counts = np.bincount(codes, weights).astype(float)
    shares = counts / counts.sum() if in_proportion else (counts > 0) / np.count_nonzero(counts)
    ends = np.rint(np.cumsum(shares) * n).astype(int)
    parents = []
    for k, wanted in enumerate(np.diff(ends, prepend=0)):
        own = np.flatnonzero(codes == k)
        parents.append(own[spread_choice(rng, wanted, None if weights is None else weights[own], len(own))])
    return rng.permutation(np.concatenate(parents)).astype(np.intp)


def spread_choice(rng, n, weights, n_choices):
    """n of some choices, each as often as its weight says, up to one: systematic sampling in random order."""
    if not n:
        return np.zeros(0, np.intp)
    order = rng.permutation(n_choices)
    shares = np.full(n_choices, 1 / n_choices) if weights is None else weights[order] / weights.sum()
    ends = np.cumsum(shares)
    found = np.searchsorted(ends / ends[-1], (np.arange(n) + rng.random()) / n, side="right")
    return order[np.minimum(found, n_choices - 1)]


def redrawn_sources(rng, parents, pool, groups):
    """For each new row and column the row that its cell is copied from: the parent, or one of `pool` at random.

    `groups` numbers the columns; columns of one group are copied together. At least one group of a row is redrawn.
    """
    sources = np.repeat(parents[:, None], len(groups), axis=1)
    n_groups = int(groups.max(initial=-1)) + 1
    if n_groups == 0:
        return sources
    redrawn = rng.random((len(parents), n_groups)) < REDRAWN
    redrawn[np.arange(len(parents)), rng.integers(0, n_groups, len(parents))] |= ~redrawn.any(axis=1)
    for group in range(n_groups):
        at = np.flatnonzero(redrawn[:, group])
        sources[np.ix_(at, groups == group)] = rng.choice(pool, len(at))[:, None]
    return sources


class Chosen(NamedTuple):
    """Rows that were drawn without replacement, in order, and the weights that undo the selection."""

    places: np.ndarray
    weights: np.ndarray


def chosen_by_weight(rng, log_weights, n):
    """n rows in proportion to their weights, without replacement, by exponential races.

    Given the first time at which a row was left out, each row was taken on its own with a probability that is known:
    its inverse is the weight by which sums over the chosen rows estimate those over all, without bias (Cohen & Kaplan
    2007, rank conditioning).
    """
    if n >= len(log_weights):
        return Chosen(np.arange(len(log_weights)), np.ones(len(log_weights)))
    log_times = np.log(rng.exponential(size=len(log_weights))) - log_weights
    order = np.argsort(log_times, kind="stable")
    places = np.sort(order[:n])
    rates = np.exp(np.clip(log_weights[places] + log_times[order[n]], -700, 700))
    return Chosen(places, 1 / np.maximum(-np.expm1(-rates), np.finfo(float).tiny))


class Lesson(NamedTuple):
    """What a learner is taught of new rows: numbers of rows, their classes and weights."""

    rows: np.ndarray
    classes: np.ndarray
    weights: np.ndarray


def soft_lesson(proba, most=None):
    """Every row once per class, weighted by the probability; without classes that hardly matter.

    Of rows that would stand there more than `most` times in all the last ones are left out.
    """
    kept = proba >= LEAST_WEIGHT
    if most is not None:
        kept[max(1, np.searchsorted(np.cumsum(kept.sum(axis=1)), most, side="right")) :] = False
    rows, classes = np.nonzero(kept)
    weights = proba[rows, classes] / (proba * kept).sum(axis=1)[rows]
    return Lesson(rows, classes, weights)


def repeated(rng, weights):
    """Places of rows, each as often as its weight on average: for learners that take no weights.

    One place is drawn within each unit of the weights, so that a row of weight one is there once, and one copy of a row
    whose copies have the probabilities of its classes as weights.
    """
    ends = np.cumsum(weights, dtype=np.float64)
    n = max(1, round(ends[-1]))
    found = np.searchsorted(ends, (np.arange(n) + rng.random(n)) * (ends[-1] / n), side="right")
    return np.minimum(found, len(weights) - 1)
