"""One density for each class: trained in one program where their shapes agree, or as tasks of joblib."""

import contextlib

from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from scorefield.estimators.density import ScoreDensity
from scorefield.training.together import run_together


def prepared(density, seed):
    """A clone of the density; the seed is for those that have none of their own."""
    fresh = clone(density)
    if fresh.get_params().get("random_state", seed) is None:
        fresh.set_params(random_state=seed)
    return fresh


@contextlib.contextmanager
def _named(label, rows):
    """Errors of a class begin with its name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Class {label!r} with {len(rows)} rows: {error}") from error


def _fit_alone(density, rows, label):
    with _named(label, rows):
        return density.fit(rows)


def _fitting(density, rows, label):
    with _named(label, rows):
        yield from density.fitting(rows)


def _can_share(density):
    """Whether a density is fitted as the library has it, and has no callbacks, which expect a fit of their own."""
    return type(density) is ScoreDensity and not getattr(density, "_skl_callbacks", None)


def fit_class_densities(densities, tables, labels, seeds):
    """Clones of the densities, each fitted to the rows of one class.

    In this process the networks of all classes that are of one shape train in one program. Where joblib was told to
    use more (``joblib.parallel_config``: processes, a dask cluster), every class is a task of its own. A fit draws the
    same random numbers either way.
    """
    fresh = [prepared(density, seed) for density, seed in zip(densities, seeds, strict=True)]
    classes = list(zip(fresh, tables, labels, strict=True))
    if len(classes) > 1 and effective_n_jobs(None) > 1:
        return Parallel()(delayed(_fit_alone)(*each) for each in classes)
    for each in classes:
        if not _can_share(each[0]):
            _fit_alone(*each)
    run_together([_fitting(*each) for each in classes if _can_share(each[0])])
    return fresh
