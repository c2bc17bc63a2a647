"""Dask collections in, dask arrays out: row-wise methods of fitted estimators, applied to each partition when computed.

dask itself is imported only once a collection is there, so that the library does not depend on it.
"""

import copy
import functools

import numpy as np
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.batching import pad_rows

PIECE_ROWS = 2048  # a power of two, as the blocks of all methods are; the waste is less than one piece a partition


def is_lazy(X):
    """True for a dask collection (without importing dask)."""
    return hasattr(X, "__dask_graph__")


def partition_wise(row_shape, dtype=None):
    """Decorate a method of X to accept dask arrays and dataframes; it then returns a lazy dask array.

    `row_shape` gives the shape of one row's result from the fitted estimator; `dtype` that of the result, else it is
    the floating dtype of X.
    """

    def decorate(method):
        @functools.wraps(method)
        def wrapper(self, X):
            if not is_lazy(X):
                return method(self, X)
            if _is_of_mixed_rows(self):
                like = np.empty((0, *row_shape(self)), dtype(self) if dtype else np.float64)
                return _map_frames_lazily(method, self, X, like)
            floats = _check_lazy(self, X)
            like = np.empty((0, *row_shape(self)), dtype(self) if dtype else floats)
            # A frame's column names are settled here, so its partitions travel as plain arrays.
            table = X.astype(floats).to_dask_array() if hasattr(X, "columns") else X
            return _map_rows_lazily(method, _snapshot(self), table, like)

        return wrapper

    return decorate


def _is_of_mixed_rows(estimator):
    """True for an estimator that was fitted to a mixed table, whose partitions stay DataFrames."""
    check_is_fitted(estimator)
    space = estimator.model_.space if hasattr(estimator, "model_") else getattr(estimator, "space_", None)
    return getattr(space, "layout", None) is not None


def _map_frames_lazily(method, estimator, X, like):
    """The method of each partition of a dask dataframe."""
    import dask
    import dask.array as da

    names = estimator.feature_names_in_.tolist() if hasattr(estimator, "feature_names_in_") else None
    found = list(X.columns) if hasattr(X, "npartitions") and hasattr(X, "columns") else type(X).__name__
    if names is None or found != names:
        raise ValueError(f"Expected a dask dataframe with the fitted columns {names}, got {found}; select those.")
    model = _snapshot(estimator, keep_names=True)
    shape = (np.nan, *like.shape[1:])
    blocks = [
        da.from_delayed(dask.delayed(_apply_to_frame)(part, model, method.__name__, like), shape, meta=like)
        for part in X.to_delayed()
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _apply_to_frame(part, model, method, like):
    return np.concatenate([like, getattr(model, method)(part)]) if len(part) else like


def _check_lazy(estimator, X):
    """Check a collection before any computation; returns the floating dtype of the result."""
    check_is_fitted(estimator)
    ndim, d = getattr(X, "ndim", None), estimator.n_features_in_
    if not isinstance(ndim, int) or ndim != 2:  # a Delayed has every attribute, and none of them is a number
        raise ValueError(f"Expected a dask array or dataframe of two dimensions, got {type(X).__name__}; convert it.")
    if X.shape[1] != d:
        raise ValueError(f"Expected {d} columns, got {X.shape[1]}; select those that the estimator was fitted on.")
    framed = hasattr(X, "columns")
    dtypes = {f"column {name!r}": dtype for name, dtype in X.dtypes.items()} if framed else {"the array": X.dtype}
    for where, dtype in dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf":
            raise ValueError(f"Expected numbers in {where}, got {dtype} values; encode them as numbers first.")
    row = np.ones((1, d), None if framed else X.dtype)
    if framed:
        import pandas as pd

        row = pd.DataFrame(row, columns=X.columns).astype(X.dtypes)
    return estimator._read(row).dtype


def _snapshot(estimator, keep_names=False):
    """A frozen copy of the estimator as one node of the graph, which is sent to each worker once.

    (An object scattered to workers would be lost with them.) A later fit of the original replaces its attributes, so
    a shallow copy stands still. Its name comes from its content: several calls on one model share the node.
    """
    import dask

    frozen = copy.copy(estimator)
    if not keep_names:  # checked already, and partitions of numbers come without them
        vars(frozen).pop("feature_names_in_", None)
    return dask.delayed(frozen, pure=True, traverse=False)


def _map_rows_lazily(method, model, table, like):
    import dask.array as da

    axes = tuple(f"row{i}" for i in range(1, like.ndim))
    return da.blockwise(
        _apply_to_block, ("rows", *axes), table, ("rows", "columns"), model, None,
        new_axes=dict(zip(axes, like.shape[1:], strict=True)), concatenate=True, meta=like, dtype=like.dtype,
        token=method.__name__, method=method.__name__, like=like,
    )  # fmt: skip


def _apply_to_block(block, model, method, like):
    """Apply the method to one partition in pieces of one size, so that all partitions share one compiled program."""
    pieces = [block[start : start + PIECE_ROWS] for start in range(0, len(block), PIECE_ROWS)]
    return np.concatenate(
        [like, *(getattr(model, method)(pad_rows(piece, PIECE_ROWS))[: len(piece)] for piece in pieces)]
    )
