"""Displays: what they compute, what they draw, planes in more columns."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from scorefield import (
    BoundaryDisplay,
    CalibrationDisplay,
    CredibilityDisplay,
    DensityDisplay,
    ExplanationDisplay,
    SamplesDisplay,
    ScoreClassifier,
    ScoreDensity,
    ScoreFieldDisplay,
)
from scorefield.display.planes import grid_points, plane_of
from scorefield.paper import make_gaussians

GAUSSIAN = ScoreDensity(model="gaussian", random_state=0)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def classes():
    return make_gaussians(150, 2, random_state=0)


@pytest.fixture(scope="module")
def wide():
    X, y = make_gaussians(200, means=[[0, 0, 0, 0], [3, 0, 1, 0]], random_state=0)
    return pd.DataFrame(X, columns=["a", "b", "c", "d"]), y


def test_grid_changes_its_first_coordinate_fastest():
    np.testing.assert_array_equal(grid_points([[0, 1], [5, 6]]), [[0, 5], [1, 5], [0, 6], [1, 6]])


@pytest.mark.parametrize("features", [None, "pca", ("a", "c"), (0, 2), ("b",)])
def test_points_and_coordinates_of_a_plane(wide, features):
    plane = plane_of(wide[0], features)
    coordinates = np.random.default_rng(0).normal(size=(7, len(plane.basis)))
    np.testing.assert_allclose(plane.coordinates(plane.points(coordinates)), coordinates, atol=1e-9)
    np.testing.assert_allclose(plane.basis @ plane.basis.T, np.eye(len(plane.basis)), atol=1e-9)


@pytest.mark.parametrize("features", [None, ("$p_{$",), (r"\frac$^$", "$p_{$")])
def test_names_with_dollar_signs_are_labels_not_formulas(classes, features):
    """Each of these names is a formula that matplotlib cannot draw."""
    X = pd.DataFrame(classes[0], columns=["$p_{$", r"\frac$^$"])
    display = SamplesDisplay.from_rows(X, X, features=features)
    display.ax_.figure.canvas.draw()
    assert display.ax_.xaxis.label._preprocess_math(display.ax_.get_xlabel()) == ((features or X.columns)[0], False)


def test_a_pair_holds_the_other_columns_at_their_medians(wide):
    plane = plane_of(wide[0], ("a", "c"))
    point = plane.points(np.array([[7.0, 8.0]]))[0]
    np.testing.assert_allclose(point, [7.0, wide[0]["b"].median(), 8.0, wide[0]["d"].median()])
    assert plane.names == ("a", "c")


@pytest.mark.parametrize("features", ["tsne", ("a", "zzz"), ("a", "b", "c"), (0, 9)])
def test_a_wrong_plane_is_refused(wide, features):
    with pytest.raises(ValueError, match="Expected"):
        plane_of(wide[0], features)


@pytest.mark.parametrize("d", [1, 2])
def test_density_on_a_grid_is_that_of_the_estimator(d):
    X = make_gaussians(200, d, random_state=1)[0]
    density = GAUSSIAN.fit(X)
    display = DensityDisplay.from_estimator(density, X, grid_resolution=60)
    assert display.density.shape == (60,) * d
    widths = [axis[1] - axis[0] for axis in display.axes]
    assert display.density.sum() * np.prod(widths) == pytest.approx(1, abs=0.05)  # the grid ends near the rows
    point = [axis[20 + 10 * i] for i, axis in enumerate(display.axes)]
    value = display.density[20] if d == 1 else display.density[30, 20]
    assert np.log(value) == pytest.approx(density.score_samples([point])[0], rel=1e-4)


def test_density_of_one_class_of_a_classifier(classes):
    X, y = classes
    model = ScoreClassifier(GAUSSIAN).fit(X, y)
    both = DensityDisplay.from_estimator(model, X, label=1, grid_resolution=30)
    alone = model.densities_[1].score_samples(grid_points(both.axes)).reshape(30, 30)
    high = alone > -8
    np.testing.assert_allclose(np.log(both.density[high]), alone[high], atol=1e-3)
    with pytest.raises(ValueError, match="Expected label to be one of"):
        DensityDisplay.from_estimator(model, X, label=7)


def test_field_is_the_estimators_and_long_arrows_are_cut(classes):
    X, _ = classes
    density = GAUSSIAN.fit(X)
    display = ScoreFieldDisplay.from_estimator(density, X, grid_resolution=9)
    np.testing.assert_allclose(display.vectors, density.grad_log_density(display.points), rtol=1e-5)
    drawn = np.hypot(display.artist_.U, display.artist_.V)
    assert drawn.max() == pytest.approx(display.longest(), rel=1e-5)
    assert np.linalg.norm(display.vectors, axis=1).max() > drawn.max()


def test_field_on_a_plane_is_its_component_along_it(wide):
    X, y = wide
    model = ScoreClassifier(GAUSSIAN).fit(X, y)
    display = ScoreFieldDisplay.from_estimator(model, X, label=0, features=("a", "c"), grid_resolution=5)
    points = plane_of(X, ("a", "c")).points(display.points)
    expected = model.grad_log_density(pd.DataFrame(points, columns=X.columns))[:, 0][:, [0, 2]]
    np.testing.assert_allclose(display.vectors, expected, rtol=1e-4, atol=1e-5)


def test_field_of_a_classifier_is_the_gradient_of_its_mixture(classes):
    X, y = classes
    model = ScoreClassifier(GAUSSIAN, priors=[0.8, 0.2]).fit(X, y)
    display = ScoreFieldDisplay.from_estimator(model, X, y, grid_resolution=6)
    step = 1e-2  # log densities are single precision
    for axis in np.eye(2):
        ahead, behind = (model.score_samples(display.points + sign * step * axis) for sign in (1, -1))
        slope, scale = (ahead - behind) / (2 * step), 1 + np.abs(display.vectors).max(axis=1)
        assert np.abs((display.vectors @ axis - slope) / scale).max() < 0.02
    assert np.abs(display.vectors - model.grad_log_density(display.points)[:, 0]).max() > 1


def test_samples_of_all_classes_have_the_shares_of_the_priors(classes):
    X, y = classes
    model = ScoreClassifier(GAUSSIAN, priors=[0.8, 0.2]).fit(X, y)
    display = SamplesDisplay.from_estimator(model, X, y, n=50, random_state=0)
    assert np.bincount(display.generated_labels).tolist() == [40, 10]
    assert np.linalg.norm(display.generated[display.generated_labels == 1].mean(axis=0) - 4) < 1.5
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["0, generated", "1, generated", "0, original", "1, original"]
    assert len(SamplesDisplay.from_estimator(model, X, y, n=20, label=1, random_state=0).rows) == (y == 1).sum()


@pytest.mark.parametrize("features", [("a", "c"), (0, 3)])
def test_two_columns_of_a_mixed_table_with_gaps_can_be_chosen(wide, features):
    X = wide[0].assign(b="text", c=wide[0]["c"].where(wide[0].index != 3))[["a", "b", "d", "c"]]
    display = SamplesDisplay.from_rows(X, X[:50], wide[1], wide[1][:50], features=features)
    np.testing.assert_array_equal(display.rows, X[["a", "c"]].drop(index=3).to_numpy())
    np.testing.assert_array_equal(display.labels, np.delete(wide[1], 3))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("a", "c")


def test_a_filled_density_has_a_colour_bar_and_the_rows_of_its_class(classes):
    X, y = classes
    model = ScoreClassifier(GAUSSIAN).fit(X, y)
    display = DensityDisplay.from_estimator(model, X, y, label=1, filled=True, grid_resolution=8)
    assert [ax.get_ylabel() for ax in display.ax_.figure.axes] == ["x1", "density"]
    np.testing.assert_array_equal(display.rows, X[y == 1])
    assert DensityDisplay.from_estimator(model, X, label=1, grid_resolution=8).rows is None
    np.testing.assert_array_equal(DensityDisplay.from_estimator(model, X, grid_resolution=8).rows, X)


def test_samples_are_drawn_beside_the_rows(classes, wide):
    X, y = classes
    model = ScoreClassifier(GAUSSIAN).fit(X, y)
    display = SamplesDisplay.from_estimator(model, X[y == 1], n=40, label=1, random_state=0)
    assert display.generated.shape == (40, 2)
    assert np.linalg.norm(display.generated.mean(axis=0) - 4) < 1.5
    display = SamplesDisplay.from_rows(wide[0][:50], wide[0][50:80], features="pca")
    assert display.generated.shape == (30, 2)
    assert "variance" in display.ax_.get_xlabel()


def test_boundary_by_newton_and_by_grid_agree(classes):
    X, y = classes
    model = ScoreClassifier(GAUSSIAN, calibration=None).fit(X, y)
    newton = BoundaryDisplay.from_estimator(model, X, method="newton")
    grid = BoundaryDisplay.from_estimator(model, X, method="grid", grid_resolution=80)
    for points, tolerance in ((newton.boundary, 1e-3), (grid.boundary, 0.3)):
        assert len(points) > 20
        assert np.abs(model.decision_function(points)).max() < tolerance


def test_boundary_on_a_plane_of_many_columns(wide):
    X, y = wide
    model = LogisticRegression().fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, features="pca")
    points = plane_of(X, "pca").points(display.boundary)
    assert np.abs(model.decision_function(pd.DataFrame(points, columns=X.columns))).max() < 1e-4


def test_boundary_of_trees_is_found_on_the_grid(classes):
    X, y = classes
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    display = BoundaryDisplay.from_estimator(forest, X)
    assert len(display.boundary) > 5
    with pytest.raises(TypeError, match="piecewise constant"):
        BoundaryDisplay.from_estimator(forest, X, method="newton")
    with pytest.raises(ValueError, match="Expected method"):
        BoundaryDisplay.from_estimator(forest, X, method="guess")


def test_boundary_in_one_dimension():
    X, y = make_gaussians(300, 1, random_state=0)
    display = BoundaryDisplay.from_estimator(LogisticRegression().fit(X, y), X)
    assert display.boundary.shape == (1, 1)
    assert abs(display.boundary[0, 0]) < 0.3


@pytest.mark.parametrize("d", [1, 2])
def test_every_display_takes_axes_and_returns_itself(d):
    X, y = make_gaussians(60, d, random_state=0)
    model = ScoreClassifier(GAUSSIAN).fit(X, y)
    calls = (
        (DensityDisplay, {"label": 0}), (ScoreFieldDisplay, {"label": 0}), (BoundaryDisplay, {}),
        (SamplesDisplay, {"label": 0, "n": 20, "random_state": 0}),
    )  # fmt: skip
    for display, options in calls:
        _, ax = plt.subplots()
        shown = display.from_estimator(model, X, y, ax=ax, **options)
        assert isinstance(shown, display)
        assert shown.ax_ is ax
        assert ax.get_xlabel() == "x0"
        assert ax.get_ylabel()
        assert ax.get_title()
        assert ax.get_legend() is not None
        assert shown.plot().ax_ is not ax


def test_an_explanation_is_drawn_as_bars_that_sum_up(rng):
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "$c$"])
    model = ScoreClassifier(ScoreDensity("gaussian"), random_state=0).fit(X, X["a"] > 0)
    display = ExplanationDisplay.from_estimator(model, X, row=3)
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert abs(sum(widths) - (display.log_odds - display.baseline)) < 0.01
    assert np.abs(widths).argmax() == 0
    texts = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert any(text.startswith("a = ") for text in texts)
    display.ax_.figure.canvas.draw()  # a dollar sign is no formula
    few = ExplanationDisplay.from_estimator(model, X.to_numpy(), row=3, n_columns=2)
    assert len(few.ax_.patches) == 3  # two columns, and the others together
    assert abs(sum(bar.get_width() for bar in few.ax_.patches) - sum(widths)) < 0.01
    assert few.ax_.get_yticklabels()[-1].get_text() == "the other column"


def test_intervals_of_calibration_cover_honest_probabilities_and_not_others(rng):
    proba = rng.uniform(size=4000)
    found = rng.uniform(size=4000) < proba
    honest = CalibrationDisplay.from_predictions(found, proba)
    assert np.mean((honest.low <= honest.announced) & (honest.announced <= honest.high)) >= 0.75
    sure = np.where(proba > 0.5, 1 - (1 - proba) ** 3, proba**3)  # over-confident
    wrong = CalibrationDisplay.from_predictions(found, sure)
    assert np.mean((wrong.low <= wrong.announced) & (wrong.announced <= wrong.high)) < 0.5
    empty = CalibrationDisplay.from_predictions(np.zeros(40, bool), np.full(40, 0.01))
    assert (empty.low == 0).all()
    assert (empty.high <= 1).all()


def test_calibration_of_a_classifier(classes):
    X, y = classes
    model = ScoreClassifier(GAUSSIAN, random_state=0).fit(X, y)
    display = CalibrationDisplay.from_estimator(model, X, y, label=0, n_bins=5)
    assert len(display.ax_.lines) >= 2
    with pytest.raises(ValueError, match="a label of"):
        CalibrationDisplay.from_estimator(model, X, y, label="x")


def test_credibility_shows_the_columns_that_differ_most(rng):
    real = pd.DataFrame(
        {"same": rng.normal(size=200), "moved": rng.normal(size=200), "c": rng.choice(["u", "$v$"], 200)}
    )
    generated = real.assign(moved=real["moved"] + 2, same=rng.permutation(real["same"]))
    display = CredibilityDisplay.from_tables(real, generated)
    assert display.columns[0].name == "moved"
    assert display.distances[0] > 0.6
    assert len(display.correlations[0]) == 1
    display.figure_.canvas.draw()
    texts = [tick.get_text() for ax in display.axes_ for tick in ax.get_xticklabels()]
    assert "u" in texts
