"""Checks of labels and of columns of numbers, and numbers in the dtype of an array."""

from collections.abc import Iterable
from numbers import Real

import numpy as np
from scipy.sparse import issparse

IDS = ("new", "blank")  # what generated rows have for identifiers


def is_missing(value):
    """True for None, NaN, and pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def plain(label):
    """A label as a plain Python object: 1, not np.int64(1)."""
    return label.item() if isinstance(label, np.generic) else label


def check_labels(y):
    """Refuse a target with missing values, several labels per row, and labels of both text and numbers."""
    check_all_given(y)
    _check_one_each(y)
    check_one_kind(y)


def _check_one_each(y):
    """Refuse several labels per row; one column per class, as imbalanced-learn takes it, passes."""
    shape = getattr(y, "shape", None)
    several = len(shape) == 2 and shape[1] > 1 if shape else isinstance(y, list | tuple) and _holds_sets(y)
    if not several or (shape and not issparse(y) and _is_indicator(np.asarray(y))):
        return
    raise ValueError(
        "Expected one label for each row in y, got several; learn one model per label "
        "(sklearn.multioutput.MultiOutputClassifier), or name each combination of labels and take that as the class."
    )


def _holds_sets(y):
    return any(isinstance(each, list | tuple | set) and len(each) != 1 for each in y)


def _is_indicator(y):
    """True if every row has a single 1 beside zeros."""
    return y.dtype.kind in "biuf" and bool(np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all())


def check_all_given(y):
    """Refuse a target with missing values: of an array, a list, or a pandas, polars or pyarrow column."""
    if y is None or isinstance(y, str) or issparse(y):
        return
    values = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if values.ndim == 0 or values.dtype.kind not in "fOMm":
        return
    cells = values.reshape(len(values), -1)
    if values.dtype.kind == "O":
        missing = np.array([any(is_missing(cell) for cell in row) for row in cells], dtype=bool)
    else:
        missing = (cells != cells).any(axis=1)  # NaN and NaT
    if missing.any():
        raise ValueError(
            f"Expected a value in every row of the target y, got {missing.sum()} missing in {len(values)} rows, the "
            f"first in row {np.argmax(missing)}; drop these rows or label them."
        )


def check_one_kind(y):
    """Refuse labels of both text and numbers, which cannot be sorted; only arrays of objects can hold both."""
    if getattr(getattr(y, "dtype", None), "kind", None) != "O":
        return
    labels = np.ravel(y)
    text = next((label for label in labels if isinstance(label, str)), None)
    number = next((label for label in labels if isinstance(label, Real) and not is_missing(label)), None)
    if text is not None and number is not None:
        raise ValueError(
            f"Expected labels of one kind in y, got text such as {text!r} and numbers such as {number!r}; make all of "
            "them text or all numbers."
        )


def check_numbers(X, first_row=0):
    """Refuse a DataFrame with cells that are not numbers; missing values are allowed."""
    for i, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        if getattr(dtype, "kind", "O") in "biuf":
            continue
        for row, value in enumerate(X.iloc[:, i], first_row):
            if not _is_number(value):
                raise ValueError(
                    f"Expected numbers in column {name!r}, got {value!r} in row {row}; correct it, or encode the "
                    "column as numbers."
                )


def _is_number(value):
    """True for numbers, text that Python reads as one, and missing values."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return False
    if not is_missing(value):
        try:
            float(value)
        except (TypeError, ValueError):
            return False
    return True


def cast_numbers(values, dtype):
    """Numbers in the dtype of an array: rounded for integers and flags, and clipped to the range of the dtype."""
    kind = getattr(dtype, "kind", "O")
    if kind == "b":
        return values > 0.5
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


def check_ids(ids):
    """Refuse what is neither "new" nor "blank"."""
    if ids not in IDS:
        raise ValueError(f"Expected ids of {', '.join(map(repr, IDS))}, got {ids!r}.")
