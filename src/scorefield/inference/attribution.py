"""Contributions of single inputs to the value of a function, by line integrals of its gradient.

The line integral that recovers log densities from a score field (Eq:reconstruct_pdf_from_scores) recovers log odds from
the field of a posterior, and each coordinate's part of it says what that coordinate contributes (Sundararajan, Taly &
Yan 2017).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import pytree
from scorefield.inference.line_integrals import quadrature

NODES = (16, 64, 256)  # on each line; more where fewer do not sum up
TOLERANCE = 1e-3  # nats by which contributions may miss the difference that they explain


@pytree
class PathContributions:
    """x -> what each coordinate contributes to function(x) less the mean of function(baselines): (d,)."""

    function: Any
    baselines: Any  # (k, d)
    nodes: Any
    weights: Any

    def __call__(self, x: jax.Array) -> jax.Array:
        def from_baseline(start: jax.Array) -> jax.Array:
            points = start + self.nodes[:, None] * (x - start)
            return (x - start) * (self.weights @ jax.vmap(jax.grad(self.function))(points))

        return jnp.mean(jax.lax.map(from_baseline, self.baselines), axis=0)


def contributions(function: Any, rows: np.ndarray, baselines: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Contributions (n, d) to a scalar pytree function, its values (n,), and its mean value at the baselines.

    Averaged over lines from all baselines. They sum to the difference of the values up to TOLERANCE where the finest
    rule reaches it.
    """
    values, start = map_rows(function, rows), float(np.mean(map_rows(function, baselines), dtype=np.float64))
    found = np.zeros(rows.shape)
    wanting = np.arange(len(rows))
    for n_nodes in NODES:
        nodes, weights = (part.astype(rows.dtype) for part in quadrature("gauss-legendre", n_nodes))
        paths = PathContributions(function, baselines, nodes, weights)
        found[wanting] = map_rows(paths, rows[wanting], points=3 * n_nodes)
        missed = np.abs(found[wanting].sum(axis=1) - (values[wanting] - start))
        wanting = wanting[missed > TOLERANCE * np.maximum(1.0, np.abs(values[wanting] - start))]
        if len(wanting) == 0:
            break
    return found, values.astype(np.float64), start
