"""Fields and boundaries of fitted classifiers' posteriors: the estimator forms of `decisions`.

Eq:binary_density_score_func, Eq:binary_density_func and Eq:Newton_Raphson, on estimators or any jax function.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import pytree, static
from scorefield.data.checks import check_numbers
from scorefield.inference import decisions
from scorefield.inference.decisions import Boundary, LinearLogits
from scorefield.inference.functions import OfRawRows


@pytree
class _FromFunction:
    """A user's jax function of one point; compiled once per function."""

    function: object = static()

    def __call__(self, x):
        return self.function(x)  # type: ignore[operator]


@pytree
class _PosteriorField:
    logits: object
    label: int = static()
    gradient: bool = static()

    def __call__(self, x):
        field = decisions.softmax_gradient if self.gradient else decisions.log_softmax_gradient
        return field(self.logits, x, self.label)  # type: ignore[arg-type]


@pytree
class LogOdds:
    """Log ratio of the expected costs of predicting the first class and the second; without costs, the log odds."""

    logits: object
    costs: object  # (classes, classes) or None
    margin: float
    first: object = 0
    second: object = 1

    def __call__(self, x):
        values = self.logits(x)  # type: ignore[operator]
        values = values - self.margin * (jnp.arange(len(values)) > 0)
        if self.costs is None:
            return values[self.second] - values[self.first]
        risks = jax.scipy.special.logsumexp(values[:, None], axis=0, b=self.costs)
        return risks[self.first] - risks[self.second]

    def between(self, first, second):
        """The same for two other classes."""
        return dataclasses.replace(self, first=first, second=second)


def is_score_classifier(estimator):
    """True for classifiers whose posterior is a jax function."""
    return hasattr(estimator, "log_posterior_function")


def logits_function(estimator):
    """A jax function x -> logits, and the classes, of an estimator whose posterior can be differentiated."""
    if is_score_classifier(estimator):
        return estimator.log_posterior_function(), estimator.classes_
    if isinstance(estimator, LogisticRegression):
        check_is_fitted(estimator)
        coefficients, intercepts = estimator.coef_.T, estimator.intercept_
        if coefficients.shape[1] == 1:
            coefficients = np.concatenate([np.zeros_like(coefficients), coefficients], axis=1)
            intercepts = np.concatenate([[0.0], intercepts])
        return LinearLogits(np.asarray(coefficients), np.asarray(intercepts)), estimator.classes_
    if isinstance(estimator, Pipeline) and all(isinstance(step, StandardScaler) for _, step in estimator.steps[:-1]):
        logits, classes = logits_function(estimator[-1])
        for _, scaler in reversed(estimator.steps[:-1]):
            d = scaler.n_features_in_
            shift = np.zeros(d) if scaler.mean_ is None else scaler.mean_
            logits = OfRawRows(logits, shift, np.ones(d) if scaler.scale_ is None else scaler.scale_)
        return logits, classes
    if callable(estimator) and not isinstance(estimator, BaseEstimator):
        opaque = jax.tree.leaves(estimator) == [estimator]  # else a pytree, whose arrays are seen as such
        return _FromFunction(estimator) if opaque else estimator, None
    raise TypeError(
        f"Expected LogisticRegression, ScoreClassifier, a pipeline of scalers and one of them, or a jax function "
        f"x -> logits, got {type(estimator).__name__}; a piecewise constant posterior (trees, neighbours) has no field."
    )


def class_index(classes, label, logits, X):
    """Index of a label among the classes, or of a logit where a function has no classes."""
    if classes is None:
        n_logits = len(jax.eval_shape(logits, X[0]))
        if int(label) != label or not 0 <= label < n_logits:
            raise ValueError(f"Expected the index of one of {n_logits} logits, got {label!r}.")
        return int(label)
    where = np.flatnonzero(classes == label)
    if len(where) == 0:
        raise ValueError(f"Expected a label of {classes.tolist()}, got {label!r}.")
    return int(where[0])


def check_rows(estimator, X):
    """Validate rows with the columns that the estimator was fitted to."""
    if isinstance(estimator, BaseEstimator):
        first = estimator[0] if isinstance(estimator, Pipeline) else estimator
        if hasattr(X, "iloc"):
            check_numbers(X)
        return validate_data(first, X, dtype=[np.float64, np.float32], reset=False)
    return check_array(X, dtype=[np.float64, np.float32])


def _field(estimator, X, label, gradient):
    logits, classes = logits_function(estimator)
    X = check_rows(estimator, X)
    index = class_index(classes, label, logits, X)
    with jax.enable_x64(True):  # columns may have offsets that single precision cannot hold
        field = _PosteriorField(widened(logits), index, gradient)
        return map_rows(field, X.astype(np.float64), points=2).astype(X.dtype)


def posterior_score(estimator, X, label):
    """Score field of a posterior, grad log p(label | x), at each row.

    Parameters
    ----------
    estimator : fitted LogisticRegression, ScoreClassifier, pipeline of scalers and one of them, or jax function
        A function maps one point (d,) to logits (classes,).
    X : array of shape (n, d)
    label : label, or index of the logit for a function

    Returns
    -------
    ndarray of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import posterior_score
    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), [0, 0, 1, 1]
    >>> posterior_score(LogisticRegression().fit(X, y), X, 1).shape
    (4, 1)
    """
    return _field(estimator, X, label, gradient=False)


def posterior_gradient(estimator, X, label):
    """Gradient of a posterior, grad p(label | x), at each row; arguments as in :func:`posterior_score`.

    Returns
    -------
    ndarray of shape (n, d)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from scorefield import posterior_gradient
    >>> posterior_gradient(lambda x: jnp.array([0.0, 3.5 * x[0] - 0.1]), [[0.1 / 3.5]], 1).round(3)
    array([[0.875]])
    """
    return _field(estimator, X, label, gradient=True)


def find_boundary(estimator, X_start, classes=None, tol=1e-6, max_iter=50):
    """Points where two classes are equally probable, or cost the same, by Newton's method from each start.

    The ``margin`` and ``costs`` of a :class:`ScoreClassifier` move its boundary, as they move its predictions.

    Parameters
    ----------
    estimator : as in :func:`posterior_score`
    X_start : array of shape (n, d)
    classes : None or pair of labels
        The two classes; the first two where left out.
    tol : float
        Largest absolute log odds that count as zero; with costs, the log ratio of the expected costs.
    max_iter : int

    Returns
    -------
    result with ``points`` (n, d), ``residual`` (n,), ``converged`` (n,) and ``n_iter`` (n,)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from scorefield import find_boundary
    >>> found = find_boundary(lambda x: jnp.array([0.0, 3.5 * x[0] - 0.1]), [[5.0]])
    >>> found.points.round(2), found.converged
    (array([[0.03]]), array([ True]))
    """
    logits, known = logits_function(estimator)
    X = check_rows(estimator, X_start)
    if classes is None:
        classes = (0, 1) if known is None else known[:2]
    if len(classes) != 2:
        raise ValueError(f"Expected two classes, got {classes!r}.")
    pair = [class_index(known, label, logits, X) for label in classes]
    # Double precision inside this call only: single precision cannot resolve 1e-6 of a log density of a hundred.
    with jax.enable_x64(True):
        log_odds = LogOdds(widened(logits), *costs_and_margin(estimator), *pair)
        found = decisions.newton_zeros(log_odds, X, tol=tol, max_iter=max_iter)
    return Boundary(found.points.astype(X.dtype), *found[1:])


def costs_and_margin(estimator):
    """Costs and margin of a ScoreClassifier; none for other models."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not is_score_classifier(last):
        return None, 0.0
    costs = None if last.costs is None else decisions.check_costs(last.costs, len(last.classes_))
    return costs, float(last.margin)


def widened(tree):
    """A model with its floating-point leaves in double precision."""
    return jax.tree.map(
        lambda leaf: leaf.astype(np.float64) if leaf.dtype.kind == "f" else leaf, jax.tree.map(np.asarray, tree)
    )
