"""`mixed` and `mixed-oversampling`: tables with text, gaps and spikes, and tables of several classes."""

import importlib.util
from typing import NamedTuple

import numpy as np
from imblearn.over_sampling import SMOTENC, RandomOverSampler
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from scorefield.data.splits import same_rows, stratified_folds
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.metrics import measured
from scorefield.evaluation.remedies import NOTHING, THRESHOLD, WEIGHTS, TunedThreshold, boosting, weighted
from scorefield.studies.benchmark import mixed_tables
from scorefield.studies.benchmark.arms import OUR_CLASSIFIER, OURS_CLEAR, SHARING, TUNED_BOOSTING
from scorefield.studies.benchmark.classifiers import TunedSVM, tuned_boosting
from scorefield.studies.benchmark.mixed_tables import codes, filled_codes, one_hot
from scorefield.studies.benchmark.oversampling import (
    INNER_FOLDS,
    SPLITS,
    finished,
    kept_and_held,
    measures,
    row_of_arm,
    table_and_split,
)
from scorefield.studies.benchmark.summaries import show_mixed_classifiers, show_mixed_oversampling
from scorefield.studies.engine.experiment import Experiment

CLASSIFIED = (*mixed_tables.TARGETS, *mixed_tables.NUMERIC)
NOISE_SHARE = 0.3
OVERSAMPLED = ("adult", "telco-churn", "default", "titanic")


class MixedSplit(NamedTuple):
    """Training and test rows of one split, and inner folds of the training rows."""

    name: str
    number: int
    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray
    inner: list


def split_of(name, number, seed, config):
    """A split of a table; equal rows are on one side."""
    frame, y = mixed_tables.load(name)
    flat = np.nan_to_num(codes(frame).fit_transform(frame).astype(float), nan=-1.0)
    kept, held = kept_and_held(flat, y, number, config)
    train, test = (frame.iloc[part].reset_index(drop=True) for part in (kept, held))
    inner = stratified_folds(y[kept], same_rows(flat[kept]), INNER_FOLDS, seed)
    return MixedSplit(name, number, train, y[kept], test, y[held], inner)


def class_measures(y, proba):
    """Measures of probabilities and of the likeliest class; of several classes the means over the classes."""
    proba = np.asarray(proba, dtype=float)
    if proba.shape[1] == 2:
        return measures(y, proba[:, 1])
    proba = np.clip(proba, 1e-7, 1)
    proba /= proba.sum(axis=1, keepdims=True)
    each = np.eye(proba.shape[1])[y]
    return {
        "average_precision": average_precision_score(each, proba, average="macro"),
        "roc_auc": roc_auc_score(each, proba, average="macro"),
        "f1": f1_score(y, proba.argmax(axis=1), average="macro"),
        "brier": 0.5 * np.mean(np.sum((proba - each) ** 2, axis=1)),  # that of two classes where there are two
        "log_loss": log_loss(y, proba),
    }


def boosting_of_codes(frame, seed):
    """Gradient boosting that takes gaps, and codes of text as categories."""
    n_text = len(mixed_tables.text_columns(frame))
    model = HistGradientBoostingClassifier(categorical_features=list(range(n_text)) or None, random_state=seed)
    return make_pipeline(codes(frame), model)


class OnEncodedRows:
    """A classifier on encoded rows, for one that is no part of a pipeline."""

    def __init__(self, encoder, model):
        self.encoder, self.model = encoder, model

    def fit(self, X, y):
        self.model.fit(self.encoder.fit_transform(X), y)
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(self.encoder.transform(X))


def classifiers(frame, n_classes, seed, cv):
    """Classifiers by name, with the encoding that each needs."""
    forest = make_pipeline(filled_codes(frame), RandomForestClassifier(500, random_state=seed, n_jobs=1))
    svm = TunedSVM(seed, cv, scoring="average_precision" if n_classes == 2 else "accuracy")
    found = {
        OUR_CLASSIFIER: ScoreClassifier(random_state=seed),
        "logistic": make_pipeline(one_hot(), LogisticRegression(max_iter=2000)),
        "naive Bayes": make_pipeline(one_hot(dense=True), GaussianNB()),
        "SVM, tuned": OnEncodedRows(one_hot(), svm),
        "forest": forest,
        "forest, sigmoid": CalibratedClassifierCV(forest, method="sigmoid", cv=cv),
        "HistGradientBoosting": boosting_of_codes(frame, seed),
    }
    if importlib.util.find_spec("xgboost"):
        found["boosting"] = make_pipeline(codes(frame), boosting(seed))
        found[TUNED_BOOSTING] = OnEncodedRows(codes(frame), tuned_boosting(seed, cv))
    return found


def run_classifiers(seed, config):
    name, number = table_and_split(seed, config)
    split, rows = split_of(name, number, seed, config), []
    for arm, model in classifiers(split.X, len(np.unique(split.y)), seed, split.inner).items():
        with measured() as cost:
            proba = model.fit(split.X, split.y).predict_proba(split.X_test)
        rows.append(row_of_arm(arm, "itself", class_measures(split.y_test, proba), cost, n=len(split.y)))
    return finished(rows, split)


def learners(frame, seed):
    """Learners by name; all take rows of numbers and text with gaps."""
    found = {
        "logistic": (one_hot(), LogisticRegression(max_iter=1000)),
        "forest": (filled_codes(frame), RandomForestClassifier(random_state=seed, n_jobs=1)),
    }
    if importlib.util.find_spec("xgboost"):
        found["boosting"] = codes(frame), boosting(seed)
    return found


def smotenc(frame, y, seed):
    """Rows of SMOTENC on codes, with gaps filled by the median or the commonest level; it has no way to keep them."""
    import pandas as pd

    filled, encoder, text = mixed_tables.encode_ordinal(frame)
    places = [filled.columns.get_loc(name) for name in text]
    rows, labels = SMOTENC(places, random_state=seed).fit_resample(filled, y)
    new = rows.iloc[len(frame) :]
    if text:
        new = new.assign(**dict(zip(text, encoder.inverse_transform(new[text]).T, strict=True)))
    return pd.concat([frame, new], ignore_index=True), labels


def noisy_copies(frame, y, seed):
    """Copies of rare rows with noise of .3 on their numbers, as RandomOverSampler(shrinkage=.3) adds it."""
    import pandas as pd

    rng, rare = np.random.default_rng(seed), np.flatnonzero(y == 1)
    numbers = [name for name in frame if name not in mixed_tables.text_columns(frame)]
    new = frame.iloc[rng.choice(rare, int(np.sum(y == 0)) - len(rare))].reset_index(drop=True)
    width = NOISE_SHARE * (4 / ((len(numbers) + 2) * len(rare))) ** (1 / (len(numbers) + 4))  # Silverman's rule
    for name in numbers:
        noise = rng.standard_normal(len(new)) * width * frame[name].iloc[rare].std(ddof=0)
        new[name] = new[name].astype(float) + noise
    more = pd.concat([frame, new], ignore_index=True)
    return more, np.concatenate([y, np.ones(len(new), y.dtype)])


def oversampled(frame, y, seed):
    """Resampled tables by the name of the arm."""
    yield "random", lambda: RandomOverSampler(random_state=seed).fit_resample(frame, y)
    yield "SMOTENC", lambda: smotenc(frame, y, seed)
    yield SHARING, lambda: ScoreOverSampler(random_state=seed, purpose="sharing").fit_resample(frame, y)
    clear = ScoreOverSampler(random_state=seed, purpose="sharing", where="clear", bounds=None)
    yield OURS_CLEAR, lambda: clear.fit_resample(frame, y)


def run_oversampling(seed, config):
    name, number = table_and_split(seed, config)
    split, rows = split_of(name, number, seed, config), []
    models = learners(split.X, seed)

    def arm(title, learner, encoder, model, X, y, before=0.0):
        with measured() as cost:
            fitted = make_pipeline(encoder, clone(model)).fit(X, y)
        cost.seconds += before
        found = measures(split.y_test, fitted.predict_proba(split.X_test)[:, 1])
        rows.append(row_of_arm(title, learner, found, cost, n=len(y)))

    for learner, (encoder, model) in models.items():
        arm(NOTHING, learner, encoder, model, split.X, split.y)
        arm(WEIGHTS, learner, encoder, weighted(model, split.y), split.X, split.y)
        tuned = TunedThreshold(make_pipeline(encoder, model), scoring="f1", cv=split.inner)
        with measured() as cost:
            tuned.fit(split.X, split.y)
        found = measures(split.y_test, tuned.predict_proba(split.X_test)[:, 1])
        decided = f1_score(split.y_test, tuned.predict(split.X_test))
        rows.append(row_of_arm(THRESHOLD, learner, found | {"f1": decided}, cost, n=len(split.y)))
    for title, resample in oversampled(split.X, split.y, seed):
        with measured() as sampling:
            X, y = resample()
        for learner, (encoder, model) in models.items():
            arm(title, learner, encoder, model, X, y, sampling.seconds)
    return finished(rows, split)


def _experiment(name, title, what, run, show, names, quick):
    return Experiment(
        name,
        title,
        f"{what}; up to {SPLITS['max_rows']:,} rows of each, half of them in every training part, two folds of the "
        f"rest tested, {SPLITS['n_repeats']} repetitions. Defaults for mixed tables were chosen while these were "
        "looked at.",
        run,
        show,
        len(names) * SPLITS["n_folds"] * SPLITS["n_repeats"],
        len(quick),
        {"tables": list(names), **SPLITS},
        {"tables": list(quick)},
    )


MIXED = _experiment(
    "mixed",
    "Classifiers on mixed tables and on several classes",
    "Five raw tables of numbers, text, spikes and gaps (penguins has three classes), and four numeric tables of "
    "scikit-learn (three of several classes, one balanced); measures of several classes are means over the classes",
    run_classifiers,
    show_mixed_classifiers,
    CLASSIFIED,
    ("titanic", "penguins", "iris"),
)
MIXED_OVERSAMPLING = _experiment(
    "mixed-oversampling",
    "Remedies for imbalance on mixed tables",
    "Four raw tables of numbers, text, spikes and gaps before three learners; `mixed-learning` has the present default "
    "of ScoreOverSampler",
    run_oversampling,
    show_mixed_oversampling,
    OVERSAMPLED,
    ("titanic",),
)
