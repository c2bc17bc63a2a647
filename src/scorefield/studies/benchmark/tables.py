"""Tables of the benchmark and their splits, which keep equal rows together.

The defaults of this library were chosen on one half of every table, its development half. These rows are in every
training part and never in a test part. (The label weight, the noise of .3 and plain standardising were chosen earlier,
on whole tables, some of them from this collection.)
"""

import functools

import numpy as np

from scorefield.data.datasets import data_folder
from scorefield.data.splits import same_rows, stratified_folds

TABLES = (
    "ecoli", "optical_digits", "satimage", "pen_digits", "abalone", "sick_euthyroid", "spectrometer", "car_eval_34",
    "us_crime", "yeast_ml8", "libras_move", "thyroid_sick", "arrhythmia", "solar_flare_m0", "oil", "car_eval_4",
    "wine_quality", "letter_img", "yeast_me2", "ozone_level", "mammography", "abalone_19",
)  # fmt: skip


@functools.cache
def load(name):
    """Rows and labels (1 for the rare class) of a table from imbalanced-learn's collection."""
    from imblearn.datasets import fetch_datasets

    folder = data_folder()
    cached = None if folder is None else folder / "imblearn"
    offline = cached is not None and cached.is_dir()
    try:
        table = fetch_datasets(
            data_home=str(cached) if cached else None, filter_data=(name,), download_if_missing=not offline
        )[name]
    except OSError as error:  # includes URLError
        raise OSError(
            f"Expected the table {name!r} in the folder imblearn of SCOREFIELD_DATA, got {error}; set "
            "SCOREFIELD_DATA or connect to a network."
        ) from error
    return np.asarray(table.data, dtype=np.float64), (table.target == 1).astype(int)


def development_half(X, y):
    """Indices of the development half and of the other half."""
    return stratified_folds(y, same_rows(X), 2, seed=0)[0]


def thin(index, y, n, rng):
    """At most n of the indices, with the same class shares."""
    if len(index) <= n:
        return index
    kept = []
    for label in np.unique(y):
        own = index[y[index] == label]
        kept.append(rng.permutation(own)[: round(n * len(own) / len(index))])
    return np.sort(np.concatenate(kept))


def splits(X, y, *, n_folds, n_repeats, max_rows):
    """Pairs of training and test indices; tables above `max_rows` are thinned once, with their class shares."""
    rng = np.random.default_rng(0)
    development, other = (thin(half, y, max_rows // 2, rng) for half in development_half(X, y))
    groups = same_rows(X)[other]
    for repeat in range(n_repeats):
        for kept, held in stratified_folds(y[other], groups, n_folds, seed=repeat):
            yield np.concatenate([development, other[kept]]), other[held]
