"""Teachers: classifiers whose probabilities label new rows, fitted and asked for the classes of a table."""

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from scorefield.data.containers import with_dense_columns
from scorefield.models.students import weight_argument


def seeded_clone_of(rng, estimator):
    """A clone whose random states are set where they are None, so that one random state makes all of it repeatable."""
    fresh = clone(estimator)
    if not hasattr(fresh, "get_params") or isinstance(fresh, FrozenEstimator):
        return fresh
    for name, value in sorted(fresh.get_params().items()):
        if value is None and (name == "random_state" or name.endswith("__random_state")):
            fresh.set_params(**{name: int(rng.integers(1 << 31))})
    return fresh


def fitted_teacher(rng, teacher, X, y, weights=None):
    """A clone of a teacher, fitted to a table and the weights of its rows; a frozen one as it is."""
    fresh, argument = seeded_clone_of(rng, teacher), {}
    if weights is not None and not isinstance(fresh, FrozenEstimator):
        name = weight_argument(fresh)
        if name is None:
            raise ValueError(
                f"Expected a teacher that takes sample_weight, got {type(fresh).__name__}; leave the weights out, or "
                "choose another teacher."
            )
        argument = {name: weights}
    fresh.fit(with_dense_columns(X), y, **argument)
    classes, taught = np.unique(y), np.asarray(fresh.classes_)
    if len(taught) != len(classes) or not np.isin(classes, taught).all():
        raise ValueError(
            f"Expected a teacher of the classes {classes.tolist()}, got one of {taught.tolist()}; fit it to all of "
            "them, or leave teacher=None."
        )
    return fresh


def probabilities(teacher, classes, X):
    """The teacher's probabilities of the classes in their order, (n, classes)."""
    taught = np.asarray(teacher.classes_)
    order = [int(np.flatnonzero(taught == label)[0]) for label in classes]
    return np.asarray(teacher.predict_proba(with_dense_columns(X)), dtype=np.float64)[:, order]
