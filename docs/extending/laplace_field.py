"""Products of Laplace densities."""

import jax
import jax.numpy as jnp

from scorefield._jax.pytrees import leaf, pytree
from scorefield.fields.base import Field


@pytree
class Laplace(Field):
    """Independent columns with density exp(-|x - centre| / width) / (2 width)."""

    centre: jax.Array
    width: jax.Array
    conservative = True
    normalized = True

    def potential(self, x):
        return -jnp.sum(jnp.abs(x - self.centre) / self.width + jnp.log(2 * self.width))

    def __call__(self, x):
        return -jnp.sign(x - self.centre) / self.width


def fit_laplace(rows):
    """By maximum likelihood: medians, and mean distances to them."""
    centre = jnp.median(jnp.asarray(rows), axis=0)
    return Laplace(leaf(centre), leaf(jnp.abs(rows - centre).mean(axis=0)))
