"""Validated tables of rows, padded to a few sizes so that programs compile once, and mapped block by block."""

from collections import deque
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from scorefield._jax.pytrees import compiled

# Points of a field per compiled call. A processor's cache holds 4096 x 128 units x 4 bytes = 2 MiB a layer; an
# accelerator wants enough rows to fill it, and 2^20 of them take half a gigabyte a layer.
POINTS_PER_CALL = {"cpu": 1 << 12}
POINTS_ON_ACCELERATOR = 1 << 20
# Standardised values are clipped to this magnitude before they reach a model. Log densities grow at most with its
# square, 1e32, which leaves single precision a factor of 1e6 for weights and precisions: a result may be -inf, not NaN.
FURTHEST = 1e16
CALLS_IN_FLIGHT = 3  # results are fetched while the next blocks are computed


def bucket(n: int, smallest: int = 256) -> int:
    """The power of two that `n` rows are padded to: at most twice the work, a few compilations in all."""
    return max(smallest, 1 << (int(n) - 1).bit_length())


def pad_rows(rows: np.ndarray, size: int) -> np.ndarray:
    """Repeat the last row until there are `size` of them (a repeat is finite wherever the data is)."""
    return np.concatenate([rows, np.broadcast_to(rows[-1:], (size - len(rows), *rows.shape[1:]))])


@compiled
def _apply(function: Callable, rows: jax.Array) -> Any:
    return jax.vmap(function)(rows)


def rows_per_call(points: int = 1) -> int:
    """Rows of one compiled call for a function that evaluates a field at `points` points a row."""
    budget = POINTS_PER_CALL.get(jax.default_backend(), POINTS_ON_ACCELERATOR)
    # A call has a cost of its own: 64 rows share it, unless they take more than four times the budget.
    return max(budget // points, min(64, 4 * budget // points), 1)


def standardized(
    rows: np.ndarray, mean: Any, scale: Any, mix: np.ndarray | None = None, *, furthest: float = np.inf
) -> np.ndarray:
    """Rows less mean over scale, in single precision but subtracted in double; no large temporary is made.

    Magnitudes are clipped to `furthest`. A matrix `mix` (d, d) multiplies the standardised rows.
    """
    result = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), 1 << 16):
        block = slice(start, start + (1 << 16))
        with np.errstate(over="ignore"):  # an infinity is clipped here, or refused by `as_rows`
            z = ((rows[block] - mean) / scale).clip(-furthest, furthest)
            result[block] = z if mix is None else z @ mix
    return result


def map_rows(function: Callable, rows: Any, *, points: int = 1, standardize: tuple[Any, ...] | None = None) -> Any:
    """Apply a one-point pytree `function` to every row, in padded blocks: memory and compilations are bounded.

    `points` is the number of points at which the function evaluates a field for one row. With `standardize`, a tuple
    (mean, scale) or (mean, scale, mix), every block is standardized first, with magnitudes clipped to FURTHEST.
    """
    rows = np.asarray(rows)
    if len(rows) == 0:
        dtype = jax.dtypes.canonicalize_dtype(rows.dtype) if standardize is None else np.float32
        shapes = jax.eval_shape(function, jax.ShapeDtypeStruct(rows.shape[1:], dtype))
        return jax.tree.map(lambda leaf: np.empty((0, *leaf.shape), leaf.dtype), shapes)
    size = min(rows_per_call(points), bucket(len(rows)))
    function = jax.device_put(function)  # once, not with every block
    waiting: deque = deque()
    result: Any = None

    def fetch() -> None:
        nonlocal result
        start, used, values = waiting.popleft()
        if result is None:
            result = jax.tree.map(lambda leaf: np.empty((len(rows), *leaf.shape[1:]), leaf.dtype), values)
        jax.tree.map(lambda whole, leaf: whole.__setitem__(slice(start, start + used), leaf[:used]), result,
                     jax.tree.map(np.asarray, values))  # fmt: skip

    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        used = len(block)
        block = block if standardize is None else standardized(block, *standardize, furthest=FURTHEST)
        waiting.append((start, used, _apply(function, block if used == size else pad_rows(block, size))))
        if len(waiting) >= CALLS_IN_FLIGHT:
            fetch()
    while waiting:
        fetch()
    return result


def as_rows(rows: Any, *, minimum: int = 2, name: str = "rows") -> np.ndarray:
    """Validate a finite float32 table (n, d) with at least `minimum` rows."""
    with np.errstate(over="ignore"):  # an overflow is reported below, with its remedy
        table = np.asarray(rows, dtype=np.float32)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"Expected {name} of shape (n, d) with d >= 1, got shape {table.shape}.")
    if len(table) < minimum:
        raise ValueError(f"Expected at least {minimum} {name}, got {len(table)}; collect more or use a simpler model.")
    if not np.isfinite(table).all():
        raise ValueError(f"Expected finite {name}, got NaN, infinity or values beyond float32; impute or rescale them.")
    return table
