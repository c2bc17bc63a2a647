"""Convert models to nested dictionaries of arrays and plain values, and back."""

import dataclasses
from typing import Any, TypeVar

import numpy as np

from scorefield._jax.pytrees import _KNOWN

T = TypeVar("T")


def to_plain(tree: Any) -> Any:
    """A model as nested dicts and lists of numpy arrays, strings and numbers, for storage in fitted estimators."""
    if dataclasses.is_dataclass(tree):
        fields = {f.name: to_plain(getattr(tree, f.name)) for f in dataclasses.fields(tree)}
        return {"type": type(tree).__name__, **fields}
    if isinstance(tree, list | tuple):
        return [to_plain(child) for child in tree]
    return tree if tree is None or isinstance(tree, str | int | float) else np.asarray(tree)


def from_plain(plain: Any) -> Any:
    """Inverse of `to_plain`. Builds known pytree classes only, so a model file cannot name any other."""
    if isinstance(plain, list | tuple):
        return tuple(from_plain(child) for child in plain)
    if not isinstance(plain, dict):
        return plain
    cls = _KNOWN.get(plain.get("type", ""))
    names = {f.name for f in dataclasses.fields(cls)} if cls else set()
    if cls is None or names != set(plain) - {"type"}:
        raise ValueError(
            f"Expected a stored model, got keys {sorted(plain)}; the file was edited or written by another version."
        )
    return cls(**{name: from_plain(child) for name, child in plain.items() if name != "type"})


def stored_by_public_name(cls: type[T]) -> type[T]:
    """Pickle a public class as `scorefield.Name`, so that pickles survive a move of its module."""
    cls.__module__ = "scorefield"
    return cls
