"""Line integrals of score fields (log-density differences), their dependence on the path, and smoothed fields.

Eq:reconstruct_pdf_from_scores, Eq:reconstruct_pdf_from_scores_Taylor, Algorithm 1 and Eq:pdf_ratio_func_MC.
"""

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import leaf, pytree, static
from scorefield._jax.random import Stream, host_rng
from scorefield.fields.base import Field

N_NODES = 32  # exact to degree 63, which suffices for networks along one segment
KERNELS = ("uniform", "epanechnikov")
RULES = ("gauss-legendre", "simpson", "trapezoid", "monte-carlo", "taylor")


def quadrature(rule: str, n_nodes: int, key: jax.Array | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1].

    `monte-carlo` draws one node from `key` in each of `n_nodes` equal intervals; `taylor` is the paper's first-order
    expansion on each of them. In the order of RULES, errors are O(n^-2n) for analytic fields, O(n^-4), O(n^-2),
    O(n^-3/2) and O(n^-1).
    """
    if rule not in RULES:
        raise ValueError(f"Expected an integration rule of {RULES}, got {rule!r}.")
    if (
        n_nodes < 1
        or (n_nodes < 2 and rule == "trapezoid")
        or (rule == "simpson" and (n_nodes < 3 or n_nodes % 2 == 0))
    ):
        raise ValueError(
            f"Expected n_nodes >= 1 (>= 2 for trapezoid, odd and >= 3 for simpson), got {n_nodes} for {rule!r}."
        )
    if rule == "gauss-legendre":
        nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
        return 0.5 * (nodes + 1), 0.5 * weights
    if rule == "monte-carlo":
        if key is None:
            raise ValueError("Expected a key for rule 'monte-carlo', got None.")
        jitter = host_rng(key, Stream.MONTE_CARLO_NODES).random(n_nodes)
        return (np.arange(n_nodes) + jitter) / n_nodes, np.full(n_nodes, 1 / n_nodes)
    if rule == "taylor":
        return np.arange(n_nodes) / n_nodes, np.full(n_nodes, 1 / n_nodes)
    weights = np.ones(n_nodes)
    if rule == "simpson":
        weights[1:-1:2], weights[2:-1:2] = 4, 2
    else:
        weights[1:-1] = 2
    return np.linspace(0, 1, n_nodes), weights / weights.sum()


@pytree
class LineIntegral:
    """x -> integral of field . dl from `origin` through the `via` points (k, d) to x: log p(x) - log p(origin)."""

    field: Field
    origin: jax.Array
    nodes: jax.Array
    weights: jax.Array
    via: jax.Array  # (k, d), k = 0 for the straight line
    random: bool = static(default=False)  # nodes are drawn anew in their intervals for each row

    def _nodes(self, x: jax.Array) -> jax.Array:
        """The nodes for a row. Random ones follow from its bits, so that rows have independent errors."""
        if not self.random:
            return self.nodes
        bits = jax.lax.bitcast_convert_type(x.astype(jnp.float32), jnp.uint32)
        odd = 2 * jnp.arange(x.shape[-1], dtype=jnp.uint32) + 1
        key = jax.random.fold_in(jax.random.key(0), jnp.sum(bits * (odd * jnp.uint32(2654435761)), dtype=jnp.uint32))
        shift = jax.random.uniform(key, self.nodes.shape)  # turns each node within its interval, as a uniform draw
        n = len(self.nodes)
        return (jnp.arange(n) + (self.nodes * n + shift) % 1) / n

    def __call__(self, x: jax.Array) -> jax.Array:
        corners = jnp.concatenate([self.origin[None], self.via, x[None]])
        steps = corners[1:] - corners[:-1]
        points = corners[:-1, None] + self._nodes(x)[:, None] * steps[:, None]  # (segments, nodes, d)
        scores = jax.vmap(jax.vmap(self.field))(points)
        return jnp.einsum("snd,sd,n->", scores, steps, self.weights)


def line_integral(
    field: Field,
    origin: object,
    *,
    via: object = None,
    rule: str = "gauss-legendre",
    n_nodes: int | None = None,
    key: jax.Array | None = None,
) -> LineIntegral:
    """A `LineIntegral` with the given rule on each segment and N_NODES nodes by default (one more for Simpson)."""
    start = leaf(origin)
    if start.ndim != 1:
        raise ValueError(f"Expected origin of shape (d,), got {start.shape}.")
    corners = leaf([] if via is None else via).reshape(-1, start.shape[0])
    nodes, weights = quadrature(rule, n_nodes or (N_NODES + (rule == "simpson")), key)
    return LineIntegral(field, start, leaf(nodes), leaf(weights), corners, rule == "monte-carlo")


def path_gap(field: Field, origin: object, rows: object, *, n_nodes: int = 64) -> np.ndarray:
    """Absolute difference in nats, per row, of integrals along a straight line and along a `BentPath`.

    Zero for a conservative field; for an unconstrained network it measures how the density depends on the path.
    """
    table = np.asarray(rows, dtype=np.float32)
    straight = line_integral(field, origin, n_nodes=n_nodes)
    bent, points = BentPath(straight), n_nodes * field.points
    return np.abs(map_rows(straight, table, points=points) - map_rows(bent, table, points=2 * points))


@pytree
class BentPath:
    """The same integral with a corner: first along the first half of the columns, then along the others."""

    straight: LineIntegral

    def __call__(self, x: jax.Array) -> jax.Array:
        line, half = self.straight, (x.shape[-1] + 1) // 2
        corner = jnp.concatenate([x[:half], line.origin[half:]])
        return LineIntegral(line.field, line.origin, line.nodes, line.weights, corner[None], line.random)(x)


@pytree
class SmoothedField(Field):
    """Mean of a field over fixed offsets; its potential is the mean of the field's potentials."""

    field: Field
    offsets: jax.Array  # (k, d)

    @property
    def conservative(self) -> bool:  # type: ignore[override]
        return self.field.conservative

    @property
    def points(self) -> int:  # type: ignore[override]
        return len(self.offsets) * self.field.points

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.mean(jax.vmap(self.field)(x + self.offsets), axis=0)

    def potential(self, x: jax.Array) -> jax.Array:
        return jnp.mean(jax.vmap(self.field.potential)(x + self.offsets))


def smooth(
    key: jax.Array, field: Field, d: int, radius: float, *, kernel: str = "uniform", n: int = 64
) -> SmoothedField:
    """Average a field over a ball of `radius` with equal weights or Epanechnikov's 1 - (r / radius)^2.

    Offsets are drawn from the kernel itself, so that importance sampling leaves them equal weights. They come in
    opposite pairs, so that linear fields are unchanged.
    """
    if not radius > 0 or n < 2:
        raise ValueError(f"Expected radius > 0 and n >= 2, got {radius} and {n}.")
    if kernel not in KERNELS:
        raise ValueError(f"Expected a kernel of {KERNELS}, got {kernel!r}.")
    rng = host_rng(key, Stream.SMOOTHING_OFFSETS)
    directions = rng.normal(size=(n // 2, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    # Squared radii in the unit ball, with densities proportional to v^(d/2 - 1) and v^(d/2 - 1) (1 - v).
    half = directions * np.sqrt(rng.beta(d / 2, 1 if kernel == "uniform" else 2, (n // 2, 1)))
    return SmoothedField(field, leaf(radius * np.concatenate([half, -half])))
