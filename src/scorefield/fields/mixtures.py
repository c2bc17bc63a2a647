"""Gaussian mixtures with exact log density, score and samples: truths of simulations, and models of few rows."""

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.pytrees import leaf, pytree
from scorefield.fields.base import Field
from scorefield.fields.gaussian import Gaussian, gaussian_from_covariance


@pytree
class GaussianMixture(Field):
    """sum_k weights_k N(means_k, covariances_k), with the parts as one `Gaussian` whose arrays have a first axis k."""

    weights: jax.Array
    parts: Gaussian
    conservative = True
    normalized = True

    @property
    def means(self) -> jax.Array:
        return self.parts.mean

    @property
    def covariances(self) -> jax.Array:
        return jnp.einsum("kij,kil->kjl", self.parts.color, self.parts.color)

    def _log_parts(self, x: jax.Array) -> jax.Array:
        return jnp.log(self.weights) + jax.vmap(lambda part: part.potential(x))(self.parts)

    def potential(self, x: jax.Array) -> jax.Array:
        return jax.scipy.special.logsumexp(self._log_parts(x))

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.softmax(self._log_parts(x)) @ jax.vmap(lambda part: part(x))(self.parts)

    def sample(self, key: jax.Array, n: int) -> jax.Array:
        """`n` independent rows (n, d)."""
        key_part, key_noise = jax.random.split(key)
        part = jax.random.choice(key_part, len(self.weights), (n,), p=self.weights)
        noise = jax.random.normal(key_noise, (n, self.means.shape[1]))
        return self.means[part] + jnp.einsum("nj,nji->ni", noise, jnp.asarray(self.parts.color)[part])

    def exact_rows(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """`sample` without a compilation."""
        weights = np.asarray(self.weights, float)
        part = rng.choice(len(weights), n, p=weights / weights.sum())
        noise = rng.normal(size=(n, self.means.shape[1]))
        return np.asarray(self.means)[part] + np.einsum("nj,nji->ni", noise, np.asarray(self.parts.color)[part])

    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Exact mean (d,) and covariance (d, d)."""
        mean = self.weights @ self.means
        centred = self.means - mean
        return mean, jnp.einsum("k,kij->ij", self.weights, self.covariances + centred[:, :, None] * centred[:, None])


def mixture(weights: object, means: object, covariances: object) -> GaussianMixture:
    """A `GaussianMixture` from arrays; weights are normalised."""
    w, m, c = (np.asarray(a, dtype=np.float64) for a in (weights, means, covariances))
    if m.ndim != 2 or w.shape != m.shape[:1] or c.shape != (*m.shape, m.shape[1]) or (w <= 0).any():
        raise ValueError(
            "Expected positive weights (k,), means (k, d) and covariances (k, d, d), "
            f"got shapes {w.shape}, {m.shape}, {c.shape}."
        )
    parts = [gaussian_from_covariance(mean, covariance) for mean, covariance in zip(m, c, strict=True)]
    return GaussianMixture(leaf(w / w.sum()), jax.tree.map(lambda *leaves: np.stack(leaves), *parts))


def random_mixture(key: jax.Array, d: int, n_components: int = 3) -> GaussianMixture:
    """A random mixture with centres about two standard deviations apart per column, for benchmarks."""
    key_w, key_m, key_c = jax.random.split(key, 3)
    weights = jax.random.uniform(key_w, (n_components,), minval=0.5, maxval=1.5)
    means = 2.0 * jax.random.normal(key_m, (n_components, d))
    factors = jax.random.normal(key_c, (n_components, d, d)) / np.sqrt(d)
    covariances = 0.3 * jnp.eye(d) + 0.7 * factors @ jnp.swapaxes(factors, 1, 2)
    return mixture(weights, means, covariances)
