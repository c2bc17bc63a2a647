"""Tables as estimators take them: arrays of numbers, or mixed tables as flat rows; and tables like the fitted one."""

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from scorefield.data.cells import NUMERIC
from scorefield.data.checks import check_labels
from scorefield.data.containers import Table, take_rows
from scorefield.data.encoding import Encoded, TableEncoder
from scorefield.data.kinds import classify
from scorefield.data.row_space import RowSpace
from scorefield.data.row_weights import counted, in_fixed_order
from scorefield.estimators._sklearn import check_sample_weight, sklearn_validate_data, validate_data

PLAIN_KINDS = ("number", "whole number", "constant")


def is_frame(X):
    """True for data frames and pyarrow tables that are in memory."""
    return hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__") or hasattr(X, "iloc")


def is_mixed(X, columns=None):
    """True for a table with gaps or with columns that are not plain numbers."""
    if issparse(X):
        return False
    if is_frame(X):
        table = Table(X)
        found = classify(table, columns)
        plain = [
            kind in PLAIN_KINDS and cells.form in NUMERIC and cells.text is None and cells.known.all()
            for _, kind, cells in found
        ]
        return not all(plain)
    array = X if isinstance(X, np.ndarray) else np.asarray(Table(X).native) if isinstance(X, list | tuple) else None
    if array is None or array.ndim != 2:
        return False
    if columns:
        return True
    if array.dtype.kind == "f":
        return bool(np.isnan(array).any())
    return array.dtype.kind == "O" and any(_is_label(cell) for cell in array.ravel())


def _is_label(cell):
    """True for cells of object arrays that are gaps, text, flags or dates."""
    return cell is None or isinstance(cell, str | bool | np.datetime64) or hasattr(cell, "isoformat") or cell != cell


def refuse_mixed(space, expected, got):
    """Raise an error that names the columns for which something else is expected."""
    names = [v.name for v in space.encoder.variables if v.kind not in PLAIN_KINDS] + space.encoder.set_aside
    found = f"columns that are not numbers ({', '.join(map(repr, names))})" if names else "gaps (NaN)"
    raise ValueError(
        f"Expected {expected} for a table with {found}, got {got}; fill gaps with ScoreImputer, and encode text as "
        "numbers."
    )


def checked_table(estimator, X, reset=True):
    """A table as it is, an array of numbers after scikit-learn's checks; its columns are noted or compared."""
    as_is = is_frame(X) or is_mixed(X, estimator.columns)
    return sklearn_validate_data(estimator, X, reset=reset, **({"skip_check_array": True} if as_is else {}))


def numbers_as_table(encoder, numbers, like=None):
    """Numbers (n, d) of all columns as a table of a fitted encoder, or like another one."""
    varying = [i for i, column in enumerate(encoder.columns_) if column.kind != "constant"]
    return encoder.decode(Encoded(numbers[:, varying].astype(float), np.zeros((len(numbers), 0), np.int32)), like)


class TableInput:
    """Mixin: `fit` and `predict` methods read any table, and generated rows become a table like the fitted one."""

    def _read_new(self, X, y=None, **options):
        """Forget an earlier fit; the table as an array of numbers, or as flat rows where it is mixed; and y."""
        for name in ("space_", "encoder_"):
            vars(self).pop(name, None)
        labelled = {} if y is None else {"y": y}
        if not is_mixed(X, self.columns):
            checked = validate_data(self, X, **labelled, dtype=[np.float64, np.float32], **options)
            X_checked, y = checked if labelled else (checked, None)
            self.dtype_ = X_checked.dtype.str
            if is_frame(X):
                self.encoder_ = TableEncoder(self.columns).fit(X).to_plain()
            return X_checked, y
        if labelled:
            check_labels(y)
            y = sklearn_validate_data(self, y=y)
            check_consistent_length(X, y)
        space = RowSpace.fit(X, self.columns)
        sklearn_validate_data(self, X, skip_check_array=True)
        rows = space.rows(X)
        if len(rows) < options.get("ensure_min_samples", 1):
            raise ValueError(f"Expected at least {options['ensure_min_samples']} rows, got {len(rows)} sample(s).")
        self.dtype_, self.space_ = np.dtype(np.float64).str, space.to_plain()
        return rows, y

    def _read_weighted(self, X, y, sample_weight, **options):
        """Rows, labels or None, and weights with a mean of 1 or None, as `counted` has them, in a fixed order."""
        rows, y = self._read_new(X, y, **options)
        weights = None
        if sample_weight is not None:
            checked = check_sample_weight(sample_weight, rows, ensure_non_negative=True, dtype=np.float64)
            index, weights = counted(checked)
            y = y if y is None else y[index]
            # What a column of a mixed table is learned as depends on how often its values occur.
            again = self._read_new(take_rows(Table(X).native, index), **options)[0] if self._mixed else None
            rows = rows[index] if again is None else again
            if len(rows) < options.get("ensure_min_samples", 1):
                raise ValueError(
                    f"Expected at least {options['ensure_min_samples']} rows of positive weight, got {len(rows)}."
                )
        order = in_fixed_order(rows, y, weights)
        if order is not None:
            rows, y, weights = (None if part is None else part[order] for part in (rows, y, weights))
        return rows, y, weights

    def _read(self, X):
        """The table as what `_read_new` made of the fitted one; mixed rows are in double precision."""
        check_is_fitted(self)
        if self._mixed:
            sklearn_validate_data(self, X, skip_check_array=True, reset=False)
            return RowSpace.from_plain(self.space_).rows(X).astype(np.float64)
        try:
            return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        except ValueError as error:
            if "contains NaN" not in str(error):
                raise
            raise ValueError(
                f"Input X contains NaN. {type(self).__name__} was fitted to rows without gaps; fit it to a table that "
                "has some, or fill them with ScoreImputer."
            ) from error

    @property
    def _mixed(self):
        return hasattr(self, "space_")

    def _like_fitted(self, X):
        """Generated numbers (n, d) as a table like the fitted one."""
        if not hasattr(self, "encoder_"):
            return X
        return numbers_as_table(TableEncoder.from_plain(self.encoder_), X)
