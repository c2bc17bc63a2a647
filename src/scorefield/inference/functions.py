"""Functions of one point, combined: plus or times a constant, side by side, in the units of raw rows."""

from typing import Any

import jax
import jax.numpy as jnp

from scorefield._jax.pytrees import pytree


@pytree
class Plus:
    """x -> function(x) + constant."""

    function: Any
    constant: Any

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.function(x) + self.constant


@pytree
class Times:
    """x -> function(x) * factor."""

    function: Any
    factor: Any

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.function(x) * self.factor


@pytree
class OfRawRows:
    """A function of standardised points as a function of raw ones; see `_jax.batching.standardized`."""

    function: Any
    mean: Any
    scale: Any
    mix: Any = None

    def __call__(self, x: jax.Array) -> jax.Array:
        z = (x - self.mean) / self.scale
        return self.function(z if self.mix is None else z @ self.mix)


@pytree
class SideBySide:
    """x -> the values of several scalar functions (k,)."""

    functions: tuple[Any, ...]

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.stack([function(x) for function in self.functions])
