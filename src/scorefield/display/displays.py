"""Displays of score fields, densities, boundaries and generated rows, following scikit-learn's convention.

`__init__` stores arrays, `from_estimator` computes them and `plot` draws them; matplotlib is imported by `plot`. Tables
with more than two columns are shown on a plane (see `planes`).
"""

from collections.abc import Callable

import numpy as np
from sklearn.utils import check_array

from scorefield._jax.pytrees import pytree, static
from scorefield.display.planes import grid_points, plane_of
from scorefield.estimators.posterior import find_boundary, logits_function

# Okabe and Ito's colours, distinguishable with all common forms of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LONGEST_ARROW = 1.4  # in grid spacings, so that arrows do not overlap much
MAX_STARTS = 400  # starting points of Newton's method, enough for a dense line
QUANTILE = 0.9  # quantile of the arrow lengths; longer arrows are cut to it


def new_axes(ax, names):
    """The given axes, or new ones, with labels."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.set_xlabel(names[0])
    if len(names) > 1:
        ax.set_ylabel(names[1])
    return ax


def _grid(X, features, resolution):
    """The plane of X, its axes, the grid's coordinates, and the grid as a table with the column names of X."""
    plane = plane_of(X, features)
    axes = plane.axes(check_array(X, dtype=np.float64), resolution)
    coordinates = grid_points(axes)
    points = plane.points(coordinates)
    return plane, axes, coordinates, type(X)(points, columns=X.columns) if hasattr(X, "columns") else points


def _label_index(estimator, label):
    where = np.flatnonzero(np.asarray(estimator.classes_) == label)
    if len(where) == 0:
        raise ValueError(f"Expected label to be one of {list(estimator.classes_)}, got {label!r}; pass a known label.")
    return int(where[0])


class DensityDisplay:
    """A density on a line or a plane.

    Parameters
    ----------
    axes : list of one or two arrays
        Grid values along each axis.
    density : array of shape (n,) or (n_second, n_first)
    names : sequence of str
        Axis labels.

    Attributes
    ----------
    ax_ : matplotlib axes
    artist_ : the line or contour set

    Examples
    --------
    >>> from scorefield import DensityDisplay, ScoreDensity, make_gaussians
    >>> X, _ = make_gaussians(random_state=0)
    >>> display = DensityDisplay.from_estimator(ScoreDensity(model="gaussian").fit(X), X)
    >>> display.density.shape
    (80, 80)
    """

    def __init__(self, axes, density, names=("x", "density")):
        self.axes, self.density, self.names = [np.asarray(a) for a in axes], np.asarray(density), tuple(names)

    @classmethod
    def from_estimator(cls, estimator, X, *, label=None, features=None, grid_resolution=80, ax=None, **options):
        """Draw ``exp(score_samples)``, or p(x | label) of a classifier, on a grid around the rows X."""
        plane, axes, _, points = _grid(X, features, grid_resolution)
        if label is None:
            logs = np.asarray(estimator.score_samples(points), dtype=float)
        else:
            logs = np.asarray(estimator.log_likelihood(points)[:, _label_index(estimator, label)], dtype=float)
        names = (plane.names[0], "density") if len(axes) == 1 else plane.names
        return cls(axes, np.exp(logs).reshape([len(a) for a in axes[::-1]]), names).plot(ax, **options)

    def plot(self, ax=None, *, color=COLOURS[0], filled=False, levels=8, **options):
        """Draw a line, contours or filled contours; ``options`` are passed to matplotlib."""
        self.ax_ = new_axes(ax, self.names)
        if len(self.axes) == 1:
            (self.artist_,) = self.ax_.plot(self.axes[0], self.density, color=color, **options)
        elif filled:
            self.artist_ = self.ax_.contourf(*self.axes, self.density, levels=levels, cmap="cividis", **options)
        else:
            self.artist_ = self.ax_.contour(*self.axes, self.density, levels=levels, colors=color, **options)
        return self


class ScoreFieldDisplay:
    """A score field on a line or a plane.

    Parameters
    ----------
    points : array of shape (n, 1) or (n, 2)
    vectors : array of the same shape
    names : sequence of str
        Axis labels.

    Attributes
    ----------
    ax_ : matplotlib axes
    artist_ : the line or quiver

    Examples
    --------
    >>> from scorefield import ScoreDensity, ScoreFieldDisplay, make_gaussians
    >>> X, _ = make_gaussians(random_state=0)
    >>> display = ScoreFieldDisplay.from_estimator(ScoreDensity(model="gaussian").fit(X), X)
    >>> display.vectors.shape
    (324, 2)
    """

    def __init__(self, points, vectors, names=("x", "score")):
        self.points, self.vectors, self.names = np.asarray(points), np.asarray(vectors), tuple(names)

    @classmethod
    def from_estimator(cls, estimator, X, *, label=None, features=None, grid_resolution=18, ax=None, **options):
        """Draw ``grad_log_density`` on a grid around the rows X; a classifier needs the ``label`` of a class.

        For more than two columns the arrows are projections of the field onto the plane.
        """
        plane, _, coordinates, points = _grid(X, features, grid_resolution)
        vectors = np.asarray(estimator.grad_log_density(points))
        if vectors.ndim == 3:
            if label is None:
                raise ValueError(f"Expected the label of a field, got None; pass one of {list(estimator.classes_)}.")
            vectors = vectors[:, _label_index(estimator, label)]
        names = (plane.names[0], "score") if len(plane.basis) == 1 else plane.names
        return cls(coordinates, plane.project(vectors), names).plot(ax, **options)

    def longest(self):
        """The arrow length that `plot` draws at full size, so that two displays can share a scale."""
        return float(np.quantile(np.linalg.norm(self.vectors, axis=1), QUANTILE))

    def plot(self, ax=None, *, color=COLOURS[0], longest=None, **options):
        """Draw the line s(x), or arrows; ``longest`` is the score drawn at full length, longer ones are cut to it."""
        self.ax_ = new_axes(ax, self.names)
        if self.points.shape[1] == 1:
            self.ax_.axhline(0, color="0.7", linewidth=0.8)
            (self.artist_,) = self.ax_.plot(self.points[:, 0], self.vectors[:, 0], color=color, **options)
            return self
        lengths = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        limit = longest or self.longest()
        cut = self.vectors * np.minimum(1.0, limit / np.maximum(lengths, 1e-30))
        span = np.ptp(self.points, axis=0).max() / max(1.0, np.sqrt(len(self.points)) - 1)
        options = {"width": 0.004, **options}
        self.artist_ = self.ax_.quiver(
            *self.points.T, *cut.T, color=color, angles="xy", scale_units="xy",
            scale=limit / (LONGEST_ARROW * span), **options,
        )  # fmt: skip
        return self


class SamplesDisplay:
    """Generated rows together with the original rows.

    Parameters
    ----------
    rows, generated : array of shape (n, 1) or (n, 2)
    names : sequence of str
        Axis labels.

    Attributes
    ----------
    ax_ : matplotlib axes

    Examples
    --------
    >>> from scorefield import SamplesDisplay, ScoreDensity, make_gaussians
    >>> X, _ = make_gaussians(random_state=0)
    >>> display = SamplesDisplay.from_estimator(ScoreDensity(model="gaussian").fit(X), X, n=50, random_state=0)
    >>> display.generated.shape
    (50, 2)
    """

    def __init__(self, rows, generated, names=("x0", "x1")):
        self.rows, self.generated, self.names = np.asarray(rows), np.asarray(generated), tuple(names)

    @classmethod
    def from_estimator(
        cls, estimator, X, *, n=500, label=None, features=None, random_state=None, ax=None, **options
    ):  # fmt: skip
        """Sample ``n`` rows from a density, or from one class of a classifier, and draw them with the rows X."""
        given = {} if label is None else {"label": label}
        return cls.from_rows(
            X, estimator.sample(n, **given, random_state=random_state), features=features, ax=ax, **options
        )

    @classmethod
    def from_rows(cls, rows, generated, *, features=None, ax=None, **options):
        """Draw two tables on the plane of ``rows``."""
        plane = plane_of(rows, features)
        first, second = (plane.coordinates(check_array(table, dtype=np.float64)) for table in (rows, generated))
        names = (plane.names[0], "density") if len(plane.basis) == 1 else plane.names
        return cls(first, second, names).plot(ax, **options)

    def plot(self, ax=None, *, color=COLOURS[1], size=6, alpha=0.4, legend=True):
        """Draw generated rows in ``color`` and original rows in black on top; in one dimension, histograms."""
        self.ax_ = new_axes(ax, self.names)
        parts = (("generated", self.generated, color, size), ("original", self.rows, "black", size))
        for name, part, shade, area in parts:
            if part.shape[1] == 1:
                self.ax_.hist(part[:, 0], bins=40, density=True, histtype="step", color=shade, label=name)
            else:
                self.ax_.scatter(*part.T, s=area, color=shade, alpha=alpha, linewidths=0, label=name)
        if legend:
            self.ax_.legend(markerscale=2)
        return self


class BoundaryDisplay:
    """Predicted labels on a grid, and points where two classes have equal probability.

    Parameters
    ----------
    boundary : array of shape (m, 1) or (m, 2)
        Points of the boundary.
    points : array of shape (n, 1) or (n, 2)
    probability : array of shape (n,)
        Probability of the second class.
    names : sequence of str
        Axis labels.

    Attributes
    ----------
    ax_ : matplotlib axes

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import BoundaryDisplay, make_gaussians
    >>> X, y = make_gaussians(random_state=0)
    >>> display = BoundaryDisplay.from_estimator(LogisticRegression().fit(X, y), X)
    >>> bool(abs(display.boundary.sum(axis=1) - 3.3).max() < 1)
    True
    """

    def __init__(self, boundary, points, probability, names=("x0", "x1")):
        self.boundary, self.points = np.asarray(boundary), np.asarray(points)
        self.probability, self.names = np.asarray(probability), tuple(names)

    @classmethod
    def from_estimator(
        cls, estimator, X, *, classes=None, features=None, method="auto", grid_resolution=25, ax=None, **options
    ):
        """Draw predictions on a grid around the rows X and the boundary between two classes (by default the first two).

        ``method`` "newton" solves for the boundary in the plane and needs a differentiable posterior; "grid"
        interpolates probabilities on the grid and works for any classifier; "auto" prefers Newton's method.
        """
        if method not in ("auto", "newton", "grid"):
            raise ValueError(f"Expected method 'auto', 'newton' or 'grid', got {method!r}; choose one of these.")
        plane, axes, coordinates, points = _grid(X, features, grid_resolution)
        first, second = (_label_index(estimator, c) for c in (estimator.classes_[:2] if classes is None else classes))
        proba = np.asarray(estimator.predict_proba(points), dtype=float)[:, [first, second]]
        share = proba[:, 1] / np.maximum(proba.sum(axis=1), 1e-300)
        try:
            logits = None if method == "grid" else logits_function(estimator)[0]
        except TypeError:
            if method == "newton":
                raise
            logits = None
        if logits is None:
            boundary = _crossings(axes, share.reshape([len(a) for a in axes[::-1]]) - 0.5)
        else:
            boundary = _newton_on_plane(logits, plane, axes, coordinates, (first, second))
        names = plane.names if len(axes) == 2 else (plane.names[0], "probability")
        return cls(boundary, coordinates, share, names).plot(ax, **options)

    def plot(self, ax=None, *, colors=COLOURS[:2], size=22, boundary_color="black", label="boundary"):
        """Draw labels sized by confidence and the boundary; in one dimension, the probability and vertical lines."""
        self.ax_ = new_axes(ax, self.names)
        if self.points.shape[1] == 1:
            self.ax_.plot(self.points[:, 0], self.probability, color=colors[1])
            for i, x in enumerate(self.boundary[:, 0]):
                self.ax_.axvline(x, color=boundary_color, linestyle="--", label=label if i == 0 else None)
            return self
        predicted = (self.probability >= 0.5).astype(int)
        confidence = np.abs(2 * self.probability - 1)
        self.ax_.scatter(*self.points.T, s=1 + size * confidence, c=np.asarray(colors)[predicted], linewidths=0)
        self.ax_.scatter(*self.boundary.T, s=12, color=boundary_color, marker="x", linewidths=1, label=label)
        return self


@pytree
class _OnPlane:
    """Logits of two classes as a function of coordinates on a plane."""

    logits: Callable
    origin: np.ndarray
    basis: np.ndarray
    pair: tuple[int, int] = static()

    def __call__(self, u):
        return self.logits(self.origin + u @ self.basis)[np.asarray(self.pair)]


def _newton_on_plane(logits, plane, axes, starts, pair):
    """Visible boundary points, by Newton's method on the log odds on the plane."""
    order = np.random.default_rng(0).permutation(len(starts))  # shuffled, so that the first points cover the whole grid
    found = find_boundary(_OnPlane(logits, plane.origin, plane.basis, pair), starts[order[:MAX_STARTS]])
    low, high = (np.array([f(a) for a in axes]) for f in (np.min, np.max))
    inside = found.converged & ((found.points >= low) & (found.points <= high)).all(axis=1)
    points = found.points[inside]
    return np.unique(points.round(6), axis=0) if points.shape[1] == 1 else points


def _crossings(axes, values):
    """Points where values on a grid change sign, by linear interpolation along the grid lines."""
    values = values.reshape(-1, len(axes[0]))
    found = []
    for swap in (False, True)[: len(axes)]:
        table = values.T if swap else values
        along, across = (axes[1], axes[0]) if swap else (axes[0], axes[-1] if len(axes) == 2 else [0.0])
        i, j = np.nonzero(np.signbit(table[:, 1:]) != np.signbit(table[:, :-1]))
        left, right = table[i, j], table[i, j + 1]
        place = along[j] + (along[j + 1] - along[j]) * left / (left - right)
        other = np.asarray(across)[i]
        found.append(np.column_stack([other, place] if swap else [place, other]))
    return np.concatenate(found)[:, : len(axes)]
