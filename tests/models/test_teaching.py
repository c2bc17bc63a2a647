"""New rows for a learner: chains against closed forms, redrawn cells, selection and the weights that undo it."""

import dataclasses

import jax
import numpy as np
import pytest

from scorefield.fields.gaussian import fit_gaussian
from scorefield.fields.joint import columns_of, init_joint
from scorefield.models.teaching import (
    LEAST_WEIGHT,
    REDRAWN,
    STEP,
    chosen_by_weight,
    parents_by_class,
    redrawn_sources,
    repeated,
    short_chains,
    soft_lesson,
)


def gaussian_energy(deviations, n_members=1):
    """A joint model of two classes at its start, whose energies are those of a Gaussian."""
    rows = np.random.default_rng(0).normal(size=(4000, len(deviations)))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0) * deviations
    columns = columns_of(rows.astype(np.float32))
    models = [
        init_joint(jax.random.key(m), fit_gaussian(rows, noise=0.0), columns, 2, hidden=(4,)) for m in range(n_members)
    ]
    return dataclasses.replace(models[0], members=tuple(model.members[0] for model in models))


def moved(joint, start, color, free=1.0, n=20_000, n_steps=4):
    rows = np.repeat(np.asarray(start, float)[None], n, axis=0)
    free = np.broadcast_to(np.asarray(free, np.float32), rows.shape)
    return short_chains(jax.random.key(1), joint, color, rows, np.zeros(n, int), free, n_steps)


@pytest.mark.parametrize("n_members", [1, 2])
def test_chains_follow_the_law_of_their_steps(n_members):
    """From x after k steps of a unit Gaussian: mean x (1 - h)^k, variance 2 h sum (1 - h)^(2 j)."""
    start, n = [2.0, -1.0], 20_000
    found = moved(gaussian_energy([1.0, 1.0], n_members), start, np.eye(2), n=n)
    mean = np.array(start) * (1 - STEP) ** 4
    variance = 2 * STEP * np.sum((1 - STEP) ** (2 * np.arange(4)))
    # 5 standard errors, and a hundredth for the shrinkage of a covariance of 4,000 rows
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=5 * np.sqrt(variance / n) + 0.01 * STEP * 4 * 2)
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=5 * np.sqrt(2 / n) + 0.01)
    away = np.array(start) * (1 + STEP) ** 4  # negative control: a chain that climbs out of the density
    assert np.abs(found.mean(axis=0) - away).min() > 10 * np.sqrt(variance / n)


def test_held_cells_do_not_move_and_do_not_move_others():
    found = moved(gaussian_energy([1.0, 1.0]), [2.0, -1.0], np.eye(2), free=[1.0, 0.0], n=500)
    assert (found[:, 1] == -1.0).all()
    assert np.unique(found[:, 0]).size == 500


def test_steps_are_short_in_narrow_directions():
    """A step of .01 would multiply a deviation of .001 by 10,000: chains of the noise's own shape stay."""
    deviations = np.array([1.0, 0.001])
    found = moved(gaussian_energy(deviations), [0.0, 0.0], np.diag(deviations), n=5000, n_steps=12)
    assert found[:, 1].std() < 3 * deviations[1]
    wild = moved(gaussian_energy(deviations), [0.0, 0.0], np.eye(2), n=500, n_steps=12)  # negative control
    assert wild[:, 1].std() > 100 * deviations[1]


def test_weights_undo_a_selection():
    """Standard normal candidates kept by the square of a probability: the weights give their moments back."""
    rng, sums, plain, totals = np.random.default_rng(0), [], [], []
    for _ in range(400):
        x = rng.normal(size=600)
        places, weights = chosen_by_weight(rng, -2 * np.log1p(np.exp(-2 * x)), 100)
        assert len(np.unique(places)) == 100
        sums.append([(weights * x[places]).sum() / 600, (weights * x[places] ** 2).sum() / 600])
        plain.append(x[places].mean())
        totals.append(weights.sum())
    for found, expected in ((np.array(sums).T[0], 0.0), (np.array(sums).T[1], 1.0), (np.array(totals), 600.0)):
        assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(400)
    assert np.mean(plain) > 0.5  # negative control: without weights the rows lie elsewhere


def test_one_row_is_chosen_in_proportion():
    rng = np.random.default_rng(0)
    counts = np.bincount([chosen_by_weight(rng, np.log([1.0, 2.0, 3.0]), 1).places[0] for _ in range(6000)])
    shares = np.array([1, 2, 3]) / 6
    assert (np.abs(counts / 6000 - shares) < 4 * np.sqrt(shares * (1 - shares) / 6000)).all()


def test_all_rows_are_kept_where_no_more_are_there():
    places, weights = chosen_by_weight(np.random.default_rng(0), np.array([-700.0, 0.0]), 5)
    assert places.tolist() == [0, 1]
    assert weights.tolist() == [1.0, 1.0]


def test_a_fifth_of_the_cells_is_redrawn_in_groups():
    rng, parents = np.random.default_rng(0), np.arange(4000)
    groups = np.array([0, 1, 0, *range(2, 11), -1])
    sources = redrawn_sources(rng, parents, np.arange(4000, 5000), groups)
    other = sources != parents[:, None]
    assert (sources[other] >= 4000).all()
    assert not other[:, -1].any()  # no group: never redrawn
    assert (sources[:, 0] == sources[:, 2]).all()  # of one group
    assert other.any(axis=1).all()  # no row is a copy of its parent
    none = (1 - REDRAWN) ** 11
    share = REDRAWN + none / 11  # rows without a redrawn cell get one
    assert abs(other[:, 1:-1].mean() - share) < 4 * np.sqrt(share / (4000 * 10))


def test_rows_without_groups_keep_all_cells():
    sources = redrawn_sources(np.random.default_rng(0), np.array([3, 1]), np.arange(5), np.full(2, -1))
    assert sources.tolist() == [[3, 3], [1, 1]]


@pytest.mark.parametrize("in_proportion", [False, True])
def test_parents_by_class(in_proportion):
    codes = np.repeat([0, 1, 2], [60, 30, 10])
    parents = parents_by_class(np.random.default_rng(0), codes, 600, in_proportion=in_proportion)
    assert np.bincount(codes[parents]).tolist() == ([360, 180, 60] if in_proportion else [200, 200, 200])
    counts = np.bincount(parents, minlength=100)
    for k in range(3):
        assert np.ptp(counts[codes == k]) <= 1  # each row as often as the others of its class


def test_parents_follow_the_weights_of_rows():
    codes, weights = np.repeat([0, 1], 50), np.tile([1.0, 3.0], 50)
    counts = np.bincount(parents_by_class(np.random.default_rng(0), codes, 800, weights), minlength=100)
    assert set(counts[::2]) == {4}
    assert set(counts[1::2]) == {12}


def test_a_soft_lesson_has_each_row_once_per_class():
    proba = np.array([[0.3, 0.7, 0.0], [1 - LEAST_WEIGHT / 2, LEAST_WEIGHT / 2, 0.0], [0.2, 0.3, 0.5]])
    lesson = soft_lesson(proba)
    assert lesson.rows.tolist() == [0, 0, 1, 2, 2, 2]
    assert lesson.classes.tolist() == [0, 1, 0, 0, 1, 2]
    np.testing.assert_allclose(np.bincount(lesson.rows, lesson.weights), 1.0)
    assert soft_lesson(proba, most=3).rows.tolist() == [0, 0, 1]
    assert soft_lesson(proba, most=1).rows.tolist() == [0, 0]  # one row at least


def test_rows_are_repeated_by_their_weights():
    rng, n = np.random.default_rng(0), 4000
    weights = np.concatenate([np.ones(50), np.tile([0.3, 0.7], n)])
    places = repeated(rng, weights)
    counts = np.bincount(places, minlength=len(weights))
    assert (counts[:50] == 1).all()
    copies = counts[50:].reshape(n, 2)
    assert (copies.sum(axis=1) == 1).all()
    assert abs(copies[:, 0].mean() - 0.3) < 4 * np.sqrt(0.21 / n)
    assert (np.diff(places) >= 0).all()
