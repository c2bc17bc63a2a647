"""Settings, measures and figures shared by several experiments."""

import numpy as np
from scipy.spatial.distance import jensenshannon

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield.data.datasets import GAUSSIANS
from scorefield.estimators.density import ScoreDensity
from scorefield.fields.mixtures import mixture

VIEW_2D = (-4.0, 8.0)  # limits of both axes in 2-D figures
NAMES_2D = ("x₁", "x₂")


def true_classes(n_features):
    """Exact densities of the classes in the paper's 1-D or 2-D example."""
    return [mixture([1.0], [mean], [covariance]) for mean, covariance in GAUSSIANS[n_features]]


def exact_log_density(truth, points):
    return map_rows(Method(truth, "potential"), np.asarray(points, np.float32))


def exact_score(truth, points):
    return map_rows(Method(truth, "__call__"), np.asarray(points, np.float32))


def paper_density(hidden, seed, **options):
    """The paper's field: a ReLU network, exact score matching, raw columns, a Gaussian anchor at the mean.

    The paper gives no number of steps and, for most figures, no learning rate. At most 1,000 steps at .001, stopped
    early by the loss on a held-out fifth, reproduce the divergences that it prints for `recover-1d`.
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
    """Jensen-Shannon divergence in nats between two densities on the same grid."""
    return float(jensenshannon(np.ravel(p), np.ravel(q)) ** 2)


def panels(n, n_columns, *, height, **options):
    """Figure and axes of n panels, with `n_columns` panels in a row."""
    import matplotlib.pyplot as plt

    n_rows = -(-n // n_columns)
    size = (11, height * n_rows)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False, **options)
    for ax in axes.flat[n:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:n])
