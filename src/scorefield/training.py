"""One trainer for every field: minibatch Adam on a score-matching loss, compiled once for all fits of one architecture.

Minimises the objectives of Eq:score_matching_2 and Eq:score_matching_3. The compiled program sees batches of a fixed
shape, never the table: neither the number of rows, the fold nor the number of steps reaches it.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from scorefield._tree import as_rows, bucket, compiled, host_rng, pad_rows, stack, unstack

CHUNK_STEPS = 100  # steps per compiled call: also the grain of progress, early stopping and time budgets
HELD_OUT_POINTS = 2048  # evaluations of the held-out loss per chunk; fewer rows are repeated with new noise
AVERAGE_DECAY = 0.99  # of the running mean of weights: a memory of one chunk
GRADIENT_NORM = 10.0  # clipping bound; a well-posed loss of standardised columns stays an order below it
MIN_IMPROVEMENT = 1e-4  # relative; smaller gains of the held-out loss are below its Monte-Carlo error

# Adam only: decay would pull at the frozen parts of a model (a base Gaussian, noise levels), whose gradient is zero.
OPTIMIZER = optax.chain(optax.clip_by_global_norm(GRADIENT_NORM), optax.scale_by_adam())


class Progress(NamedTuple):
    """What a callback sees after each chunk: one value a model."""

    step: int
    max_steps: int
    loss: np.ndarray
    held_out_loss: np.ndarray


@dataclasses.dataclass(frozen=True)
class Trained:
    """A fitted model, its loss per chunk, its held-out loss per chunk, and the step that it was taken from."""

    model: Any
    loss: np.ndarray
    held_out_loss: np.ndarray
    steps: np.ndarray
    best_step: int


class Part(NamedTuple):
    """Rows of a table, by number, that one model trains on, and those that stop it."""

    kept: np.ndarray
    held: np.ndarray


class DivergedError(ValueError):
    """Training or sampling left the finite numbers."""


class _State(NamedTuple):
    model: Any
    average: Any
    optimizer: Any
    step: jax.Array


@compiled
def _chunk_keys(key: jax.Array, chunk: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Keys to draw a chunk's rows and to train on them; compiled, since an accelerator waits for what is not."""
    return jax.random.fold_in(key, 2 * chunk + 1), jax.random.fold_in(key, 2 * chunk + 2)


@partial(compiled, static_argnames=("n_steps", "batch_size"))
def _draw_places(key: jax.Array, n_rows: jax.Array, *, n_steps: int, batch_size: int) -> jax.Array:
    """Places drawn with replacement below each model's number of rows: (models, steps, batch)."""

    def draw(key, n):
        return jax.random.randint(key, (n_steps, batch_size), 0, n)

    return jax.vmap(draw)(jax.random.split(key, len(n_rows)), n_rows)


@compiled
def _gather(pool: Any, index: jax.Array, places: jax.Array) -> Any:
    """Rows of the pool at each model's places: leaves (models, steps, batch, ...). Cheap to compile for a new size."""
    chosen = jax.vmap(lambda own, at: own[at])(index, places)
    return jax.tree.map(lambda leaf: leaf[chosen], pool)


def _batches(key: jax.Array, chunk: int, data: Any, batch_size: int) -> tuple[Any, jax.Array]:
    """Rows of one chunk, and the key to train on them with."""
    draw_key, train_key = _chunk_keys(key, chunk)
    places = _draw_places(draw_key, data.lengths, n_steps=CHUNK_STEPS, batch_size=batch_size)
    return _gather(data.pool, data.index, places), train_key


def _mean_loss(model: Any, objective: Any, key: jax.Array, batch: Any) -> jax.Array:
    keys = jax.random.split(key, len(jax.tree.leaves(batch)[0]))
    return jnp.mean(jax.vmap(lambda k, row: objective(model, k, row))(keys, batch))


def _over_models(function: Callable, *stacked: Any) -> Any:
    """vmap over models; a single one runs unbatched, where forward mode is several times faster."""
    if len(jax.tree.leaves(stacked)[0]) > 1:
        return jax.vmap(function)(*stacked)
    return jax.tree.map(lambda leaf: leaf[None], function(*(unstack(tree, 0) for tree in stacked)))


@compiled
def _initial_state(models: Any) -> _State:
    n_models = len(jax.tree.leaves(models)[0])
    return _State(models, models, jax.vmap(OPTIMIZER.init)(models), jnp.zeros(n_models, jnp.int32))


@compiled
def _train_chunk(key: jax.Array, states: _State, batches: Any, objective: Any, rate: jax.Array, max_steps: jax.Array):
    """Advance every model by one chunk; returns the states and the losses (models, steps)."""

    def one_model(key, state, batches, rate):
        def step(state, batch):
            loss, gradient = jax.value_and_grad(_mean_loss)(
                state.model, objective, jax.random.fold_in(key, state.step), batch
            )
            update, optimizer = OPTIMIZER.update(gradient, state.optimizer)
            # Cosine decay to zero: the last chunks average away the gradient noise of a constant rate.
            rate_now = rate * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(state.step / max_steps, 1.0)))
            model = jax.tree.map(lambda p, u: p - rate_now * u, state.model, update)
            # A plain mean over the first 1 / (1 - decay) steps, then exponential: no bias towards the initial weights.
            decay = jnp.minimum(AVERAGE_DECAY, state.step / (state.step + 1.0))
            average = jax.tree.map(lambda a, p: decay * a + (1 - decay) * p, state.average, model)
            return _State(model, average, optimizer, state.step + 1), loss

        return jax.lax.scan(step, state, batches)

    return _over_models(one_model, jax.random.split(key, len(rate)), states, batches, rate)


@compiled
def _held_out_loss(key: jax.Array, models: Any, objective: Any, rows: Any, weights: jax.Array) -> jax.Array:
    """Weighted mean loss per model; the same keys at every chunk, so that chunks are compared on the same noise."""

    def one_model(key, model, rows, weights):
        row_keys = jax.random.split(key, weights.shape[0])
        losses = jax.vmap(lambda k, row: objective(model, k, row))(row_keys, rows)
        return jnp.sum(losses * weights) / jnp.sum(weights)

    return _over_models(one_model, jax.random.split(key, len(weights)), models, rows, weights)


@compiled
def _keep(better: jax.Array, new: Any, old: Any) -> Any:
    """Per model, `new` where it is better."""
    return jax.tree.map(lambda a, b: jnp.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b), new, old)


def _fixed_block(rng: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """HELD_OUT_POINTS of the row numbers, and weights that count every distinct one once."""
    places = np.resize(rng.permutation(len(rows)), HELD_OUT_POINTS)
    weights = 1.0 / np.bincount(places, minlength=len(rows))[places]
    return rows[places], weights.astype(np.float32)


def _check_table(table: Any, minimum: int = 2) -> Any:
    """The first leaf is validated as rows; others (labels) only have to be as long."""
    leaves, structure = jax.tree.flatten(table)
    checked = [as_rows(leaves[0], minimum=minimum), *(np.asarray(leaf) for leaf in leaves[1:])]
    if len({len(leaf) for leaf in checked}) != 1:
        raise ValueError("Expected arrays of one length in a table, got several lengths.")
    return jax.tree.unflatten(structure, checked)


def _split(rng: np.random.Generator, n: int, fraction: float) -> Part:
    """Row numbers below n, shuffled, with a `fraction` of them held out, at least one on each side."""
    order = rng.permutation(n)
    if not fraction:
        return Part(order, order)
    n_held_out = min(max(1, round(fraction * n)), n - 1)
    return Part(order[n_held_out:], order[:n_held_out])


def split_held_out(rng: np.random.Generator, table: Any, fraction: float) -> tuple[Any, Any]:
    """Shuffle a table and cut off `fraction` of it, at least one row on each side."""
    part = _split(rng, len(jax.tree.leaves(table)[0]), fraction)
    return jax.tree.map(lambda leaf: leaf[part.kept], table), jax.tree.map(lambda leaf: leaf[part.held], table)


def _check_settings(learning_rate: Any, batch_size: int, max_steps: int, fraction: float) -> None:
    if not np.all(np.asarray(learning_rate) > 0):
        raise ValueError(f"Expected learning_rate > 0, got {learning_rate}.")
    if batch_size < 1 or max_steps < 1:
        raise ValueError(f"Expected batch_size and max_steps >= 1, got {batch_size} and {max_steps}.")
    if not 0 <= fraction < 1:
        raise ValueError(f"Expected validation_fraction in [0, 1), got {fraction}.")


def _raise_diverged(losses: np.ndarray, step: int) -> None:
    model, offset = np.argwhere(~np.isfinite(losses))[0]
    if step + offset == 0:
        cause = "before the first update: the field or the objective is not finite at the rows; check its formula"
    else:
        cause = "after updates that were too large; lower the learning rate, standardize the columns or add noise"
    raise DivergedError(f"Expected a finite loss, got {losses[model, offset]} in model {model} at step "
                        f"{step + offset}, {cause}.")  # fmt: skip


def _check_tables(models: Sequence[Any], tables: Sequence[Any], parts: Any, refill: Any) -> None:
    if len(tables) not in (1, len(models)) or not models:
        raise ValueError(f"Expected as many models as tables, got {len(models)} and {len(tables)}.")
    if refill and parts is None:
        raise ValueError("Expected parts beside refill, got none: rows split off at the start could come back.")


class _Data(NamedTuple):
    pool: Any  # leaves (bucket, ...): the rows of all models, each once
    index: Any  # (models, bucket) rows of the pool that a model is trained on
    lengths: Any  # (models,) how many of them are no padding
    held_out: Any  # leaves (models, HELD_OUT_POINTS, ...)
    weights: Any  # (models, HELD_OUT_POINTS)


def _prepare(
    key: jax.Array, tables: Sequence[Any], parts: Sequence[Part] | None, fraction: float, n_models: int
) -> _Data:
    """Validate tables, hold rows out, and pad to shapes that the compiled programs share."""
    checked = [_check_table(table) for table in tables]
    sizes = [len(jax.tree.leaves(table)[0]) for table in checked]
    starts = np.cumsum([0, *sizes[:-1]])
    if len(tables) == 1:
        sizes, starts = sizes * n_models, np.zeros(n_models, int)
    if parts is None:  # a generator for each model: its split does not depend on its neighbours
        parts = [_split(host_rng(key, 7, m), n, fraction) for m, n in enumerate(sizes)]
    pool = jax.tree.map(lambda *leaves: np.concatenate(leaves) if len(leaves) > 1 else leaves[0], *checked)
    lengths = [len(part.kept) for part in parts]
    size = bucket(max(lengths))
    index = np.stack([pad_rows(part.kept + start, size) for part, start in zip(parts, starts, strict=True)])
    blocks = [_fixed_block(host_rng(key, 16, m), part.held + starts[m]) for m, part in enumerate(parts)]
    held = jax.tree.map(lambda leaf: leaf[np.stack([rows for rows, _ in blocks])], pool)
    pool = jax.tree.map(lambda leaf: pad_rows(leaf, bucket(len(leaf))), pool)
    weights = np.stack([weight for _, weight in blocks])
    return jax.device_put(_Data(pool, index.astype(np.int32), np.asarray(lengths), held, weights))  # once


def _renewed(key: jax.Array, data: _Data, tables: Sequence[Any], parts: Sequence[Part], n_models: int) -> _Data:
    """Other rows to train on; those held out stay, so that chunks are compared on the same rows."""
    return _prepare(key, tables, parts, 0.0, n_models)._replace(held_out=data.held_out, weights=data.weights)


def train_many(
    key: jax.Array,
    models: Sequence[Any],
    tables: Sequence[Any],
    objective: Any,
    *,
    learning_rate: float | Sequence[float] = 3e-3,
    batch_size: int = 128,
    max_steps: int = 3000,
    validation_fraction: float = 0.2,
    parts: Sequence[Part] | None = None,
    held_out_objective: Any = None,
    patience: int | None = 10,
    callback: Callable[[Progress], bool | None] | None = None,
    refill: Callable[[], tuple[Sequence[Any], Sequence[Part]]] | None = None,
) -> list[Trained]:
    """Train models of one structure (classes, folds, seeds, learning rates) in one vectorised program.

    A table is an array (n, d), or a pytree whose first leaf is one and whose others are n long (labels); a single one
    may serve all models. `patience` counts chunks without a better held-out loss; None trains to the end and returns
    the last average. A true return of `callback` stops the run. `parts` of the tables' rows take the place of a split
    by `validation_fraction`, and `held_out_objective` that of the objective on the rows held out. `refill` gives new
    tables and parts to train on before every chunk but the first, for data larger than memory; it needs `parts`,
    whose held-out rows stay.
    """
    _check_settings(learning_rate, batch_size, max_steps, validation_fraction)
    _check_tables(models, tables, parts, refill)
    data = _prepare(key, tables, parts, validation_fraction, len(models))
    rate = np.broadcast_to(np.asarray(learning_rate, np.float32), (len(models),))
    state = _initial_state(stack(list(models)))

    best, best_loss = state.average, np.full(len(models), np.inf)
    best_step, stale = np.zeros(len(models), int), np.zeros(len(models), int)
    history: list[tuple[int, np.ndarray, np.ndarray]] = []
    batches, train_key = _batches(key, 0, data, batch_size)
    for chunk in range(-(-max_steps // CHUNK_STEPS)):
        if refill and chunk:
            data = _renewed(key, data, *refill(), len(models))
            batches, train_key = _batches(key, chunk, data, batch_size)
        state, losses = _train_chunk(train_key, state, batches, objective, rate, np.float32(max_steps))
        held_loss = _held_out_loss(key, state.average, held_out_objective or objective, data.held_out, data.weights)
        if not refill:  # the next rows are drawn while the device trains on these
            batches, train_key = _batches(key, chunk + 1, data, batch_size)
        losses, held_loss, step = np.asarray(losses), np.asarray(held_loss), (chunk + 1) * CHUNK_STEPS
        if not np.isfinite(losses).all():
            _raise_diverged(losses, step - CHUNK_STEPS)
        active = stale < (np.inf if patience is None else patience)
        gain = best_loss - held_loss > MIN_IMPROVEMENT * np.maximum(np.abs(held_loss), 1e-3)
        better = active & (gain | (patience is None))
        best = _keep(better, state.average, best)
        best_loss, best_step = np.where(better, held_loss, best_loss), np.where(better, step, best_step)
        stale = np.where(active, np.where(better, 0, stale + 1), stale)
        history.append((step, losses.mean(axis=1), held_loss))
        stop = callback(Progress(step, max_steps, losses.mean(axis=1), held_loss)) if callback else None
        if stop or (patience is not None and (stale >= patience).all()):
            break
    best = jax.tree.map(np.asarray, best)
    steps, loss, held = (np.array(column) for column in zip(*history, strict=True))
    return [Trained(unstack(best, m), loss[:, m], held[:, m], steps, int(best_step[m])) for m in range(len(models))]


def train(key: jax.Array, model: Any, table: Any, objective: Any, *, held_out: Any = None, **options: Any) -> Trained:
    """Train one model; see `train_many` for the options. `held_out` is another table, to stop by."""
    parts = None
    if held_out is not None:
        n, n_held = (len(jax.tree.leaves(part)[0]) for part in (table, held_out))
        table = jax.tree.map(lambda *leaves: np.concatenate(leaves), table, held_out)
        parts = [Part(np.arange(n), np.arange(n, n + n_held))]
    return train_many(key, [model], [table], objective, parts=parts, **options)[0]
