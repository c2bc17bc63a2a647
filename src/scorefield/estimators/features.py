"""ScoreFeatures: rows as the values of learned score fields, for use before any classifier.

The paper's score features (its multi-modal example), with one field for all rows or one per class.
"""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from scorefield._jax.random import key_from, seed_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.checks import check_labels
from scorefield.data.containers import Table
from scorefield.data.row_space import RowSpace
from scorefield.data.spaces import is_mixed
from scorefield.estimators._sklearn import HasMethods, fit_context, sklearn_validate_data, validate_data
from scorefield.estimators.density import ScoreDensity, take_tables_like
from scorefield.estimators.mixed_encoder import MixedEncoder
from scorefield.models.class_densities import class_rng, fit_class_densities
from scorefield.models.fitting import fit_generator
from scorefield.models.settings import generator_options


@stored_by_public_name
class ScoreFeatures(TransformerMixin, BaseEstimator):
    """Map rows to score-field values.

    Parameters
    ----------
    density : None or ScoreDensity, default=None
        The field; None is ``ScoreDensity()``. In mixed tables it is that of the normal scores of the number columns,
        given the rest of the row, 0 where missing.
    per_class : bool, default=False
        One field per class of y (columns of all classes side by side) instead of one for all rows.
    passthrough : bool, default=False
        Keep the original columns before the field's; those of mixed tables as numbers, see :class:`MixedEncoder`.
    random_state : None, int or generator, default=None
        Seeds all random numbers; the same integer gives the same results, and None others in each run.

    Attributes
    ----------
    densities_ : list
        The fitted densities, one or one per class; absent for mixed tables, whose classes share one energy.
    classes_ : ndarray
        With ``per_class``.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, ScoreFeatures
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> ScoreFeatures(ScoreDensity(model="gaussian")).fit(X).transform(X).shape
    (60, 2)
    """

    _parameter_constraints = {
        "density": [None, HasMethods(["fit", "grad_log_density"])],
        "per_class": ["boolean"],
        "passthrough": ["boolean"],
    }

    def __init__(self, density=None, *, per_class=False, passthrough=False, random_state=None):
        self.density = density
        self.per_class = per_class
        self.passthrough = passthrough
        self.random_state = random_state

    def __sklearn_tags__(self):
        return take_tables_like(super().__sklearn_tags__(), self.density)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the field, or one for each class of y, from an array, a DataFrame or a pyarrow table."""
        if self.per_class and y is None:
            raise ValueError("Expected y for per_class=True, got None.")
        for name in ("densities_", "row_model_", "encoder_"):
            vars(self).pop(name, None)
        density = ScoreDensity() if self.density is None else self.density
        target = {"y": y} if self.per_class else {}
        if isinstance(density, ScoreDensity) and is_mixed(X, density.columns):
            return self._fit_mixed(density, X, **target)
        checked = validate_data(self, X, **target, dtype=[np.float64, np.float32], ensure_min_samples=2)
        seed = seed_from(self.random_state)
        if self.per_class:
            X, numbers = checked[0], self._class_numbers(checked[1])
            labels, tables = self.classes_.tolist(), [X[numbers == k] for k in range(len(self.classes_))]
        else:
            labels, tables = ["all"], [checked]
        rngs = [class_rng(seed, k) for k in range(len(tables))]
        self.densities_ = fit_class_densities([density] * len(tables), tables, labels, rngs, normalize=False)
        return self

    def _class_numbers(self, y):
        check_labels(y)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(np.asarray(y), return_inverse=True)
        return numbers

    def _fit_mixed(self, density, X, y=None):
        """One energy of mixed rows, of all classes where they are asked for."""
        space = RowSpace.fit(X, density.columns)
        options = generator_options(density, space)
        numbers = np.zeros(len(Table(X).native), int)
        if y is not None:
            check_consistent_length(X, y)
            numbers = self._class_numbers(y)
        sklearn_validate_data(self, X, skip_check_array=True)
        rows = space.rows(X)
        state = self.random_state if density.random_state is None else density.random_state
        self.row_model_ = fit_generator(key_from(seed_from(state)), space, rows, numbers, **options)
        self.encoder_ = MixedEncoder(columns=density.columns).fit(X)
        return self

    def transform(self, X):
        """Field values (n, d), or (n, classes * d) with ``per_class``; the original columns first if asked for."""
        check_is_fitted(self)
        if hasattr(self, "row_model_"):
            sklearn_validate_data(self, X, skip_check_array=True, reset=False)
            scores = self.row_model_.scores(self.row_model_.space.rows(X))
            parts = [scores.reshape(len(scores), -1)]
            X = self.encoder_.transform(X) if self.passthrough else None
        else:
            X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
            parts = [density.grad_log_density(X) for density in self.densities_]
        return np.hstack([X, *parts] if self.passthrough else parts)

    def get_feature_names_out(self, input_features=None):
        """Names such as ``score_x0``, or ``score_fraud_x0`` with ``per_class``; of mixed tables the number columns."""
        check_is_fitted(self)
        names = input_features
        if names is None:
            names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        own = list(names) if self.passthrough else []
        if hasattr(self, "row_model_"):
            own = list(self.encoder_.get_feature_names_out()) if self.passthrough else []
            encoder = self.row_model_.space.encoder
            places = {column.name: i for i, column in enumerate(encoder.columns_)}
            names = [names[places[v.name]] for v in encoder.variables if v.number >= 0]
        prefixes = [f"score_{label}_" for label in self.classes_] if self.per_class else ["score_"]
        return np.array(own + [prefix + str(name) for prefix in prefixes for name in names], dtype=object)
