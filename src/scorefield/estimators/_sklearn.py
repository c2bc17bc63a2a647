"""scikit-learn's callbacks, its private names, and what differs between its versions; no other module has them."""

import contextlib

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples
from sklearn.utils.validation import validate_data as sklearn_validate_data

from scorefield.data.checks import check_labels, check_numbers

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Placeholder for versions of scikit-learn without callbacks."""

    def with_callbacks(method):  # type: ignore[no-redef]
        return method


__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "StrOptions",
    "boostable",
    "boosted_trees",
    "check_feature_names",
    "check_sample_weight",
    "fit_context",
    "fit_task",
    "num_samples",
    "sklearn_validate_data",
    "validate_data",
    "with_callbacks",
]


@contextlib.contextmanager
def fit_task(estimator, **data):
    """Announce a fit to scikit-learn's callbacks, where it has them."""
    if not hasattr(estimator, "_init_callback_context"):
        yield
        return
    context = estimator._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=estimator, **data)
    yield
    context.call_on_fit_task_end(estimator=estimator, **data)


def validate_data(estimator, X, y="no_validation", **options):
    """scikit-learn's function, with errors that name the column of a text, the target, and labels of two kinds."""
    if hasattr(X, "iloc"):
        check_numbers(X)
    check_labels(y)
    return sklearn_validate_data(estimator, X, y, **options)


def boostable(rows, kept):
    """Rows with zeros in the columns that no kept row knows, which the boosting of scikit-learn 1.9 fails on."""
    return np.where(np.isnan(rows[kept]).all(axis=0), 0.0, rows)


def boosted_trees(boosting):
    """The trees of a fitted HistGradientBoostingClassifier without categories as arrays, and its intercepts.

    Nodes of all trees stand one after the other; every tree gives one of the outputs.
    """
    parts, start, roots, outputs = [], 0, [], []
    for iteration in boosting._predictors:
        for output, predictor in enumerate(iteration):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            roots.append(start)
            outputs.append(output)
            parts.append(
                {
                    "feature": np.where(leaf, -1, nodes["feature_idx"].astype(np.int64)),
                    "threshold": nodes["num_threshold"].astype(np.float64),
                    "left": nodes["left"].astype(np.int64) + start,
                    "right": nodes["right"].astype(np.int64) + start,
                    "missing_left": nodes["missing_go_to_left"].astype(bool),
                    "value": nodes["value"].astype(np.float64)[:, None],
                }
            )
            start += len(nodes)
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    trees = {**joined, "root": np.array(roots), "output": np.array(outputs)}
    return trees, np.asarray(boosting._baseline_prediction, np.float64).ravel()
