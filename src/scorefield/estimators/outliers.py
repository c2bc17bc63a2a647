"""ScoreOutlierDetector: rows of low density, in tables of numbers and in mixed tables with gaps."""

import numbers

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.random import key_from, seed_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.estimators._sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    num_samples,
)
from scorefield.estimators.density import ScoreDensity, take_tables_like
from scorefield.models.class_densities import seeded_clone

FENCE = 1.5  # interquartile ranges below the lower quartile: where box plots begin to show single rows


@stored_by_public_name
class ScoreOutlierDetector(OutlierMixin, BaseEstimator):
    """Find unusual rows by their density.

    Parameters
    ----------
    density : None or ScoreDensity, default=None
        The density; None is ``ScoreDensity()``. Other estimators with ``fit`` and ``score_samples`` do as well.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows to call outliers: ``offset_`` is that quantile of their scores. Of rows with equal
        scores at the quantile none is called an outlier, so that ties give fewer, never more. "auto" asks for no share:
        an outlier scores more than 1.5 interquartile ranges below the lower quartile of the training rows, as in a box
        plot. On Gaussian rows without outliers that is 4.8 % of them in two columns and 1.9 % in ten.
    n_draws : int, default=8
        Draws per row with missing values; see Notes.
    random_state : None, int or generator, default=None
        Seeds a density without a ``random_state`` of its own, and the draws. The same fitted detector scores the same
        table in the same way.

    Attributes
    ----------
    density_ : estimator
        The fitted density.
    offset_ : float
        ``decision_function`` is ``score_samples`` less this offset.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Log densities of rows that miss different cells cannot be compared, since they are densities of different cells. A
    row with missing values is therefore completed by draws given its known cells, and its score is the mean over the
    draws: the log density of the known cells less the entropy of the others given them. A missing value is neither
    typical nor odd, and a row without any known cell is typical.

    In mixed tables numbers are measured as normal scores, so that units do not matter. Those of extreme numbers grow
    with the distance from the bulk of their column, also among the training rows, where the rank alone would make them
    ordinary maxima. A level that no training row has counts as one of half a row.

    New rows score a little lower than rows that the density was fitted to, and are called outliers more often.

    ``score_samples``, ``decision_function`` and ``predict`` also take dask arrays and dataframes of numbers; they then
    return dask arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, ScoreOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> detector = ScoreOutlierDetector(ScoreDensity(model="gaussian"), random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.5], [5.0, -5.0]])
    array([ 1, -1])
    """

    _parameter_constraints = {
        "density": [None, HasMethods(["fit", "score_samples"])],
        "contamination": [StrOptions({"auto"}), Interval(numbers.Real, 0, 0.5, closed="right")],
        "n_draws": [Interval(numbers.Integral, 1, None, closed="left")],
    }

    def __init__(self, density=None, *, contamination="auto", n_draws=8, random_state=None):
        self.density = density
        self.contamination = contamination
        self.n_draws = n_draws
        self.random_state = random_state

    def __sklearn_tags__(self):
        return take_tables_like(super().__sklearn_tags__(), self.density)

    @fit_context(prefer_skip_nested_validation=False)  # that of the density
    def fit(self, X, y=None):
        """Learn the density of the rows of X, an array, a DataFrame or a pyarrow table; y is ignored."""
        self.seed_ = seed_from(self.random_state)
        density = ScoreDensity() if self.density is None else self.density
        self.density_ = seeded_clone(density, np.random.default_rng(self.seed_)).fit(X)
        self.n_rows_ = num_samples(X)
        for name in ("n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
            if hasattr(self.density_, name):
                setattr(self, name, getattr(self.density_, name))
        scores = np.asarray(self.score_samples(X), np.float64)
        if self.contamination == "auto":
            low, high = np.quantile(scores, [0.25, 0.75])
            self.offset_ = float(low - FENCE * (high - low))
        else:
            self.offset_ = float(np.quantile(scores, self.contamination))
        return self

    def score_samples(self, X):
        """Log density of each row, shape (n,): the lower, the more unusual.

        In mixed tables it is that of the normal scores of completed rows, up to a constant.
        """
        check_is_fitted(self)
        if not isinstance(self.density_, ScoreDensity):
            return self.density_.score_samples(X)
        return self.density_.completed_scores(X, key_from(self.seed_), self.n_draws)

    def decision_function(self, X):
        """Scores less ``offset_``, shape (n,): negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        """-1 for outliers and 1 for other rows, shape (n,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)
