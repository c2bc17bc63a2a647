"""Check tables of rows, standardize them, and map functions over them in padded blocks."""

from collections import deque
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from scorefield._jax.pytrees import compiled

# Points of a field per compiled call. On a CPU, 4096 points x 128 units x 4 bytes = 2 MiB per layer fit into the cache.
# An accelerator needs many points to be busy; 2^20 of them take half a gigabyte per layer.
POINTS_PER_CALL = {"cpu": 1 << 12}
POINTS_ON_ACCELERATOR = 1 << 20
# Standardised values are clipped to this magnitude before they reach a model. Log densities grow at most with its
# square, 1e32, which leaves single precision a factor of 1e6 for weights and precisions: a result may be -inf, not NaN.
FURTHEST = 1e16
CALLS_IN_FLIGHT = 3  # results are fetched while the next blocks are computed


def bucket(n: int, smallest: int = 256) -> int:
    """Padded size for `n` rows: the next power of two, so that few shapes are compiled and work at most doubles."""
    return max(smallest, 1 << (int(n) - 1).bit_length())


def pad_rows(rows: np.ndarray, size: int) -> np.ndarray:
    """Repeat the last row up to `size` rows; unlike zeros, a repeated row is always valid data."""
    return np.concatenate([rows, np.broadcast_to(rows[-1:], (size - len(rows), *rows.shape[1:]))])


@compiled
def _apply(function: Callable, rows: jax.Array) -> Any:
    return jax.vmap(function)(rows)


def rows_per_call(points: int = 1) -> int:
    """Rows per compiled call for a function that evaluates a field at `points` points per row."""
    budget = POINTS_PER_CALL.get(jax.default_backend(), POINTS_ON_ACCELERATOR)
    # At least 64 rows share the overhead of a call, unless that exceeds four times the budget.
    return max(budget // points, min(64, 4 * budget // points), 1)


def standardized(
    rows: np.ndarray, mean: Any, scale: Any, mix: np.ndarray | None = None, *, furthest: float = np.inf
) -> np.ndarray:
    """(rows - mean) / scale in single precision, with magnitudes clipped to `furthest`, times a matrix `mix` (d, d).

    Computed in double precision, in blocks to avoid a large temporary.
    """
    result = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), 1 << 16):
        block = slice(start, start + (1 << 16))
        with np.errstate(over="ignore"):  # infinities are clipped here or refused by `as_rows`
            z = ((rows[block] - mean) / scale).clip(-furthest, furthest)
            result[block] = z if mix is None else z @ mix
    return result


def map_rows(function: Callable, rows: Any, *, points: int = 1, standardize: tuple[Any, ...] | None = None) -> Any:
    """Apply a pytree `function` of one point to every row, in padded blocks that bound memory and compilations.

    `points` is the number of points at which the function evaluates a field per row. With `standardize`, a tuple
    (mean, scale) or (mean, scale, mix), rows are standardized first and clipped to FURTHEST.
    """
    rows = np.asarray(rows)
    if len(rows) == 0:
        dtype = jax.dtypes.canonicalize_dtype(rows.dtype) if standardize is None else np.float32
        shapes = jax.eval_shape(function, jax.ShapeDtypeStruct(rows.shape[1:], dtype))
        return jax.tree.map(lambda leaf: np.empty((0, *leaf.shape), leaf.dtype), shapes)
    size = min(rows_per_call(points), bucket(len(rows)))
    function = jax.device_put(function)  # once instead of per block
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
    with np.errstate(over="ignore"):  # overflow is reported below
        table = np.asarray(rows, dtype=np.float32)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"Expected {name} of shape (n, d) with d >= 1, got shape {table.shape}.")
    if len(table) < minimum:
        raise ValueError(f"Expected at least {minimum} {name}, got {len(table)}; collect more or use a simpler model.")
    if not np.isfinite(table).all():
        raise ValueError(f"Expected finite {name}, got NaN, infinity or values beyond float32; impute or rescale them.")
    return table
