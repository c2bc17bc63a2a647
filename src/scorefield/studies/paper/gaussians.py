"""`gaussian-1d` and `gaussian-2d`: densities and score fields of Gaussians.

Fig:1D_normal_density_and_score_func and Fig:2D_normal_density_and_score_func.
"""

import jax
import numpy as np

from scorefield.display.displays import COLOURS, DensityDisplay, ScoreFieldDisplay
from scorefield.display.planes import grid_points
from scorefield.evaluation.statistics import FAILS, HOLDS
from scorefield.inference.line_integrals import path_gap
from scorefield.studies.engine.experiment import Claim, Experiment, Figure, Section, compact, of_kind
from scorefield.studies.paper.settings import NAMES_2D, exact_log_density, exact_score, true_classes

ROUNDING = 1e-4  # of single precision for log densities of size ten


def run_1d(seed, config):
    x = np.linspace(-6, 6, 241)
    rows = []
    for label, truth in enumerate(true_classes(1)):
        score = exact_score(truth, x[:, None])[:, 0]
        slope = jax.vmap(jax.grad(truth.potential))(x[:, None].astype(np.float32))[:, 0]
        rows.append(
            {
                "kind": "curve",
                "label": label,
                "x": compact(x),
                "score": compact(score),
                "density": compact(np.exp(exact_log_density(truth, x[:, None]))),
                "gradient_error": float(np.abs(score - slope).max()),
                "formula_error": float(np.abs(score - (truth.means[0, 0] - x) / truth.covariances[0, 0, 0]).max()),
            }
        )
    return rows


def show_1d(rows):
    curves = of_kind(rows, "curve")
    worst = max(max(row["gradient_error"], row["formula_error"]) for row in curves)
    claim = Claim(
        "The score of a 1-D Gaussian is (mu - x) / sigma^2, the slope of its log density.",
        HOLDS if worst < ROUNDING else FAILS,
        f"largest difference from the formula and from automatic differentiation: {worst:.1e}",
    )

    def draw():
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
        for row in curves:
            colour, name = COLOURS[row["label"]], f"class {row['label']}"
            DensityDisplay([row["x"]], row["density"]).plot(axes[0], color=colour, label=name)
            points, vectors = np.array(row["x"])[:, None], np.array(row["score"])[:, None]
            ScoreFieldDisplay(points, vectors).plot(axes[1], color=colour, label=name)
        axes[0].legend()
        axes[1].legend()
        return figure

    return Section([claim], [], [Figure("curves", "Density and score of N(-2, 1) and N(2, 1).", draw)])


def run_2d(seed, config):
    truth = true_classes(2)[0]
    axis = np.linspace(-3.2, 3.2, 61)
    coarse = grid_points([np.linspace(-3, 3, 15)] * 2)
    far = np.random.default_rng(seed).normal(size=(200, 2)) * 2
    return [
        {
            "kind": "grid",
            "axis": compact(axis),
            "points": compact(coarse),
            "density": compact(np.exp(exact_log_density(truth, grid_points([axis, axis]))).reshape(61, 61)),
            "vectors": compact(exact_score(truth, coarse)),
            "at_mean": float(np.abs(exact_score(truth, np.zeros((1, 2)))).max()),
            "path_gap": float(path_gap(truth, np.zeros(2), far).max()),
        }
    ]


def show_2d(rows):
    (row,) = of_kind(rows, "grid")
    claims = [
        Claim(
            "The score vanishes at the mode.",
            HOLDS if row["at_mean"] < ROUNDING else FAILS,
            f"largest component at the mean: {row['at_mean']:.1e}",
        ),
        Claim(
            "The line integral of a true score field does not depend on the path.",
            HOLDS if row["path_gap"] < 20 * ROUNDING else FAILS,
            f"largest gap between two paths to 200 points: {row['path_gap']:.1e} nats",
        ),
    ]

    def draw():
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
        DensityDisplay([row["axis"]] * 2, row["density"], NAMES_2D).plot(ax, filled=True)
        ScoreFieldDisplay(row["points"], row["vectors"], NAMES_2D).plot(ax, color="white")
        ax.set_aspect("equal")
        return figure

    caption = "Density and score field of N(0, [[1, -.5], [-.5, 1]]); long arrows are cut."
    return Section(claims, [], [Figure("field", caption, draw)])


GAUSSIAN_1D = Experiment(
    "gaussian-1d",
    "Densities and scores in one dimension",
    "Shows the densities of N(-2, 1) and N(2, 1) and their straight-line scores.",
    run_1d,
    show_1d,
    1,
    1,
)
GAUSSIAN_2D = Experiment(
    "gaussian-2d",
    "A density and its score field in two dimensions",
    "Shows the density and the score field of a correlated 2-D Gaussian.",
    run_2d,
    show_2d,
    1,
    1,
)
