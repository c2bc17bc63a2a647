"""Base class of score fields s(x) = grad log p(x) (Eq:score_function_definition_1)."""

from typing import ClassVar

import jax
import numpy as np

from scorefield._jax.pytrees import pytree
from scorefield.fields.divergence import forward_divergence

LOG_2PI = float(np.log(2 * np.pi))


class Field:
    """A map from one point (d,) to its score (d,). Subclasses implement `__call__`; callers vmap it.

    A conservative field is the gradient of its potential, so that log-density differences need no line integral.
    """

    conservative: ClassVar[bool] = False
    normalized: ClassVar[bool] = False  # the potential is a log density including its constant
    points: ClassVar[int] = 1  # model evaluations per call, for bounds on memory
    unit_inputs: ClassVar[bool] = False  # the network's inputs are standardized, so that half precision suffices

    def __call__(self, x: jax.Array) -> jax.Array:
        raise NotImplementedError

    def potential(self, x: jax.Array) -> jax.Array:
        raise ValueError(f"{type(self).__name__} has no potential; integrate the field along a line instead.")

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return forward_divergence(self, x)


@pytree
class Tempered(Field):
    """The field of p^(1/temperature)."""

    field: Field
    temperature: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.field(x) / self.temperature

    def potential(self, x: jax.Array) -> jax.Array:
        return self.field.potential(x) / self.temperature
