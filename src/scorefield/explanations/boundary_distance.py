"""Distances of rows to the decision boundary of a fitted classifier, in standard units."""

from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from scorefield._jax.batching import bucket, map_rows, pad_rows
from scorefield._jax.pytrees import Method, pytree
from scorefield.explanations.posterior import LogOdds, costs_and_margin, is_score_classifier
from scorefield.explanations.row_views import view_of
from scorefield.inference.decisions import decide, nearest_zeros

ROWS_PER_CALL = 1024


class BoundaryDistances(NamedTuple):
    """Result of :func:`boundary_distance`: ``distance`` (n,), ``converged`` (n,) and ``points``, a table like X."""

    distance: np.ndarray
    converged: np.ndarray
    points: Any


@pytree
class _OddsAfterMove:
    """Log odds of two classes at a row that is moved by a shift."""

    odds: LogOdds
    move: Any

    def __call__(self, shift, row):
        x, first, second = row
        return self.odds.between(first, second)(self.move(x, shift))


@pytree
class _InUnits:
    """A shift in units of the columns."""

    scale: Any

    def __call__(self, x, shift):
        return x + self.scale * shift


def boundary_distance(model, X, scale=None, tol=1e-4, max_iter=100):
    """Distance of rows to the decision boundary, in standard units, by Newton's steps along the gradient.

    Parameters
    ----------
    model : as in :func:`explain`
        In a mixed table the numbers move, as normal scores; categories, spikes and missing cells are held.
    X : array or DataFrame of shape (n, d)
    scale : None or array of shape (d,)
        Units of the columns. None takes the standard deviations that a ScoreClassifier or StandardScaler knows, and
        ones for other models. Not used for mixed tables.
    tol : float
        Largest absolute log odds that count as zero.
    max_iter : int

    Returns
    -------
    result with ``distance`` (n,), ``converged`` (n,) and ``points``
        Distances are positive where the second of two classes is predicted and negative where the first is; with more
        classes they are positive, to the nearest other class. ``points`` are the rows at the boundary. Where Newton's
        steps find none, the distance is NaN, ``converged`` False, and the point is the row itself.

    Notes
    -----
    The point is the nearest one near where the steps lead; on a winding boundary another part may be nearer.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from scorefield import boundary_distance
    >>> found = boundary_distance(lambda x: jnp.array([0.0, x @ x - 4.0]), [[3.0, 0.0], [0.0, 1.0]])
    >>> found.distance.round(3), found.converged
    (array([ 1., -1.]), array([ True,  True]))
    """
    view = view_of(model)
    rows = view.read(X)
    costs, margin = costs_and_margin(model)
    with jax.enable_x64(view.double):
        odds = LogOdds(view.row_logits(), costs, margin)
        if hasattr(view, "space"):
            move, d = Method(view.space.layout, "moved"), view.space.layout.n_numbers
        else:
            move, d = _InUnits(_units(model, rows.shape[1], scale)), rows.shape[1]
        if d == 0:
            raise ValueError("Expected a table with columns of numbers, got categories only; use counterfactuals.")
        values = map_rows(odds.logits, rows)
        predicted = decide(values, costs=costs, margin=margin)
        function = _OddsAfterMove(odds, move)
        distance, shifts = _nearest_other_class(function, rows, predicted, values.shape[1], d, tol, max_iter)
        moved = np.asarray(jax.vmap(move)(rows, shifts)) if len(rows) else rows
    converged = np.isfinite(distance)
    signs = np.where(predicted == 1, 1, -1) if values.shape[1] == 2 else 1
    changed = np.zeros((len(rows), len(view.names)), bool)
    changed[:, view.input_columns[:d]] = shifts != 0
    return BoundaryDistances(np.where(converged, signs * distance, np.nan), converged, view.table(X, moved, changed))


def _units(model, d, scale):
    """Units of the columns of a model of numbers."""
    if scale is not None:
        scale = np.asarray(scale, float)
        if scale.shape != (d,) or not (scale > 0).all():
            raise ValueError(f"Expected a scale of {d} positive numbers, got {scale}.")
        return scale
    if is_score_classifier(model):
        scale = model.model_.space.scale  # separate densities have units of their own
        return np.concatenate(model.model_.known_rows()).std(axis=0) if scale is None else scale
    first = model[0] if isinstance(model, Pipeline) else model
    scaled = isinstance(first, StandardScaler) and first.scale_ is not None
    return first.scale_ if scaled else np.ones(d)


def _nearest_other_class(function, rows, predicted, n_classes, d, tol, max_iter):
    """Distances to the nearest other class, infinite where none is found, and the shifts to it."""
    distance, shifts = np.full(len(rows), np.inf), np.zeros((len(rows), d))
    size = min(ROWS_PER_CALL, bucket(len(rows), 16))
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        n = len(rows[block])
        own, first = pad_rows(rows[block], size), pad_rows(predicted[block].astype(np.int32), size)
        for offset in range(1, n_classes):
            second = (first + offset) % n_classes
            found = nearest_zeros(function, (own, first, second), d, tol=tol, max_iter=max_iter)
            nearer = (found.converged & (found.distances < np.pad(distance[block], (0, size - n))))[:n]
            distance[block] = np.where(nearer, found.distances[:n], distance[block])
            shifts[block] = np.where(nearer[:, None], found.shifts[:n], shifts[block])
    return distance, shifts
