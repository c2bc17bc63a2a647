"""Defaults against laws that are known: narrow directions, class densities, calibration, bounds, selection."""

import warnings

import jax
import numpy as np
import pytest
from imblearn.pipeline import make_pipeline
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity

from scorefield import PriorCorrectedClassifier, ScoreClassifier, ScoreDensity, ScoreOverSampler
from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method, pytree
from scorefield.fields.base import Field
from scorefield.fields.gaussian import shrunk_covariance
from scorefield.fields.mixtures import mixture
from scorefield.models import density_fitting, field_density, fitting
from scorefield.models.calibration import fit_temperature
from scorefield.models.joint_model import Frame
from scorefield.training.losses import WeightedRow

D = 10
QUICK = {"max_steps": 600, "random_state": 0}


def correlated(rho, n, seed=0):
    """Rows with correlation rho, the same on every machine: no decomposition picks among equal eigenvalues."""
    covariance = np.full((D, D), rho) + (1 - rho) * np.eye(D)
    rng = np.random.default_rng(seed)
    rows = np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(size=(n, D))
    return rows, multivariate_normal(np.zeros(D), covariance)


def narrow_variance(rows):
    """Mean variance across the direction (1, ..., 1), which is 1 - rho."""
    return (rows - rows.mean(axis=1, keepdims=True)).var(axis=0).mean()


@pytest.mark.parametrize("rho", [pytest.param(0.99, marks=pytest.mark.slow), 0.999])
@pytest.mark.parametrize("model", ["gaussian", "energy"])
def test_correlated_columns_keep_their_law(rho, model):
    rows, _ = correlated(rho, 2000)
    test, truth = correlated(rho, 2000, seed=1)
    density = ScoreDensity(model, **QUICK).fit(rows)
    # The sampling error of a fitted Gaussian is d (d + 3) / 4n = .016 nats.
    assert np.mean(truth.logpdf(test) - density.score_samples(test)) < 0.06
    assert narrow_variance(density.sample(2000, random_state=1)) / narrow_variance(test) == pytest.approx(1, abs=0.12)
    # The control: the same noise in all directions of the z-scores.
    noise = 0.25 * 2000 ** (-1 / (D + 4))
    blurred = ScoreDensity("gaussian", standardize=False, noise=noise, random_state=0).fit(rows)
    assert np.mean(truth.logpdf(test) - blurred.score_samples(test)) > 1


@pytest.mark.parametrize("model", ["gaussian", pytest.param("kernel", marks=pytest.mark.slow)])
def test_few_rows_of_many_columns_keep_their_widths(model):
    """25 rows of 60 columns that depend on three factors: correlations are shrunk, widths are not."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(25, 3)) @ rng.normal(size=(3, 60)) + 0.5 * rng.normal(size=(25, 60))
    density = ScoreDensity(model, random_state=0).fit(rows)
    ratio = density.sample(1000, random_state=0).std(axis=0) / rows.std(axis=0)
    assert 0.85 < np.median(ratio) < 1.2
    # The control: correlations that are shrunk a second time, in coordinates that know them.
    mixed = density.model_.standardized(rows)
    twice = np.linalg.cholesky(shrunk_covariance(mixed))
    narrow = rng.normal(size=(1000, 60)) @ twice.T @ density.model_.unmix
    assert np.median(narrow.std(axis=0)) < 0.8  # of standardised columns


@pytest.mark.parametrize("model", ["energy", "kernel"])
def test_a_constant_column_without_noise_is_named(model):
    rows = np.random.default_rng(0).normal(size=(200, 3)) * [1, 0, 1]
    with pytest.raises(ValueError, match="got constant column 1; drop it or pass noise > 0"):
        ScoreDensity(model, objective="exact", random_state=0).fit(rows)


@pytree
class Unnormalised(Field):
    inner: Field
    conservative = True

    def __call__(self, x):
        return self.inner(x)

    def potential(self, x):
        return self.inner.potential(x) + 3.0


def test_models_are_chosen_by_a_measure_that_sees_the_masses_of_modes():
    """Fields of .9 / .1 and .5 / .5 mixtures of modes far apart differ by a known divergence, and hardly in scores."""
    key, means, covariances = jax.random.key(0), [[-4.0, 0.0], [4.0, 0.0]], [0.3 * np.eye(2)] * 2
    truth, wrong = (Unnormalised(mixture(masses, means, covariances)) for masses in ([0.9, 0.1], [0.5, 0.5]))
    rows = np.asarray(truth.inner.sample(key, 2000))
    share = np.mean(rows[1000:, 0] < 0)
    divergence = share * np.log(0.9 / 0.5) + (1 - share) * np.log(0.1 / 0.5)
    kept, held = WeightedRow(rows[:1000]), WeightedRow(rows[1000:])
    losses = [density_fitting._minus_log_density(key, field, kept, held) for field in (truth, wrong)]
    assert losses[1] - losses[0] == pytest.approx(divergence, abs=4 * density_fitting.SELECTION_ERROR)
    exact = -map_rows(Method(truth.inner, "potential"), rows[1000:]).mean()
    assert losses[0] == pytest.approx(exact, abs=2 * density_fitting.SELECTION_ERROR)
    blind = [density_fitting._denoising_loss(key, field, held, 0.1) for field in (truth, wrong)]
    assert abs(blind[1] - blind[0]) < 1e-3  # the control


def test_an_uncertain_constant_is_announced(monkeypatch):
    rows, _ = correlated(0.0, 200)
    density = ScoreDensity("kernel", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert density.fit(rows).anchor_error_ < 0.2
    assert ScoreDensity("gaussian").fit(rows).anchor_error_ == 0
    monkeypatch.setattr(field_density, "LARGE_ERROR", 1e-4)
    with pytest.warns(UserWarning, match="standard error of .* nats"):
        density.fit(rows)


def test_generated_rows_keep_narrow_directions():
    """Over ten other tables the energy of 200 rows has 1.43 times the variance there, with a deviation of .07."""
    rows, _ = correlated(0.999, 1000)

    def ratio(**density):
        over = ScoreOverSampler(purpose="sharing", density=ScoreDensity("energy", **QUICK, **density), random_state=0)
        more, _ = over.fit_resample(rows, np.repeat([0, 1], [800, 200]))
        return narrow_variance(more[over.is_synthetic_]) / narrow_variance(rows)

    assert 0.8 < ratio() < 1.43 + 4 * 0.07
    assert ratio(standardize=False, noise=0.17) > 10  # the control: the same noise in all directions


def test_the_joint_model_sees_classes_that_differ_in_a_narrow_direction(monkeypatch):
    """Of .32 nats that the labels can tell, it misses .045 over ten tables of other seeds, with a deviation of .014."""
    rho, n = 0.999, 2000
    rng = np.random.default_rng(0)
    rows, truth = correlated(rho, 2 * n)
    shift = 1.4 * np.sqrt(1 - rho) * np.r_[1, -1, np.zeros(D - 2)]
    y = rng.integers(0, 2, 2 * n)
    X = rows + np.outer(y, shift)
    log_odds = truth.logpdf(X - shift) - truth.logpdf(X)
    best = np.mean(np.logaddexp(0, np.where(y == 1, -log_odds, log_odds))[n:])

    def excess():
        model = ScoreClassifier(random_state=0, n_members=4, calibration=None).fit(X[:n], y[:n])
        return -np.mean(model.predict_log_proba(X[n:])[np.arange(n), y[n:]]) - best

    assert excess() < 0.045 + 4 * 0.014
    isotropic = Frame((0.3 * np.eye(D)).astype(np.float32), np.zeros((D, 0)))
    monkeypatch.setattr(fitting, "class_frame", lambda rows, labels, noise, known: isotropic)
    assert excess() > 0.2  # the control


def test_class_densities_of_the_joint_model_integrate_to_one():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (700, 2)), rng.normal([2, 1], [0.5, 1.5], (200, 2))])
    y = np.repeat([0, 1], [700, 200])
    model = ScoreClassifier(random_state=0, n_members=2).fit(X, y)
    axis = np.linspace(-8, 9, 171)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    cell = (axis[1] - axis[0]) ** 2
    mass = np.exp(model.log_likelihood(grid)).sum(axis=0) * cell
    np.testing.assert_allclose(mass, 1, atol=0.05)
    priors = np.array([0.1, 0.9])
    other = ScoreClassifier(random_state=0, n_members=2, priors=priors).fit(X, y)
    mixture = np.log(np.exp(model.log_likelihood(X)) @ priors)
    np.testing.assert_allclose(other.score_samples(X), mixture, atol=1e-4)


def test_one_temperature_repairs_overconfident_logits():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1.5, size=(4000, 3))
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (rng.random((4000, 1)) > shares.cumsum(axis=1)).sum(axis=1)
    temperature, constants = fit_temperature(3 * logits, labels)
    assert temperature == pytest.approx(3, rel=0.1)
    assert (constants == 0).all()
    temperature, constants = fit_temperature(3 * logits - [0, 6, -3], labels, intercepts=True)
    assert temperature == pytest.approx(3, rel=0.1)
    np.testing.assert_allclose(constants - constants[0], [0, 2, -1], atol=0.25)
    # Faultless labels leave the doubt of the rule of succession: 1 / (n + 2) for n of them.
    labels = np.arange(60) % 2
    temperature, _ = fit_temperature(2.0 * np.eye(2)[labels], labels)
    assert 1 / (1 + np.exp(2 / temperature)) == pytest.approx(1 / 62, rel=0.15)
    # Labels that are predicted without error, or at random, do not send it out of bounds.
    assert 0.2 <= fit_temperature(100 * np.eye(3), np.arange(3))[0] <= 50
    assert 0.2 <= fit_temperature(100 * logits, rng.integers(0, 3, 4000))[0] <= 50.1


@pytest.mark.parametrize("density", [pytest.param("joint", marks=pytest.mark.slow), KernelDensity(bandwidth=0.5)])
def test_calibration_brings_probabilities_to_the_truth(density):
    """Few rows with many useless columns make any model over-confident."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 8))
    truth = 1 / (1 + np.exp(-1.5 * X[:, 0]))
    y = (rng.random(1200) < truth).astype(int)
    excess = {}
    for calibration in ("auto", None):
        model = ScoreClassifier(density, n_members=4, calibration=calibration, random_state=0).fit(X[:200], y[:200])
        found = model.predict_proba(X[200:])[:, 1]
        excess[calibration] = np.mean(
            truth[200:] * np.log(truth[200:] / found) + (1 - truth[200:]) * np.log((1 - truth[200:]) / (1 - found))
        )
    assert excess["auto"] < excess[None]
    assert excess["auto"] < 0.12


def test_rows_do_not_pile_up_at_the_bounds():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(size=400), rng.integers(0, 5, 400)])
    y = np.repeat([0, 1], [300, 100])
    low, high = X.min(axis=0), X.max(axis=0)
    over = ScoreOverSampler(purpose="sharing", random_state=0)
    new = over.fit_resample(X, y)[0][over.is_synthetic_]
    assert (new >= low).all()
    assert (new <= high).all()
    assert np.mean(new[:, 0] == low[0]) < 0.01
    free = ScoreOverSampler(purpose="sharing", random_state=0, bounds=None).fit_resample(X, y)[0][over.is_synthetic_]
    assert np.mean(free[:, 0] < low[0]) > 0.02  # the control: clipped, so many would sit on the bound


def test_prior_correction_of_selected_rows_is_announced():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.repeat([0, 1], [170, 30])
    density = ScoreDensity("gaussian")
    light = ScoreClassifier(n_members=1, max_steps=20, hidden=(8,))
    others = ({"where": "clear"}, {"purpose": "learning", "teacher": light})
    for options, n_warnings in (*((other, 1) for other in others), ({}, 0)):
        sampler = ScoreOverSampler(**{"purpose": "sharing", "density": density, "random_state": 0, **options})
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            PriorCorrectedClassifier(make_pipeline(sampler, LogisticRegression())).fit(X, y)
        assert (
            sum("purpose='sharing' and where='everywhere' here" in str(warning.message) for warning in seen)
            == n_warnings
        )
