"""The paper's three labelling rules, with and without augmentation by generated rows.

Contrast of pseudo-densities 1/|s| (Eq:score_func_prob), fixed-radius vote, k-nearest vote (its figures of the 2-D
example).
"""

import numbers

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.storage import stored_by_public_name
from scorefield.estimators._sklearn import HasMethods, Interval, StrOptions, fit_context, validate_data
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import ScoreDensity
from scorefield.estimators.oversampling import ScoreOverSampler


@stored_by_public_name
class LabellingClassifier(ClassifierMixin, BaseEstimator):
    """Label rows by one of the paper's rules.

    Parameters
    ----------
    rule : {"k-nearest", "radius", "pseudo-density"}, default="k-nearest"
        Vote of the ``n_neighbors`` nearest rows, vote of the rows within ``radius``, or the class with the largest
        ``1/|s(x)|``. The last is rough: it is not a density.
    n_augment : int, default=0
        Rows to generate for each class first; 0 works on the original rows.
    n_neighbors : int, default=5
    radius : float, default=1.0
        In the units of X.
    density : None or ScoreDensity, default=None
        Field of each class; None is ``ScoreDensity()``.
    sampler : None or sampler, default=None
        As in :class:`ScoreOverSampler`.
    random_state : None, int or generator, default=None
        Seeds all random numbers; the same integer gives the same results, and None others in each run.

    Attributes
    ----------
    classes_ : ndarray
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreDensity
    >>> from scorefield.paper import LabellingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-2, 1, (30, 2)), rng.normal(2, 1, (30, 2))])
    >>> y = np.repeat([0, 1], 30)
    >>> model = LabellingClassifier("k-nearest", n_augment=200, density=ScoreDensity(model="gaussian"), random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.9)
    True
    """

    _parameter_constraints = {
        "rule": [StrOptions({"k-nearest", "radius", "pseudo-density"})],
        "n_augment": [Interval(numbers.Integral, 0, None, closed="left")],
        "n_neighbors": [Interval(numbers.Integral, 1, None, closed="left")],
        "radius": [Interval(numbers.Real, 0, None, closed="neither")],
        "density": [None, HasMethods(["fit", "grad_log_density"])],
        "sampler": [None, HasMethods(["sample"])],
    }

    def __init__(
        self,
        rule="k-nearest",
        *,
        n_augment=0,
        n_neighbors=5,
        radius=1.0,
        density=None,
        sampler=None,
        random_state=None,
    ):
        self.rule = rule
        self.n_augment = n_augment
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.density = density
        self.sampler = sampler
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Learn from rows X (n, d) and labels y (n,)."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, counts = np.unique(y, return_counts=True)
        if len(self.classes_) < 2:
            raise ValueError(f"Expected at least two classes in y, got 1 class: {self.classes_.tolist()[0]!r}.")
        density = ScoreDensity() if self.density is None else clone(self.density)
        if self.n_augment:
            wanted = dict(zip(self.classes_.tolist(), (counts + self.n_augment).tolist(), strict=True))
            over = ScoreOverSampler(
                sampling_strategy=wanted, purpose="sharing", density=density, sampler=self.sampler,
                random_state=self.random_state,
            )  # fmt: skip
            X, y = over.fit_resample(X, y)
        if self.rule == "pseudo-density":
            self.model_ = ScoreClassifier(density, calibration=None, random_state=self.random_state)
        elif self.rule == "radius":
            most = int(np.argmax(counts))  # the answer where no row is in reach
            self.model_ = RadiusNeighborsClassifier(radius=self.radius, outlier_label=most)
        else:
            self.model_ = KNeighborsClassifier(min(self.n_neighbors, len(X)))
        # Class numbers: RadiusNeighborsClassifier refuses labels whose type is not exactly that of outlier_label.
        self.model_.fit(X, np.searchsorted(self.classes_, y))
        return self

    def predict_proba(self, X):
        """Share of votes, or of the pseudo-densities, shape (n, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        if self.rule != "pseudo-density":
            return self.model_.predict_proba(X)
        norms = np.linalg.norm(self.model_.grad_log_density(X), axis=2)
        inverse = 1 / np.maximum(norms, np.finfo(np.float32).tiny)
        return inverse / inverse.sum(axis=1, keepdims=True)

    def predict(self, X):
        """The label of the largest share."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
