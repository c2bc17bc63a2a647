"""Columns of real tables: which are numbers, integers or categories, and how generated numbers become rows again."""

from numbers import Real

import numpy as np
from sklearn.neighbors import NearestNeighbors

N_NEIGHBORS = 5  # rows of the class among which a generated row finds its categories, as in SMOTE-NC


def is_frame(X):
    """Whether X is a pandas DataFrame (without importing pandas)."""
    return hasattr(X, "iloc") and hasattr(X, "dtypes")


def column_dtypes(X):
    return list(X.dtypes) if is_frame(X) else [X.dtype] * X.shape[1]


def _is_category(dtype):
    return str(dtype) in ("category", "bool", "boolean")


def is_missing(value):
    """None, NaN, or pandas' missing value, which is not equal to itself in a way of its own."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def categorical_mask(X, categorical_features):
    """Boolean mask of the columns that hold categories; "auto" takes them from the dtypes of a DataFrame."""
    d = X.shape[1]
    if isinstance(categorical_features, str) and categorical_features == "auto":
        return np.array([_is_category(dtype) for dtype in column_dtypes(X)], dtype=bool)
    mask = np.zeros(d, dtype=bool)
    if categorical_features is None:
        return mask
    chosen = np.asarray(categorical_features)
    if chosen.dtype == bool:
        if chosen.shape != (d,):
            raise ValueError(f"Expected a mask of {d} columns for categorical_features, got shape {chosen.shape}.")
        return chosen.copy()
    for item in np.atleast_1d(chosen).tolist():
        if isinstance(item, str):
            if not is_frame(X) or item not in list(X.columns):
                raise ValueError(f"Expected categorical_features to name columns of X, got {item!r}.")
            mask[list(X.columns).index(item)] = True
        elif isinstance(item, int) and -d <= item < d:
            mask[item] = True
        else:
            raise ValueError(f"Expected categorical_features to be names, indices below {d} or a mask, got {item!r}.")
    return mask


def check_table(X, mask):
    """The numeric columns as floats (n, k); text and missing values are refused with the column's name."""
    names = list(X.columns) if is_frame(X) else list(range(X.shape[1]))
    dtypes = column_dtypes(X)
    columns = []
    for i in np.flatnonzero(~mask):
        raw = X.iloc[:, i].to_numpy() if is_frame(X) else X[:, i]
        kind = getattr(dtypes[i], "kind", "O")
        if kind in "mM":
            raise ValueError(f"Expected numbers in column {names[i]!r}, got dates; turn them into numbers first.")
        if kind not in "biuf" and not all(isinstance(v, Real) and not isinstance(v, bool) for v in raw):
            raise ValueError(
                f"Expected numbers in column {names[i]!r}, got {dtypes[i]} values; "
                "name it in categorical_features or encode it."
            )
        column = (
            np.array([np.nan if is_missing(v) else v for v in raw], dtype=np.float64) if raw.dtype == object else raw
        )
        column = np.asarray(column, dtype=np.float64)
        if not np.isfinite(column).all():
            raise ValueError(
                f"Expected finite values in column {names[i]!r}, got NaN or infinity; impute them first "
                "(Input X contains NaN or infinity)."
            )
        columns.append(column)
    for i in np.flatnonzero(mask):
        raw = X.iloc[:, i] if is_frame(X) else X[:, i]
        if any(is_missing(value) for value in raw):
            raise ValueError(f"Expected no missing values in column {names[i]!r}, got some; make them a category.")
    return np.column_stack(columns) if columns else np.zeros((len(X), 0))


def column_spread(numbers):
    """Standard deviation of each column; scaled before it is squared, so that large values do not overflow."""
    unit = np.abs(numbers).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    return unit * (numbers / unit).std(axis=0)


def integer_columns(X, mask):
    """Which of the numeric columns have an integer dtype."""
    dtypes = column_dtypes(X)
    return np.array([getattr(dtypes[i], "kind", "O") in "iu" for i in np.flatnonzero(~mask)], dtype=bool)


def assemble(X, mask, numbers, donors):
    """Rows of X's own kind: generated numbers, and the categories of the `donors` rows."""
    if is_frame(X):
        rows = X.iloc[donors].copy()
        for position, i in enumerate(np.flatnonzero(~mask)):
            rows.isetitem(i, cast(numbers[:, position], X.dtypes.iloc[i]))
        return rows
    rows = X[donors].copy()
    for position, i in enumerate(np.flatnonzero(~mask)):
        rows[:, i] = cast(numbers[:, position], X.dtype)
    return rows


def cast(values, dtype):
    """Numbers in a column's dtype: integers are rounded, and nothing leaves the dtype's range."""
    kind = getattr(dtype, "kind", "O")
    inner = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))  # of pandas' nullable and sparse dtypes
    plain = np.dtype(inner) if kind in "iuf" else np.dtype(np.float64)
    if kind in "iu":
        limits = np.iinfo(plain)
        # Some 64-bit limits round up to a float beyond the type: the largest float within it is the one before.
        highest = float(limits.max)
        highest = highest if int(highest) <= limits.max else np.nextafter(highest, 0)
        return np.clip(np.rint(values), limits.min, highest).astype(plain)
    if kind == "f":
        limits = np.finfo(plain)
        return np.clip(values, limits.min, limits.max).astype(plain)
    return values


def donors_of(rng, class_numbers, generated, parents, has_categories):
    """For each generated row, a row of its class whose categories it takes over whole, so that they stay consistent.

    One of the nearest rows in scaled numbers; the parent, or any row, where there are no numbers to compare.
    """
    n = len(class_numbers)
    anywhere = np.where(parents >= 0, parents, rng.integers(0, n, len(generated)))
    if not has_categories or class_numbers.shape[1] == 0:
        return anywhere
    scale = class_numbers.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    neighbors = NearestNeighbors(n_neighbors=min(N_NEIGHBORS, n)).fit(class_numbers / scale)
    near = neighbors.kneighbors(generated / scale, return_distance=False)
    return near[np.arange(len(generated)), rng.integers(0, near.shape[1], len(generated))]
