"""Raw tables of text, gaps and spikes, tables of several classes, and what other classifiers need to read them.

The mixed tables lie in the folder mixed of SCOREFIELD_DATA: adult, telco-churn, titanic, default and penguins, as
people have them. Defaults for mixed tables were chosen with the help of these tables, so results on
them are optimistic.
"""

import functools

import numpy as np
from sklearn import datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from scorefield.data.datasets import data_folder

TARGETS = {"adult": "income", "telco-churn": "Churn", "default": "default", "titanic": "Survived",
           "penguins": "species"}  # fmt: skip
SET_ASIDE = ("customerID", "PassengerId", "Name", "Ticket", "Cabin")  # for the others; ours sets them aside itself
NUMERIC = ("iris", "wine", "digits", "breast_cancer")  # of scikit-learn, with several classes or balanced ones


def has_mixed_tables():
    """True where the folder of the mixed tables is."""
    folder = data_folder()
    return folder is not None and (folder / "mixed").is_dir()


def load_raw(name):
    """A mixed table without its ids and without its target, and the target."""
    import pandas as pd

    folder = data_folder()
    if not has_mixed_tables() or not (folder / "mixed" / f"{name}.csv").exists():
        raise OSError(f"Expected {name}.csv in the folder mixed of SCOREFIELD_DATA, got none; set SCOREFIELD_DATA.")
    table = pd.read_csv(folder / "mixed" / f"{name}.csv", skipinitialspace=True)
    if "TotalCharges" in table:  # blank where there are no charges yet
        table["TotalCharges"] = pd.to_numeric(table["TotalCharges"], errors="coerce")
    target = TARGETS[name]
    return table.drop(columns=[target, *(name for name in SET_ASIDE if name in table)]), table[target]


@functools.cache
def load(name):
    """A table of numbers and text, and its classes as numbers, the commonest first."""
    if name in NUMERIC:
        found = getattr(datasets, f"load_{name}")(as_frame=True)
        frame, target = found.data, found.target
    else:
        frame, target = load_raw(name)
    order = list(target.value_counts().index)
    return frame, target.map(order.index).to_numpy()


def text_columns(frame):
    """Names of the columns that hold no numbers."""
    return [name for name in frame if frame[name].dtype.kind not in "iufb"]


def codes(frame):
    """Text as codes before the numbers, for trees; unknown levels and gaps are NaN."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan)
    return make_column_transformer((encoder, text_columns(frame)), remainder="passthrough")


def filled_codes(frame):
    """Codes and numbers with the median in their gaps."""
    return make_pipeline(codes(frame), SimpleImputer(strategy="median"))


def one_hot(numbers=None, *, dense=False):
    """Standardised numbers without gaps, filled by the mean or as given, and a column for each level of text."""
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=not dense)
    )
    return make_column_transformer(
        (make_pipeline(numbers or SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
        (text, make_column_selector(dtype_exclude="number")),
    )


def encode_ordinal(frame):
    """Codes for text and the most frequent level for its gaps; medians for gaps in numbers."""
    text = text_columns(frame)
    filled = frame.copy()
    for name in frame:
        filled[name] = frame[name].fillna(frame[name].mode()[0] if name in text else frame[name].median())
    encoder = OrdinalEncoder()
    if text:
        filled[text] = encoder.fit_transform(filled[text])
    return filled.astype(float), encoder, text
