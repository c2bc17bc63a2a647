"""Normalised log density of a noise-conditional field by its probability-flow equation.

Needs no anchor p(x0), as the paper's outlook suggests. Song et al. (2021), with sigma as time as in Karras et al.
"""

import jax
import jax.numpy as jnp

from scorefield._jax.pytrees import pytree, static
from scorefield.fields.base import LOG_2PI
from scorefield.fields.diffusion import DiffusionField


@pytree
class FlowLogDensity:
    """x -> log density of the data plus N(0, sigma_min^2 I), by Runge-Kutta steps over log sigma.

    Along dx/dlog(sigma) = -sigma^2 s the log density grows by sigma^2 div s. At sigma_max the density is a Gaussian
    with the data's mean and its covariance plus sigma_max^2 I. The result integrates to one for any field.
    """

    field: DiffusionField
    n_steps: int = static(default=32)

    def __call__(self, x: jax.Array) -> jax.Array:
        low, high = jnp.log(self.field.sigma_min), jnp.log(self.field.sigma_max)
        width = (high - low) / self.n_steps

        def velocity(position, log_sigma):
            score, divergence = self.field.at(jnp.exp(log_sigma)).value_and_divergence(position)
            return -jnp.exp(2 * log_sigma) * score, jnp.exp(2 * log_sigma) * divergence

        def step(i, carry):
            position, gain = carry
            t = low + i * width
            v1, g1 = velocity(position, t)
            v2, g2 = velocity(position + 0.5 * width * v1, t + 0.5 * width)
            v3, g3 = velocity(position + 0.5 * width * v2, t + 0.5 * width)
            v4, g4 = velocity(position + width * v3, t + width)
            return (
                position + width / 6 * (v1 + 2 * v2 + 2 * v3 + v4),
                gain + width / 6 * (g1 + 2 * g2 + 2 * g3 + g4),
            )

        end, gain = jax.lax.fori_loop(0, self.n_steps, step, (x, jnp.zeros(())))
        total = self.field.variances + self.field.sigma_max**2
        y = (end - self.field.mean) @ self.field.axes
        return -0.5 * jnp.sum(y**2 / total + jnp.log(total) + LOG_2PI) - gain
