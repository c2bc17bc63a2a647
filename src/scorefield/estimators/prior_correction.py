"""PriorCorrectedClassifier: probabilities for the original class frequencies after resampling.

Over-sampling changes p(y) in the training set; Bayes' rule (Eq:generative_classification_1) undoes the change.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.errors import warn_caller
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.checks import check_labels
from scorefield.estimators._sklearn import HasMethods, fit_context, num_samples


class _LabelRecorder(ClassifierMixin, BaseEstimator):
    """Last step of a pipeline; records the labels it is fitted to."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, **params):
        self.labels_, self.counts_ = np.unique(np.asarray(y), return_counts=True)
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return self


def _takes_mixed_tables(pipeline):
    """True if the samplers at the beginning of a pipeline and the step after them take text and gaps."""
    steps = [step for _, step in pipeline.steps]
    first = next((i for i, step in enumerate(steps) if not hasattr(step, "fit_resample")), len(steps) - 1)
    found = [get_tags(step).input_tags for step in steps[: first + 1] if hasattr(step, "get_params")]
    return all(tags.allow_nan and tags.string for tags in found)


@stored_by_public_name
class PriorCorrectedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Fit a pipeline that contains a sampler; return probabilities for the class frequencies before it.

    A classifier trained after over-sampling answers for the frequencies that it saw. Its odds are multiplied by
    (frequency before / frequency after) of each class.

    Parameters
    ----------
    estimator : classifier or pipeline with ``predict_proba``
        An imbalanced-learn pipeline with one or more samplers. Without a sampler nothing is corrected.

    Attributes
    ----------
    estimator_ : fitted clone
    classes_ : ndarray
    priors_before_, priors_after_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> import numpy as np
    >>> from imblearn.over_sampling import RandomOverSampler
    >>> from imblearn.pipeline import make_pipeline
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import PriorCorrectedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 2)), (rng.random(500) < 0.1).astype(int)
    >>> model = PriorCorrectedClassifier(make_pipeline(RandomOverSampler(), LogisticRegression())).fit(X, y)
    >>> bool(abs(model.predict_proba(X)[:, 1].mean() - y.mean()) < 0.03)
    True
    """

    _parameter_constraints = {"estimator": [HasMethods(["fit", "predict_proba"])]}

    def __init__(self, estimator):
        self.estimator = estimator

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, **params):
        """Fit a clone of the estimator and record class frequencies before and after its samplers."""
        check_labels(y)
        check_classification_targets(y)
        recorded = clone(self.estimator)
        direct = [step for _, step in recorded.steps] if isinstance(recorded, Pipeline) else []
        for name, part in recorded.get_params().items():
            if hasattr(part, "fit_resample") and not isinstance(part, Pipeline) and all(part is not s for s in direct):
                raise ValueError(
                    f"Expected samplers as steps of the pipeline itself, got one nested at {name!r}, where the class "
                    "frequencies after it cannot be seen; put PriorCorrectedClassifier around the inner pipeline."
                )
        for step in direct:
            if hasattr(step, "purpose") and (step.purpose, step.where) != ("sharing", "everywhere"):
                warn_caller(
                    f"{type(step).__name__}(purpose={step.purpose!r}, where={step.where!r}) keeps rows that do not "
                    "follow the law of their class, so that corrected probabilities are biased; use "
                    "purpose='sharing' and where='everywhere' here."
                )
        if isinstance(recorded, Pipeline):
            name, last = recorded.steps[-1]
            recorded.steps[-1] = (name, _LabelRecorder(last))
            recorder = recorded.fit(X, y, **params).steps[-1][1]
            recorded.steps[-1] = (name, recorder.estimator_)
            self.estimator_ = recorded
        else:
            recorder = _LabelRecorder(recorded).fit(X, y, **params)
            self.estimator_ = recorder.estimator_
        self.classes_, before = np.unique(np.asarray(y), return_counts=True)
        if not np.array_equal(recorder.labels_, self.classes_):
            raise ValueError(f"Expected classes {self.classes_} after resampling, got {recorder.labels_}.")
        self.priors_before_ = before / num_samples(y)
        self.priors_after_ = recorder.counts_ / recorder.counts_.sum()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_proba(self, X):
        """p(y | x) for the frequencies of the y that was passed to ``fit``."""
        check_is_fitted(self)
        shifted = self.estimator_.predict_proba(X) * (self.priors_before_ / self.priors_after_)
        return shifted / shifted.sum(axis=1, keepdims=True)

    def predict(self, X):
        """The most probable label."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            own = inner()
            tags.input_tags = own.input_tags
            tags.classifier_tags = own.classifier_tags or tags.classifier_tags
        if isinstance(self.estimator, Pipeline) and _takes_mixed_tables(self.estimator):
            tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags
