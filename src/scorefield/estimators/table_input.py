"""Tables as estimators take them: scikit-learn's checks, and the rows of the space that a table lives in."""

import os

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from scorefield.data.checks import check_labels
from scorefield.data.containers import Table, is_frame, take_rows
from scorefield.data.dask import is_lazy
from scorefield.data.dask_table import DaskTable
from scorefield.data.encoding import TableEncoder
from scorefield.data.parquet import ParquetTable
from scorefield.data.row_space import RowSpace
from scorefield.data.row_weights import counted, in_fixed_order
from scorefield.data.spaces import NumberSpace, is_mixed
from scorefield.data.splits import same_cells
from scorefield.estimators._sklearn import check_sample_weight, sklearn_validate_data, validate_data


def checked_table(estimator, X, reset=True):
    """A table as it is, an array of numbers after scikit-learn's checks; its columns are noted or compared."""
    as_is = is_frame(X) or is_mixed(X, estimator.columns)
    return sklearn_validate_data(estimator, X, reset=reset, **({"skip_check_array": True} if as_is else {}))


def read_new(estimator, X, y=None, mixed=False, **options):
    """The rows of a table to be learned from, y after scikit-learn's checks, and the space of the rows.

    `mixed` is true for a part of a table with missing values elsewhere.
    """
    labelled = {} if y is None else {"y": y}
    if not (mixed or is_mixed(X, estimator.columns)):
        checked = validate_data(estimator, X, **labelled, dtype=[np.float64, np.float32], **options)
        rows, y = checked if labelled else (checked, None)
        encoder = TableEncoder(estimator.columns).fit(X) if is_frame(X) else None
        return rows, y, NumberSpace(rows.dtype.str, encoder)
    if labelled:
        check_labels(y)
        y = sklearn_validate_data(estimator, y=y)
        check_consistent_length(X, y)
    space = RowSpace.fit(X, estimator.columns)
    sklearn_validate_data(estimator, X, skip_check_array=True)
    rows = space.rows(X)
    if len(rows) < options.get("ensure_min_samples", 1):
        raise ValueError(f"Expected at least {options['ensure_min_samples']} rows, got {len(rows)} sample(s).")
    return rows, y, space


def read_weighted(estimator, X, y, sample_weight, **options):
    """What `read_new` gives of rows in a fixed order, and weights with a mean of 1 or None, as `counted` has them."""
    return read_grouped(estimator, X, y, sample_weight, None, **options)[:4]


def read_grouped(estimator, X, y, sample_weight, groups, **options):
    """What `read_weighted` gives, the groups of the rows as whole numbers or None, and the places of the rows in X."""
    rows, y, space = read_new(estimator, X, y, **options)
    weights, groups, places = None, group_numbers(groups, rows), np.arange(len(rows))
    if sample_weight is not None:
        checked = check_sample_weight(sample_weight, rows, ensure_non_negative=True, dtype=np.float64)
        index, weights = counted(checked)
        y, groups, places = (None if part is None else part[index] for part in (y, groups, places))
        if space.layout is None:
            rows = rows[index]
        else:  # what a column of a mixed table is learned as depends on how often its values occur
            rows, _, space = read_new(estimator, take_rows(Table(X).native, index), **options)
        if len(rows) < options.get("ensure_min_samples", 1):
            raise ValueError(
                f"Expected at least {options['ensure_min_samples']} rows of positive weight, got {len(rows)}."
            )
    order = in_fixed_order(rows, y, weights)
    if order is not None:
        parts = (rows, y, weights, groups, places)
        rows, y, weights, groups, places = (None if part is None else part[order] for part in parts)
    return rows, y, space, weights, groups, places


def group_numbers(groups, X):
    """A number for each row, the same for rows of one group; None without groups."""
    if groups is None:
        return None
    cells = Table(np.asarray(groups, dtype=object).reshape(-1, 1)).cells(0)
    check_consistent_length(X, cells.values)
    if not cells.known.all():
        raise ValueError(
            f"Expected a group for every row, got {int((~cells.known).sum())} missing in groups; give rows that belong "
            "to no other one groups of their own."
        )
    numbers = same_cells([cells])
    if numbers.max() == 0:
        raise ValueError("Expected two or more groups, got one; rows of one group cannot be split.")
    return numbers


def read(estimator, X, space):
    """The rows of a table like the fitted one, in its space; mixed ones are in double precision."""
    check_is_fitted(estimator)
    if space.layout is not None:
        sklearn_validate_data(estimator, X, skip_check_array=True, reset=False)
        return space.rows(X).astype(np.float64)
    try:
        return validate_data(estimator, X, dtype=[np.float64, np.float32], reset=False)
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise
        raise ValueError(
            f"Input X contains NaN. {type(estimator).__name__} was fitted to rows without gaps; fit it to a table that "
            "has some, or fill them with ScoreImputer."
        ) from error


def in_parts(X):
    """True for a path and for a dask collection."""
    return isinstance(X, str | os.PathLike) or is_lazy(X)


def table_in_parts(X, y, sample_weight=None):
    """A path or a dask dataframe and the labels beside it as a table that is read in parts."""
    if sample_weight is not None:
        raise ValueError("Expected no sample_weight for a table that is read in parts, got some; use class_weight.")
    if is_lazy(X):
        return DaskTable(X, y)
    if not isinstance(y, str):
        raise ValueError(f"Expected the name of the label column beside a path, got {type(y).__name__}.")
    return ParquetTable(X, y)
