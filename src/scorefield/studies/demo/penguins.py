"""What the demonstration computes: penguins with a rare species, generated rows of it, and a comparison over splits.

The table is in the package for its text, its missing cells, its size and its licence, not for a result on it.
"""

import dataclasses
import time
from typing import Any

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTENC
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from scorefield.data.datasets import load_penguins
from scorefield.data.description import describe_columns
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.distilled import DistilledClassifier
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.quality import compare_tables
from scorefield.evaluation.remedies import NOTHING, smote_neighbors

TARGET, RARE = "species", "Chinstrap"
KEPT = 24  # rare rows that are left, eight in a hundred
TEST_SIZE = 0.5  # with two thirds to learn from, every arm ranks the test rows without a fault
NUMBERS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year"]
WORDS = ["island", "sex"]
OURS, TAUGHT, CLASSIFIER = "ScoreOverSampler", "DistilledClassifier", "ScoreClassifier"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Number of splits, the over-sampler whose rows are shown, and the classifier that teaches."""

    n_splits: int = 6
    over_sampler: Any = dataclasses.field(default_factory=lambda: ScoreOverSampler(purpose="sharing"))
    classifier: Any = dataclasses.field(default_factory=ScoreClassifier)


@dataclasses.dataclass(frozen=True)
class Generated:
    """Rare rows: those learned from, those left out, generated ones, and how the last compare with the others.

    `interpolated` compares the rows of SMOTENC with those left out.
    """

    table: pd.DataFrame
    seen: pd.DataFrame
    unseen: pd.DataFrame
    rows: pd.DataFrame
    against_unseen: Any
    against_seen: Any
    interpolated: Any
    seconds: float


def describe():
    """The whole table and the description of its columns."""
    penguins = load_penguins()
    return penguins, describe_columns(penguins)


def thinned(penguins, seed):
    """The table with KEPT rare rows chosen at random, and the rare rows left out."""
    rare = np.flatnonzero(penguins[TARGET] == RARE)
    out = np.random.default_rng(seed).permutation(rare)[KEPT:]
    return penguins.drop(index=out).reset_index(drop=True), penguins.loc[np.sort(out)].reset_index(drop=True)


def generate(penguins, settings):
    """Over-sample the thinned table; compare the new rare rows with the rare rows that were left out and kept."""
    table, unseen = thinned(penguins, 0)
    start = time.perf_counter()
    X, y = table.drop(columns=TARGET), table[TARGET]
    rows = _new_rows(X, *clone(settings.over_sampler).set_params(random_state=0).fit_resample(X, y))
    seconds = time.perf_counter() - start
    interpolated = _new_rows(X, *_interpolated(X, y, 0))[X.columns]
    seen, unseen = X[y == RARE].reset_index(drop=True), unseen.drop(columns=TARGET)
    pairs = ((unseen, rows), (seen, rows), (unseen, interpolated))
    return Generated(table, seen, unseen, rows, *(compare_tables(*pair, random_state=0) for pair in pairs), seconds)


def _new_rows(X, X_more, y_more):
    """Rare rows that an over-sampler appended to X."""
    return X_more[len(X) :][y_more[len(X) :] == RARE].reset_index(drop=True)


def learners(seed):
    """The classifiers that over-sampling is tried before."""
    return {
        "forest": RandomForestClassifier(random_state=seed),
        "boosting": GradientBoostingClassifier(random_state=seed),
    }


def _filled():
    """Gaps become medians, or a level of their own: SMOTENC, the forest and boosting take no gaps."""
    fill = make_column_transformer(
        (SimpleImputer(strategy="median"), NUMBERS),
        (SimpleImputer(strategy="constant", fill_value="unknown"), WORDS),
        verbose_feature_names_out=False,
    )
    return fill.set_output(transform="pandas")


def _encoded():
    return make_column_transformer((OneHotEncoder(handle_unknown="ignore"), WORDS), remainder="passthrough")


def _interpolated(X, y, seed):
    neighbors = smote_neighbors(int((y == RARE).sum()))
    return SMOTENC(WORDS, k_neighbors=neighbors, random_state=seed).fit_resample(_filled().fit_transform(X), y)


def _remedies(X, y, teacher, seed):
    """(name, rows, labels) of the training part as it is, and with every class raised to the size of the largest."""
    yield NOTHING, X, y
    yield "SMOTENC", *_interpolated(X, y, seed)
    yield OURS, *ScoreOverSampler(teacher=teacher, random_state=seed).fit_resample(X, y)


def _measured(model, X, y, **named):
    """Row of one model on the test part; `announced` and `found` are kept for the calibration."""
    probability = model.predict_proba(X)
    rare, found = probability[:, list(model.classes_).index(RARE)], np.asarray(y == RARE, dtype=int)
    return {
        **named,
        "average_precision": float(average_precision_score(found, rare)),
        "brier": float(brier_score_loss(found, rare)),
        "log_loss": float(log_loss(y, probability, labels=list(model.classes_))),
        "announced": rare,
        "found": found,
    }


def compare(penguins, seed, settings):
    """Rows of one split: each learner after each remedy and taught by ScoreClassifier, and ScoreClassifier itself."""
    table, _ = thinned(penguins, seed)
    X, X_test, y, y_test = train_test_split(
        table.drop(columns=TARGET), table[TARGET], test_size=TEST_SIZE, stratify=table[TARGET], random_state=seed
    )
    teacher = FrozenEstimator(clone(settings.classifier).set_params(random_state=seed).fit(X, y))
    pipelines = {name: make_pipeline(_filled(), _encoded(), learner) for name, learner in learners(seed).items()}
    rows = []
    for remedy, X_more, y_more in _remedies(X, y, teacher, seed):
        for name, pipeline in pipelines.items():
            model = clone(pipeline).fit(X_more, y_more)
            rows.append(_measured(model, X_test, y_test, seed=seed, learner=name, remedy=remedy))
    for name, pipeline in pipelines.items():
        model = DistilledClassifier(pipeline, teacher, random_state=seed).fit(X, y)
        rows.append(_measured(model, X_test, y_test, seed=seed, learner=name, remedy=TAUGHT))
    return [*rows, _measured(teacher, X_test, y_test, seed=seed, learner=CLASSIFIER, remedy=NOTHING)]
