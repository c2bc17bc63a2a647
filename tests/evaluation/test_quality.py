"""compare_tables on tables whose difference is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from scorefield import compare_tables
from scorefield.evaluation import quality
from scorefield.evaluation.quality import _two_sample_auc, auc_interval


def test_very_large_values_are_compared(rng):
    """Squares of 1e200 overflow; a column that is scaled by infinity would look the same in every table."""
    real, near, far = (pd.DataFrame(shift + rng.normal(size=(200, 1)), columns=["a"]) for shift in (0, 0, 5))
    assert compare_tables(1e200 * real, 1e200 * near).auc < 0.65
    assert compare_tables(1e200 * real, 1e200 * far).auc > 0.95


def test_copies_are_named_first(rng):
    real = pd.DataFrame(rng.normal(size=(300, 3)))
    for shift in (0.0, 1e-9):  # near copies mislead the forest in the same way
        found = compare_tables(real, real + shift)
        assert not any("cannot tell" in sentence for sentence in found.sentences)
        assert found.sentences[0].startswith("Copies: 100.0%") == (shift == 0)
        assert any("cannot judge generated rows that are copies" in sentence for sentence in found.sentences)
    fresh = compare_tables(real, pd.DataFrame(rng.normal(size=(300, 3))))
    assert any("cannot tell" in sentence for sentence in fresh.sentences)  # the control


def test_rows_of_a_discrete_law_repeat_without_being_copies(rng):
    real, other = (pd.DataFrame(rng.integers(0, 3, size=(300, 3))) for _ in range(2))
    found = compare_tables(real, other)
    assert found.copies > 0.9
    assert found.repeats == pytest.approx(found.copies, abs=0.1)
    assert found.closer == pytest.approx(0.5, abs=0.05)
    assert not found.sentences[0].startswith("Copies")
    # Real rows that repeat now and then, and generated rows that always repeat one.
    mixed = pd.DataFrame(np.concatenate([np.repeat(rng.normal(size=(90, 3)), 2, axis=0), rng.normal(size=(120, 3))]))
    copied = compare_tables(mixed, mixed.sample(300, replace=True, random_state=0))
    assert copied.closer == pytest.approx(0.6 / 2 + 0.4, abs=0.01)  # a tie with six real rows of ten, nearer than four
    assert copied.sentences[0].startswith("Copies: 100.0%")


def test_auc_interval_covers_a_known_auc(rng):
    """N(1, 1) against N(0, 1) has AUC Phi(1 / sqrt 2), also with the ties of rounded values but for their width."""
    truth, inside = norm.cdf(1 / np.sqrt(2)), []
    labels = np.repeat([0, 1], [60, 40])
    for _ in range(1000):
        values = np.round(labels + rng.normal(size=100), 1)
        low, high = auc_interval(values, labels)[1]
        inside.append(low < truth < high)
    assert abs(np.mean(inside) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 1000)
    assert auc_interval(np.zeros(100), labels)[0] == 0.5


def test_equal_laws_are_called_different_one_time_in_twenty(rng, monkeypatch):
    monkeypatch.setattr(quality, "N_TREES", 20)
    labels = np.repeat([0, 1], [40, 40])
    z = []
    for seed in range(60):
        auc, (low, high) = _two_sample_auc(rng.normal(size=(80, 3)), labels, seed)
        z.append((auc - 0.5) / ((high - low) / 2 / 2.09))  # Student's quantile at 19 degrees of freedom
    # The variance of 60 values of unit variance has a standard error of sqrt(2 / 59); of overlapping folds it is 1.9.
    assert np.var(z) < 1 + 3 * np.sqrt(2 / 59)
