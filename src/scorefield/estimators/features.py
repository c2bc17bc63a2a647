"""ScoreFeatures: rows as the values of learned score fields, for use before any classifier.

The paper's score features (its multi-modal example), with one field for all rows or one per class.
"""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.random import seed_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.estimators._sklearn import HasMethods, fit_context, validate_data
from scorefield.estimators.class_densities import class_rng, fit_class_densities
from scorefield.estimators.density import ScoreDensity


@stored_by_public_name
class ScoreFeatures(TransformerMixin, BaseEstimator):
    """Map rows to score-field values.

    Parameters
    ----------
    density : None or ScoreDensity
        The field; None is ``ScoreDensity()``.
    per_class : bool
        One field per class of y (columns of all classes side by side) instead of one for all rows.
    passthrough : bool
        Keep the original columns before the field's.
    random_state : None, int or generator

    Attributes
    ----------
    densities_ : list
        The fitted densities, one or one per class.
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

    def __init__(self, density=None, per_class=False, passthrough=False, random_state=None):
        self.density = density
        self.per_class = per_class
        self.passthrough = passthrough
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn the field, or one for each class of y."""
        if self.per_class and y is None:
            raise ValueError("Expected y for per_class=True, got None.")
        target = {"y": y} if self.per_class else {}
        checked = validate_data(self, X, **target, dtype=[np.float64, np.float32], ensure_min_samples=2)
        density = ScoreDensity() if self.density is None else self.density
        seed = seed_from(self.random_state)
        if self.per_class:
            X, y = checked
            check_classification_targets(y)
            self.classes_, numbers = np.unique(np.asarray(y), return_inverse=True)
            labels, tables = self.classes_.tolist(), [X[numbers == k] for k in range(len(self.classes_))]
        else:
            labels, tables = ["all"], [checked]
        rngs = [class_rng(seed, k) for k in range(len(tables))]
        self.densities_ = fit_class_densities([density] * len(tables), tables, labels, rngs, normalize=False)
        return self

    def transform(self, X):
        """Field values (n, d), or (n, classes * d) with ``per_class``; the original columns first if asked for."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        parts = [density.grad_log_density(X) for density in self.densities_]
        return np.hstack([X, *parts] if self.passthrough else parts)

    def get_feature_names_out(self, input_features=None):
        """Names such as ``score_x0``, or ``score_fraud_x0`` with ``per_class``."""
        check_is_fitted(self)
        names = input_features
        if names is None:
            names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        prefixes = [f"score_{label}_" for label in self.classes_] if self.per_class else ["score_"]
        own = list(names) if self.passthrough else []
        return np.array(own + [prefix + str(name) for prefix in prefixes for name in names], dtype=object)
