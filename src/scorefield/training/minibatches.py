"""Rows for training: tables are checked, split and sent to the device once, then batches are drawn from them.

Tables are padded to a few sizes, so that compiled programs do not depend on the number of rows.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from scorefield._jax.batching import as_rows, bucket, pad_rows
from scorefield._jax.pytrees import compiled, take
from scorefield._jax.random import Stream, host_rng

HELD_OUT_POINTS = 2048  # evaluations of the held-out loss per chunk; rows are repeated, with new noise, up to these


class Split(NamedTuple):
    """Indices of the rows that a model trains on, and of those held out for early stopping."""

    kept: np.ndarray
    held: np.ndarray


class Rows(NamedTuple):
    """The rows of several models on the device; all leaves but the pool's have a leading axis of models."""

    pool: Any  # leaves (bucket, ...): the distinct rows of all models
    index: Any  # (models, bucket) indices of each model's training rows in the pool
    lengths: Any  # (models,) number of training rows without padding
    held_out: Any  # leaves (models, points, ...)
    weights: Any  # (models, points)

    def of(self, models: np.ndarray) -> "Rows":
        """The rows of some of the models."""
        return Rows(self.pool, *take(self[1:], models))


@partial(compiled, static_argnames=("n_steps", "batch_size"))
def _draw_places(keys: jax.Array, n_rows: jax.Array, *, n_steps: int, batch_size: int) -> jax.Array:
    """Indices drawn with replacement below each model's number of rows: (models, steps, batch)."""
    return jax.vmap(lambda key, n: jax.random.randint(key, (n_steps, batch_size), 0, n))(keys, n_rows)


@compiled
def _gather(pool: Any, index: jax.Array, places: jax.Array) -> Any:
    """Rows of the pool at each model's places: leaves (models, steps, batch, ...).

    Compiled apart from training, since it depends on the padded number of rows and is cheap to compile.
    """
    chosen = jax.vmap(lambda own, at: own[at])(index, places)
    return jax.tree.map(lambda leaf: leaf[chosen], pool)


def draw(keys: jax.Array, rows: Rows, n_steps: int, batch_size: int) -> Any:
    """Random training batches: leaves (models, steps, batch, ...)."""
    places = _draw_places(keys, rows.lengths, n_steps=n_steps, batch_size=batch_size)
    return _gather(rows.pool, rows.index, places)


def _fixed_block(rng: np.random.Generator, rows: np.ndarray, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    """`n_points` of the row indices, and weights under which every one of them counts once."""
    places = np.resize(rng.permutation(len(rows)), n_points)
    weights = 1.0 / np.bincount(places, minlength=len(rows))[places]
    return rows[places], weights.astype(np.float32)


def _check_table(table: Any, minimum: int = 2) -> Any:
    """Validate the first leaf as rows, and the lengths of the others (labels)."""
    leaves, structure = jax.tree.flatten(table)
    checked = [as_rows(leaves[0], minimum=minimum), *(np.asarray(leaf) for leaf in leaves[1:])]
    if len({len(leaf) for leaf in checked}) != 1:
        raise ValueError("Expected arrays of one length in a table, got several lengths.")
    return jax.tree.unflatten(structure, checked)


def _split(rng: np.random.Generator, n: int, fraction: float) -> Split:
    """Shuffled indices below n, with a `fraction` held out and at least one on each side."""
    order = rng.permutation(n)
    if not fraction:
        return Split(order, order)
    n_held_out = min(max(1, round(fraction * n)), n - 1)
    return Split(order[n_held_out:], order[:n_held_out])


def split_held_out(rng: np.random.Generator, table: Any, fraction: float) -> tuple[Any, Any]:
    """Shuffle a table and split off `fraction` of its rows, at least one on each side."""
    split = _split(rng, len(jax.tree.leaves(table)[0]), fraction)
    return jax.tree.map(lambda leaf: leaf[split.kept], table), jax.tree.map(lambda leaf: leaf[split.held], table)


def joined(table: Any, held_out: Any) -> tuple[Any, Split]:
    """Concatenate a training table and a held-out table, with the split between them."""
    n, n_held = (len(jax.tree.leaves(each)[0]) for each in (table, held_out))
    whole = jax.tree.map(lambda *leaves: np.concatenate(leaves), table, held_out)
    return whole, Split(np.arange(n), np.arange(n, n + n_held))


def _model_rng(key: jax.Array, stream: Stream, model: int) -> np.random.Generator:
    """A generator per model, independent of the other models."""
    return host_rng(key[model], stream, 0) if key.ndim else host_rng(key, stream, model)


def prepare(
    key: jax.Array, tables: Sequence[Any], splits: Sequence[Split] | None, fraction: float, numbers: np.ndarray,
    n_points: int,
) -> Rows:  # fmt: skip
    """Validate tables (one for all models, or one each), split and pad them, and send them to the device.

    `numbers` are global model indices; they seed each model's random stream.
    """
    checked = [_check_table(table) for table in tables]
    sizes = [len(jax.tree.leaves(table)[0]) for table in checked]
    starts = np.cumsum([0, *sizes[:-1]])
    if len(tables) == 1:
        sizes, starts = sizes * len(numbers), np.zeros(len(numbers), int)
    if splits is None:
        splits = [
            _split(_model_rng(key, Stream.HELD_OUT_ROWS, m), n, fraction) for m, n in zip(numbers, sizes, strict=True)
        ]
    pool = jax.tree.map(lambda *leaves: np.concatenate(leaves) if len(leaves) > 1 else leaves[0], *checked)
    lengths = [len(split.kept) for split in splits]
    size = bucket(max(lengths))
    index = np.stack([pad_rows(split.kept + start, size) for split, start in zip(splits, starts, strict=True)])
    blocks = [
        _fixed_block(_model_rng(key, Stream.HELD_OUT_BLOCK, m), split.held + start, n_points)
        for m, split, start in zip(numbers, splits, starts, strict=True)
    ]
    held = jax.tree.map(lambda leaf: leaf[np.stack([rows for rows, _ in blocks])], pool)
    pool = jax.tree.map(lambda leaf: pad_rows(leaf, bucket(len(leaf))), pool)
    weights = np.stack([weight for _, weight in blocks])
    return jax.device_put(Rows(pool, index.astype(np.int32), np.asarray(lengths), held, weights))


class Source:
    """The rows of each block of models; a table shared by all models is on the device once."""

    def __init__(
        self, key: jax.Array, tables: Sequence[Any], splits: Sequence[Split] | None, fraction: float, n_models: int,
        n_points: int = HELD_OUT_POINTS,
    ):  # fmt: skip
        self.key, self.tables, self.splits, self.fraction = key, tables, splits, fraction
        self.everyone, self.n_points = np.arange(n_models), n_points
        self.shared: Rows | None = None
        self.known: dict[tuple, Rows] = {}

    def rows_for(self, numbers: np.ndarray) -> Rows:
        """Rows of the models `numbers`."""
        who = tuple(numbers.tolist())
        if who not in self.known:
            self.known[who] = self._prepared(numbers)
        return self.known[who]

    def _prepared(self, numbers: np.ndarray) -> Rows:
        if len(self.tables) > 1:
            splits = self.splits and [self.splits[m] for m in numbers]
            return prepare(self.key, [self.tables[m] for m in numbers], splits, self.fraction, numbers, self.n_points)
        if self.shared is None:
            self.shared = prepare(self.key, self.tables, self.splits, self.fraction, self.everyone, self.n_points)
        return self.shared if len(numbers) == len(self.everyone) else self.shared.of(numbers)
