"""Measures of a classifier on test rows, the threshold with the best F1, and the time and memory of a block."""

import contextlib
import pathlib
import time

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    precision_recall_curve,
    roc_auc_score,
)

NAMES = {
    "recall": "recall",
    "precision": "precision",
    "f1": "F1",
    "errors": "errors",
    "average_precision": "average precision",
    "roc_auc": "ROC AUC",
    "f1_tuned": "F1, tuned threshold",
    "brier": "Brier",
    "log_loss": "log loss",
    "seconds": "seconds",
    "megabytes": "MB",
}
LOWER_IS_BETTER = {"errors", "brier", "log_loss", "seconds", "megabytes"}
_STATUS, _CLEAR = pathlib.Path("/proc/self/status"), pathlib.Path("/proc/self/clear_refs")


def best_threshold(y, probability):
    """Threshold with the highest F1."""
    precision, recall, thresholds = precision_recall_curve(y, probability)
    f1 = 2 * precision[:-1] * recall[:-1] / np.maximum(precision[:-1] + recall[:-1], 1e-12)
    return float(thresholds[np.argmax(f1)])


def decision_scores(y, predicted):
    """Confusion counts, recall, precision and F1 of predicted labels; 0 where a denominator is 0."""
    tn, fp, fn, tp = (int(count) for count in confusion_matrix(y, predicted, labels=[0, 1]).ravel())
    return {
        "tn": tn,
        "fp": fp,
        "fn": fn,
        "tp": tp,
        "recall": tp / max(tp + fn, 1),
        "precision": tp / max(tp + fp, 1),
        "f1": 2 * tp / max(2 * tp + fp + fn, 1),
        "errors": fp + fn,
    }


def scores(y, probability, predicted):
    """All measures, from probabilities of class 1 and predicted labels."""
    probability = np.clip(np.asarray(probability, dtype=float), 0, 1)
    return {
        **decision_scores(y, predicted),
        "average_precision": float(average_precision_score(y, probability)),
        "roc_auc": float(roc_auc_score(y, probability)),
        "brier": float(brier_score_loss(y, probability)),
        "log_loss": float(log_loss(y, np.clip(probability, 1e-7, 1 - 1e-7))),
    }


def _resident(name):
    """Resident megabytes of the process, current (VmRSS) or peak (VmHWM)."""
    lines = (line.split() for line in _STATUS.read_text().splitlines())
    return next((int(line[1]) / 1024 for line in lines if line[0] == f"{name}:"), None)


class Cost:
    """Seconds, and the peak memory added to the process in MB (None except on Linux)."""

    seconds = 0.0
    megabytes = None


@contextlib.contextmanager
def measured():
    """Measure the time and memory of the block."""
    cost, begin = Cost(), time.perf_counter()
    try:
        _CLEAR.write_text("5")  # resets the peak
        before = _resident("VmRSS")
    except OSError:
        before = None
    yield cost
    cost.seconds = time.perf_counter() - begin
    cost.megabytes = None if before is None else _resident("VmHWM") - before
