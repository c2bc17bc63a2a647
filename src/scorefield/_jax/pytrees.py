"""Pytree dataclasses, stacked models, and the compiled programs of this library, bounded in number."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

T = TypeVar("T")
_KNOWN: dict[str, type] = {}  # pytree classes by name: the only ones that `from_plain` will make
_JITTED: list[Any] = []  # every function that `compiled` made
MAX_PROGRAMS = (
    128  # of all these functions together; a program takes about 5 MB, a fit of a new shape makes about eight
)


def compiled(function: Callable, **options: Any) -> Callable:
    """`jax.jit` whose programs count towards MAX_PROGRAMS; beyond that, all programs of this library are forgotten.

    Programs spend their time in matrix products, which are calls into a library: optimization level 1 compiles them in
    half the time, and runs them as fast.
    """
    jitted = jax.jit(function, compiler_options={"xla_backend_optimization_level": 1}, **options)
    _JITTED.append(jitted)

    @functools.wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        if cached_programs() > MAX_PROGRAMS:
            for each in _JITTED:
                each.clear_cache()
        return jitted(*args, **kwargs)

    bounded._cache_size = jitted._cache_size  # type: ignore[attr-defined]
    return bounded


def cached_programs() -> int:
    """Programs that jax holds for the compiled functions of this library."""
    return sum(each._cache_size() for each in _JITTED)


def leaf(values: Any) -> Any:
    """A leaf of a model: a single-precision numpy array. Made by jax, it would compile a program for every shape."""
    return np.asarray(values, np.float32)


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


@pytree
class Method:
    """A bound method of a model as a pytree, so that `map_rows(Method(model, "potential"), rows)` compiles once."""

    model: Any
    name: str = static()

    def __call__(self, x: jax.Array) -> Any:
        return getattr(self.model, self.name)(x)
