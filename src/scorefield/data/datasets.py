"""Tables to try things on: penguins in the package, two simulations, and the credit-card frauds of the paper.

`penguins.csv` is the table of the R package palmerpenguins (A. M. Horst, A. P. Hill, K. B. Gorman, 2020,
doi:10.5281/zenodo.3960218), in the public domain (CC0); K. B. Gorman and the Palmer Station LTER measured it.
"""

import importlib.resources
import lzma
import os
import pathlib

import numpy as np
from sklearn.datasets import fetch_openml, make_classification
from sklearn.utils import Bunch, check_random_state

CREDIT_CARD_NAMES = tuple(f"creditcard{end}" for end in (".parquet", ".csv", ".csv.gz", ".csv.xz"))
CREDIT_CARD_OPENML = 1597
CREDIT_CARD_ROWS, CREDIT_CARD_FRAUDS = 284_807, 492
CREDIT_CARD_COLUMNS = (*(f"V{i}" for i in range(1, 29)), "Amount")  # "Time" comes first where the source has it
# The classes of the paper's 1-D and 2-D examples.
GAUSSIANS = {
    1: (((-2.0,), ((1.0,),)), ((2.0,), ((1.0,),))),
    2: (((0.0, 0.0), ((1.0, -0.5), (-0.5, 1.0))), ((4.0, 4.0), ((1.0, 0.5), (0.5, 1.0)))),
}


def make_gaussians(n_samples=200, n_features=2, *, means=None, covariances=None, random_state=None):
    """Rows of Gaussian classes, by default the two classes of the paper's 1-D or 2-D example.

    Parameters
    ----------
    n_samples : int or sequence of int
        Rows of each class.
    n_features : {1, 2}
        Which example of the paper; not used where ``means`` are given.
    means : None or array of shape (n_classes, d)
    covariances : None or array of shape (n_classes, d, d)
        None with given means is the identity.
    random_state : None, int or RandomState

    Returns
    -------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)

    Examples
    --------
    >>> from scorefield.paper import make_gaussians
    >>> X, y = make_gaussians([50, 5], random_state=0)
    >>> X.shape, y.sum()
    ((55, 2), np.int64(5))
    """
    if means is None:
        if n_features not in GAUSSIANS:
            raise ValueError(f"Expected n_features 1 or 2 (the paper's examples) or means, got {n_features!r}.")
        means, covariances = zip(*GAUSSIANS[n_features], strict=True)
    means = np.asarray(means, dtype=float)
    if means.ndim != 2:
        raise ValueError(f"Expected means of shape (n_classes, d), got {means.shape}.")
    n_classes, d = means.shape
    covariances = np.broadcast_to(
        np.eye(d) if covariances is None else np.asarray(covariances, float), (*means.shape, d)
    )
    counts = np.broadcast_to(n_samples, (n_classes,))
    rng = check_random_state(random_state)
    rows = [
        mean + rng.normal(size=(n, d)) @ np.linalg.cholesky(covariance).T
        for mean, covariance, n in zip(means, covariances, counts, strict=True)
    ]
    return np.concatenate(rows), np.repeat(np.arange(n_classes), counts)


def make_imbalanced_10d(random_state=None):
    """The imbalanced simulation behind the paper's Tables 2 and 5: 3,000 rows of ten columns, about 170 positives.

    The paper prints no recipe. This one meets its counts, and on average over seeds the scores of its forest, alone
    and after SMOTE; single seeds differ widely, since each draws its own clusters.

    Parameters
    ----------
    random_state : None, int or RandomState

    Returns
    -------
    X : ndarray of shape (3000, 10)
    y : ndarray of shape (3000,)

    Examples
    --------
    >>> from scorefield.paper import make_imbalanced_10d
    >>> X, y = make_imbalanced_10d(0)
    >>> X.shape, bool(0.04 < y.mean() < 0.07)
    ((3000, 10), True)
    """
    return make_classification(
        3000, 10, n_informative=3, n_redundant=0, n_clusters_per_class=2, weights=[0.95], flip_y=0.01,
        class_sep=0.6, random_state=random_state,
    )  # fmt: skip


def data_folder(data_home=None):
    """``data_home``, else the folder named by ``SCOREFIELD_DATA``, else None."""
    folder = data_home or os.environ.get("SCOREFIELD_DATA")
    return pathlib.Path(folder).expanduser() if folder else None


def load_penguins():
    """Penguins of Palmer Station: 344 rows, three species, numbers and text, with missing values.

    K. B. Gorman and the Palmer Station LTER measured them (Gorman, Williams & Fraser, 2014). This is the table of the R
    package palmerpenguins, which is in the public domain (CC0). Needs pandas.

    Returns
    -------
    DataFrame
        ``species`` (Adelie, Chinstrap, Gentoo), ``island``, ``bill_length_mm``, ``bill_depth_mm``,
        ``flipper_length_mm``, ``body_mass_g``, ``sex`` and ``year``.

    Examples
    --------
    >>> from scorefield import load_penguins
    >>> penguins = load_penguins()
    >>> penguins.shape, int(penguins.isna().sum().sum())
    ((344, 8), 19)
    """
    import pandas as pd

    return pd.read_csv(importlib.resources.files("scorefield.data") / "penguins.csv")


def fetch_creditcard(data_home=None, *, return_X_y=False):
    """The credit-card fraud data (ULB and Worldline): 284,807 transactions, 492 of them frauds.

    It is read from ``creditcard.parquet``, ``.csv``, ``.csv.gz`` or ``.csv.xz`` in ``data_home``, or in the folder
    that the environment variable ``SCOREFIELD_DATA`` names; otherwise it is downloaded from OpenML (data id 1597).

    Parameters
    ----------
    data_home : None, str or path
        A folder with one of these files, or the file itself.
    return_X_y : bool

    Returns
    -------
    Bunch with ``data`` (n, d), ``target`` (n,) with 1 for fraud, ``feature_names`` and ``source``
        The columns are V1 to V28 and Amount, after Time where the source has it. With ``return_X_y`` the pair
        (data, target).

    Examples
    --------
    >>> from scorefield import fetch_creditcard
    >>> X, y = fetch_creditcard("data", return_X_y=True)  # doctest: +SKIP
    """
    folder = data_folder(data_home)
    if folder is None:
        names, columns, source = _from_openml()
    else:
        path = _find_credit_card_file(folder)
        names, columns = _read_table(path)
        source = str(path)
    bunch = _checked_credit_card(dict(zip(names, columns, strict=True)), source)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _find_credit_card_file(folder):
    if folder.is_file():
        return folder
    if not folder.is_dir():
        raise FileNotFoundError(f"Expected a folder with the credit-card data, got {folder}, which does not exist.")
    for name in CREDIT_CARD_NAMES:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(
        f"Expected one of {', '.join(CREDIT_CARD_NAMES)} in {folder}, got none of them; put the file there, or leave "
        "data_home and SCOREFIELD_DATA unset to download it from OpenML."
    )


def _read_table(path):
    """Column names and arrays of a CSV (plain, gzip, xz) or Parquet file."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    try:
        if path.suffix == ".parquet":
            table = pyarrow.parquet.read_table(path)
        elif path.suffix == ".xz":
            with lzma.open(path) as stream:
                table = pyarrow.csv.read_csv(stream)
        else:
            table = pyarrow.csv.read_csv(path)
    except (pyarrow.ArrowException, lzma.LZMAError, EOFError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"Expected a readable table in {path}, got: {reason}; fetch the file again.") from error
    return table.column_names, [column.to_numpy() for column in table.columns]


def _from_openml():
    fetched = fetch_openml(data_id=CREDIT_CARD_OPENML, as_frame=False, parser="liac-arff")
    return [*fetched.feature_names, "Class"], [*fetched.data.T, fetched.target], f"OpenML {CREDIT_CARD_OPENML}"


def _checked_credit_card(table, source):
    """A Bunch, or an error that says what does not fit."""
    missing = [name for name in (*CREDIT_CARD_COLUMNS, "Class") if name not in table]
    if missing:
        raise ValueError(f"Expected columns V1 to V28, Amount and Class in {source}, got none named {missing[0]}.")
    names = [*(["Time"] if "Time" in table else []), *CREDIT_CARD_COLUMNS]
    try:
        # Class is 0 or 1, and in some copies the same in quotes.
        target = np.char.strip(np.asarray(table["Class"]).astype(str), "'\"").astype(float)
        data = np.column_stack([np.asarray(table[name]).astype(np.float64) for name in names])
    except ValueError as error:
        raise ValueError(f"Expected numbers in every column of {source}: {error}.") from error
    if len(target) != CREDIT_CARD_ROWS:
        raise ValueError(f"Expected {CREDIT_CARD_ROWS:,} rows in {source}, got {len(target):,}; fetch the file again.")
    if not np.isin(target, (0, 1)).all() or target.sum() != CREDIT_CARD_FRAUDS:
        raise ValueError(
            f"Expected {CREDIT_CARD_FRAUDS} rows of Class 1 and the rest 0 in {source}, got {int(np.sum(target == 1))}."
        )
    if not np.isfinite(data).all():
        raise ValueError(f"Expected no missing value in {source}, got some; fetch the file again.")
    return Bunch(data=data, target=target.astype(np.int64), feature_names=names, source=source)
