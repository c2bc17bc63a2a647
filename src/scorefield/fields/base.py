"""A score field s(x) = grad log p(x): a map from one point to its score (Eq:score_function_definition_1)."""

from typing import ClassVar

import jax
import numpy as np

from scorefield.fields.divergence import forward_divergence

LOG_2PI = float(np.log(2 * np.pi))


class Field:
    """A map from one point (d,) to its score (d,). Subclasses write `__call__`; batches are the caller's vmap.

    A field with a potential, s = grad potential, is conservative: log-density differences need no integral.
    """

    conservative: ClassVar[bool] = False
    normalized: ClassVar[bool] = False  # the potential is a log density, not merely one up to a constant
    points: ClassVar[int] = 1  # evaluations of a model behind one call; memory is bounded by their number
    unit_inputs: ClassVar[bool] = False  # its network sees centred values of unit scale: three digits serve them

    def __call__(self, x: jax.Array) -> jax.Array:
        raise NotImplementedError

    def potential(self, x: jax.Array) -> jax.Array:
        raise ValueError(f"{type(self).__name__} has no potential; integrate the field along a line instead.")

    def value_and_divergence(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return forward_divergence(self, x)
