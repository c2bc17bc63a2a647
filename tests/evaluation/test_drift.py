"""Drift: rates of false alarms, class shares, single columns and relations, each against a control."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from scorefield import DriftDisplay, ScoreClassifier, ScoreDensity
from scorefield.evaluation.drift import drift
from scorefield.evaluation.drift_statistics import em_shares, max_t_test

COVARIANCE = np.array([[1, 0.8, 0.3, 0], [0.8, 1.5, -0.2, 0], [0.3, -0.2, 0.7, 0], [0, 0, 0, 1.0]])


def draw(rng, n, share=0.3):
    """Rows of two classes, and their labels."""
    y = (rng.random(n) < share).astype(int)
    X = rng.multivariate_normal(np.zeros(4), COVARIANCE, n)
    return X + y[:, None] * [2, 0, 0, 1.5], y


@pytest.fixture(scope="module")
def classifier():
    X, y = draw(np.random.default_rng(0), 800)
    return ScoreClassifier(ScoreDensity("gaussian"), random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def density():
    return ScoreDensity("gaussian", random_state=0).fit(draw(np.random.default_rng(0), 800)[0])


def within_binomial(count, n, level):
    """True where a count of false alarms is not above what its level explains."""
    return count <= binom.ppf(0.999, n, level)


def test_false_alarms_are_as_rare_as_asked_for(density):
    n, level = 60, 0.1
    alarms = 0
    for seed in range(n):
        rng = np.random.default_rng([1, seed])
        alarms += bool(drift(density, draw(rng, 120)[0], draw(rng, 120)[0], level=level, random_state=seed).changed)
    assert within_binomial(alarms, n, level)
    # The control: the least of the p-values of single columns, each at the level.
    rng, single = np.random.default_rng(2), 0
    for _ in range(n):
        noise = rng.normal(size=(2, 100, 12))
        single += min(max_t_test(rng, *noise[:, :, [j]])[1][0] for j in range(12)) <= level
    assert not within_binomial(single, n, level)


def test_pure_label_shift_names_no_column(classifier):
    rng = np.random.default_rng(3)
    found = [drift(classifier, draw(rng, 300, 0.6)[0], draw(rng, 300)[0], random_state=k) for k in range(12)]
    assert all(one.label_p_value < 0.05 for one in found)
    assert within_binomial(sum(bool(one.changed) for one in found), 12, 0.05)
    assert all(one.explained_by_labels for one in found)
    covered = sum(one.labels[1]["low"] <= 0.6 <= one.labels[1]["high"] for one in found)
    assert covered >= binom.ppf(0.001, 12, 0.95)
    assert not any(one.labels[1]["low"] <= 0.3 <= one.labels[1]["high"] for one in found)  # the control
    best = np.mean([abs(one.labels[1]["new"] - 0.6) for one in found])
    raw = np.mean([abs(classifier.predict(draw(rng, 300, 0.6)[0]).mean() - 0.6) for _ in range(12)])
    assert best < 0.06 < raw + 0.06
    told = found[0]
    assert np.allclose(told.probabilities.sum(axis=1), 1)
    assert told.probabilities[:, 1].mean() == pytest.approx(told.labels[1]["new"], abs=1e-3)  # EM's fixed point
    assert "Class shares differ" in str(told)


@pytest.mark.parametrize("column", range(4))
def test_a_shifted_column_is_named_and_those_that_go_along_are_not(density, column):
    rng, others = np.random.default_rng([4, column]), 0
    for seed in range(8):
        new = draw(rng, 300)[0]
        new[:, column] += 0.8
        found = drift(density, new, draw(rng, 300)[0], random_state=seed)
        assert found.changed[0] == column
        assert found.columns[0]["kind"] == "values"
        others += len(found.changed) > 1
    assert within_binomial(others, 8, 0.05)


def test_a_relation_that_changes_with_all_margins_kept_is_named(density):
    rng = np.random.default_rng(5)
    reference, new = draw(rng, 500)[0], draw(rng, 500)[0]
    ranks = np.argsort(np.argsort(new[:, 1]))
    new[:, 1] = np.sort(reference[:, 1])[ranks[rng.permutation(500)]]  # the same values, beside other rows
    found = drift(density, new, reference)
    assert len(found.changed) == 1
    assert {found.columns[0]["column"], found.columns[0]["with"]} == {0, 1}
    assert found.columns[0]["kind"] == "relation"
    # The control: the values alone do not tell.
    assert max_t_test(rng, reference, new)[1].min() > 0.05


def test_the_display_marks_what_changed(density):
    rng = np.random.default_rng(10)
    new = draw(rng, 300)[0]
    new[:, 1] += 2
    display = DriftDisplay.from_estimator(density, new, draw(rng, 300)[0])
    assert display.ax_.get_yticklabels()[0].get_text() == "1"
    assert any("values" in text.get_text() for text in display.ax_.texts)
    assert "of 4 columns changed" in display.ax_.get_title()


def mixed_rows(rng, n, copied=True):
    city = rng.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2])
    age = rng.normal(40, 10, n).round(1)
    plan = np.where(rng.random(n) < 0.9, np.where(city == "A", "basic", "full"), rng.choice(["basic", "full"], n))
    plan = plan if copied else rng.permutation(plan)
    income = np.where(rng.random(n) < 0.1, np.nan, (age * 100 + rng.normal(0, 300, n)).round())
    return pd.DataFrame({"city": city, "age": age, "plan": plan, "income": income})


@pytest.fixture(scope="module")
def mixed():
    return ScoreDensity(max_steps=150, hidden=(32,), random_state=0).fit(mixed_rows(np.random.default_rng(0), 600))


def test_mixed_tables(mixed):
    rng = np.random.default_rng(6)
    reference = mixed_rows(rng, 400)
    assert drift(mixed, mixed_rows(rng, 400), reference).changed == []
    assert set(drift(mixed, mixed_rows(rng, 400, copied=False), reference).changed) & {"city", "plan"}
    gone = mixed_rows(rng, 400)
    gone.loc[rng.random(400) < 0.4, "income"] = np.nan
    assert drift(mixed, gone, reference).changed == ["income"]
    unseen = mixed_rows(rng, 400).replace({"city": {"C": "D"}})
    assert drift(mixed, unseen, reference).changed[0] == "city"


def test_columns_that_are_missing_or_more(mixed):
    rng = np.random.default_rng(7)
    reference, new = mixed_rows(rng, 60), mixed_rows(rng, 60)
    found = drift(mixed, new.assign(extra=1)[["extra", "plan", "income", "age", "city"]], reference)
    assert found.ignored == ["extra"]
    assert "Ignored, since the model does not know them: 'extra'" in str(found)
    with pytest.raises(ValueError, match="in the new rows, got none named 'age', 'plan'"):
        drift(mixed, new.drop(columns=["age", "plan"]), reference)
    with pytest.raises(ValueError, match="in the reference rows, got none named 'age'"):
        drift(mixed, new, reference.drop(columns=["age"]))


def test_what_cannot_be_compared_is_told(density):
    X = draw(np.random.default_rng(8), 60)[0]
    with pytest.raises(ValueError, match="Expected at least 50 new rows, got 49"):
        drift(density, X[:49], X)
    with pytest.raises(ValueError, match="Expected at least 50 reference rows, got 7"):
        drift(density, X, X[:7])
    with pytest.raises(ValueError, match="Expected reference rows that the model was not fitted to, got None"):
        drift(density, X)
    with pytest.raises(ValueError, match="Expected level between 0 and 1, got 5"):
        drift(density, X, X, level=5)


def test_shares_by_em_have_their_closed_form():
    """Where features tell classes exactly, shares are counts; where they tell nothing, shares stay."""
    labels = np.array([0] * 30 + [1] * 70)
    sure = np.log(np.where(np.eye(2)[labels] > 0, 1 - 1e-9, 1e-9))
    assert em_shares(sure, np.array([0.9, 0.1])) == pytest.approx([0.3, 0.7], abs=1e-6)
    unsure = np.log(np.tile([0.9, 0.1], (100, 1)))
    assert em_shares(unsure, np.array([0.9, 0.1])) == pytest.approx([0.9, 0.1])


def test_permuted_statistics_are_those_of_a_t_test():
    rng = np.random.default_rng(9)
    a, b = rng.normal(size=(80, 1)), rng.normal(size=(50, 1)) + 0.3
    statistic, p_value = max_t_test(rng, a, b)
    pooled = np.concatenate([a, b]).std()
    assert statistic[0] == pytest.approx(abs(a.mean() - b.mean()) / pooled / np.sqrt(1 / 80 + 1 / 50))
    assert 0 < p_value[0] < 1
