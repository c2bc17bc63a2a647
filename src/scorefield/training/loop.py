"""Training of score fields: minibatch Adam on a score-matching loss, compiled once per architecture.

Minimises the objectives of Eq:score_matching_2 and Eq:score_matching_3. Compiled programs see batches of a fixed shape,
so that they depend neither on the number of rows (but for a few sizes) nor on the number of steps (on an accelerator
they depend on the number of models).
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from scorefield._jax.errors import DivergedError
from scorefield._jax.pytrees import compiled, merge_untrained, split_untrained, stack, unstack
from scorefield.training.minibatches import HELD_OUT_POINTS, Rows, Source, Split, draw, joined

CHUNK_STEPS = 100  # steps per compiled call, and between checks of progress and early stopping
AVERAGE_DECAY = 0.99  # of the running mean of weights, which spans about one chunk
GRADIENT_NORM = 10.0  # clipping bound; gradients on standardised columns are typically ten times smaller
MIN_IMPROVEMENT = 1e-4  # relative; smaller gains of the held-out loss are below its Monte-Carlo error
# Models trained side by side in one program. On a CPU that saves no time and stopped models would still cost theirs,
# so each model is trained on its own: `benchmarks/classes.py`.
MODELS_PER_PROGRAM = {"cpu": 1}
MODELS_ON_ACCELERATOR = 32
OPTIMIZER = optax.chain(optax.clip_by_global_norm(GRADIENT_NORM), optax.scale_by_adam())


class Progress(NamedTuple):
    """Argument of the callback after each chunk; losses have one value per model."""

    step: int
    max_steps: int
    loss: np.ndarray
    held_out_loss: np.ndarray


@dataclasses.dataclass(frozen=True)
class Trained:
    """A fitted model, its losses and held-out losses per chunk, and the step that its weights are from."""

    model: Any
    loss: np.ndarray
    held_out_loss: np.ndarray
    steps: np.ndarray
    best_step: int


class _State(NamedTuple):
    model: Any  # what is trained of it
    average: Any
    optimizer: Any
    step: jax.Array


@partial(compiled, static_argnames="n_models")
def _chunk_keys(key: jax.Array, chunk: jax.Array, numbers: jax.Array, *, n_models: int) -> tuple[jax.Array, ...]:
    """Keys per model for drawing rows, for training, and for the held-out loss (the same in every chunk).

    A model's keys depend on its own key, or on the common key and its number, but not on the other models. Jitted to
    avoid eager dispatch.
    """

    def of_models(key: jax.Array) -> jax.Array:
        if key.ndim:
            return jax.vmap(lambda own: jax.random.split(own, 1)[0])(key)[numbers]
        return jax.random.split(key, n_models)[numbers]

    def folded(number: jax.Array) -> jax.Array:
        return jax.vmap(jax.random.fold_in, (0, None))(key, number) if key.ndim else jax.random.fold_in(key, number)

    return of_models(folded(2 * chunk + 1)), of_models(folded(2 * chunk + 2)), of_models(key)


def _mean_loss(model: Any, objective: Any, key: jax.Array, batch: Any) -> jax.Array:
    if hasattr(objective, "of_batch"):
        return objective.of_batch(model, key, batch)
    keys = jax.random.split(key, len(jax.tree.leaves(batch)[0]))
    return jnp.mean(jax.vmap(lambda k, row: objective(model, k, row))(keys, batch))


def _over_models(function: Callable, *stacked: Any) -> Any:
    """vmap over models; a single model runs unbatched, which is several times faster in forward mode."""
    if len(jax.tree.leaves(stacked)[0]) > 1:
        return jax.vmap(function)(*stacked)
    return jax.tree.map(lambda leaf: leaf[None], function(*(unstack(tree, 0) for tree in stacked)))


@compiled
def _initial_state(models: Any) -> _State:
    n_models = len(jax.tree.leaves(models)[0])
    return _State(models, models, jax.vmap(OPTIMIZER.init)(models), jnp.zeros(n_models, jnp.int32))


@partial(compiled, runs_long=True)
def _train_chunk(
    keys: jax.Array,
    states: _State,
    untrained: Any,
    batches: Any,
    objectives: Any,
    rates: jax.Array,
    max_steps: jax.Array,
) -> tuple[_State, jax.Array]:
    """Advance every model by one chunk; returns the states and the losses (models, steps).

    From `max_steps` on the rate is 0 and the decay 1, which leaves the model and its average unchanged. All chunks thus
    have one length and share one program.
    """

    def one_model(key, state, untrained, batches, objective, rate):
        def loss_of(trained, *rest):
            return _mean_loss(merge_untrained(trained, untrained), objective, *rest)

        def step(state, batch):
            key_now = jax.random.fold_in(key, state.step)
            loss, gradient = jax.value_and_grad(loss_of)(state.model, key_now, batch)
            update, optimizer = OPTIMIZER.update(gradient, state.optimizer)
            # Cosine decay to zero, which averages out the gradient noise towards the end.
            rate_now = rate * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(state.step / max_steps, 1.0)))
            model = jax.tree.map(lambda p, u: p - rate_now * u, state.model, update)
            # A plain mean over the first 1 / (1 - decay) steps avoids a bias towards the initial weights.
            decay = jnp.minimum(AVERAGE_DECAY, state.step / (state.step + 1.0))
            decay = jnp.where(state.step < max_steps, decay, 1.0)
            average = jax.tree.map(lambda a, p: decay * a + (1 - decay) * p, state.average, model)
            return _State(model, average, optimizer, state.step + 1), loss

        return jax.lax.scan(step, state, batches)

    return _over_models(one_model, keys, states, untrained, batches, objectives, rates)


@compiled
def _held_out_loss(
    keys: jax.Array, trained: Any, untrained: Any, objectives: Any, rows: Any, weights: jax.Array
) -> jax.Array:
    """Weighted mean loss per model; chunks use the same keys, so that they are compared on the same noise."""

    def one_model(key, trained, untrained, objective, rows, weights):
        model = merge_untrained(trained, untrained)
        row_keys = jax.random.split(key, weights.shape[0])
        losses = jax.vmap(lambda k, row: objective(model, k, row))(row_keys, rows)
        return jnp.sum(losses * weights) / jnp.sum(weights)

    return _over_models(one_model, keys, trained, untrained, objectives, rows, weights)


@compiled
def _keep(better: jax.Array, new: Any, old: Any) -> Any:
    """Per model, `new` where it is better."""
    return jax.tree.map(lambda a, b: jnp.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b), new, old)


def _check_settings(learning_rate: Any, batch_size: int, max_steps: int, fraction: float, patience: Any) -> None:
    if not np.all(np.asarray(learning_rate) > 0):
        raise ValueError(f"Expected learning_rate > 0, got {learning_rate}.")
    if batch_size < 1 or max_steps < 1:
        raise ValueError(f"Expected batch_size and max_steps >= 1, got {batch_size} and {max_steps}.")
    if patience is not None and patience < 1:
        raise ValueError(f"Expected patience >= 1 or None, got {patience}.")
    if not 0 <= fraction < 1:
        raise ValueError(f"Expected validation_fraction in [0, 1), got {fraction}.")


def _check_counts(key: jax.Array, models: Sequence[Any], tables: Sequence[Any], *objectives: Any) -> None:
    n = len(models)
    if len(tables) not in (1, n) or not models:
        raise ValueError(f"Expected as many models as tables, got {n} and {len(tables)}.")
    if key.ndim and len(key) != n:
        raise ValueError(f"Expected one key, or as many as models, got {len(key)} and {n}.")
    for objective in objectives:
        if isinstance(objective, list) and len(objective) != n:
            raise ValueError(f"Expected as many objectives as models, got {len(objective)} and {n}.")


class _Lanes(NamedTuple):
    """Arguments of the compiled programs, with leaves (models, ...)."""

    state: _State
    untrained: Any
    objective: Any
    held_out_objective: Any
    rate: Any


class _Chunk(NamedTuple):
    """Results of one chunk, which the device may still be computing."""

    steps: range
    average: Any
    losses: jax.Array
    held_out_loss: jax.Array


class _Block:
    """Models that one program trains side by side, and the best weights of each so far."""

    def __init__(self, numbers: np.ndarray, models: Any, lanes: _Lanes):
        self.numbers, self.best, self.lanes = numbers, models, lanes

    def launch(
        self, keys: tuple[jax.Array, ...], rows: Rows, batch_size: int, chunk_steps: int, steps: range, max_steps: int
    ) -> _Chunk:
        """Start the next chunk without waiting for the one before."""
        lanes, batches = self.lanes, draw(keys[0], rows, chunk_steps, batch_size)
        state, losses = _train_chunk(
            keys[1], lanes.state, lanes.untrained, batches, lanes.objective, lanes.rate, np.float32(max_steps)
        )
        held = _held_out_loss(
            keys[2], state.average, lanes.untrained, lanes.held_out_objective, rows.held_out, rows.weights
        )
        self.lanes = lanes._replace(state=state)
        return _Chunk(steps, state.average, losses, held)


def models_per_program() -> int:
    """How many models one program trains side by side."""
    return MODELS_PER_PROGRAM.get(jax.default_backend(), MODELS_ON_ACCELERATOR)


def _blocks(models: Sequence[Any], objectives: Sequence[Any], held_out_objectives: Sequence[Any], rates: Any) -> list:
    size = models_per_program()
    blocks = []
    for start in range(0, len(models), size):
        own = slice(start, start + size)
        stacked = [stack(trees[own]) for trees in (list(models), objectives, held_out_objectives)]
        trained, untrained = split_untrained(stacked[0])
        state = _initial_state(trained)
        lanes = jax.device_put(_Lanes(state, untrained, stacked[1], stacked[2], rates[own]))
        blocks.append(_Block(np.arange(len(models))[own], state.average, lanes))
    return blocks


class _Record:
    """Losses, best step and early stopping of each model."""

    def __init__(self, n_models: int, patience: int | None):
        self.to_the_end, self.patience = patience is None, np.inf if patience is None else patience
        self.best_loss, self.best_step = np.full(n_models, np.inf), np.zeros(n_models, int)
        self.stale, self.n_chunks = np.zeros(n_models, int), np.zeros(n_models, int)
        self.loss, self.held_out_loss = np.zeros((2, n_models), np.float32)
        self.history: list[tuple[int, np.ndarray, np.ndarray]] = []

    def active(self, block: _Block) -> np.ndarray:
        return self.stale[block.numbers] < self.patience

    def goes_on(self, block: _Block) -> bool:
        """True if some model of the block trains on after the current chunk, whatever its loss."""
        return bool((self.stale[block.numbers] + 1 < self.patience).any())

    def judge(self, block: _Block, chunk: _Chunk) -> None:
        """Wait for a chunk, record its losses and keep the weights that improved."""
        active, held, step = self.active(block), np.asarray(chunk.held_out_loss), chunk.steps.stop
        at, losses = block.numbers[active], np.asarray(chunk.losses)[active, : len(chunk.steps)]
        _check_finite(losses, held[active], at, chunk.steps)
        gain = self.best_loss[block.numbers] - held > MIN_IMPROVEMENT * np.maximum(np.abs(held), 1e-3)
        better = active & (gain | self.to_the_end)
        if better.all():  # always so for a single model that improved: no program is needed
            block.best = chunk.average
        elif better.any():
            block.best = _keep(better, chunk.average, block.best)
        self.best_loss[block.numbers[better]], self.best_step[block.numbers[better]] = held[better], step
        self.stale[at] = np.where(better[active], 0, self.stale[at] + 1)
        self.n_chunks[at] += 1
        self.loss[at], self.held_out_loss[at] = losses.mean(axis=1), held[active]

    def close(self, step: int) -> None:
        """Record a chunk of all blocks; a stopped model repeats its last losses."""
        self.history.append((step, self.loss.copy(), self.held_out_loss.copy()))

    def trained(self, blocks: Sequence[_Block]) -> list[Trained]:
        steps, loss, held = (np.array(column) for column in zip(*self.history, strict=True))
        results = []
        for block in blocks:
            best = jax.tree.map(np.asarray, merge_untrained(block.best, block.lanes.untrained))
            for place, m in enumerate(block.numbers):
                n = self.n_chunks[m]
                model = unstack(best, place)
                results.append(Trained(model, loss[:n, m], held[:n, m], steps[:n], int(self.best_step[m])))
        return results


def _check_finite(losses: np.ndarray, held: np.ndarray, models: np.ndarray, steps: range) -> None:
    """Raise DivergedError for the first model with a non-finite loss (models, steps) or held-out loss (models,)."""
    too_large = "after updates that were too large; lower the learning rate, standardize the columns or add noise"
    for model, own, own_held in zip(models, losses, held, strict=True):
        bad = np.flatnonzero(~np.isfinite(own))
        if len(bad):
            step = steps[bad[0]]
            first = "before the first update: the field or the objective is not finite at the rows; check its formula"
            message = f"Expected a finite loss, got {own[bad[0]]} at step {step}, {too_large if step else first}."
            raise DivergedError(message, int(model))
        if not np.isfinite(own_held):
            raise DivergedError(
                f"Expected a finite held-out loss, got {own_held} at step {steps.stop}, where the objective is not "
                f"finite at the held-out rows or {too_large}.",
                int(model),
            )


def train_many(
    key: jax.Array,
    models: Sequence[Any],
    tables: Sequence[Any],
    objective: Any,
    *,
    learning_rate: float | Sequence[float] = 3e-3,
    batch_size: int = 128,
    max_steps: int = 3000,
    chunk_steps: int = CHUNK_STEPS,
    validation_fraction: float = 0.2,
    splits: Sequence[Split] | None = None,
    held_out_objective: Any = None,
    held_out_points: int = HELD_OUT_POINTS,
    patience: int | None = 10,
    callback: Callable[[Progress], bool | None] | None = None,
) -> list[Trained]:
    """Train models of one structure, such as those of several classes, folds, seeds or learning rates.

    A table is an array (n, d), or a pytree whose first leaf is such an array and whose other leaves (labels) have
    length n. A single table or objective is shared by all models. With an array of keys, one per model, each model
    draws the same numbers as if trained alone. `patience` is the number of chunks of `chunk_steps` without a better
    held-out loss before a model stops; with None it trains to the end and the last average is returned. Training ends
    when `callback` returns a true value. `splits` replace the random split by `validation_fraction`, and
    `held_out_objective` replaces the objective on held-out rows, of which `held_out_points` are taken, with repetition
    where there are fewer.
    """
    _check_settings(learning_rate, batch_size, max_steps, validation_fraction, patience)
    if not jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):  # a key of jax.random.PRNGKey
        key = jax.random.wrap_key_data(key)
    _check_counts(key, models, tables, objective, held_out_objective)
    n_models, n_chunks = len(models), -(-max_steps // chunk_steps)
    source = Source(key, tables, splits, validation_fraction, n_models, held_out_points)
    objectives, held_out_objectives = (
        each if isinstance(each, list) else [each] * n_models for each in (objective, held_out_objective or objective)
    )
    rates = np.broadcast_to(np.asarray(learning_rate, np.float32), (n_models,))
    blocks, record = _blocks(models, objectives, held_out_objectives, rates), _Record(n_models, patience)

    def launch(block: _Block, chunk: int) -> _Chunk:
        keys = _chunk_keys(key, chunk, block.numbers, n_models=n_models)
        steps = range(chunk * chunk_steps, min((chunk + 1) * chunk_steps, max_steps))
        return block.launch(keys, source.rows_for(block.numbers), batch_size, chunk_steps, steps, max_steps)

    under_way = {block: launch(block, 0) for block in blocks}
    for chunk in range(n_chunks):
        # Chunks that follow in any case are launched before the losses are fetched, to keep the device busy.
        last = chunk + 1 == n_chunks
        ahead = {block: launch(block, chunk + 1) for block in under_way if record.goes_on(block) and not last}
        for block, asked in under_way.items():
            record.judge(block, asked)
        record.close(min((chunk + 1) * chunk_steps, max_steps))
        step, loss, held_loss = record.history[-1]
        stop = callback(Progress(step, max_steps, loss, held_loss)) if callback else None
        going = [block for block in under_way if record.active(block).any()]
        if stop or last or not going:
            break
        under_way = {block: ahead.get(block) or launch(block, chunk + 1) for block in going}
    return record.trained(blocks)


def train(key: jax.Array, model: Any, table: Any, objective: Any, *, held_out: Any = None, **options: Any) -> Trained:
    """Train one model; see `train_many` for the options. `held_out` is a table for early stopping."""
    splits = None
    if held_out is not None:
        table, split = joined(table, held_out)
        splits = [split]
    return train_many(key, [model], [table], objective, splits=splits, **options)[0]
