"""The line or plane for drawing a table: its own columns, two chosen columns, or two principal components."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils import check_array


def plain_label(text):
    """Text as matplotlib shows it literally: between two dollar signs it would read a formula."""
    return str(text).replace("$", r"\$")


class Plane:
    """A line or plane in d dimensions: an origin and k = 1 or 2 orthonormal directions."""

    def __init__(self, origin, basis, names):
        self.origin, self.basis, self.names = np.asarray(origin), np.asarray(basis), tuple(names)

    def points(self, coordinates):
        return self.origin + coordinates @ self.basis

    def coordinates(self, points):
        return (points - self.origin) @ self.basis.T

    def project(self, vectors):
        return vectors @ self.basis.T

    def axes(self, X, resolution):
        """Grid values along each direction, a tenth wider than the rows on either side."""
        coordinates = self.coordinates(X)
        low, high = coordinates.min(axis=0), coordinates.max(axis=0)
        margin = 0.1 * np.maximum(high - low, 1e-12)
        return [np.linspace(a, b, resolution) for a, b in zip(low - margin, high + margin, strict=True)]


def plane_of(X, features=None):
    """The line or plane to draw a table on.

    Parameters
    ----------
    X : array or DataFrame of shape (n, d)
    features : None, "pca" or pair of column names or indices
        None uses the columns themselves for d <= 2, otherwise principal components. With chosen columns the others
        are held at their medians.
    """
    names = [str(name) for name in getattr(X, "columns", [f"x{i}" for i in range(np.shape(X)[1])])]
    X = check_array(X, dtype=np.float64)
    d = X.shape[1]
    if isinstance(features, str) and features != "pca":
        raise ValueError(f"Expected features None, 'pca' or a pair of columns, got {features!r}; name two columns.")
    if features is None and d <= 2:
        return Plane(np.zeros(d), np.eye(d), [plain_label(name) for name in names])
    if features is None or isinstance(features, str):
        if min(X.shape) < 2:
            raise ValueError(
                f"Expected at least two rows and two columns for principal components, got {X.shape}; choose columns."
            )
        components = PCA(2).fit(X)
        shares = components.explained_variance_ratio_
        labels = [f"component {i + 1} ({share:.0%} of the variance)" for i, share in enumerate(shares)]
        return Plane(components.mean_, components.components_, labels)
    index = [names.index(str(f)) if str(f) in names else f for f in features]
    if len(index) not in (1, 2) or not all(isinstance(i, int | np.integer) and 0 <= i < d for i in index):
        raise ValueError(f"Expected one or two of the columns {names} or their indices, got {features!r}.")
    origin = np.median(X, axis=0)
    origin[index] = 0.0
    return Plane(origin, np.eye(d)[index], [plain_label(names[i]) for i in index])


def grid_points(axes):
    """All points of a grid, shape (n, k); the first coordinate changes fastest."""
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes))
