"""One density per class: trained in one program where their shapes agree, or as tasks of joblib."""

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from scorefield.models.shared_training import errors_begin_with, fit_together


def class_rng(seed, k):
    """The generator of class k: its seed and draws do not depend on the other classes."""
    return np.random.default_rng([seed % (1 << 31), k])


def seeded_clone(density, rng):
    """A clone of the density; one without a random state of its own is seeded by the generator."""
    fresh = clone(density)
    if "random_state" in fresh.get_params() and fresh.get_params()["random_state"] is None:
        fresh.set_params(random_state=int(rng.integers(1 << 31)))
    return fresh


def fit_class_densities(densities, tables, labels, rngs, *, weights=None, normalize=True):
    """Clones of the densities, each fitted to the rows of one class.

    In this process the networks of all classes train together. Where joblib was told to use more
    (``joblib.parallel_config``: processes, a dask cluster), every class is a task of its own. A fit draws the same
    random numbers either way. ``weights`` are those of each class's rows, or None; a density that takes none is fitted
    to rows that are drawn in proportion to them. ``normalize=False`` leaves the constants of log densities until they
    are asked for.
    """
    fresh = [seeded_clone(density, rng) for density, rng in zip(densities, rngs, strict=True)]
    tables = list(zip(tables, [None] * len(tables) if weights is None else weights, strict=True))
    names = [f"Class {label!r} with {len(rows)} rows" for label, (rows, _) in zip(labels, tables, strict=True)]
    if len(fresh) > 1 and effective_n_jobs(None) > 1:
        each = zip(fresh, tables, names, strict=True)
        fits = Parallel()(delayed(_fit_group)([density], [rows], [name], normalize) for density, rows, name in each)
        return [density for (density,) in fits]
    return _fit_group(fresh, tables, names, normalize)


def _fit_group(densities, tables, names, normalize):
    shared = [number for number, density in enumerate(densities) if getattr(density, "trains_with_others", False)]
    for number, (density, table, name) in enumerate(zip(densities, tables, names, strict=True)):
        if number not in shared:
            with errors_begin_with(name):
                _fit_alone(density, *table)
    trainings, checked = [], []
    for number in shared:
        with errors_begin_with(names[number]):
            if not get_config()["skip_parameter_validation"]:
                densities[number]._validate_params()
            training, table = densities[number].training(*tables[number])
            trainings.append(training)
            checked.append(table)
    fitted = fit_together(trainings, checked, [names[number] for number in shared])
    for number, model in zip(shared, fitted, strict=True):
        densities[number].model_ = model
        if normalize:
            with errors_begin_with(names[number]):
                model.normalized()
    return densities


def _fit_alone(density, rows, weights):
    if weights is None:
        density.fit(rows)
    elif has_fit_parameter(density, "sample_weight"):
        density.fit(rows, sample_weight=weights)
    else:
        density.fit(rows[np.random.default_rng(0).choice(len(rows), len(rows), p=weights / weights.sum())])
