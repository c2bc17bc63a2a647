"""Gaussian mixtures with exact log density, score and samples, for tests and simulations."""

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.pytrees import pytree
from scorefield.fields.base import LOG_2PI, Field


@pytree
class GaussianMixture(Field):
    """sum_k weights_k N(means_k, covariances_k), with weights (k,), means (k, d), covariances (k, d, d)."""

    weights: jax.Array
    means: jax.Array
    covariances: jax.Array
    conservative = True
    normalized = True

    def _log_components(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        factors = jnp.linalg.cholesky(self.covariances)
        solve = jax.vmap(lambda factor, b: jax.scipy.linalg.cho_solve((factor, True), b))
        scores = solve(factors, self.means - x)
        log_dets = 2 * jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)), axis=1)
        quadratic = jnp.sum((self.means - x) * scores, axis=1)
        logs = jnp.log(self.weights) - 0.5 * (quadratic + log_dets + x.shape[-1] * LOG_2PI)
        return logs, scores

    def potential(self, x: jax.Array) -> jax.Array:
        return jax.scipy.special.logsumexp(self._log_components(x)[0])

    def __call__(self, x: jax.Array) -> jax.Array:
        logs, scores = self._log_components(x)
        return jax.nn.softmax(logs) @ scores

    def sample(self, key: jax.Array, n: int) -> jax.Array:
        """`n` independent rows (n, d)."""
        key_component, key_noise = jax.random.split(key)
        component = jax.random.choice(key_component, len(self.weights), (n,), p=self.weights)
        noise = jax.random.normal(key_noise, (n, self.means.shape[1]))
        factors = jnp.linalg.cholesky(self.covariances)
        return self.means[component] + jnp.einsum("nij,nj->ni", factors[component], noise)

    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Exact mean (d,) and covariance (d, d)."""
        mean = self.weights @ self.means
        centred = self.means - mean
        return mean, jnp.einsum("k,kij->ij", self.weights, self.covariances + centred[:, :, None] * centred[:, None])


def mixture(weights: object, means: object, covariances: object) -> GaussianMixture:
    """A `GaussianMixture` from arrays; weights are normalised."""
    w, m, c = (np.asarray(a, dtype=np.float32) for a in (weights, means, covariances))
    if m.ndim != 2 or w.shape != m.shape[:1] or c.shape != (*m.shape, m.shape[1]) or (w <= 0).any():
        raise ValueError(
            "Expected positive weights (k,), means (k, d) and covariances (k, d, d), "
            f"got shapes {w.shape}, {m.shape}, {c.shape}."
        )
    return GaussianMixture(jnp.asarray(w / w.sum()), jnp.asarray(m), jnp.asarray(c))


def random_mixture(key: jax.Array, d: int, n_components: int = 3) -> GaussianMixture:
    """A random mixture with centres about two standard deviations apart per column, for benchmarks."""
    key_w, key_m, key_c = jax.random.split(key, 3)
    weights = jax.random.uniform(key_w, (n_components,), minval=0.5, maxval=1.5)
    means = 2.0 * jax.random.normal(key_m, (n_components, d))
    factors = jax.random.normal(key_c, (n_components, d, d)) / np.sqrt(d)
    covariances = 0.3 * jnp.eye(d) + 0.7 * factors @ jnp.swapaxes(factors, 1, 2)
    return mixture(weights, means, covariances)
