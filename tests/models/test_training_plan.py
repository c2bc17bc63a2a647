"""How long and on which rows the members of a joint model train."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from scorefield import ScoreClassifier
from scorefield.models import training_plan
from scorefield.models.training_plan import plan_training
from scorefield.training.losses import LabelledRow
from scorefield.training.minibatches import HELD_OUT_POINTS, Split


def planned(counts, held=100, **options):
    """A plan for classes of these sizes, with the first `held` rows and the last row of each class held out."""
    labels = np.repeat(np.arange(len(counts)), counts)
    places = np.unique([*range(held), *(np.cumsum(counts) - 1)])
    split = Split(np.setdiff1d(np.arange(len(labels)), places), places)
    given = {"hidden": "auto", "max_steps": "auto", "numbers": True, "by_labels": True, **options}
    return plan_training(LabelledRow(np.zeros((len(labels), 2)), labels), [split], len(counts), **given), labels


def test_steps_and_patience_follow_the_rows():
    small, middle, large = (planned(counts)[0] for counts in ([700, 100], [8000, 1000], [159_000, 1000]))
    assert (small.max_steps, middle.max_steps, large.max_steps) == (500, 500, 2000)
    assert (small.patience, middle.patience, large.patience) == (2, 2, 8)
    assert (small.widths, middle.widths) == ((64, 64), (128, 128))
    assert planned([700, 10])[0].patience == 4  # few rows, whose loss varies
    assert planned([159_000, 1000], max_steps=300, hidden=[8])[0][:3] == ((8,), 128, 300)
    assert planned([159_000, 1000], numbers=False)[0].max_steps == 500
    assert small.held_out_points == 256
    assert planned([700, 100], held=300)[0].held_out_points == 512
    assert planned([8000, 1000], held=5000)[0].held_out_points == HELD_OUT_POINTS
    assert planned([700, 100], by_labels=False)[0].held_out_points == HELD_OUT_POINTS  # noise is averaged out


def test_rare_rows_of_large_tables_are_drawn_more_often():
    plan, labels = planned([99_900, 100])
    assert plan.factors.tolist() == [1, 20]
    for rows in plan.splits[0]:
        drawn, each = np.unique(rows[labels[rows] == 1], return_counts=True)
        assert (each == 20).all()
        assert len(drawn) in (1, 99)
        assert len(rows) == len(np.unique(rows)) + 19 * len(drawn)
    assert planned([9_900, 10])[0].factors.tolist() == [1, 1]
    assert planned([50_000] * 20)[0].factors.tolist() == [1] * 20
    assert planned([50_000] * 20 + [100])[0].factors[-1] == 20
    assert planned([999_990, 10])[0].factors[-1] == 50


@pytest.fixture(scope="module")
def rare_events():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 3))
    odds = X.sum(axis=1) * 1.5 - 7.5
    return X, (rng.random(len(X)) < 1 / (1 + np.exp(-odds))).astype(int), odds


def test_probabilities_are_those_of_the_table(rare_events, monkeypatch):
    """Rare rows are drawn twenty times as often; without the offsets the odds would be twenty times too large."""
    X, y, odds = rare_events
    assert y.mean() < 0.01
    monkeypatch.setattr(training_plan, "LARGE_TABLE", 5_000)
    monkeypatch.setattr(training_plan, "RARE_SHARE", 20 * y[:15_000].mean())
    model = ScoreClassifier(n_members=2, hidden=(16, 16), calibration=None, random_state=0).fit(X[:15_000], y[:15_000])
    proba = model.predict_proba(X[15_000:])[:, 1].astype(float)
    truth = 1 / (1 + np.exp(-odds[15_000:]))
    assert 0.5 < proba.mean() / truth.mean() < 2
    assert average_precision_score(y[15_000:], proba) > 0.8 * average_precision_score(y[15_000:], truth)
    monkeypatch.setattr(training_plan.Plan, "offsets", np.zeros(2, np.float32))
    biased = ScoreClassifier(n_members=2, hidden=(16, 16), calibration=None, random_state=0).fit(X[:15_000], y[:15_000])
    assert biased.predict_proba(X[15_000:])[:, 1].mean() / truth.mean() > 4


def test_weights_of_rows_make_up_for_draws(rng):
    labels = np.repeat([0, 1], [99_900, 100])
    weights = np.where(labels, 500.0, 0.5)
    table = LabelledRow(np.zeros((len(labels), 2)), labels, weights)
    split = Split(np.arange(len(labels)), np.array([0, len(labels) - 1]))
    options = {"hidden": "auto", "max_steps": "auto", "numbers": True, "by_labels": True}
    plan = plan_training(table, [split], 2, **options)
    assert not plan.offsets.any()
    drawn = plan.splits[0].kept
    for k in range(2):  # the classes' shares of the weights in what is drawn are those of the table
        share = plan.table.weight[drawn][labels[drawn] == k].sum() / plan.table.weight[drawn].sum()
        assert share == pytest.approx(weights[labels == k].sum() / weights.sum())
    assert plan.table.weight[drawn].mean() == pytest.approx(weights.mean())
