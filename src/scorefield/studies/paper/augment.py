"""`augment-2d` and `multimodal-2d`: true and learned fields, Langevin samples, labelling rules, score features.

Fig:trained_score_functions, Fig:Gaussian_classification_results_* and
Fig:Gaussian_classification_generic_score_function.
"""

from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from scorefield.data.datasets import GAUSSIANS, make_gaussians
from scorefield.display.displays import COLOURS, BoundaryDisplay, SamplesDisplay, ScoreFieldDisplay, new_axes
from scorefield.display.planes import grid_points
from scorefield.estimators.features import ScoreFeatures
from scorefield.estimators.labelling import LabellingClassifier
from scorefield.evaluation.remedies import boosting
from scorefield.evaluation.statistics import paired, seed_means, verdict_between, verdict_positive
from scorefield.sampling.samplers import Langevin
from scorefield.studies.engine.experiment import Claim, Experiment, Figure, Section, Table, compact, of_kind
from scorefield.studies.paper.recover import true_boundary
from scorefield.studies.paper.settings import (
    NAMES_2D,
    VIEW_2D,
    exact_log_density,
    exact_score,
    panels,
    paper_density,
    true_classes,
)

SHOWN = 4000  # generated rows in a figure; moments are those of all rows


def bayes_accuracy(X, y):
    """Accuracy of Bayes' rule with the exact densities, the highest that can be expected."""
    first, second = (exact_log_density(truth, X) for truth in true_classes(2))
    return float(np.mean((second > first) == y))


def run_augment(seed, config):
    X, y = make_gaussians(config["n"], 2, random_state=seed)
    fresh, labels = make_gaussians(2000, 2, random_state=seed + 10_000)
    grid = grid_points([np.linspace(*VIEW_2D, 17)] * 2)
    sampler = Langevin(config["step_size"], config["chain_length"], config["discard"])
    n_new = config["n_chains"] * int(config["chain_length"] * (1 - config["discard"]))
    density = paper_density(config["hidden"], seed, sampler=sampler)
    rows = []
    for label, truth in enumerate(true_classes(2)):
        own = X[y == label]
        fitted = density.fit(own)
        drawn = fitted.sample(n_new)
        mean, covariance = GAUSSIANS[2][label]
        learned = fitted.grad_log_density(fresh[labels == label])
        row = {
            "kind": "field",
            "label": label,
            "n": len(drawn),
            "score_error": float(np.mean(np.sum((learned - exact_score(truth, fresh[labels == label])) ** 2, axis=1))),
            "mean_error": float(np.abs(drawn.mean(axis=0) - mean).max()),
            "row_mean_error": float(np.abs(own.mean(axis=0) - mean).max()),
            "covariance_error": float(np.abs(np.cov(drawn.T) - covariance).max()),
        }
        if seed == 0:
            row |= {
                "points": compact(grid, 4),
                "learned": compact(fitted.grad_log_density(grid), 4),
                "true": compact(exact_score(truth, grid), 4),
                "rows": compact(own, 4),
                "pseudo": compact(pseudo_densities(fitted, own), 3),
                "drawn": compact(np.random.default_rng(0).permutation(drawn)[:SHOWN], 3),
            }
        rows.append(row)
    return rows + _rule_rows(seed, config, (X, y), (fresh, labels), density, n_new)


def _rule_rows(seed, config, train, test, density, n_new):
    """Accuracy of each labelling rule; the pseudo-density rule uses no rows and is not augmented."""
    rules = (("pseudo-density", 0), ("radius", 0), ("k-nearest", 0), ("radius", n_new), ("k-nearest", n_new))
    grid = grid_points([np.linspace(*VIEW_2D, 17)] * 2)
    rows = []
    for rule, n_augment in rules:
        model = LabellingClassifier(
            rule,
            n_augment=n_augment,
            n_neighbors=config["n_neighbors"],
            radius=config["radius"],
            density=density,
            sampler=density.sampler,
            random_state=seed,
        ).fit(*train)
        row = {
            "kind": "rule",
            "rule": rule,
            "augmented": n_augment > 0,
            "accuracy": float(np.mean(model.predict(test[0]) == test[1])),
            "bayes": bayes_accuracy(*test),
        }
        if seed == 0:
            row |= {"points": compact(grid, 4), "proba": compact(model.predict_proba(grid)[:, 1], 3)}
        rows.append(row)
    return rows


def show_augment(rows):
    fields, rules = of_kind(rows, "field"), of_kind(rows, "rule")
    accuracy = seed_means(rules, "accuracy", augmented=True)
    bayes = seed_means(rules, "bayes", rule="k-nearest", augmented=True)
    votes = {"rule": "k-nearest"}
    gain = paired(rules, "accuracy", {**votes, "augmented": True}, {**votes, "augmented": False})
    claims = [
        Claim(
            "Labels voted by generated rows come close to the theoretical boundary (98 % of fresh rows or more).",
            verdict_between(accuracy, 0.98, np.inf),
            f"accuracy {accuracy}; Bayes {bayes}",
        ),
        Claim(
            "Generated rows improve the k-nearest vote over the original rows.",
            verdict_positive(gain),
            f"gain in accuracy {gain}",
        ),
    ]
    n = max(row["n"] for row in fields)
    figures = [
        Figure("fields", "True (grey) and learned fields, seed 0; long arrows are cut.", lambda: _draw_fields(fields)),
        Figure(
            "samples",
            f"Pseudo-densities 1/|s| at the rows (size), and {n:,} generated rows a class ({SHOWN:,} shown).",
            lambda: _draw_samples(fields),
        ),
        Figure("labels", "Labels at grid points (size: confidence); dashed: truth.", lambda: _draw_rules(rules)),
    ]
    return Section(claims, _augment_tables(fields, rules, bayes), figures)


def _augment_tables(fields, rules, bayes):
    measures = (
        ("score_error", "mean squared error of the learned score"),
        ("mean_error", "error of the generated rows' mean"),
        ("row_mean_error", "error of the 200 rows' own mean"),
        ("covariance_error", "error of the generated rows' covariance"),
    )
    errors = [
        [f"{name}, class {label}", seed_means(fields, metric, label=label)]
        for metric, name in measures
        for label in (0, 1)
    ]
    votes = []
    for rule, more in dict.fromkeys((row["rule"], row["augmented"]) for row in rules):
        accuracy = seed_means(rules, "accuracy", rule=rule, augmented=more)
        votes.append([rule, "augmented" if more else "original", accuracy])
    votes.append(["Bayes' rule", "exact densities", bayes])
    caption = (
        "Accuracy of the labelling rules on 4,000 fresh rows. The pseudo-density rule uses fields alone, so "
        "generated rows do not enter it."
    )
    return [
        Table("Fields and samples; mean and 95 % interval over seeds.", ["", "ours"], errors),
        Table(caption, ["rule", "rows", "accuracy"], votes),
    ]


def _draw_fields(fields):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
    for row in of_kind(fields, "field", seed=0):
        ax = axes[row["label"]]
        true = ScoreFieldDisplay(row["points"], row["true"], NAMES_2D).plot(ax, color="0.6")
        learned = ScoreFieldDisplay(row["points"], row["learned"], NAMES_2D)
        learned.plot(ax, color=COLOURS[row["label"]], longest=true.longest())
        ax.scatter(*np.transpose(row["rows"]), s=4, color="black", alpha=0.3)
        ax.set(title=f"class {row['label']}", aspect="equal")
    return figure


def _draw_samples(fields):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
    for row in of_kind(fields, "field", seed=0):
        colour = COLOURS[row["label"]]
        _draw_pseudo_densities(axes[0], row, colour)
        display = SamplesDisplay(row["rows"], row["drawn"], NAMES_2D)
        display.plot(axes[1], color=colour, size=3, legend=row["label"] == 0)
    true_boundary(axes[1])
    return figure


def pseudo_densities(field, X):
    """The paper's substitute for a density, 1 / |s(x)|."""
    return 1 / np.linalg.norm(field.grad_log_density(X), axis=1)


def _draw_pseudo_densities(ax, row, colour):
    sizes = np.array(row["pseudo"])
    area = np.clip(60 * sizes / np.quantile(sizes, 0.95), 1, 90)
    new_axes(ax, NAMES_2D).scatter(*np.transpose(row["rows"]), s=area, color=colour, alpha=0.5, linewidths=0)


def _draw_rules(rules):
    shown = of_kind(rules, "rule", seed=0)
    figure, axes = panels(len(shown), 3, height=3.6, sharex=True, sharey=True)
    for ax, row in zip(axes, shown, strict=True):
        BoundaryDisplay(np.zeros((0, 2)), row["points"], row["proba"], NAMES_2D).plot(ax)
        true_boundary(ax)
        ax.set(title=f"{row['rule']}, {'augmented' if row['augmented'] else 'original'} rows", aspect="equal")
    return figure


def run_multimodal(seed, config):
    X, y = make_gaussians(config["n"], 2, random_state=seed)
    fresh, labels = make_gaussians(2000, 2, random_state=seed + 10_000)
    grid = grid_points([np.linspace(*VIEW_2D, 17)] * 2)
    features = ScoreFeatures(paper_density(config["hidden"], seed))
    learners = {
        "XGB": boosting(seed),
        "NN": MLPClassifier((32, 64, 32), max_iter=500, random_state=seed),
    }
    rows = []
    for name, learner in learners.items():
        for on in ("scores", "columns"):
            model = make_pipeline(features, learner) if on == "scores" else learner
            model.fit(X, y)
            row: dict[str, Any] = {
                "kind": "learner",
                "learner": name,
                "features": on,
                "accuracy": float(np.mean(model.predict(fresh) == labels)),
            }
            if seed == 0 and on == "scores":
                row |= {"points": compact(grid, 4), "proba": compact(model.predict_proba(grid)[:, 1], 3)}
            rows.append(row)
    if seed == 0:
        field = features.fit(X).densities_[0]
        rows.append(
            {
                "kind": "field",
                "points": compact(grid, 4),
                "learned": compact(field.grad_log_density(grid), 4),
                "rows": compact(X, 4),
                "pseudo": compact(pseudo_densities(field, X), 3),
            }
        )
    return rows


def show_multimodal(rows):
    learners = of_kind(rows, "learner")
    table = []
    for name in ("XGB", "NN"):
        for on in ("scores", "columns"):
            values = seed_means(learners, "accuracy", learner=name, features=on)
            table.append([name, "score features" if on == "scores" else "the columns themselves", values])
    claims = []
    for name in ("XGB", "NN"):
        loss = paired(
            learners, "accuracy", {"learner": name, "features": "columns"}, {"learner": name, "features": "scores"}
        )
        claims.append(
            Claim(
                f"{name} on score features of one multi-modal field fails, as the paper says "
                "(worse than on the columns themselves).",
                verdict_positive(loss),
                f"accuracy lost {loss}",
            )
        )
    caption = "Accuracy on 4,000 fresh rows; mean and 95 % interval over seeds."
    figures = [
        Figure(
            "field",
            "One field for both classes, and pseudo-densities at the rows (size), seed 0.",
            lambda: _draw_multimodal(rows),
        ),
        Figure(
            "labels",
            "Labels at grid points from score features (size: confidence); dashed: true boundary.",
            lambda: _draw_learners(learners),
        ),
    ]
    return Section(claims, [Table(caption, ["learner", "features", "accuracy"], table)], figures)


def _draw_multimodal(rows):
    import matplotlib.pyplot as plt

    (row,) = of_kind(rows, "field")
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
    ScoreFieldDisplay(row["points"], row["learned"], NAMES_2D).plot(axes[0])
    _draw_pseudo_densities(axes[1], row, COLOURS[0])
    return figure


def _draw_learners(learners):
    import matplotlib.pyplot as plt

    shown = [row for row in of_kind(learners, "learner", seed=0) if "points" in row]
    figure, axes = plt.subplots(1, len(shown), figsize=(9.5, 4.6), layout="constrained")
    for ax, row in zip(axes, shown, strict=True):
        BoundaryDisplay(np.zeros((0, 2)), row["points"], row["proba"], NAMES_2D).plot(ax)
        true_boundary(ax)
        ax.set(title=f"{row['learner']} on score features", aspect="equal")
    return figure


AUGMENT_2D = Experiment(
    "augment-2d",
    "Learned fields, Langevin samples and three labelling rules",
    "Compares learned with true fields, draws 100 chains of 1,000 steps (step .003, the first 200 dropped: 80,000 "
    "rows a class) and labels a grid by pseudo-densities, by a fixed radius and by nearest neighbours.",
    run_augment,
    show_augment,
    10,
    1,
    {
        "n": 200,
        "hidden": [128, 256, 128],
        "step_size": 0.003,
        "chain_length": 1000,
        "discard": 0.2,
        "n_chains": 100,
        "radius": 1.0,
        "n_neighbors": 20,
    },
)
MULTIMODAL_2D = Experiment(
    "multimodal-2d",
    "One field for both classes, and classifiers on its scores",
    "Learns a single multi-modal field and trains XGB and a network on its values; they fail, because rows of both "
    "classes share the same scores.",
    run_multimodal,
    show_multimodal,
    10,
    2,
    {"n": 200, "hidden": [128, 256, 128]},
)
