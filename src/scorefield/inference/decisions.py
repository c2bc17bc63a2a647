"""Decisions with costs and a soft margin, gradients of posteriors, and decision boundaries by Newton's method.

Eq:generative_classification_1, Eq:binary_decision_theory_1 to 3, Eq:Newton_Raphson and App. A of the paper.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from scorefield._jax.batching import as_rows
from scorefield._jax.pytrees import compiled, pytree

ScalarFunction = Callable[[jax.Array], jax.Array]
MAX_HALVINGS = 8  # of a Newton step that does not decrease the function's magnitude
NEAREST_TOLERANCE = 1e-2  # standard units that a nearest zero may be off along the boundary


def check_costs(costs: object, n_classes: int) -> np.ndarray:
    """Validate costs[true, predicted]: square, finite, and least on the diagonal of each row."""
    matrix = np.asarray(costs, dtype=float)
    if matrix.shape != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(f"Expected finite costs of shape {(n_classes, n_classes)}, got shape {matrix.shape}.")
    if (matrix < np.diag(matrix)[:, None]).any():
        raise ValueError("Expected costs[k, k] to be the least of row k (costs[true, predicted]); is it transposed?")
    return matrix


def expected_costs(log_proba: np.ndarray, *, costs: object = None, margin: float = 0.0) -> np.ndarray:
    """Expected cost of each prediction (n, classes), up to a factor per row; see `decide`."""
    logs = np.array(log_proba, dtype=float)
    if logs.ndim != 2:
        raise ValueError(f"Expected log posteriors of shape (n, classes), got {logs.shape}.")
    if not margin >= 0:
        raise ValueError(f"Expected margin >= 0, got {margin}.")
    logs[:, 1:] -= margin
    n_classes = logs.shape[1]
    matrix = 1.0 - np.eye(n_classes) if costs is None else check_costs(costs, n_classes)
    return np.exp(logs - logs.max(axis=1, keepdims=True)) @ matrix


def decide(log_proba: np.ndarray, *, costs: object = None, margin: float = 0.0) -> np.ndarray:
    """Class indices of least expected cost (n,) from log posteriors (n, classes).

    `margin`, the paper's gamma_0, is subtracted from the log posteriors of all classes but the first: for two classes
    without costs, 1 is predicted where log p(1|x) - log p(0|x) >= margin. Ties go to the later class.
    """
    risk = expected_costs(log_proba, costs=costs, margin=margin)
    return risk.shape[1] - 1 - np.argmin(risk[:, ::-1], axis=1)


@pytree
class LinearLogits:
    """x -> x coefficients + intercepts, for softmax and (with a first column of zeros) logistic regression."""

    coefficients: jax.Array  # (d, classes)
    intercepts: jax.Array  # (classes,)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.coefficients + self.intercepts


@pytree
class OneAgainstRest:
    """Log odds of one class against all others, of the softmax of logits."""

    logits: Any
    label: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        values = self.logits(x)
        others = jnp.where(jnp.arange(len(values)) == self.label, -jnp.inf, values)
        return values[self.label] - jax.scipy.special.logsumexp(others)


def log_softmax_gradient(logits: ScalarFunction, x: jax.Array, label: int | jax.Array) -> jax.Array:
    """grad_x log p(label|x) for the softmax of a jax function x -> logits (classes,)."""
    return jax.grad(lambda z: jax.nn.log_softmax(logits(z))[label])(x)


def softmax_gradient(logits: ScalarFunction, x: jax.Array, label: int | jax.Array) -> jax.Array:
    """grad_x p(label|x) for the softmax of a jax function x -> logits (classes,)."""
    return jax.grad(lambda z: jax.nn.softmax(logits(z))[label])(x)


class Boundary(NamedTuple):
    """Points (n, d), function values (n,), whether |value| <= tol (n,), and number of Newton steps (n,)."""

    points: np.ndarray
    residual: np.ndarray
    converged: np.ndarray
    n_iter: np.ndarray


@partial(compiled, static_argnames=("max_iter",))
def _newton(function, starts, tol, *, max_iter):
    def one_point(start):
        def improve(carry):
            x, value, gradient, i = carry
            step = value * gradient / jnp.maximum(gradient @ gradient, jnp.finfo(x.dtype).tiny)

            def worse(c):
                shrink, _ = c
                return (jnp.abs(function(x - shrink * step)) >= jnp.abs(value)) & (shrink > 2.0**-MAX_HALVINGS)

            shrink, _ = jax.lax.while_loop(worse, lambda c: (c[0] / 2, c[1]), (1.0, 0))
            new = x - shrink * step
            return (new, *jax.value_and_grad(function)(new), i + 1)

        def unfinished(carry):
            _, value, gradient, i = carry
            return (jnp.abs(value) > tol) & (i < max_iter) & jnp.all(jnp.isfinite(gradient)) & jnp.any(gradient != 0)

        x, value, _, i = jax.lax.while_loop(unfinished, improve, (start, *jax.value_and_grad(function)(start), 0))
        return x, value, i

    return jax.vmap(one_point)(starts)


def newton_zeros(function: ScalarFunction, starts: object, *, tol: float = 1e-6, max_iter: int = 50) -> Boundary:
    """Zeros of a pytree function of one point, by steps x <- x - g grad g / |grad g|^2, halved while |g| grows.

    This is the least-norm solution of the linearised equation; the paper's x - g / grad g divides by a vector.
    """
    if not tol > 0 or max_iter < 1:
        raise ValueError(f"Expected tol > 0 and max_iter >= 1, got {tol} and {max_iter}.")
    as_rows(starts, minimum=1, name="starts")
    points = np.asarray(starts, dtype=jax.dtypes.canonicalize_dtype(float))
    x, value, n_iter = (np.asarray(a) for a in _newton(function, points, tol, max_iter=max_iter))
    converged = (np.abs(value) <= tol) & np.isfinite(x).all(axis=1)
    return Boundary(x, value, converged, n_iter)


class NearestZeros(NamedTuple):
    """Shifts (n, d) to zeros, their lengths (n,), and whether each is a zero that is nearest to its row (n,)."""

    shifts: np.ndarray
    distances: np.ndarray
    converged: np.ndarray


@partial(compiled, static_argnames=("d", "max_iter"))
def _nearest(function, rows, tol, *, d, max_iter):
    def one_row(row):
        def value_and_slope(shift):
            return jax.value_and_grad(function)(shift, row)

        def target(shift, value, slope):
            """The nearest zero of the function's tangent plane."""
            return (slope @ shift - value) * slope / jnp.maximum(slope @ slope, jnp.finfo(slope.dtype).tiny)

        def improve(carry):
            shift, value, slope, i = carry
            step = target(shift, value, slope) - shift
            # The penalty for which a step to the target is downhill (Zhang & Der Kiureghian 1995).
            length = jnp.sqrt(jnp.maximum(slope @ slope, jnp.finfo(slope.dtype).tiny))
            penalty = 2 * jnp.sqrt(shift @ shift) / length + 10.0

            def merit(z, value):
                return 0.5 * z @ z + penalty * jnp.abs(value)

            def worse(shrink):
                new = shift + shrink * step
                return (merit(new, function(new, row)) >= merit(shift, value)) & (shrink > 2.0**-MAX_HALVINGS)

            shrink = jax.lax.while_loop(worse, lambda shrink: shrink / 2, jnp.ones((), shift.dtype))
            new = shift + shrink * step
            return (new, *value_and_slope(new), i + 1)

        def finished(shift, value, slope):
            missed = target(shift, value, slope) - shift
            return (jnp.abs(value) <= tol) & (jnp.sqrt(missed @ missed) <= NEAREST_TOLERANCE)

        def unfinished(carry):
            shift, value, slope, i = carry
            sound = jnp.all(jnp.isfinite(slope)) & jnp.any(slope != 0)
            return ~finished(shift, value, slope) & (i < max_iter) & sound

        start = jnp.zeros(d, jax.dtypes.canonicalize_dtype(float))
        shift, value, slope, _ = jax.lax.while_loop(unfinished, improve, (start, *value_and_slope(start), 0))
        return shift, finished(shift, value, slope)

    return jax.vmap(one_row)(rows)


def nearest_zeros(function: Callable, rows: object, d: int, *, tol: float = 1e-4, max_iter: int = 100) -> NearestZeros:
    """For each row, the shortest shift (d,) with function(shift, row) = 0 that Newton's steps from zero lead to.

    `rows` is a pytree of arrays with one entry per row. Each step goes towards the nearest zero of the tangent plane,
    which is the least of all zeros where it ends (Hasofer & Lind 1974), and is halved while it does not help.
    """
    shifts, converged = (np.asarray(part) for part in _nearest(function, rows, tol, d=d, max_iter=max_iter))
    converged = converged & np.isfinite(shifts).all(axis=1)
    return NearestZeros(shifts, np.sqrt(np.sum(shifts**2, axis=1)), converged)
