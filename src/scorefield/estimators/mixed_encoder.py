"""MixedEncoder: tables of mixed columns with gaps as arrays of numbers, for learners that take nothing else."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.storage import stored_by_public_name
from scorefield.data.coding import is_category
from scorefield.data.encoding import TableEncoder
from scorefield.data.kinds import wanted_kinds
from scorefield.data.scaling import safe_deviation
from scorefield.estimators._sklearn import StrOptions, fit_context
from scorefield.estimators.table_input import checked_table


@stored_by_public_name
class MixedEncoder(TransformerMixin, BaseEstimator):
    """Encode a table of mixed columns with missing values as an array of numbers.

    Columns are recognised as by :func:`describe_columns`. Numbers come first, then categories. Ordered levels, flags
    and dates are numbers; identifiers, free text and constants are left out.

    Parameters
    ----------
    form : {"codes", "filled", "one-hot"}, default="codes"
        "codes" gives categories as whole numbers and missing values as NaN, for trees and gradient boosting. "filled"
        replaces missing values by the mean of a column of numbers, and by a level of their own among categories.
        "one-hot" also has one column per level and one that marks the missing values of each column, and standardises
        numbers: for linear models, neighbours and networks.
    columns : None or dict, default=None
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.

    Attributes
    ----------
    categories_ : list of int
        Positions of the categories in the forms "codes" and "filled".
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import MixedEncoder
    >>> X = np.array([["a", 1.5], ["b", None], [None, 4.5]], dtype=object)
    >>> MixedEncoder().fit_transform(X)
    array([[1.5, 0. ],
           [nan, 1. ],
           [4.5, nan]])
    >>> MixedEncoder("filled").fit_transform(X)
    array([[1.5, 0. ],
           [3. , 1. ],
           [4.5, 2. ]])
    """

    _parameter_constraints = {"form": [StrOptions({"codes", "filled", "one-hot"})], "columns": [None, dict]}

    def __init__(self, form="codes", *, columns=None):
        self.form = form
        self.columns = columns

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the columns of X, an array, a DataFrame or a pyarrow table; y is ignored."""
        X = checked_table(self, X)
        encoder = TableEncoder(self.columns).fit(X)
        self.encoder_ = encoder.to_plain()
        self.number_names_, self.category_names_ = [], []
        for column, declared in zip(encoder.columns_, self._declared(encoder), strict=True):
            # A column that is declared keeps its place where it is constant: positions do not depend on the rows.
            if column.has_number or column.has_codes or (column.kind == "constant" and declared):
                of_levels = is_category(declared or column.kind, column.form)
                (self.category_names_ if of_levels else self.number_names_).append(column.name)
        if not self.number_names_ + self.category_names_:
            raise ValueError("Expected at least one column that varies and is not an identifier, got none.")
        p = len(self.number_names_)
        self.categories_ = list(range(p, p + len(self.category_names_)))
        cells = self._cells(X)
        numbers, self.level_counts_ = cells[:, :p], self._level_counts(encoder)
        self.gaps_ = np.isnan(cells).any(axis=0)
        known = ~np.isnan(numbers)
        self.mean_ = np.where(known, numbers, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        self.scale_ = safe_deviation(np.where(known, numbers, self.mean_))
        return self

    def _declared(self, encoder):
        """The kind that `columns` gives to each column, None without one."""
        kinds = wanted_kinds([column.name for column in encoder.columns_], self.columns)
        return [kinds.get(column.name) for column in encoder.columns_]

    def _level_counts(self, encoder):
        counts = {column.name: max(column.n_levels, 1) for column in encoder.columns_}
        return [counts[name] for name in self.category_names_]

    def _level_names(self):
        """The levels of each category as text, in the order of their codes."""
        columns = {column.name: column for column in TableEncoder.from_plain(self.encoder_).columns_}
        found = []
        for name, n_levels in zip(self.category_names_, self.level_counts_, strict=True):
            column = columns[name]
            shown = [*map(_as_text, column.levels), *["other"] * bool(column.pool)]
            found.append(shown if len(shown) == n_levels else list(map(str, range(n_levels))))
        return found

    def _cells(self, X):
        """Numbers, then codes, of the columns that are shown; NaN at gaps."""
        encoder = TableEncoder.from_plain(self.encoder_)
        numbers, codes = encoder.encode(X)
        columns = {column.name: column for column in encoder.columns_}
        found = {v.name: _column_cells(columns[v.name], v, numbers, codes) for v in encoder.variables}
        constant = np.zeros(len(numbers))
        return np.column_stack([found.get(name, constant) for name in self.number_names_ + self.category_names_])

    def transform(self, X):
        """An array (n, k) of numbers."""
        check_is_fitted(self)
        cells, p = self._cells(checked_table(self, X, reset=False)), len(self.number_names_)
        if self.form == "codes":
            return cells
        gaps = np.isnan(cells)
        filled = np.where(gaps, np.concatenate([self.mean_, self.level_counts_]), cells)
        if self.form == "filled":
            return filled
        parts = [(filled[:, :p] - self.mean_) / self.scale_, gaps[:, :p][:, self.gaps_[:p]]]
        for j, n_levels in enumerate(self.level_counts_, start=p):
            parts.append(filled[:, [j]] == np.arange(n_levels + self.gaps_[j]))
        return np.hstack(parts).astype(np.float64)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of the result, such as ``age``, ``age_missing`` and ``colour_red``.

        Rare levels of a column of many are one column, such as ``zip_other``.
        """
        check_is_fitted(self)
        plain = not hasattr(self, "feature_names_in_")
        names = [f"x{name}" if plain else str(name) for name in self.number_names_ + self.category_names_]
        if self.form == "one-hot":
            p, gaps = len(self.number_names_), self.gaps_
            levels = self._level_names()
            names = [
                *names[:p],
                *(f"{name}_missing" for name, has_gaps in zip(names[:p], gaps[:p], strict=True) if has_gaps),
                *(
                    f"{name}_{level}"
                    for name, own, has_gaps in zip(names[p:], levels, gaps[p:], strict=True)
                    for level in [*own, *["missing"] * int(has_gaps)]
                ),
            ]
        seen: set[str] = set()
        for i in range(len(names)):  # a level may be called "missing", or end as another column begins
            while names[i] in seen:
                names[i] += "_"
            seen.add(names[i])
        return np.array(names, dtype=object)


def _as_text(level):
    """A level as text; whole numbers without a decimal point."""
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)


def _column_cells(column, variable, numbers, codes):
    """Numbers or codes of one column, NaN at gaps."""
    if variable.category < 0:
        return numbers[:, variable.number]
    code = codes[:, variable.category]
    if variable.number >= 0:
        spikes = np.append(column.spike_numbers, np.nan)
        return np.where(code == 0, numbers[:, variable.number], spikes[np.where(code > 0, code - 1, -1)])
    values = np.arange(column.n_levels, dtype=float)
    if column.level_values is not None:
        values = column.level_values
    elif column.kind == "flag" and not is_category(column.kind, column.form):
        values = np.asarray(column.levels, float)
    return np.append(values, np.nan)[code]
