"""ScoreImputer: missing values of a table filled by draws from their law given the known cells.

The chains are those that generate rows, with the known cells held; cells of donors make their draws sharp.
"""

import numbers

import jax
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.errors import warn_caller
from scorefield._jax.random import key_from, seed_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.containers import Table
from scorefield.data.kinds import SET_ASIDE
from scorefield.data.row_space import RowSpace
from scorefield.estimators._sklearn import Interval, StrOptions, fit_context
from scorefield.estimators.table_input import checked_table
from scorefield.models.constrained_filling import keep_constraints
from scorefield.models.filling import METHODS, Filling, filled_tables, fit_filling, typical_table
from scorefield.models.fitting import fit_generator
from scorefield.models.progress import ProgressReport
from scorefield.models.requests import check_constraints

LEFT_ALONE = {"identifier": "taken for an identifier", "text": "free text", "constant": "no known cell"}


@stored_by_public_name
class ScoreImputer(TransformerMixin, BaseEstimator):
    """Fill the missing values of a table with values that go with the known cells.

    One energy over numbers and categories is learned from all rows, those with missing values included. Its draws are
    made sharp: each missing cell is copied from a fitted row, its donor, that resembles the drawn one. Known cells are
    never changed. Identifiers and free text are not modelled, and a column without a known cell tells nothing: their
    missing cells stay, with a warning that names the columns. ``columns={"Cabin": "category"}`` fills an identifier
    too.

    Parameters
    ----------
    n_draws : int, default=1
        With 1, :meth:`transform` fills a missing cell with one draw, so that the completed table keeps its spread and
        its correlations. With more, it takes the median of that many draws for numbers and the commonest level for
        categories: closer to the true cell on average, but with too little spread.
    columns : None or dict, default=None
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.
    hidden : tuple of int, default=(128, 128)
        Widths of the hidden layers.
    max_steps : int, default=1000
        Most training steps.
    random_state : None, int or generator, default=None
        The same fitted imputer fills the same table in the same way.
    verbose : int, default=0
    constraints : None, str or list, default=None
        Relations between columns that filled rows keep exactly, such as ``"start <= end"`` or ``"total == a + b"``; see
        :class:`ScoreClassifier`. Rows whose known cells violate one are left as they came, with a warning; rows that
        donors do not bring within them take draws that lie within.
    method : {"auto", "draws", "neighbours", "leaves", "matching"}, default="auto"
        Where the values of missing cells come from:

        - "draws": the energy itself. Values are possible ones, but blurred where columns determine each other.
        - "neighbours": one of the five fitted rows nearest to the drawn row, where columns count by what they tell of
          the missing one. Costs next to nothing.
        - "leaves": a row in the same leaf of a forest that is fitted to each column.
        - "matching": one of the five rows whose value boosting predicts most alike; levels by their probabilities.
        - "auto": of the last three, the one with the least energy distance between held-out known cells and what it
          fills them with; "neighbours" for more than 64 columns. Plain draws take no part, since the energy has learned
          from these cells.

    Attributes
    ----------
    method_ : str
        The method that fills missing cells.
    method_scores_ : dict
        Energy distance of each method that was compared, lower is better; empty if none was.
    donors_ : dict of arrays
        Up to 1,024 fitted rows that cells are copied from; a stored imputer contains them.
    left_alone_ : dict
        Name of each column that is not filled, and why.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 100)
    >>> X[::5, 1] = np.nan
    >>> filled = ScoreImputer(max_steps=50, random_state=0).fit_transform(X)
    >>> bool(np.isnan(filled).any()), bool(np.array_equal(filled[1], X[1]))
    (False, True)
    """

    _parameter_constraints = {
        "n_draws": [Interval(numbers.Integral, 1, None, closed="left")],
        "method": [StrOptions({"auto", *METHODS})],
        "columns": [None, dict],
        "constraints": [None, str, list, tuple],
        "hidden": ["array-like"],
        "max_steps": [Interval(numbers.Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self, *, n_draws=1, columns=None, random_state=None, hidden=(128, 128), max_steps=1000, verbose=0,
        constraints=None, method="auto",
    ):  # fmt: skip
        self.n_draws = n_draws
        self.columns = columns
        self.random_state = random_state
        self.hidden = hidden
        self.max_steps = max_steps
        self.verbose = verbose
        self.constraints = constraints
        self.method = method

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the law of the rows of X, an array, a DataFrame or a pyarrow table; y is ignored."""
        X = checked_table(self, X)
        space = RowSpace.fit(X, self.columns)
        check_constraints(space, X, self.constraints)
        self.seed_ = seed_from(self.random_state)
        rows, report = space.rows(X), ProgressReport(self, "energy", self.verbose)
        if len(rows) < 2:
            raise ValueError(f"Expected at least 2 rows, got {len(rows)} sample(s).")
        self.model_ = fit_generator(
            key_from(self.seed_), space, rows, np.zeros(len(rows), int), hidden=tuple(self.hidden),
            max_steps=self.max_steps, callback=report,
        )  # fmt: skip
        report.close(f"energy: weights of steps {[fit['best_step'] for fit in self.model_.history]}")
        filling = fit_filling(key_from(self.seed_), self.model_, X, self.method)
        self.method_, self.method_scores_ = filling.method, filling.scores
        parts = {} if filling.rows is None else filling._asdict()
        self.donors_ = {name: part for name, part in parts.items() if name not in ("method", "scores")}
        self.left_alone_ = {
            column.name: LEFT_ALONE[column.kind]
            for column in space.encoder.columns_
            if column.kind in SET_ASIDE or (column.kind == "constant" and column.constant is None)
        }
        return self

    def transform(self, X):
        """A complete table like X."""
        key, X = self._checked(X)
        self._warn_of_left_alone(X)
        if self.n_draws == 1:
            return self._filled(key, X, 1)[0]
        typical = typical_table(key, self.model_, self._filling, X, self.n_draws)
        return keep_constraints(key, self.model_, self.constraints, X, typical)

    def draws(self, X, n=5):
        """A list of n complete tables like X, for multiple imputation."""
        key, X = self._checked(X)
        self._warn_of_left_alone(X)
        return self._filled(key, X, n)

    @property
    def _filling(self):
        return Filling(self.method_, self.method_scores_, **self.donors_)

    def _filled(self, key, X, n):
        """n complete tables that keep the constraints."""
        tables = filled_tables(key, self.model_, self._filling, X, n)
        return [keep_constraints(jax.random.fold_in(key, draw), self.model_, self.constraints, X, table)
                for draw, table in enumerate(tables)]  # fmt: skip

    def left_alone_in(self, X):
        """Name of each column of X whose missing cells are not filled, and why."""
        check_is_fitted(self)
        table = Table(X)
        return {name: why for name, why in self.left_alone_.items() if not table.cells(name).known.all()}

    def _warn_of_left_alone(self, X):
        left = self.left_alone_in(X)
        if left:
            said = ", ".join(f"{name!r} ({why})" for name, why in left.items())
            others = {name: "category" for name, why in left.items() if why != LEFT_ALONE["constant"]}
            remedy = f" To fill such columns too, say what they are: columns={others}." if others else ""
            warn_caller(f"Missing cells are left alone in {said}.{remedy}")

    def _checked(self, X):
        check_is_fitted(self)
        return key_from(self.seed_), checked_table(self, X, reset=False)

    def get_feature_names_out(self, input_features=None):
        """The names of the columns."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return np.array(names if input_features is None else input_features, dtype=object)
