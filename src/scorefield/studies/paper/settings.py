"""Settings and measures that several experiments share."""

import numpy as np
from scipy.spatial.distance import jensenshannon

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield.data.datasets import GAUSSIANS
from scorefield.estimators.density import ScoreDensity
from scorefield.fields.mixtures import mixture

VIEW_2D = (-4.0, 8.0)  # the square that the 2-D figures show
NAMES_2D = ("x₁", "x₂")


def true_classes(n_features):
    """The exact classes of the paper's 1-D or 2-D example."""
    return [mixture([1.0], [mean], [covariance]) for mean, covariance in GAUSSIANS[n_features]]


def exact_log_density(truth, points):
    return map_rows(Method(truth, "potential"), np.asarray(points, np.float32))


def exact_score(truth, points):
    return map_rows(Method(truth, "__call__"), np.asarray(points, np.float32))


def paper_density(hidden, seed, **options):
    """The paper's field: a ReLU network, exact score matching, raw columns, a Gaussian guess at the mean.

    The paper prints neither the number of steps nor, for most figures, the learning rate: at most 1,000 steps at .001,
    stopped early by the loss of a held-out fifth, meet the divergences that it prints for `recover-1d`.
    """
    settings = {
        "model": "mlp",
        "objective": "exact",
        "activation": "relu",
        "standardize": False,
        "anchor": "gaussian",
        "learning_rate": 0.001,
        "max_steps": 1000,
        "hidden": tuple(hidden),
        "random_state": seed,
    }
    return ScoreDensity(**{**settings, **options})


def divergence(p, q):
    """Jensen-Shannon divergence in nats of two densities on one grid."""
    return float(jensenshannon(np.ravel(p), np.ravel(q)) ** 2)


def panels(n, n_columns, *, height, **options):
    """A figure and the axes of n panels, in rows of `n_columns`."""
    import matplotlib.pyplot as plt

    n_rows = -(-n // n_columns)
    size = (11, height * n_rows)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False, **options)
    for ax in axes.flat[n:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:n])
