"""`logistic-1d` and `logistic-2d`: score fields and gradients of a logistic regression's posterior.

Eq:binary_density_score_func, Eq:binary_density_func and App. A.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from scorefield.data.datasets import make_gaussians
from scorefield.display.displays import COLOURS, DensityDisplay, ScoreFieldDisplay, new_axes
from scorefield.display.planes import grid_points
from scorefield.evaluation.statistics import FAILS, HOLDS, estimate, verdict_between
from scorefield.explanations.posterior import find_boundary, posterior_gradient, posterior_score
from scorefield.studies.engine.experiment import Claim, Experiment, Figure, Section, Table, compact, of_kind
from scorefield.studies.paper.settings import NAMES_2D, VIEW_2D

PAPER_1D, PAPER_2D = (-0.1, 3.5), (-6.17, 1.73, 2.0)
PAPER_BOUNDARY = 0.03
ROUNDING = 1e-9


def _fit(seed, config, n_features):
    X, y = make_gaussians(config["n"], n_features, random_state=seed)
    return X, y, LogisticRegression(C=config["C"], max_iter=1000).fit(X, y)


def _formula_error(model, X):
    """Largest difference from the fields of App. A, (1 - p) theta and p (1 - p) theta for the second class."""
    proba, theta = model.predict_proba(X)[:, 1:], model.coef_
    return float(
        max(
            np.abs(posterior_score(model, X, 1) - (1 - proba) * theta).max(),
            np.abs(posterior_score(model, X, 0) + proba * theta).max(),
            np.abs(posterior_gradient(model, X, 1) - proba * (1 - proba) * theta).max(),
        )
    )


def run_1d(seed, config):
    X, _, model = _fit(seed, config, 1)
    row = {
        "kind": "fit",
        "theta": [float(model.intercept_[0]), float(model.coef_[0, 0])],
        "boundary": float(find_boundary(model, [[1.0]]).points[0, 0]),
        "formula_error": _formula_error(model, X),
    }
    if seed == 0:
        x = np.linspace(-4, 4, 161)[:, None]
        row |= {"x": compact(x[:, 0]), "proba": compact(model.predict_proba(x)[:, 1])}
        for label in (0, 1):
            row[f"score_{label}"] = compact(posterior_score(model, x, label)[:, 0])
            row[f"gradient_{label}"] = compact(posterior_gradient(model, x, label)[:, 0])
    return [row]


def _formula_claim(fits):
    worst = max(row["formula_error"] for row in fits)
    return Claim(
        "The posterior's score is (1 - p) theta and its gradient p (1 - p) theta (right-hand sides of App. A).",
        HOLDS if worst < ROUNDING else FAILS,
        f"largest difference from automatic differentiation: {worst:.1e}",
    )


def show_1d(rows):
    fits = of_kind(rows, "fit")
    thetas = [estimate([row["theta"][i] for row in fits]) for i in (0, 1)]
    boundary = estimate([row["boundary"] for row in fits])
    spread = max(abs(row["boundary"]) for row in fits)
    claims = [
        _formula_claim(fits),
        Claim(
            "The boundary of the fitted model lies at about 0 (paper: .03).",
            verdict_between(boundary, -0.05, 0.05),
            f"{boundary}; largest distance {spread:.3f}",
        ),
    ]
    table = [
        ["theta_0", PAPER_1D[0], thetas[0]],
        ["theta_1", PAPER_1D[1], thetas[1]],
        ["boundary", PAPER_BOUNDARY, boundary],
    ]
    caption = "Coefficients; mean and 95 % interval over seeds. Equal unit variances make theta = (0, 4) in theory."
    figure = Figure("curves", "Posterior, its scores and its gradients, seed 0.", lambda: _draw_1d(fits))
    return Section(claims, [Table(caption, ["", "paper", "ours"], table)], [figure])


def _draw_1d(fits):
    import matplotlib.pyplot as plt

    row = next(r for r in fits if "x" in r)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    x = np.array(row["x"])[:, None]
    new_axes(axes[0], ("x", "p(y=1 | x)")).plot(row["x"], row["proba"], color=COLOURS[1])
    axes[0].axvline(row["boundary"], color="black", linestyle="--", label=f"boundary {row['boundary']:.2f}")
    for ax, what in ((axes[1], "score"), (axes[2], "gradient")):
        for label in (0, 1):
            values = np.array(row[f"{what}_{label}"])[:, None]
            ScoreFieldDisplay(x, values, ("x", what)).plot(ax, color=COLOURS[label], label=f"class {label}")
        ax.legend()
    axes[0].legend()
    return figure


def run_2d(seed, config):
    X, _, model = _fit(seed, config, 2)
    row = {
        "kind": "fit",
        "theta": [float(model.intercept_[0]), *model.coef_[0].tolist()],
        "formula_error": _formula_error(model, X),
    }
    if seed == 0:
        axis, coarse = np.linspace(*VIEW_2D, 49), grid_points([np.linspace(*VIEW_2D, 15)] * 2)
        proba = model.predict_proba(grid_points([axis, axis]))[:, 1].reshape(49, 49)
        row |= {
            "axis": compact(axis),
            "proba": compact(proba, 3),
            "points": compact(coarse, 4),
            "score": compact(posterior_score(model, coarse, 1), 4),
            "gradient": compact(posterior_gradient(model, coarse, 1), 4),
        }
    return [row]


def show_2d(rows):
    fits = of_kind(rows, "fit")
    table = [[f"theta_{i}", PAPER_2D[i], estimate([row["theta"][i] for row in fits])] for i in range(3)]
    slopes = estimate([row["theta"][1] / row["theta"][2] for row in fits])
    claims = [
        _formula_claim(fits),
        Claim(
            "Both columns count about equally (ratio of coefficients between .7 and 1.4; paper: .87).",
            verdict_between(slopes, 0.7, 1.4),
            f"theta_1 / theta_2 = {slopes}",
        ),
    ]
    caption = "Coefficients of the 2-D classifier; mean and 95 % interval over seeds."
    figure = Figure("fields", "Score field and gradient of p(y=1 | x), seed 0.", lambda: _draw_2d(fits))
    return Section(claims, [Table(caption, ["", "paper", "ours"], table)], [figure])


def _draw_2d(fits):
    import matplotlib.pyplot as plt

    row = next(r for r in fits if "axis" in r)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
    for ax, what in zip(axes, ("score", "gradient"), strict=True):
        DensityDisplay([row["axis"]] * 2, row["proba"], NAMES_2D).plot(ax, filled=True, alpha=0.6)
        ScoreFieldDisplay(row["points"], row[what], NAMES_2D).plot(ax, color="black")
        ax.set(title=f"{what} over p(y=1 | x)", aspect="equal")
    return figure


LOGISTIC_1D = Experiment(
    "logistic-1d",
    "Score field of a logistic posterior, one dimension",
    "Fits a logistic regression to the 1-D classes: theta = (-0.1, 3.5), boundary x = 0.03; shows scores and "
    "gradients of the posterior.",
    run_1d,
    show_1d,
    20,
    5,
    {"n": 1000, "C": 1.0},
)
LOGISTIC_2D = Experiment(
    "logistic-2d",
    "Score field of a logistic posterior, two dimensions",
    "Fits a logistic regression to the 2-D classes: theta = (-6.17, 1.73, 2.0); shows its field and gradient.",
    run_2d,
    show_2d,
    20,
    5,
    {"n": 200, "C": 1.0},
)
