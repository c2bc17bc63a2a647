"""Pytree dataclasses, stacked models, and jit with a bounded number of programs."""

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

T = TypeVar("T")
_KNOWN: dict[str, type] = {}  # pytree classes by name; `from_plain` builds no others
_JITTED: list[Any] = []  # jitted functions made by `compiled`
# Compile time is most of a first fit. A low level of optimization cuts it without a loss of speed. So does the older
# code generator of fusions, at a loss of a quarter of the speed: training steps, which run most, do without it.
COMPILER_OPTIONS = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
OPTIONS_OF_LONG_RUNS = {"xla_backend_optimization_level": 1}
MAX_PROGRAMS = 128  # over all jitted functions; a program takes about 5 MB, and a fit with new shapes compiles about 8


def compiled(function: Callable, *, runs_long: bool = False, loops: bool = False, **options: Any) -> Callable:
    """`jax.jit` with a bound on compiled programs: beyond MAX_PROGRAMS the caches of all such functions are cleared.

    A function that `runs_long` is compiled for speed, others to be compiled soon. These follow XLA_FLAGS where it sets
    one of their options, unless they are `loops` of many steps, which take three times as long at the lowest level.
    """
    chosen = dict(OPTIONS_OF_LONG_RUNS if runs_long else COMPILER_OPTIONS)
    if not (runs_long or loops):
        flags = os.environ.get("XLA_FLAGS", "")  # options of a program override them
        chosen = {name: value for name, value in chosen.items() if name not in flags}
    jitted = _jitted(function, chosen, options)

    @functools.wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        nonlocal jitted
        if cached_programs() > MAX_PROGRAMS:
            for each in _JITTED:
                each.clear_cache()
        try:
            return jitted(*args, **kwargs)
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" not in str(error):
                raise
            jitted = _jitted(function, {}, options)  # by a later compiler, which lacks one
            return jitted(*args, **kwargs)

    bounded._cache_size = lambda: jitted._cache_size()  # type: ignore[attr-defined]
    return bounded


def _jitted(function: Callable, compiler_options: dict[str, Any], options: dict[str, Any]) -> Any:
    jitted = jax.jit(function, compiler_options=compiler_options or None, **options)
    _JITTED.append(jitted)
    return jitted


def cached_programs() -> int:
    """Number of programs cached for all functions made by `compiled`."""
    return sum(each._cache_size() for each in _JITTED)


def leaf(values: Any) -> Any:
    """Model parameters as a float32 numpy array; `jnp.asarray` would compile a small program for every new shape."""
    return np.asarray(values, np.float32)


def static(*, default: Any = dataclasses.MISSING) -> Any:
    """A dataclass field for configuration: stored in the tree's structure instead of its leaves."""
    return dataclasses.field(default=default, metadata={"static": True})


def untrained(*, default: Any = dataclasses.MISSING) -> Any:
    """A dataclass field for what training leaves as it is, such as a base density: see `split_untrained`."""
    return dataclasses.field(default=default, metadata={"untrained": True})


@dataclass_transform(frozen_default=True, field_specifiers=(static, untrained))
def pytree(cls: type[T]) -> type[T]:
    """Make a frozen dataclass whose non-static fields are pytree children."""
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    leaves = tuple(f.name for f in fields if not f.metadata.get("static"))
    configuration = tuple(f.name for f in fields if f.metadata.get("static"))

    # `jax.tree_util.register_dataclass` is not used: in jaxlib 0.10 the structures of two dataclasses with the same
    # fields compare equal, so a program compiled for one class could run for the other.
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


def split_untrained(tree: Any) -> tuple[Any, Any]:
    """Two trees like `tree`, of the trained leaves and of the untrained ones, each with None for those of the other."""
    return _part(tree, of_untrained=False), _part(tree, of_untrained=True)


def _part(node: Any, *, of_untrained: bool) -> Any:
    """The untrained leaves of a tree, or the others, with None in the place of the rest."""
    if not _is_known(node):

        def part(child: Any) -> Any:
            return _part(child, of_untrained=of_untrained) if _is_known(child) else (None if of_untrained else child)

        return jax.tree.map(part, node, is_leaf=_is_known)
    changes = {}
    for field in dataclasses.fields(node):
        child = getattr(node, field.name)
        if field.metadata.get("untrained"):
            changes[field.name] = child if of_untrained else jax.tree.map(lambda _: None, child)
        elif not field.metadata.get("static"):
            changes[field.name] = _part(child, of_untrained=of_untrained)
    return dataclasses.replace(node, **changes)


def _is_known(node: Any) -> bool:
    return _KNOWN.get(type(node).__name__) is type(node)


def merge_untrained(trained: T, fixed: T) -> T:
    """The tree that `split_untrained` took apart."""
    return jax.tree.map(lambda a, b: b if a is None else a, trained, fixed, is_leaf=lambda node: node is None)


def stack(trees: Sequence[T]) -> T:
    """Stack models of one structure into a single model whose leaves have a leading axis."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def unstack(tree: T, index: int) -> T:
    """The model at `index` of a stack."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


@compiled
def take(tree: T, places: Any) -> T:
    """A stack of the models at `places` of a stack."""
    return jax.tree.map(lambda leaf: leaf[places], tree)


@pytree
class Method:
    """A bound method as a pytree, so that `map_rows(Method(model, "potential"), rows)` compiles once per structure."""

    model: Any
    name: str = static()

    def __call__(self, *points: jax.Array) -> Any:
        return getattr(self.model, self.name)(*points)
