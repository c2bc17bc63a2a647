"""Student's t as a base: closed forms, fits and the choice between it and a Gaussian."""

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_t
from scipy.stats import t as student

from scorefield import ScoreDensity
from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield._jax.storage import from_plain, to_plain
from scorefield.fields.gaussian import Gaussian
from scorefield.fields.student import StudentT, fit_base, fit_student
from scorefield.inference.anchors import importance_constant, importance_proposal

SCALE = np.array([[2.0, 0.6], [0.6, 0.5]])


def of_scipy(per_column, degrees=4):
    """The field, and its log density by scipy."""
    matrix = np.diag(np.diag(SCALE)) if per_column else SCALE
    whiten = np.linalg.cholesky(np.linalg.inv(matrix)).astype(np.float32)
    mean = np.array([1.0, -2.0], np.float32)
    field = StudentT(mean, whiten, np.linalg.inv(whiten), degrees, per_column)
    if per_column:
        return field, lambda x: student(degrees, mean, np.sqrt(np.diag(matrix))).logpdf(x).sum(axis=1)
    return field, multivariate_t(mean, matrix, df=degrees).logpdf


@pytest.mark.parametrize("per_column", [False, True])
def test_log_density_score_and_samples(key, per_column):
    field, log_density = of_scipy(per_column)
    x = np.array([[0.0, 0.0], [1.0, -2.0], [-40.0, 90.0]], np.float32)
    np.testing.assert_allclose(map_rows(Method(field, "potential"), x), log_density(x), rtol=1e-4)
    np.testing.assert_allclose(jax.vmap(jax.grad(field.potential))(x), jax.vmap(field)(x), rtol=1e-3, atol=1e-5)
    rows = np.asarray(field.sample(key, 20_000))
    # In units of the scale, half of the rows of a column lie within Student's third quartile.
    inside = np.abs(rows - np.asarray(field.mean)) / np.asarray(field.scale) < student(4).ppf(0.75)
    np.testing.assert_allclose(inside.mean(axis=0), 0.5, atol=4 * 0.5 / np.sqrt(20_000))
    assert type(from_plain(to_plain(field))) is StudentT


@pytest.mark.parametrize("per_column", [False, True])
def test_maximum_likelihood(key, per_column):
    """A fit is as good on its own rows as the truth, and close to it on others: the gap is about parameters / 2 n."""
    truth, _ = of_scipy(per_column)
    rows, others = (np.asarray(truth.sample(k, 3000)) for k in jax.random.split(key))
    fit = fit_student(rows, 4, per_column=per_column)
    means = {table: [map_rows(Method(f, "potential"), r).mean() for f in (truth, fit)] for table, r in
             (("own", rows), ("others", others))}  # fmt: skip
    assert means["own"][1] >= means["own"][0] - 1e-4
    assert means["others"][1] == pytest.approx(means["others"][0], abs=5 * 5 / 6000)


def test_the_base_is_chosen_by_held_out_rows(rng):
    heavy = student(3).rvs((600, 2), random_state=rng)
    kinds = {type(fit_base(rows[:480], rows[480:])) for rows in np.split(rng.normal(size=(12_000, 2)), 20)}
    kinds |= {type(fit_base(rows[:32], rows[32:])) for rows in np.split(rng.normal(size=(2000, 2)), 50)}
    assert kinds == {Gaussian}
    base = fit_base(heavy[:480], heavy[480:])
    assert isinstance(base, StudentT)
    assert base.degrees <= 5
    assert base.per_column  # independent columns
    assert isinstance(fit_base(heavy[:19], heavy[19:25]), Gaussian)  # too few rows
    two_values = np.where(np.arange(600)[:, None] < 30, 5.0, 0.0) + 0.1 * rng.normal(size=(600, 1))
    assert np.isfinite(np.asarray(fit_base(two_values[:480], two_values[480:]).mean)).all()


def test_the_normaliser_sees_heavy_tails(key, rng):
    """Far out the proposal falls as slowly as the density does, so that weights are bounded; it integrates to one."""
    truth, _ = of_scipy(False, degrees=2)
    rows = np.asarray(truth.sample(key, 500))
    log_density = Method(truth, "potential")
    proposal = importance_proposal(rows, degrees=2)
    found = importance_constant(key, log_density, proposal)
    assert abs(found.offset) < 4 * found.error
    out = np.array([[1e3, 1e3], [1e5, 1e5]], np.float32)
    weights = map_rows(log_density, out) - map_rows(Method(proposal, "log_density"), out)
    assert weights[1] == pytest.approx(weights[0], abs=0.1)
    light = Method(importance_proposal(rows), "log_density")
    assert np.ptp(map_rows(log_density, out) - map_rows(light, out)) > 100  # the control
    single = importance_proposal(rng.normal(size=(50, 1)), degrees=3)
    grid = np.sinh(np.linspace(-9, 9, 4001)).astype(np.float32)
    density = np.exp(map_rows(Method(single, "log_density"), grid[:, None]).astype(float))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)
    shares = np.mean(np.abs(single.sample(key, 20_000)) > 5), 1 - np.trapezoid(density * (np.abs(grid) < 5), grid)
    assert abs(shares[0] - shares[1]) < 4 * np.sqrt(shares[1] / 20_000) + 1e-3


def test_far_rows_of_a_heavy_tailed_law():
    """Student-t(3) rows: 25 units out a Gaussian base is off by tens of nats."""
    X = student(3).rvs((800, 1), random_state=np.random.default_rng(0))
    far = np.array([[0.0], [5.0], [25.0]])
    errors = {
        tails: ScoreDensity("energy", tails=tails, hidden=(32, 32), max_steps=300, random_state=0)
        .fit(X)
        .score_samples(far)
        - student(3).logpdf(far[:, 0])
        for tails in ("auto", "gaussian")
    }
    assert np.abs(errors["auto"]).max() < 3  # two degrees of freedom too many or too few change it by 2 log 25
    assert errors["gaussian"][2] < -20  # the control


@pytest.mark.parametrize("n_beside", [0, 1])
def test_rows_that_mostly_lie_in_a_plane_leave_the_scale_regular(rng, n_beside):
    """The likelihood grows without bound as the scale across the plane falls."""
    table = rng.normal(size=(300, 3))
    table[:, 2] = np.arange(300) < n_beside
    table @= np.linalg.qr(rng.normal(size=(3, 3)))[0]
    base = fit_student(table, 2, noise=0.1)
    widths = np.linalg.svd(np.asarray(base.color), compute_uv=False)
    assert widths[-1] == pytest.approx(0.1, rel=0.01)
    assert widths[1] > 0.5
