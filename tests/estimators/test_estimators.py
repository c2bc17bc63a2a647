"""ScoreDensity and ScoreClassifier on data with a known truth, and the promises of an estimator."""

import io
import pickle
import random
import warnings
import zipfile

import jax
import joblib
import numpy as np
import pytest
import skops.io
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from scorefield import (
    HMC,
    Langevin,
    PriorCorrectedClassifier,
    ScoreClassifier,
    ScoreDensity,
    ScoreFeatures,
    ScoreOverSampler,
    find_boundary,
    posterior_gradient,
    posterior_score,
)
from scorefield.fields.mixtures import mixture
from scorefield.inference.two_gaussians import boundary_equation, misclassification_probability
from scorefield.paper import LabellingClassifier

MODELS = ["gaussian", "mixture", "kernel", "energy", "mlp", "diffusion"]
QUICK = {"max_steps": 300, "hidden": (32, 32), "random_state": 0}
PAPER_CLASSES = (
    mixture([1.0], [[0.0, 0.0]], [[[1.0, -0.5], [-0.5, 1.0]]]),
    mixture([1.0], [[4.0, 4.0]], [[[1.0, 0.5], [0.5, 1.0]]]),
)


def two_classes(n, seed, labels=("blue", "red")):
    keys = jax.random.split(jax.random.key(seed), 2)
    X = np.concatenate([np.asarray(t.sample(k, n), float) for t, k in zip(PAPER_CLASSES, keys, strict=True)])
    return X, np.repeat(labels, n)


MOMENTS = [np.asarray(a[0], float) for t in PAPER_CLASSES for a in (t.means, t.covariances)]


@pytest.fixture(scope="module")
def skewed_rows(skewed_mixture):
    return np.asarray(skewed_mixture.sample(jax.random.key(1), 1000), float) * [3.0, 0.2] + [100.0, -5.0]


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, skewed_rows):
    return ScoreDensity(model=request.param, **QUICK).fit(skewed_rows)


def test_density_contract(fitted, skewed_rows, skewed_mixture):
    """Shapes, dtypes, a log density near the truth in the units of X, and its gradient."""
    X = skewed_rows[:50]
    log_p = fitted.score_samples(X)
    truth = np.asarray(
        jax.vmap(skewed_mixture.potential)(((X - [100.0, -5.0]) / [3.0, 0.2]).astype(np.float32))
    ) - np.log(0.6)
    assert log_p.shape == (50,)
    assert np.abs(log_p - truth).mean() < 0.45
    assert np.abs(log_p + np.log(0.6) - truth).mean() > np.abs(log_p - truth).mean()  # control: units forgotten
    assert fitted.score(X) == pytest.approx(log_p.sum(), rel=1e-6)
    assert fitted.grad_log_density(X).shape == (50, 2)
    assert fitted.score_samples(X.astype(np.float32)).dtype == np.float32
    assert fitted.grad_log_density(X.astype(np.float32)).dtype == np.float32
    drawn = fitted.sample(400, random_state=3)
    np.testing.assert_array_equal(drawn, fitted.sample(400, random_state=3))
    assert (drawn != fitted.sample(400, random_state=4)).any()
    error = skewed_rows.std(axis=0) / np.sqrt(400)
    assert (np.abs(drawn.mean(axis=0) - skewed_rows.mean(axis=0)) < 6 * error).all()
    np.testing.assert_allclose(drawn.std(axis=0), skewed_rows.std(axis=0), rtol=0.25)


def test_field_is_the_gradient_of_the_log_density(fitted, skewed_rows):
    """Central differences in the units of X; an unconstrained network only promises it along the line from its mean."""
    x = skewed_rows[5:8]
    if fitted.model_name_ == "mlp":
        assert fitted.path_gap_ > 0
        pytest.skip("an unconstrained network is no gradient; its path gap is asserted instead")
    if fitted.model_name_ == "diffusion":
        pytest.skip("the flow integrates all levels; it equals the finest level's score only where training converged")
    step = 0.02 * skewed_rows.std(axis=0)
    estimate = np.stack(
        [(fitted.score_samples(x + step * e) - fitted.score_samples(x - step * e)) / (2 * step @ e) for e in np.eye(2)],
        axis=1,
    )
    scale = 1 / skewed_rows.std(axis=0)
    np.testing.assert_allclose(estimate / scale, fitted.grad_log_density(x) / scale, atol=0.05)
    assert fitted.path_gap_ == 0


def test_persistence(fitted, skewed_rows, tmp_path):
    """pickle, joblib, clone and skops give the same numbers; skops needs two trusted types."""
    X = skewed_rows[:20]
    expected = fitted.score_samples(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).score_samples(X), expected)
    joblib.dump(fitted, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").score_samples(X), expected)
    data = skops.io.dumps(fitted)
    trusted = skops.io.get_untrusted_types(data=data)
    assert trusted == ["scorefield.FieldDensity", "scorefield.ScoreDensity"]
    np.testing.assert_array_equal(skops.io.loads(data, trusted=trusted).score_samples(X), expected)
    again = clone(fitted).fit(skewed_rows)
    np.testing.assert_array_equal(again.score_samples(X), expected)  # same seed, same bits


def test_damaged_model_files(skewed_rows):
    model = ScoreDensity(model="gaussian").fit(skewed_rows)
    data = skops.io.dumps(model)
    trusted = skops.io.get_untrusted_types(data=data)
    with pytest.raises((zipfile.BadZipFile, ValueError, EOFError)):
        skops.io.loads(data[: len(data) // 2], trusted=trusted)
    edited = pickle.loads(pickle.dumps(model))
    edited.model_.plain_field["type"] = "os.system"
    with pytest.raises(ValueError, match="edited"):
        edited.score_samples(skewed_rows)
    del edited.model_.plain_field["type"]
    with pytest.raises(ValueError, match="stored model"):
        edited.score_samples(skewed_rows)


def test_auto_explains_its_choice(capsys, rng):
    bimodal = np.concatenate([rng.normal(-3, 0.5, (300, 1)), rng.normal(3, 0.5, (300, 1))])
    model = ScoreDensity(random_state=0, verbose=1, hidden=(32, 32), max_steps=1000).fit(bimodal)
    tried = {c["model"]: c for c in model.candidates_}
    assert set(tried) == {"gaussian", "mixture", "energy"}
    assert [c["model"] for c in model.candidates_ if c["chosen"]] == [model.model_name_]
    assert tried[model.model_name_]["held_out_loss"] == min(c["held_out_loss"] for c in model.candidates_)
    assert model.model_name_ != "gaussian"
    text = capsys.readouterr().err
    assert "held-out" in text
    assert f"chose {model.model_name_}" in text
    counts = {n: len(ScoreDensity(max_steps=1, hidden=(4,)).fit(rng.normal(size=(n, 2))).candidates_) for n in (5, 50)}
    assert counts == {5: 1, 50: 3}


def jensen_shannon(p, q):
    p, q = p / p.sum(), q / q.sum()
    return 0.5 * sum(np.sum(a * np.log(a / (0.5 * (p + q)))) for a in (p, q))


def test_paper_mode():
    """The paper's settings by arguments alone: its p(x0) = .40, and a JSD within its own .07 on N(-2, 1)."""
    X = np.random.default_rng(0).normal(-2, 1, size=(1000, 1))
    model = ScoreDensity(
        model="mlp", objective="exact", hidden=(128, 256, 128), activation="relu", standardize=False,
        anchor="gaussian", integrator="trapezoid", random_state=0,
    ).fit(X)  # fmt: skip
    at_mean = np.exp(model.score_samples(X.mean(axis=0, keepdims=True)))[0]
    assert abs(at_mean - 0.40) < 4 * 0.40 / np.sqrt(2000)  # four standard errors of 1 / deviation
    grid = np.linspace(-6, 2, 401)[:, None]
    truth = multivariate_normal(-2, 1).pdf(grid)
    assert jensen_shannon(np.exp(model.score_samples(grid)), truth) < 0.07
    assert jensen_shannon(multivariate_normal(-1, 1).pdf(grid), truth) > 0.07  # negative control


@pytest.mark.parametrize("option", [
    {"objective": "denoising"}, {"anchor": "gaussian"}, {"integrator": "simpson"}, {"sampler": Langevin(0.05, 50, 0.9)},
    *(pytest.param(option, marks=pytest.mark.slow) for option in (
        {"objective": "sliced"}, {"anchor": "counting"}, {"integrator": "monte-carlo"}, {"integrator": "taylor"},
        {"smoothing": 0.2}, {"early_stopping": False}, {"noise": 0.1},
    )),
], ids=str)  # fmt: skip
def test_every_option_gives_a_density(option, rng):
    X = rng.normal(size=(200, 2))
    model = ScoreDensity(model="mlp", **{**QUICK, "max_steps": 400, **option}).fit(X)
    assert np.abs(model.score_samples(X) - multivariate_normal(np.zeros(2)).logpdf(X)).mean() < 0.8
    assert np.isfinite(model.sample(20)).all()


@pytest.mark.parametrize("model", ["gaussian", "kernel", pytest.param("energy", marks=pytest.mark.slow)])
def test_degenerate_columns(rng, model):
    """Constant and duplicated columns and extreme units are handled."""
    base = rng.normal(size=(60, 2))
    X = np.column_stack([base, np.full(60, 7.0), base[:, 0], base[:, 1] * 1e30, base[:, 0] * 1e-30])
    fit = ScoreDensity(model=model, **QUICK).fit(X)
    assert np.isfinite(fit.score_samples(X)).all()
    assert np.isfinite(fit.sample(10)).all()


def test_more_columns_than_rows(rng):
    wide = rng.normal(size=(12, 30))
    assert np.isfinite(ScoreDensity(random_state=0).fit(wide).score_samples(wide)).all()


def test_gaussian_with_zero_noise_is_the_closed_form(rng):
    X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))
    model = ScoreDensity(model="gaussian", noise=0.0).fit(X)
    exact = multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(model.score_samples(X), exact.logpdf(X), atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "forest"}, "model"),
        ({"model": "diffusion", "objective": "exact"}, "diffusion"),
        ({"model": "kernel", "objective": "sliced"}, "sliced"),
        ({"model": "mixture", "objective": "denoising"}, "objective 'auto' for model 'mixture'"),
        ({"model": "energy", "activation": "relu"}, "smooth"),
        ({"model": "energy", "objective": "denoising", "noise": 0.0}, "noise > 0"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
        ({"random_state": "now"}, "random_state"),
        ({"random_state": -1}, "random_state"),
        ({"model": "energy", "learning_rate": 1e30}, "learning rate"),
        ({"model": "energy", "sampler": HMC(), "hidden": (0,)}, "layer sizes"),
    ],
)
def test_bad_settings(arguments, message, rng):
    with pytest.raises(ValueError, match=message):
        ScoreDensity(**arguments).fit(rng.normal(size=(50, 2)))


def test_global_generators_are_untouched(rng):
    X = rng.normal(size=(50, 2))
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    ScoreDensity(model="kernel").fit(X).sample(5)
    after = np.random.get_state()[1], random.getstate()  # noqa: NPY002
    np.testing.assert_array_equal(before[0], after[0])
    assert before[1] == after[1]
    np.testing.assert_array_equal(
        *(ScoreDensity(model="kernel", random_state=np.random.default_rng(3)).fit(X).score_samples(X) for _ in range(2))
    )


def test_scikit_learn_callbacks(rng):
    callbacks = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    seen = []

    class Recorder:
        def setup(self, estimator, context):
            seen.append("setup")

        def on_fit_task_begin(self, estimator, context, **kwargs):
            seen.append("begin")

        def on_fit_task_end(self, estimator, context, **kwargs):
            seen.append("end")

        def teardown(self, estimator, context):
            seen.append("teardown")

    assert callbacks
    model = ScoreDensity(model="energy", max_steps=300, hidden=(4,)).set_callbacks(Recorder())
    model.fit(rng.normal(size=(50, 2)))
    assert seen[0] == "setup"
    assert seen[-1] == "teardown"
    assert seen.count("begin") == seen.count("end") == 1 + len(model.history_["steps"])


CLASSIFIERS = {
    "joint": ScoreClassifier(n_members=2, random_state=0),
    "gaussian": ScoreClassifier(ScoreDensity(model="gaussian"), random_state=0),
    "generative joint": ScoreClassifier(label_weight=0.0, random_state=0),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "generative joint")) for name in CLASSIFIERS]
)
def test_bayes_accuracy_on_the_paper_classes(name):
    """Within one percentage point of the Bayes classifier; equal priors of wrong classes would not be."""
    X, y = two_classes(200, 0)
    X_test, y_test = two_classes(20_000, 1)
    model = clone(CLASSIFIERS[name]).fit(X, y)
    bayes = 1 - np.mean(misclassification_probability(*MOMENTS))
    assert abs(model.score(X_test, y_test) - bayes) < 0.01
    proba = model.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    truth = 1 / (1 + np.exp(-boundary_equation(X_test, *MOMENTS)))
    assert np.mean((proba[:, 1] - truth) ** 2) < 0.005
    log_p = model.score_samples(X_test[:500])
    parts = [multivariate_normal(*MOMENTS[i : i + 2]).pdf(X_test[:500]) for i in (0, 2)]
    # The joint model is trained at noise .3 of standardised columns, so its density is that much smoother.
    assert np.abs(log_p - np.log(0.5 * parts[0] + 0.5 * parts[1])).mean() < (0.3 if name == "gaussian" else 1.0)
    assert model.grad_log_density(X_test[:7]).shape == (7, 2, 2)
    drawn = model.sample(300, "red", random_state=0)
    # Two members that the labels stop early: their means vary by .2 from fit to fit around an error of .4.
    assert np.linalg.norm(drawn.mean(axis=0) - 4) < (1.0 if name == "joint" else 0.6)
    with pytest.raises(ValueError, match="Expected a label"):
        model.sample(3, "green")


def test_three_classes_and_other_densities(rng):
    X = np.concatenate([rng.normal(centre, 0.7, size=(60, 2)) for centre in ([0, 0], [4, 0], [0, 4])])
    y = np.repeat([10, 20, 30], 60)
    for density in (
        "joint", ScoreDensity(model="kernel"), KernelDensity(bandwidth=0.5), GaussianMixture(2),
        {10: KernelDensity(), 20: ScoreDensity(model="gaussian"), 30: GaussianMixture(1)},
    ):  # fmt: skip
        model = ScoreClassifier(density, random_state=0, max_steps=400, n_members=2).fit(X, y)
        assert model.score(X, y) > 0.95
        assert model.decision_function(X).shape == (180, 3)
    with pytest.raises(TypeError, match="KernelDensity"):
        find_boundary(ScoreClassifier(KernelDensity()).fit(X, y), X[:2])


def test_a_row_that_no_density_claims_gets_the_priors():
    X, y = np.array([[0.0], [0.1], [5.0], [5.1], [5.2]]), [0, 0, 1, 1, 1]
    model = ScoreClassifier(KernelDensity(kernel="tophat", bandwidth=0.5)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[100.0]]), [[0.4, 0.6]])


def test_priors_costs_and_margin_move_decisions_as_theory_says():
    """On 1-D Gaussians the boundary of the fitted densities moves by log odds / slope: checked against closed forms."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-1, 1, (4000, 1)), rng.normal(1, 1, (4000, 1))])
    y = np.repeat([0, 1], 4000)
    density = ScoreDensity(model="gaussian", noise=0.0)

    def boundary(**options):
        model = ScoreClassifier(density, **options).fit(X, y)
        grid = np.linspace(-3, 3, 60001)[:, None]
        predicted = model.predict(grid)
        np.testing.assert_array_equal(predicted, (model.decision_function(grid) >= 0).astype(int))
        return grid[np.argmax(predicted), 0]

    base = boundary()
    assert abs(base) < 0.06
    # log p1 / p0 = 2 x: a shift of the log odds by c moves the boundary by c / 2, to first order in the fitted slopes.
    for options, shift in [
        ({"priors": [0.9, 0.1]}, np.log(9)),
        ({"priors": [0.1, 0.9]}, -np.log(9)),
        ({"costs": [[0, 1], [5, 0]]}, -np.log(5)),
        ({"costs": [[0, 4], [1, 0]]}, np.log(4)),
        ({"margin": 1.0}, 1.0),
        ({"margin": 1.0, "priors": [0.9, 0.1], "costs": [[0, 1], [5, 0]]}, 1 + np.log(9) - np.log(5)),
    ]:
        assert boundary(**options) - base == pytest.approx(shift / 2, abs=0.08)
    assert boundary(priors="equal") == pytest.approx(base, abs=1e-3)


def test_calibration_repairs_a_wrong_anchor():
    """A Gaussian anchor on a skewed class misplaces its constant; labels of other folds bring log loss back."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (800, 2)), np.exp(rng.normal(0.5, 1.0, (300, 2)))])
    y = np.repeat([0, 1], [800, 300])
    order = rng.permutation(len(y))
    train, test = order[:700], order[700:]
    density = ScoreDensity(model="mlp", anchor="gaussian", max_steps=500, hidden=(32, 32), random_state=0)

    def log_loss(calibration):
        model = ScoreClassifier(density, calibration=calibration, random_state=0).fit(X[train], y[train])
        return -np.mean(model.predict_log_proba(X[test])[np.arange(len(test)), y[test]])

    assert log_loss("auto") < log_loss(None)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 1, 1]),  # without a fold the second class has one row
        ([7, 7, 7, 7, 7, 7], [0, 0, 0, 1, 1, 1]),  # equal rows make one fold
        ([0, 1, 2, 2, 3, 4], [1, 1, 1, 0, 0, 0]),  # the equal rows cost a fold its balance
    ],
)
def test_tables_too_small_for_calibration_are_fitted_without_it(rows, labels):
    X = np.array(rows, float)[:, None]
    model = ScoreClassifier(ScoreDensity("gaussian"), random_state=0)
    with pytest.warns(UserWarning, match="calibration needs more distinct rows"):
        model.fit(X, labels)
    expected = clone(model).set_params(calibration=None).fit(X, labels).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_classifier_persistence():
    X, y = two_classes(60, 0)
    model = ScoreClassifier(max_steps=200, n_members=2, hidden=(8, 8), random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    data = skops.io.dumps(model)
    trusted = skops.io.get_untrusted_types(data=data)
    assert trusted == ["scorefield.NumberModel", "scorefield.ScoreClassifier"]
    np.testing.assert_array_equal(skops.io.loads(data, trusted=trusted).predict_proba(X), expected)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    np.testing.assert_array_equal(joblib.load(buffer).predict_proba(X), expected)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict_proba(X), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"priors": [0.5, 0.6]}, "sum to 1"),
        ({"priors": [1.0, 0.0]}, "positive priors"),
        ({"costs": np.zeros((3, 3))}, "costs of shape"),
        ({"margin": -1.0}, "margin"),
        ({"density": {"blue": KernelDensity()}}, "one density for each"),
        ({"density": 3}, "density"),
        ({"n_members": 0}, "n_members"),
    ],
)
def test_bad_classifier_settings(arguments, message):
    X, y = two_classes(20, 0)
    with pytest.raises(ValueError, match=message):
        ScoreClassifier(**arguments).fit(X, y)


def test_a_class_of_one_row_is_named():
    X, y = two_classes(20, 0)
    with pytest.raises(ValueError, match="Class 'red' with 1 rows"):
        ScoreClassifier(ScoreDensity()).fit(X[:21], y[:21])


def test_posterior_functions_on_estimators():
    X, y = two_classes(200, 0)
    logistic = LogisticRegression().fit(X, y)
    theta, f = logistic.coef_[0], X[:5] @ logistic.coef_[0] + logistic.intercept_
    np.testing.assert_allclose(posterior_score(logistic, X[:5], "red"), theta / (1 + np.exp(f))[:, None], atol=1e-4)
    gradient = theta * (1 / (1 + np.exp(f)) / (1 + np.exp(-f)))[:, None]
    np.testing.assert_allclose(posterior_gradient(logistic, X[:5], "red"), gradient, atol=1e-4)
    scaled = make_pipeline(StandardScaler(), LogisticRegression(C=1e4)).fit(X, y)
    found = find_boundary(scaled, X[:5])
    assert found.converged.all()
    np.testing.assert_allclose(scaled.predict_proba(found.points), 0.5, atol=1e-5)
    model = ScoreClassifier(ScoreDensity(model="gaussian", noise=0.0)).fit(X, y)
    found = find_boundary(model, X[::40], classes=("blue", "red"))
    assert found.converged.all()
    assert np.abs(found.residual).max() <= 1e-6
    np.testing.assert_allclose(model.decision_function(found.points), 0, atol=1e-3)
    for refused in (RandomForestClassifier(5).fit(X, y), KernelDensity()):
        with pytest.raises(TypeError, match="has no field"):
            posterior_score(refused, X, "red")
    with pytest.raises(ValueError, match="Expected a label"):
        posterior_score(logistic, X, "green")
    with pytest.raises(ValueError, match="two classes"):
        find_boundary(logistic, X, classes=("blue",))


def test_prior_correction_restores_calibration():
    """A known posterior: the corrected Brier score is near that of no resampling, the uncorrected far worse."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    truth = 1 / (1 + np.exp(-(X @ [1.0, -0.5] - 4.0)))
    y = (rng.random(len(X)) < truth).astype(int)
    train, test = slice(0, 10_000), slice(10_000, None)
    plain = LogisticRegression().fit(X[train], y[train])
    resampled = make_sampling_pipeline(RandomOverSampler(random_state=0), LogisticRegression())
    corrected = PriorCorrectedClassifier(resampled).fit(X[train], y[train])
    resampled.fit(X[train], y[train])
    brier = {
        name: brier_score_loss(y[test], model.predict_proba(X[test])[:, 1])
        for name, model in {"plain": plain, "resampled": resampled, "corrected": corrected}.items()
    }
    assert brier["corrected"] < 1.02 * brier["plain"]
    assert brier["resampled"] > 3 * brier["plain"]
    np.testing.assert_allclose(corrected.priors_after_, 0.5)
    assert np.mean((corrected.predict_proba(X[test])[:, 1] - truth[test]) ** 2) < 1e-4
    assert np.array_equal(
        PriorCorrectedClassifier(plain).fit(X[train], y[train]).predict(X[test]), plain.predict(X[test])
    )


def test_score_features(rng):
    X, y = two_classes(100, 0)
    one = ScoreFeatures(ScoreDensity(model="gaussian"), passthrough=True).fit(X)
    np.testing.assert_allclose(one.transform(X)[:, :2], X)
    assert list(one.get_feature_names_out()) == ["x0", "x1", "score_x0", "score_x1"]
    each = ScoreFeatures(ScoreDensity(model="gaussian"), per_class=True).fit(X, y)
    assert each.transform(X).shape == (200, 4)
    assert list(each.get_feature_names_out(["a", "b"])) == [
        "score_blue_a",
        "score_blue_b",
        "score_red_a",
        "score_red_b",
    ]
    np.testing.assert_allclose(each.transform(X)[:, :2], each.densities_[0].grad_log_density(X))
    assert make_pipeline(each, LogisticRegression()).fit(X, y).score(X, y) > 0.95
    with pytest.raises(ValueError, match="Expected y"):
        ScoreFeatures(per_class=True).fit(X)


@pytest.mark.parametrize("rule", ["k-nearest", "radius", "pseudo-density"])
@pytest.mark.parametrize("n_augment", [0, 500])
def test_labelling_rules(rule, n_augment):
    X, y = two_classes(100, 0)
    X_test, y_test = two_classes(2000, 1)
    model = LabellingClassifier(rule, n_augment=n_augment, density=ScoreDensity(model="gaussian"), random_state=0)
    assert model.fit(X, y).score(X_test, y_test) > 0.97
    np.testing.assert_allclose(model.predict_proba(X_test).sum(axis=1), 1)


def test_pseudo_density_is_the_inverse_norm():
    X, y = two_classes(100, 0)
    model = LabellingClassifier("pseudo-density", density=ScoreDensity(model="gaussian"), random_state=0).fit(X, y)
    norms = np.linalg.norm(model.model_.grad_log_density(X), axis=2)
    np.testing.assert_array_equal(model.predict(X) == "red", norms[:, 1] < norms[:, 0])


def test_augmentation_reaches_empty_regions():
    """A radius vote on few rows leaves most of a class unreached; generated rows fill it (the paper's figure)."""
    X, y = two_classes(15, 0)
    X_test, y_test = two_classes(1000, 1)
    density = ScoreDensity(model="gaussian")
    options = {"rule": "radius", "radius": 0.4, "density": density, "random_state": 0}
    plain, filled = (LabellingClassifier(n_augment=n, **options).fit(X, y).score(X_test, y_test) for n in (0, 3000))
    assert filled > plain + 0.1


def test_grid_search_over_density_and_pipeline():
    X, y = two_classes(60, 0)
    search = GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("model", ScoreClassifier(ScoreDensity(model="gaussian")))]),
        [{"model__density__model": ["gaussian", "kernel"]}, {"model__margin": [1.0]}], cv=2,
    ).fit(X, y)  # fmt: skip
    assert search.best_score_ > 0.95


def test_predict_with_other_columns():
    pd = pytest.importorskip("pandas")
    X, y = two_classes(40, 0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = ScoreClassifier(ScoreDensity(model="gaussian")).fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :1])


def test_mixture_truth_is_recovered_by_default():
    """The default density beats a Gaussian by far on a bimodal truth."""
    truth = mixture([0.6, 0.4], [[-2.0, 0.0], [2.0, 1.0]], [np.eye(2) * 0.3, np.eye(2) * 0.5])
    X, test = (np.asarray(truth.sample(jax.random.key(s), 1000), float) for s in (0, 1))
    exact = np.asarray(jax.vmap(truth.potential)(test.astype(np.float32)))
    errors = {
        model: np.abs(ScoreDensity(model=model, random_state=0).fit(X).score_samples(test) - exact).mean()
        for model in ("auto", "gaussian")
    }
    assert errors["auto"] < 0.5 * errors["gaussian"]


def test_refit_with_another_density_forgets_the_old_one():
    X, y = two_classes(60, 0)
    other = np.where(y == "red", "blue", "red")
    light = {"max_steps": 200, "n_members": 1, "hidden": (8, 8), "random_state": 0}
    model = ScoreClassifier(ScoreDensity(model="gaussian"), **light).fit(X, y)
    model.set_params(density="joint").fit(X, other)
    assert model.score(X, other) > 0.9
    assert not hasattr(model, "densities_")
    model.set_params(density=ScoreDensity(model="gaussian")).fit(X, y)
    assert model.score(X, y) > 0.9
    assert not hasattr(model.model_, "joint")


def test_large_offsets_are_kept():
    """Timestamps: mean 1e8, deviation 1. Labels, samples, fields and boundaries as without the offset."""
    X, y = two_classes(200, 0)
    moved = X + 1e8
    for model in (
        ScoreClassifier(ScoreDensity(model="gaussian")),
        ScoreClassifier(max_steps=300, n_members=1, random_state=0),
    ):
        assert clone(model).fit(moved, y).score(moved, y) > 0.98
    plain, shifted = (
        ScoreClassifier(ScoreDensity(model="gaussian"), random_state=0).fit(rows, y) for rows in (X, moved)
    )
    np.testing.assert_allclose(
        shifted.sample(50, "red", random_state=0) - 1e8, plain.sample(50, "red", random_state=0), atol=1e-3
    )
    found = find_boundary(shifted, moved[::50])
    assert found.converged.all()
    np.testing.assert_allclose(shifted.decision_function(found.points), 0, atol=1e-3)
    expected = posterior_score(plain, X[:5], "red")
    np.testing.assert_allclose(posterior_score(shifted, moved[:5], "red"), expected, rtol=1e-2, atol=1e-4)


def test_far_rows_keep_proper_probabilities():
    X, y = two_classes(60, 0)
    model = ScoreClassifier(max_steps=200, n_members=1, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[1e10, -1e10], [1e5, 1e5]]).sum(axis=1), 1)


def test_gaussian_samples_are_new_rows(rng):
    """Strongly correlated columns: independent draws, none of them a training row."""
    first = rng.normal(size=(500, 1))
    X = np.hstack([first, first + 0.03 * rng.normal(size=(500, 1))])
    drawn = ScoreDensity(model="gaussian", random_state=0).fit(X).sample(1000)
    assert not (drawn[:, None] == X[None]).all(axis=2).any()
    assert np.corrcoef(drawn.T)[0, 1] > 0.95


def test_low_acceptance_is_reported(rng):
    model = ScoreDensity(model="kernel", sampler=HMC(step_size=5.0), random_state=0).fit(rng.normal(size=(60, 5)))
    with pytest.warns(UserWarning, match="accepted only"):
        model.sample(20)


def test_sample_keeps_the_dtype_of_fit(rng):
    assert ScoreDensity(model="gaussian").fit(rng.normal(size=(50, 2)).astype(np.float32)).sample(3).dtype == np.float32


def test_auto_leaves_out_what_the_settings_rule_out(rng):
    X = rng.normal(size=(120, 2))
    for options, expected in [
        ({"activation": "relu"}, {"gaussian", "mixture"}),
        ({"objective": "sliced"}, {"energy"}),
        ({"objective": "exact"}, {"gaussian", "energy"}),
    ]:
        model = ScoreDensity(**{**QUICK, "max_steps": 100}, **options).fit(X)
        assert {c["model"] for c in model.candidates_} == expected
    with pytest.raises(ValueError, match="got none"):
        ScoreDensity(objective="sliced").fit(X[:50])


def test_posterior_functions_check_their_rows():
    pd = pytest.importorskip("pandas")
    X, y = two_classes(40, 0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = ScoreClassifier(ScoreDensity(model="gaussian")).fit(frame, y)
    for call in (lambda rows: posterior_score(model, rows, "red"), lambda rows: find_boundary(model, rows)):
        with pytest.raises(ValueError, match="features"):
            call(X[:, :1])
        with pytest.raises(ValueError, match="feature names"):
            call(frame[["b", "a"]])
    with pytest.raises(ValueError, match="one of 2 logits"):
        posterior_score(lambda x: x, X, 7)


def test_prior_correction_refuses_samplers_it_cannot_see():
    X, y = two_classes(40, 0)
    inner = make_sampling_pipeline(RandomOverSampler(), LogisticRegression())
    for nested in (GridSearchCV(inner, {}), make_pipeline(inner)):
        with pytest.raises(ValueError, match="nested at"):
            PriorCorrectedClassifier(nested).fit(X, y)


def test_score_features_check_their_labels():
    X, y = two_classes(40, 0)
    with pytest.raises(ValueError, match="inconsistent"):
        ScoreFeatures(ScoreDensity(model="gaussian"), per_class=True).fit(X, y[:50])


def test_foreign_densities_sample_and_say_what_they_lack():
    X, y = two_classes(40, 0)
    for density in (GaussianMixture(2, random_state=0), KernelDensity(bandwidth=0.3)):
        model = ScoreClassifier(density).fit(X, y)
        first, again = (model.sample(5, "red", random_state=1) for _ in range(2))
        assert first.shape == (5, 2)
        np.testing.assert_array_equal(first, again)
        with pytest.raises(TypeError, match="Expected ScoreDensity"):
            model.grad_log_density(X)


def test_decision_function_agrees_with_predict_under_costs(rng):
    X = np.concatenate([rng.normal(c, 1.0, size=(50, 2)) for c in ([0, 0], [2, 0], [0, 2])])
    y = np.repeat([0, 1, 2], 50)
    costs = [[0, 1, 1], [5, 0, 5], [1, 1, 0]]
    model = ScoreClassifier(ScoreDensity(model="gaussian"), costs=costs, margin=0.5).fit(X, y)
    np.testing.assert_array_equal(np.argmax(model.decision_function(X), axis=1), model.predict(X))
    free = ScoreClassifier(ScoreDensity(model="gaussian"), costs=np.zeros((2, 2))).fit(X[:100], y[:100])
    assert np.isfinite(free.decision_function(X)).all()


def test_members_hold_out_stratified_parts():
    from scorefield.models.ensemble import member_splits

    labels = np.repeat([0, 1, 2], [200, 12, 1])
    rows = np.arange(len(labels))[:, None]
    splits = member_splits(np.random.default_rng(0), rows, labels, 12)
    trained = np.zeros(len(labels), int)
    for kept, held in splits:
        assert not set(kept) & set(held)
        assert len(kept) + len(held) == len(labels)
        assert {0, 1} <= set(labels[held])  # every class that can spare a row
        assert 2 in labels[kept]  # a single row trains
        trained[kept] += 1
    assert trained.min() >= 9  # every row trains most members
    (kept, held), *_ = member_splits(np.random.default_rng(0), rows[:2], np.array([0, 1]), 1)
    assert set(kept) == set(held) == {0, 1}


def test_joint_model_sees_a_step_in_one_column():
    """A narrow band in one of many columns: thresholds find it, and the probability stays differentiable."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 8))
    X[:, 7] = rng.integers(0, 2, 1500)
    y = (np.abs(X[:, 2] - 0.3) < 0.08).astype(int)
    model = ScoreClassifier(random_state=0, n_members=4).fit(X[:1000], y[:1000])
    from sklearn.metrics import roc_auc_score

    assert roc_auc_score(y[1000:], model.predict_proba(X[1000:])[:, 1]) > 0.95
    members = model.model_.joint.members
    rotated = range(8, 16)
    assert members[0].columns == (0, 1, 2, 3, 4, 5, 6, *rotated)  # two values need no threshold
    assert np.isfinite(model.grad_log_density(X[:5])).all()


def test_generated_rows_of_a_narrow_class_are_not_training_rows():
    """Nearly collinear columns: a fixed step was rejected nearly always, and most rows were copies of their starts."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(400, 1))
    X = np.hstack([shared, shared + 1e-3 * rng.normal(size=(400, 1)), shared + 1e-3 * rng.normal(size=(400, 1))])
    y = np.repeat([0, 1], 200)
    model = ScoreClassifier(n_members=1, max_steps=300, noise=0.01, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = model.sample(300, label=1, random_state=0)
    space = model.model_.space
    own = model.model_.start_rows[1] * space.scale + space.mean
    nearest = np.abs(rows[:, None] - own[None]).max(axis=2).min(axis=1)
    assert np.mean(nearest < 1e-5) < 0.01
    np.testing.assert_allclose(rows.std(axis=0), X[y == 1].std(axis=0), rtol=0.3)


def test_samples_of_single_precision_stay_so():
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    model = ScoreClassifier(n_members=1, max_steps=100, random_state=0).fit(X, np.repeat([0, 1], 30))
    assert model.sample(5, label=0).dtype == np.float32


def test_one_pass_gives_probabilities_and_densities():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.repeat([0, 1], 30)
    for density in ("joint", ScoreDensity("kernel")):
        model = ScoreClassifier(density, n_members=2, max_steps=100, random_state=0).fit(X, y)
        log_proba, log_density = model.log_proba_and_density(X)
        np.testing.assert_array_equal(log_proba, model.predict_log_proba(X))
        np.testing.assert_array_equal(log_density, model.score_samples(X))


def test_normalisation_waits_until_it_is_needed(monkeypatch):
    """A sampler needs no constant, so over-sampling must not pay for its importance draws."""
    from scorefield.models import field_density as module

    calls = []

    def counted(*arguments, **options):
        calls.append(1)
        return importance(*arguments, **options)

    importance = module.importance_constant
    monkeypatch.setattr(module, "importance_constant", counted)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 2)), np.repeat([0, 1], [110, 40])
    over = ScoreOverSampler(purpose="sharing", density=ScoreDensity("kernel"), random_state=0)
    over.fit_resample(X, y)
    assert calls == []
    lazy = over.densities_[1]
    eager = clone(lazy).fit(X[y == 1])
    assert calls == [1]
    np.testing.assert_allclose(lazy.score_samples(X), eager.score_samples(X), rtol=1e-6)
    assert lazy.anchor_size_ == pytest.approx(eager.anchor_size_, rel=1e-6)
    assert calls == [1, 1]


def test_drawn_rows_are_in_the_units_of_the_table():
    X = np.random.default_rng(0).normal([1000, -5], [50, 0.01], size=(300, 2))
    density = ScoreDensity("kernel", random_state=0).fit(X)
    drawn = density.draw(500, 0, X_start=X[:50])
    error = (drawn.rows.mean(axis=0) - X.mean(axis=0)) / X.std(axis=0)
    assert np.abs(error).max() < 6 / np.sqrt(50)
    assert set(drawn.parents) <= set(range(50))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, str])
def test_labelling_by_radius_takes_labels_of_any_type(dtype):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0.5).astype(int).astype(dtype)
    far = LabellingClassifier("radius", radius=0.01).fit(X, y).predict(X + 100)
    assert (far == np.array([0]).astype(dtype)).all()
