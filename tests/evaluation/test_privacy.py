"""Measures of memory: a generator that copies its rows is caught, one that draws fresh rows is not."""

import numpy as np
import pandas as pd
import pytest

from scorefield import compare_tables
from scorefield.evaluation.privacy import PROMISE, _as_integers, _rare_combinations, measure_privacy


def table(rng, n):
    return pd.DataFrame({
        "a": rng.normal(size=n), "b": rng.normal(size=n),
        "town": rng.choice([f"t{k}" for k in range(12)], n), "job": rng.choice([f"j{k}" for k in range(9)], n),
    })  # fmt: skip


@pytest.mark.parametrize("shift", [0.0, 1e-4])
def test_a_generator_that_copies_rows_is_caught(rng, shift):
    real, held_out = table(rng, 300), table(rng, 300)
    copies = real.sample(300, replace=True, random_state=0).assign(a=lambda rows: rows["a"] + shift)
    found = compare_tables(real, copies, held_out).privacy
    assert found.near_copies == 1
    assert found.closer_to_training == 1
    assert found.distance_ratio < 0.01
    # Rows that were drawn have a copy at distance zero, exp(-1) of them were not drawn: AUC 1 - exp(-1) / 2.
    assert found.membership_auc == pytest.approx(1 - np.exp(-1) / 2, abs=0.08)
    assert found.membership_range[0] > 0.5
    assert found.combinations_found == pytest.approx((1 - np.exp(-1)) * found.combinations, rel=0.25)
    assert any(sentence.startswith("Training rows can be told") for sentence in found.sentences)


def test_fresh_rows_are_not_caught(rng):
    real, fresh, held_out = (table(rng, 300) for _ in range(3))
    found = compare_tables(real, fresh, held_out).privacy
    assert found.near_copies < 0.02
    assert abs(found.closer_to_training - 0.5) < 4 * np.sqrt(0.25 / 300)
    assert found.distance_ratio == pytest.approx(1, abs=0.15)
    assert found.membership_range[0] <= 0.5 <= found.membership_range[1]
    for number in (found.combinations_found, found.combinations_held_out):  # the columns are independent
        assert abs(number - found.combinations_expected) < 5 * np.sqrt(found.combinations_expected)
    assert any(sentence.startswith("Training rows cannot be told") for sentence in found.sentences)
    assert found.sentences[-1] == PROMISE


def test_the_attack_is_wrong_one_time_in_twenty(rng):
    outside = []
    for _ in range(100):
        places = [rng.normal(size=(80, 2)) for _ in range(3)]
        low, high = measure_privacy(places, [np.zeros((80, 0))] * 3, rng).membership_range
        outside.append(not low <= 0.5 <= high)
    assert np.mean(outside) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)


def test_without_held_out_rows_memory_is_not_measured(rng):
    found = compare_tables(table(rng, 100), table(rng, 100)).privacy
    assert found.membership_auc is found.closer_to_training is found.combinations_held_out is None
    assert any("was not measured" in sentence for sentence in found.sentences)


def test_combinations_of_a_small_table_by_hand():
    """Two columns: (0, 0) three times, (0, 1) once, (1, 1) once with a gap in a third column."""
    nan = np.nan
    real = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0], [1, 1, nan]], float)
    generated = np.array([[1, 1, 0], [1, 1, 0], [nan, 1, 0]], float)
    total, found, expected, held_out = _rare_combinations([real, generated])
    # Single pairs: (0, 1) and (1, 1) of the first two columns, (1, 0) of the last two; single triple: (0, 1, 0).
    assert (total, found, held_out) == (4, 2, None)
    shares = [0.8 * 0.4, 0.2 * 0.4, 0.4 * 0.8, 0.8 * 0.4 * 0.8]
    assert expected == pytest.approx(sum(1 - (1 - share) ** 3 for share in shares))
    integers, sizes = _as_integers([real, generated])
    assert sizes.tolist() == [2, 2, 1]
    assert integers[0][-1].tolist() == [1, 1, -1]


def test_tables_of_other_columns_are_refused(rng):
    real = table(rng, 30)
    with pytest.raises(ValueError, match=r"difference in \['job'\]"):
        compare_tables(real, real, real.drop(columns="job"))
    with pytest.raises(ValueError, match="got 30 and 30 and 5"):
        compare_tables(real, real, real[:5])
