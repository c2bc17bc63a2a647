"""Pytree dataclasses, stacked models, and padding of rows to a few sizes so that programs compile once."""

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

T = TypeVar("T")
_KNOWN: dict[str, type] = {}  # pytree classes by name: the only ones that `from_plain` will make
# Points of a field per compiled call. A processor's cache holds 4096 x 128 units x 4 bytes = 2 MiB a layer; an
# accelerator wants enough rows to fill it, and 2^20 of them take half a gigabyte a layer.
POINTS_PER_CALL = {"cpu": 1 << 12}
POINTS_ON_ACCELERATOR = 1 << 20
# The programs of this library spend their time in matrix products, which are calls into a library: this level compiles
# them in half the time, and runs them as fast.
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
CALLS_IN_FLIGHT = 3  # results are fetched while the next blocks are computed


def static(*, default: Any = dataclasses.MISSING) -> Any:
    """A field that is configuration: part of the tree's structure, not one of its arrays."""
    return dataclasses.field(default=default, metadata={"static": True})


@dataclass_transform(frozen_default=True, field_specifiers=(static,))
def pytree(cls: type[T]) -> type[T]:
    """Make a frozen dataclass whose non-static fields are leaves that jax can trace, map and stack."""
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    leaves = tuple(f.name for f in fields if not f.metadata.get("static"))
    configuration = tuple(f.name for f in fields if f.metadata.get("static"))

    # Not `jax.tree_util.register_dataclass`: jaxlib 0.10 calls the structures of two dataclasses of one shape equal, so
    # that a compiled program of one class could be run for another.
    def flatten(tree):
        return tuple(getattr(tree, name) for name in leaves), tuple(getattr(tree, name) for name in configuration)

    def flatten_with_keys(tree):
        children, settings = flatten(tree)
        return tuple(zip(map(jax.tree_util.GetAttrKey, leaves), children, strict=True)), settings

    def unflatten(settings, children):
        return cls(**dict(zip(leaves, children, strict=True)), **dict(zip(configuration, settings, strict=True)))

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    _KNOWN[cls.__name__] = cls
    return cls


def to_plain(tree: Any) -> Any:
    """A model as nested dicts and lists of numpy arrays, strings and numbers: what a fitted estimator stores."""
    if dataclasses.is_dataclass(tree):
        parts = {f.name: to_plain(getattr(tree, f.name)) for f in dataclasses.fields(tree)}
        return {"type": type(tree).__name__, **parts}
    if isinstance(tree, list | tuple):
        return [to_plain(part) for part in tree]
    return tree if tree is None or isinstance(tree, str | int | float) else np.asarray(tree)


def from_plain(plain: Any) -> Any:
    """The model behind `to_plain`. Only known pytree classes are made, so a model file cannot name any other."""
    if isinstance(plain, list | tuple):
        return tuple(from_plain(part) for part in plain)
    if not isinstance(plain, dict):
        return plain
    cls = _KNOWN.get(plain.get("type", ""))
    names = {f.name for f in dataclasses.fields(cls)} if cls else set()
    if cls is None or names != set(plain) - {"type"}:
        raise ValueError(
            f"Expected a stored model, got keys {sorted(plain)}; the file was edited or is of another version."
        )
    return cls(**{name: from_plain(part) for name, part in plain.items() if name != "type"})


def host_rng(key: jax.Array, *path: int) -> np.random.Generator:
    """A numpy generator that follows from a key: draws outside compiled programs cost no compilation per shape."""
    return np.random.default_rng([*np.asarray(jax.random.key_data(key)).ravel().tolist(), *path])


def stack(trees: Sequence[T]) -> T:
    """Models of one structure as a single model whose leaves have a leading axis."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def unstack(tree: T, index: int) -> T:
    """The model at one place of a stack."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


@compiled
def take(tree: T, places: Any) -> T:
    """Some models of a stack, as a stack."""
    return jax.tree.map(lambda leaf: leaf[places], tree)


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
    return max(POINTS_PER_CALL.get(jax.default_backend(), POINTS_ON_ACCELERATOR) // points, 64)


def in_units(rows: np.ndarray, mean: Any, scale: Any) -> np.ndarray:
    """Rows less mean over scale, in single precision but subtracted in double; no large temporary is made."""
    result = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), 1 << 16):
        block = slice(start, start + (1 << 16))
        result[block] = (rows[block] - mean) / scale
    return result


def map_rows(function: Callable, rows: Any, *, points: int = 1, units: tuple[Any, Any] | None = None) -> Any:
    """Apply a one-point pytree `function` to every row, in padded blocks: memory and compilations are bounded.

    `points` is the number of points at which the function evaluates a field for one row; `units` (mean, scale) is
    taken off block by block.
    """
    rows = np.asarray(rows)
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
        block = block if units is None else in_units(block, *units)
        waiting.append((start, used, _apply(function, block if used == size else pad_rows(block, size))))
        if len(waiting) >= CALLS_IN_FLIGHT:
            fetch()
    while waiting:
        fetch()
    return result


@pytree
class Method:
    """A bound method of a model as a pytree, so that `map_rows(Method(model, "potential"), rows)` compiles once."""

    model: Any
    name: str = static()

    def __call__(self, x: jax.Array) -> Any:
        return getattr(self.model, self.name)(x)


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
