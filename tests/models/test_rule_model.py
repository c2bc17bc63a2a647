"""The rule model of the labels: its optimum, its rules, its use, and what it costs where it is of none."""

import jax
import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import log_loss

from scorefield import ScoreClassifier
from scorefield._jax.batching import map_rows
from scorefield.models import rule_model
from scorefield.models.calibration import fit_share, fit_temperature
from scorefield.models.ensemble import member_splits
from scorefield.models.rule_model import RuleInputs, choose_rows, fit_rules, grow_rules, sparse_logistic
from scorefield.training.losses import LabelledRow
from scorefield.training.minibatches import Split

LIGHT = {"n_members": 4, "hidden": (16, 16), "max_steps": 200, "random_state": 0}


def steps_in_few_columns(rng, n, d=40):
    """Labels that depend on two of many columns, by a step in each."""
    X = rng.normal(size=(n, d)).astype(np.float32)
    logits = 5 * (X[:, 3] > 0.4) + 4 * (X[:, 7] < -0.6) - 4.0
    return X, (rng.random(n) < expit(logits)).astype(np.int32), expit(logits)


def crossed(rng, n):
    """Labels that no sum over columns can tell."""
    X = rng.normal(size=(n, 2)).astype(np.float32)
    return X, (rng.random(n) < expit(6 * X[:, 0] * X[:, 1])).astype(np.int32)


def everything(n):
    return [Split(np.arange(n), np.arange(n))]


def test_sparse_weights_are_optimal(rng):
    X, y, _ = steps_in_few_columns(rng, 300)
    strength = 0.5
    model = sparse_logistic(strength).set_params(tol=1e-6).fit(X.astype(float), y)
    weights = model.coef_[0]
    slopes = strength * X.T @ (y - expit(X @ weights + model.intercept_[0]))
    assert 0 < np.sum(weights != 0) < 40
    assert np.abs(slopes).max() < 1.01
    np.testing.assert_allclose(slopes[weights != 0], np.sign(weights[weights != 0]), atol=0.01)


def test_the_network_is_the_mean_of_the_splits_models(rng):
    X, y, _ = steps_in_few_columns(rng, 200, d=8)
    table = LabelledRow(X, y)
    network, logits = fit_rules(table, everything(200), None, 2)
    np.testing.assert_allclose(map_rows(network, X), logits, atol=1e-4)
    splits = member_splits(rng, X, y, 4)
    network, held = fit_rules(table, splits, None, 2)
    assert held.shape == (sum(len(split.held) for split in splits), 2)
    apart = [fit_rules(table, [Split(split.kept, np.arange(200))], None, 2)[0] for split in splits]
    outputs = np.mean([map_rows(own, X) for own in apart], axis=0)
    assert np.corrcoef(outputs[:, 1], map_rows(network, X)[:, 1])[0, 1] > 0.9  # strengths may differ


def test_several_classes_and_one_that_a_split_lacks(rng):
    X = rng.normal(size=(150, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0.3, 2, np.where(X[:, 1] > 0, 1, 0)).astype(np.int32)
    X = np.vstack([X, [[9, 9, 9]]]).astype(np.float32)
    y = np.append(y, 3).astype(np.int32)
    split = Split(np.arange(150), np.arange(151))  # its own class is held out alone
    _, logits = fit_rules(LabelledRow(X, y), [split], None, 4)
    assert np.isfinite(logits).all()
    assert np.mean(logits.argmax(axis=1) == y) > 0.9
    assert softmax(logits, axis=1)[:, 3].max() < 0.05


def test_weights_count_as_repeated_rows(rng):
    X, y, _ = steps_in_few_columns(rng, 150, d=8)
    counts, strength = rng.integers(1, 4, 150), 0.3
    rows, again = RuleInputs(LabelledRow(X, y), None).at(np.arange(150)), np.repeat(np.arange(150), counts)

    def cost(model):
        """What is minimised, over the repeated rows."""
        logits, size = model.decision_function(rows[again]), np.abs([*model.coef_[0], *model.intercept_]).sum()
        return size + strength * np.logaddexp(0, np.where(y[again], -logits, logits)).sum()

    alone = sparse_logistic(strength).fit(rows, y)
    weighted = sparse_logistic(strength).fit(rows, y, sample_weight=counts.astype(float))
    copies = sparse_logistic(strength).fit(rows[again], y[again])
    assert cost(weighted) == pytest.approx(cost(copies), rel=2e-3)
    assert cost(alone) > 1.02 * cost(copies)


def test_large_tables_cost_a_bounded_number_of_cells(rng, monkeypatch):
    X, y, _ = steps_in_few_columns(rng, 3000)
    y[:] = 0
    y[::50] = X[::50, 3] > -1
    monkeypatch.setattr(rule_model, "MAX_CELLS", 200_000)
    inputs = RuleInputs(LabelledRow(X, y), None)
    rows, _ = choose_rows(inputs, y, np.ones(len(y)), 2)
    chosen = rule_model._affordable(inputs, rows, y[rows], np.ones(len(rows)), 2)
    assert len(rows) * len(chosen) <= 200_000 < 3000 * len(inputs)
    assert set(np.flatnonzero(y == 1)) <= set(rows)
    assert 3 in inputs.owners()[chosen]
    network, logits = fit_rules(LabelledRow(X, y), everything(3000), None, 2)
    np.testing.assert_allclose(map_rows(network, X), logits, atol=1e-3)
    _, logits = fit_rules(LabelledRow(X, y), member_splits(rng, X, y, 4), None, 2)
    mean = softmax(logits, axis=1)[:, 1].mean()
    assert abs(mean - y.mean()) < 0.6 * y.mean()  # the shares of the whole table, not thrice as many


def test_shares_of_two_models_are_found(rng):
    first, second = rng.normal(0, 2, size=(2, 5000, 3))
    shares = softmax((0.3 * first + 0.7 * second) / 1.5, axis=1)
    labels = (rng.random((5000, 1)) > shares.cumsum(axis=1)).sum(axis=1)
    share, temperature = fit_share(first, second, labels)
    assert share == pytest.approx(0.7, abs=0.03)
    assert temperature == pytest.approx(1.5, rel=0.08)
    noise = rng.normal(0, 2, size=(5000, 3))
    share, temperature = fit_share(second, noise, labels)  # of no use
    assert share < 0.05
    assert temperature == pytest.approx(fit_temperature(second, labels)[0], rel=0.1)


def test_weighted_rows_count_in_shares(rng):
    first, second = rng.normal(0, 2, size=(2, 400, 2))
    labels, counts = rng.integers(0, 2, 400), rng.integers(1, 4, 400)
    again = np.repeat(np.arange(400), counts)
    found = fit_share(first, second, labels, counts.astype(float))
    np.testing.assert_allclose(found, fit_share(first[again], second[again], labels[again]), atol=1e-3)


def test_labels_that_follow_steps_are_learned_from_few_rows(rng):
    X, y, _ = steps_in_few_columns(rng, 300)
    fresh, _, truth = steps_in_few_columns(np.random.default_rng(9), 4000)
    excess = {}
    for calibration in ("auto", None):
        model = ScoreClassifier(calibration=calibration, **LIGHT).fit(X, y)
        proba = model.predict_proba(fresh)[:, 1]
        excess[calibration] = np.mean(truth * np.log(truth / proba) + (1 - truth) * np.log((1 - truth) / (1 - proba)))
    joint = ScoreClassifier(**LIGHT).fit(X, y).model_.joint
    assert joint.share > 0.5
    assert excess["auto"] < 0.08 < excess[None], excess


def test_columns_that_decide_together_are_learned(rng):
    X, y = crossed(rng, 600)
    model = ScoreClassifier(**LIGHT).fit(X, y)
    fresh, labels = crossed(np.random.default_rng(9), 2000)
    assert log_loss(labels, model.predict_proba(fresh)) < 0.4  # log 2 by any sum over columns


def test_rules_are_the_nodes_of_trees(rng):
    """Each rule is the smooth form of a box; the leaves of a tree cover every row once, but near thresholds."""
    X, y = rng.normal(size=(400, 5)).astype(np.float32), rng.integers(0, 2, 400)
    corner = (X[:, 1] > 0.3) & (X[:, 4] < 0.2)
    rules = grow_rules(X, corner, np.ones(400), 5, np.array([4, 1, 1]), seed=0)
    assert set(rules.columns) == {1, 4}
    values = rules.at(X, 5)
    sharp = np.sign(X[:, rules.columns] - rules.thresholds)
    boxes = np.all((sharp[:, :, None] == rules.sides) | (rules.sides == 0), axis=1)
    far = (np.abs(X[:, rules.columns] - rules.thresholds) > 0.05).all(axis=1)
    np.testing.assert_allclose(values[far], boxes[far], atol=0.05)
    assert far.mean() > 0.1
    assert max(np.corrcoef(box, corner)[0, 1] for box in boxes.T) > 0.9
    noise = grow_rules(X, y == 1, np.ones(400), 5, np.arange(5), seed=0)
    assert max(np.corrcoef(box, y)[0, 1] for box in noise.at(X, 5).T) < 0.5  # the control


def test_rules_take_levels_as_conditions(rng):
    """Beyond the numbers are indicators, whose conditions are linear in them."""
    single = np.column_stack([rng.normal(size=400), rng.integers(0, 2, (400, 3))]).astype(np.float32)
    wanted = (single[:, 0] > 0) & (single[:, 2] == 1)
    rules = grow_rules(single, wanted, np.ones(400), 5, np.arange(4), seed=0)
    values = rules.at(single, 1)
    found = np.argmax([np.corrcoef(value, wanted)[0, 1] for value in values.T])
    assert np.corrcoef(values[:, found], wanted)[0, 1] > 0.9
    chosen = rules.chosen([found])
    assert set(chosen.columns) == {0, 2}
    np.testing.assert_allclose(chosen.at(single, 1)[:, 0], values[:, found])


def test_rows_near_the_rare_ones_are_chosen_and_stand_for_the_table(rng, monkeypatch):
    """Of many common rows those are learned from that look like rare ones; their weights keep the odds of the table."""
    monkeypatch.setattr(rule_model, "MAX_CELLS", 60_000)
    X = rng.normal(size=(60_000, 3)).astype(np.float32)
    odds = 2.0 * X.sum(axis=1) - 9.5
    y = (rng.random(len(X)) < expit(odds)).astype(np.int32)
    table, split = LabelledRow(X, y), [Split(np.arange(0, 60_000, 2), np.arange(1, 60_000, 2))]
    rows, weights = choose_rows(RuleInputs(table, None), y, np.ones(len(y)), 2)
    assert len(rows) < 3000
    assert weights.sum() == pytest.approx(len(y), rel=0.1)
    doubtful = odds > -3
    assert np.mean(doubtful[rows[y[rows] == 0]]) > 5 * np.mean(doubtful)
    share, found = weights @ (doubtful & (y == 0))[rows], np.sum(doubtful & (y == 0))
    assert share == pytest.approx(found, rel=0.2)  # weighted, they are as many as there are

    def error():
        logits = fit_rules(table, split, None, 2)[1]
        return np.mean(np.abs(expit(logits[:, 1] - logits[:, 0]) - expit(odds[1::2])))

    by_doubt = error()
    monkeypatch.setattr(rule_model, "choose_rows", lambda *given: (rows, np.ones(len(rows))))
    assert by_doubt < 0.01 < error()  # without their weights doubtful rows would be far too many


def test_every_class_keeps_rows_and_rows_without_weight_are_left_out(rng, monkeypatch):
    """One class of eight is told without an error; by their errors alone next to none of its rows would be chosen."""
    monkeypatch.setattr(rule_model, "MAX_CELLS", 1)
    y = rng.integers(0, 8, 20_000)
    X = rng.normal(size=(20_000, 2)).astype(np.float32)
    X[y == 7, 0] += 50
    weights = rng.integers(0, 2, 20_000).astype(float)
    rows, found = choose_rows(RuleInputs(LabelledRow(X, y), None), y, weights, 8)
    counts = np.bincount(y[rows], minlength=8)
    assert 600 < len(rows) < 1400
    assert counts.min() > 30
    assert (weights[rows] == 1).all()
    np.testing.assert_allclose(np.bincount(y[rows], found), np.bincount(y, weights), rtol=0.5)
    assert found.max() <= 2 * weights.sum() / 1000 * 1.2  # no row stands for more than twice as many as in an even draw


def test_labels_of_noise_stay_noise_in_large_tables(rng, monkeypatch):
    """Rows are chosen by the errors of a model that saw held-out labels too, which must not make these predictable."""
    monkeypatch.setattr(rule_model, "MAX_CELLS", 40_000)
    X, y = rng.normal(size=(6000, 4)).astype(np.float32), rng.integers(0, 2, 6000)
    splits = member_splits(rng, X, y, 4)
    _, logits = fit_rules(LabelledRow(X, y), splits, None, 2)
    held = np.concatenate([split.held for split in splits])
    hits = np.mean(logits.argmax(axis=1) == y[held])
    assert abs(hits - 0.5) < 4 * 0.5 / np.sqrt(len(held))


def test_splits_that_share_a_model_have_not_seen_their_rows(rng):
    """Labels of noise stay noise where held out; a model that saw the rows predicts them."""
    X, y = rng.normal(size=(1000, 12)).astype(np.float32), rng.integers(0, 2, 1000).astype(np.int32)
    splits, hits = member_splits(rng, X, y, 5), {}
    for name, own in (("held out", splits), ("seen", [Split(np.arange(1000), split.held) for split in splits])):
        logits = fit_rules(LabelledRow(X, y), own, None, 2, shared=True)[1]
        hits[name] = np.mean(logits.argmax(axis=1) == y[np.concatenate([split.held for split in own])])
        assert logits.shape == (1000, 2)  # five folds
    error = 0.5 / np.sqrt(1000)
    assert abs(hits["held out"] - 0.5) < 4 * error
    assert hits["seen"] - 0.5 > 4 * error


def test_columns_are_not_chosen_by_held_out_labels(rng, monkeypatch):
    """Labels of pure noise: where few of many columns are affordable, held-out rows must not look predictable."""
    monkeypatch.setattr(rule_model, "MAX_CELLS", 20_000)
    X, y = rng.normal(size=(80, 2000)).astype(np.float32), rng.permutation(np.repeat([0, 1], 40)).astype(np.int32)
    splits = member_splits(rng, X, y, 8)
    _, logits = fit_rules(LabelledRow(X, y), splits, None, 2)
    held = np.concatenate([split.held for split in splits])
    assert np.mean(logits.argmax(axis=1) == y[held]) < 0.65


def test_a_class_may_be_absent(rng):
    X, y, _ = steps_in_few_columns(rng, 200, d=8)
    _, logits = fit_rules(LabelledRow(X, y), member_splits(rng, X, y, 2), None, 3)
    assert np.isfinite(logits).all()
    assert softmax(logits, axis=1)[:, 2].max() < 0.05


def test_threads_change_nothing(rng, monkeypatch):
    """The solver's random numbers are those of the process: two of its fits at once would share them."""
    X, y, _ = steps_in_few_columns(rng, 400, d=12)
    splits, found = member_splits(rng, X, y, 8), []
    for threads in ("1", "4", "4"):
        monkeypatch.setenv("NPROC", threads)
        found.append(fit_rules(LabelledRow(X, y), splits, None, 2)[1])
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_shapes_tell_the_size_alone(rng):
    """Fits of one table share their compiled programs."""
    shapes = set()
    for seed in range(3):
        X, y, _ = steps_in_few_columns(np.random.default_rng(seed), 200, d=8)
        network, _ = fit_rules(LabelledRow(X, y), member_splits(rng, X, y, 2), None, 2)
        leaves, structure = jax.tree.flatten(network)
        shapes.add((structure, tuple(leaf.shape for leaf in leaves)))
    assert len(shapes) <= 2
