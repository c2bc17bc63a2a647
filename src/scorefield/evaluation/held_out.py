"""How good a fitted classifier is on rows that its members did not train on, beside boosting and class frequencies."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score

from scorefield.data.splits import same_rows, stratified_folds
from scorefield.estimators._sklearn import boostable
from scorefield.estimators.mixed_encoder import MixedEncoder
from scorefield.estimators.table_input import group_numbers
from scorefield.models.calibration import calibration_error

FOLDS = 3  # of boosting
MAX_JUDGED = 20_000  # rows: boosting then takes a few seconds, where the fit takes minutes
HEAD = ("", "average precision", "log loss", "calibration error")
NOTE = (
    "ScoreClassifier: members on rows they did not train on, which also stopped and calibrated them; boosting: "
    f"{FOLDS}-fold cross-validation on the same rows."
)


def judge_held_out(model, X, y, seed=0, groups=None):
    """Lines (name, average precision, log loss, calibration error) of a classifier fitted to X and y, and of baselines.

    Average precision is that of the rare class, and the mean over the classes of several. There are no lines where the
    fit kept no held-out probabilities, and none of boosting where a class has too few distinct rows, or too few of the
    `groups` that were kept together in the fit.
    """
    proba = getattr(model, "held_out_proba_", None)
    if proba is None or len(proba) != len(y):
        return []
    judged = np.flatnonzero(~np.isnan(proba[:, 0]))
    judged = np.sort(np.random.default_rng(seed).permutation(judged)[:MAX_JUDGED])
    labels = np.searchsorted(model.classes_, y)[judged]
    lines = [_line("ScoreClassifier", proba[judged].astype(np.float64), labels)]
    together = None if groups is None else group_numbers(groups, X)[judged]
    boosted = _boosted(MixedEncoder(columns=model.columns).fit_transform(X)[judged], labels, seed, together)
    if boosted is not None:
        lines.append(_line("gradient boosting", boosted, labels))
    shares = np.bincount(labels, minlength=len(model.classes_)) / len(labels)
    return [*lines, _line("class frequencies", np.tile(shares, (len(labels), 1)), labels)]


def _line(name, proba, labels):
    """Measures of probabilities (n, classes)."""
    counts = np.bincount(labels, minlength=proba.shape[1])
    rare = [int(np.argmin(counts))] if len(counts) == 2 else np.flatnonzero(counts)
    precision = float(np.mean([average_precision_score(labels == k, proba[:, k]) for k in rare]))
    loss = float(-np.log(np.maximum(proba[np.arange(len(labels)), labels], 1e-15)).mean())
    return name, precision, loss, float(calibration_error(proba, labels))


def _boosted(rows, labels, seed, groups=None):
    """Cross-validated probabilities of gradient boosting, groups or equal rows in one fold; None for small classes."""
    groups, n_classes = same_rows(rows) if groups is None else groups, labels.max() + 1
    if min(len(np.unique(groups[labels == k])) for k in range(n_classes)) < FOLDS:
        return None
    proba = np.zeros((len(labels), n_classes))
    for kept, held in stratified_folds(labels, groups, FOLDS, seed):
        ready = boostable(rows, kept)
        learner = HistGradientBoostingClassifier(random_state=seed).fit(ready[kept], labels[kept])
        proba[np.ix_(held, learner.classes_)] = learner.predict_proba(ready[held])
    return proba
