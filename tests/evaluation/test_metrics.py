"""The measures against scikit-learn's, the best threshold, and measured costs."""

import numpy as np
import pytest
from sklearn import metrics

from scorefield.evaluation.metrics import LOWER_IS_BETTER, NAMES, best_threshold, decision_scores, measured, scores


@pytest.fixture
def judged(rng):
    y = (rng.random(300) < 0.2).astype(int)
    return y, np.clip(0.2 * y + 0.1 * rng.normal(size=300) + 0.2, 0, 1)


def test_measures_against_scikit_learn(judged):
    y, probability = judged
    predicted = probability > 0.4
    expected = {
        "recall": metrics.recall_score(y, predicted),
        "precision": metrics.precision_score(y, predicted),
        "f1": metrics.f1_score(y, predicted),
        "errors": np.sum(y != predicted),
        "average_precision": metrics.average_precision_score(y, probability),
        "roc_auc": metrics.roc_auc_score(y, probability),
        "brier": metrics.brier_score_loss(y, probability),
        "log_loss": metrics.log_loss(y, np.clip(probability, 1e-7, 1 - 1e-7)),
    }
    found = scores(y, probability, predicted)
    counts = [found.pop(name) for name in ("tn", "fp", "fn", "tp")]
    assert counts == metrics.confusion_matrix(y, predicted).ravel().tolist()
    assert found == pytest.approx(expected)
    assert found.keys() <= NAMES.keys()
    assert NAMES.keys() >= LOWER_IS_BETTER


def test_shares_of_nothing_are_zero():
    assert decision_scores([0, 1], [0, 0])["precision"] == 0
    assert decision_scores([0, 0], [0, 1])["recall"] == 0
    assert decision_scores([0, 0], [0, 0])["f1"] == 0


def test_probabilities_of_zero_and_one_have_a_finite_loss():
    assert np.isfinite(scores([0, 1, 1], np.array([1.0, 0.0, 1 + 1e-9]), [1, 0, 1])["log_loss"])


def test_no_threshold_has_a_higher_f1(judged):
    y, probability = judged
    best = max(metrics.f1_score(y, probability >= t) for t in probability)
    assert metrics.f1_score(y, probability >= best_threshold(y, probability)) == pytest.approx(best)
    assert metrics.f1_score(y, probability >= 0.5) < best


def test_costs_are_measured():
    with measured() as cost:
        np.ones(30_000_000).sum()
    assert cost.seconds > 0
    assert cost.megabytes is None or cost.megabytes > 200
