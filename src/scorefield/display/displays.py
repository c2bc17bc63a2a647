"""Displays of score fields, densities, boundaries and generated rows, following scikit-learn's convention.

`__init__` stores arrays, `from_estimator` computes them and `plot` draws them; matplotlib is imported by `plot`. Tables
with more than two columns are shown on a plane (see `planes`).
"""

from collections.abc import Callable

import numpy as np
from scipy.special import softmax
from sklearn.utils import check_array, check_consistent_length

from scorefield._jax.pytrees import pytree, static
from scorefield.display.planes import Plane, grid_points, plain_label, plane_of
from scorefield.explanations.posterior import find_boundary, logits_function

# Okabe and Ito's colours, distinguishable with all common forms of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LONGEST_ARROW = 1.4  # in grid spacings, so that arrows do not overlap much
MAX_STARTS = 400  # starting points of Newton's method, enough for a dense line
ROWS = "Original and generated rows"
QUANTILE = 0.9  # quantile of the arrow lengths; longer arrows are cut to it


def new_axes(ax, names, title=None):
    """The given axes, or new ones, with labels and a title."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.set_xlabel(names[0])
    if len(names) > 1:
        ax.set_ylabel(names[1])
    if title is not None:
        ax.set_title(title)
    return ax


def _grid(X, features, resolution):
    """The plane of X, its axes, the grid's coordinates, and the grid as a table with the column names of X."""
    plane = plane_of(X, features)
    axes = plane.axes(check_array(X, dtype=np.float64), resolution)
    coordinates = grid_points(axes)
    points = plane.points(coordinates)
    return plane, axes, coordinates, type(X)(points, columns=X.columns) if hasattr(X, "columns") else points


def _shown_rows(plane, X, y, label):
    """Coordinates and labels of the rows to draw: those of the class, or all where no class is asked for."""
    if label is not None and y is None:
        return None, None
    rows = plane.coordinates(check_array(X, dtype=np.float64))
    if y is None:
        return rows, None
    check_consistent_length(X, y)
    y = np.asarray(y)
    kept = np.ones(len(y), dtype=bool) if label is None else y == label
    return rows[kept], y[kept]


def _draw_rows(ax, rows, labels, *, classes=None, colors=COLOURS, **options):
    """Draw rows in the colours of their classes with a legend, or in grey; on a line, as ticks above the axis."""
    if rows is None:
        return
    options = {"s": 10, "linewidths": 0.4, "edgecolors": "white", "zorder": 3, **options}
    if labels is None:
        parts = [(None, rows, "0.35")]
        options |= {"s": 4, "alpha": 0.4, "linewidths": 0}
    else:
        classes = np.unique(labels) if classes is None else classes
        parts = [(plain_label(c), rows[labels == c], colors[k % len(colors)]) for k, c in enumerate(classes)]
    for name, part, colour in parts:
        if rows.shape[1] == 1:
            at = {"transform": ax.get_xaxis_transform()}
            ax.plot(part[:, 0], np.full(len(part), 0.02), "|", color=colour, label=name, **at)
        else:
            ax.scatter(*part.T, color=colour, label=name, **options)
    if labels is not None:
        ax.legend(title="class")


def _titled(what, label):
    return what if label is None else f"{what} of class {plain_label(label)}"


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
    rows, labels : None or array of shape (m, 1) or (m, 2), and of shape (m,)
        Rows to draw with the density, and their classes.
    title : None or str

    Attributes
    ----------
    ax_ : matplotlib axes
    artist_ : the line or contour set

    Examples
    --------
    >>> from scorefield import DensityDisplay, ScoreDensity
    >>> from scorefield.paper import make_gaussians
    >>> X, _ = make_gaussians(random_state=0)
    >>> display = DensityDisplay.from_estimator(ScoreDensity(model="gaussian").fit(X), X)
    >>> display.density.shape
    (80, 80)
    """

    def __init__(self, axes, density, names=("x", "density"), *, rows=None, labels=None, title=None):
        self.axes, self.density, self.names = [np.asarray(a) for a in axes], np.asarray(density), tuple(names)
        self.rows, self.labels, self.title = rows, labels, title

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, *, label=None, features=None, grid_resolution=80, ax=None, **options
    ):  # fmt: skip
        """Draw ``exp(score_samples)``, or p(x | label) of a classifier, on a grid around the rows X.

        The rows are drawn too, in the colours of their classes ``y``; with a ``label``, only those of its class.
        """
        plane, axes, _, points = _grid(X, features, grid_resolution)
        if label is None:
            logs = np.asarray(estimator.score_samples(points), dtype=float)
        else:
            logs = np.asarray(estimator.log_likelihood(points)[:, _label_index(estimator, label)], dtype=float)
        names = (plane.names[0], "density") if len(axes) == 1 else plane.names
        rows, labels = _shown_rows(plane, X, y, label)
        density = np.exp(logs).reshape([len(a) for a in axes[::-1]])
        display = cls(axes, density, names, rows=rows, labels=labels, title=_titled("Density", label))
        return display.plot(ax, **{"colorbar": True, **options})

    def plot(self, ax=None, *, color=COLOURS[0], filled=False, levels=8, colorbar=False, **options):
        """Draw a line, contours or filled contours, these with a colour bar if ``colorbar``.

        Other ``options`` are passed to matplotlib.
        """
        self.ax_ = new_axes(ax, self.names, self.title)
        if len(self.axes) == 1:
            (self.artist_,) = self.ax_.plot(self.axes[0], self.density, color=color, **options)
        elif filled:
            self.artist_ = self.ax_.contourf(*self.axes, self.density, levels=levels, cmap="cividis", **options)
            if colorbar:
                self.ax_.figure.colorbar(self.artist_, ax=self.ax_, label="density")
        else:
            self.artist_ = self.ax_.contour(*self.axes, self.density, levels=levels, colors=color, **options)
        _draw_rows(self.ax_, self.rows, self.labels)
        return self


def _field_of(estimator, points, vectors, label):
    """The field of one class, or of the mixture of classes: the gradient of `score_samples`."""
    if label is not None:
        return vectors[:, _label_index(estimator, label)]
    shares = softmax(np.asarray(estimator.log_likelihood(points)) + np.log(estimator.priors_), axis=1)
    return np.einsum("nk,nkd->nd", shares, vectors)


class ScoreFieldDisplay:
    """A score field on a line or a plane.

    Parameters
    ----------
    points : array of shape (n, 1) or (n, 2)
    vectors : array of the same shape
    names : sequence of str
        Axis labels.
    rows, labels : None or array of shape (m, 1) or (m, 2), and of shape (m,)
        Rows to draw with the field, and their classes.
    title : None or str

    Attributes
    ----------
    ax_ : matplotlib axes
    artist_ : the line or quiver

    Examples
    --------
    >>> from scorefield import ScoreDensity, ScoreFieldDisplay
    >>> from scorefield.paper import make_gaussians
    >>> X, _ = make_gaussians(random_state=0)
    >>> display = ScoreFieldDisplay.from_estimator(ScoreDensity(model="gaussian").fit(X), X)
    >>> display.vectors.shape
    (324, 2)
    """

    def __init__(self, points, vectors, names=("x", "score"), *, rows=None, labels=None, title=None):
        self.points, self.vectors, self.names = np.asarray(points), np.asarray(vectors), tuple(names)
        self.rows, self.labels, self.title = rows, labels, title

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, *, label=None, features=None, grid_resolution=18, ax=None, **options
    ):  # fmt: skip
        """Draw ``grad_log_density`` on a grid around the rows X; of a classifier, that of a class or of their mixture.

        The rows are drawn too, in the colours of their classes ``y``; with a ``label``, only those of its class. For
        more than two columns the arrows are projections of the field onto the plane.
        """
        plane, _, coordinates, points = _grid(X, features, grid_resolution)
        vectors = np.asarray(estimator.grad_log_density(points))
        if vectors.ndim == 3:
            vectors = _field_of(estimator, points, vectors, label)
        names = (plane.names[0], "score") if len(plane.basis) == 1 else plane.names
        rows, labels = _shown_rows(plane, X, y, label)
        title = _titled("Score field", label)
        return cls(coordinates, plane.project(vectors), names, rows=rows, labels=labels, title=title).plot(
            ax, **options
        )

    def longest(self):
        """The arrow length that `plot` draws at full size, so that two displays can share a scale."""
        return float(np.quantile(np.linalg.norm(self.vectors, axis=1), QUANTILE))

    def plot(self, ax=None, *, color=COLOURS[0], longest=None, **options):
        """Draw the line s(x), or arrows; ``longest`` is the score drawn at full length, longer ones are cut to it."""
        self.ax_ = new_axes(ax, self.names, self.title)
        _draw_rows(self.ax_, self.rows, self.labels, zorder=1)
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
    labels, generated_labels : None or array of shape (n,)
        Classes of the rows, for colours.
    title : None or str

    Attributes
    ----------
    ax_ : matplotlib axes

    Examples
    --------
    >>> from scorefield import SamplesDisplay, ScoreDensity
    >>> from scorefield.paper import make_gaussians
    >>> X, _ = make_gaussians(random_state=0)
    >>> display = SamplesDisplay.from_estimator(ScoreDensity(model="gaussian").fit(X), X, n=50, random_state=0)
    >>> display.generated.shape
    (50, 2)
    """

    def __init__(
        self, rows, generated, names=("x0", "x1"), *, labels=None, generated_labels=None, title=None
    ):  # fmt: skip
        self.rows, self.generated, self.names = np.asarray(rows), np.asarray(generated), tuple(names)
        self.labels, self.generated_labels, self.title = labels, generated_labels, title

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, *, n=500, label=None, features=None, random_state=None, ax=None, **options
    ):
        """Sample ``n`` rows and draw them with the rows X.

        A classifier gives rows of the class ``label``, or of all classes in the shares of its priors. Its classes have
        colours where ``y`` is given; with a ``label``, only the rows of its class are drawn.
        """
        if label is None and hasattr(estimator, "classes_"):
            counts = np.maximum(1, np.round(n * np.asarray(estimator.priors_))).astype(int)
            parts = [
                estimator.sample(int(count), label=name, random_state=random_state)
                for name, count in zip(estimator.classes_, counts, strict=True)
            ]
            labels = None if y is None else np.repeat(estimator.classes_, counts)
            return cls.from_rows(X, parts, y, labels, features=features, ax=ax, **options)
        if label is None:
            return cls.from_rows(X, estimator.sample(n, random_state=random_state), features=features, ax=ax, **options)
        own = X if y is None else X[np.asarray(y) == label]
        generated = estimator.sample(n, label=label, random_state=random_state)
        return cls.from_rows(own, generated, features=features, ax=ax, title=_titled(ROWS, label), **options)

    @classmethod
    def from_rows(
        cls, rows, generated, y=None, y_generated=None, *, features=None, ax=None, title=None, **options
    ):  # fmt: skip
        """Draw two tables on the plane of ``rows``; the second may be a list of tables.

        Two columns of a DataFrame may be chosen whatever the others hold; rows that miss one of them are left out.
        """
        parts = generated if isinstance(generated, list) else [generated]
        plane, read = _reader(rows, features)
        original, generated = read(rows), np.concatenate([read(part) for part in parts])
        known = [~np.isnan(part).any(axis=1) for part in (original, generated)]
        labels = [None if c is None else np.asarray(c)[k] for c, k in zip((y, y_generated), known, strict=True)]
        names = (plane.names[0], "density") if len(plane.basis) == 1 else plane.names
        display = cls(
            original[known[0]], generated[known[1]], names, labels=labels[0], generated_labels=labels[1],
            title=title or ROWS,
        )  # fmt: skip
        return display.plot(ax, **options)

    def plot(self, ax=None, *, color=COLOURS[1], size=6, alpha=0.4, legend=True):
        """Draw generated rows in ``color`` and original rows in black on top; in one dimension, histograms.

        With labels each class has its colour; its original rows are dark, with an edge.
        """
        self.ax_ = new_axes(ax, self.names, self.title)
        if self.labels is None or self.generated_labels is None:
            parts = [("generated", self.generated, color, {}), ("original", self.rows, "black", {})]
        else:
            parts = self._classes()
        for name, part, shade, style in parts:
            if part.shape[1] == 1:
                line = "--" if style else "-"
                self.ax_.hist(part[:, 0], 40, density=True, histtype="step", color=shade, label=name, linestyle=line)
            else:
                options = {"s": size, "alpha": alpha, "linewidths": 0, **style}
                self.ax_.scatter(*part.T, color=shade, label=name, **options)
        if legend:
            self.ax_.legend(markerscale=2)
        return self

    def _classes(self):
        """(name, rows, colour, style) of the generated and the original rows of each class."""
        edged = {"alpha": 1.0, "linewidths": 0.6, "edgecolors": "black"}
        sides = (("generated", self.generated, self.generated_labels, {}), ("original", self.rows, self.labels, edged))
        classes = np.unique(np.concatenate([self.labels, self.generated_labels]))
        for side, rows, labels, style in sides:
            for k, name in enumerate(classes):
                yield f"{plain_label(name)}, {side}", rows[labels == name], COLOURS[k % len(COLOURS)], style


def _reader(X, features):
    """The plane of a table, and a function from tables to coordinates on it; chosen columns of frames may have gaps."""
    if not hasattr(X, "columns") or features is None or isinstance(features, str):
        plane = plane_of(X, features)
        return plane, lambda table: plane.coordinates(check_array(table, dtype=np.float64))
    names = [name if name in list(X.columns) else X.columns[name] for name in features]

    def read(table):
        return np.column_stack([np.asarray(table[name], dtype=np.float64) for name in names])

    return Plane(np.zeros(len(names)), np.eye(len(names)), [plain_label(name) for name in names]), read


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
    rows, labels : None or array of shape (k, 1) or (k, 2), and of shape (k,)
        Rows to draw, and their classes.
    classes : None or pair
        Names of the two classes for the legend.
    title : None or str

    Attributes
    ----------
    ax_ : matplotlib axes

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import BoundaryDisplay
    >>> from scorefield.paper import make_gaussians
    >>> X, y = make_gaussians(random_state=0)
    >>> display = BoundaryDisplay.from_estimator(LogisticRegression().fit(X, y), X)
    >>> bool(abs(display.boundary.sum(axis=1) - 3.3).max() < 1)
    True
    """

    def __init__(
        self, boundary, points, probability, names=("x0", "x1"), *, rows=None, labels=None, classes=None, title=None
    ):  # fmt: skip
        self.boundary, self.points = np.asarray(boundary), np.asarray(points)
        self.probability, self.names = np.asarray(probability), tuple(names)
        self.rows, self.labels, self.classes, self.title = rows, labels, classes, title

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, *, classes=None, features=None, method="auto", grid_resolution=25, ax=None, **options
    ):
        """Draw predictions on a grid around the rows X and the boundary between two classes (by default the first two).

        With ``y`` the rows of both classes are drawn too.
        ``method`` "newton" solves for the boundary in the plane and needs a differentiable posterior; "grid"
        interpolates probabilities on the grid and works for any classifier; "auto" prefers Newton's method.
        """
        if method not in ("auto", "newton", "grid"):
            raise ValueError(f"Expected method 'auto', 'newton' or 'grid', got {method!r}; choose one of these.")
        plane, axes, coordinates, points = _grid(X, features, grid_resolution)
        classes = list(estimator.classes_[:2] if classes is None else classes)
        first, second = (_label_index(estimator, c) for c in classes)
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
        rows, labels = (None, None) if y is None else _shown_rows(plane, X, y, None)
        if y is not None:
            kept = np.isin(labels, classes)
            rows, labels = rows[kept], labels[kept]
        title = "Boundary between {} and {}".format(*map(plain_label, classes))
        display = cls(boundary, coordinates, share, names, rows=rows, labels=labels, classes=classes, title=title)
        return display.plot(ax, **options)

    def plot(self, ax=None, *, colors=COLOURS[:2], size=22, boundary_color="black", label="boundary"):
        """Draw labels sized by confidence and the boundary; in one dimension, the probability and vertical lines."""
        self.ax_ = new_axes(ax, self.names, self.title)
        _draw_rows(
            self.ax_, self.rows, self.labels, classes=self.classes, colors=colors, s=16, edgecolors="black"
        )  # fmt: skip
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
