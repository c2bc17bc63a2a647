"""Draw the pictures of the README, the home page and the evidence: `python docs/pictures.py` writes them into docs."""

import io
import json
import pathlib

import matplotlib.pyplot as plt
from PIL import Image
from sklearn.frozen import FrozenEstimator

from scorefield import (
    BoundaryDisplay,
    DensityDisplay,
    ExplanationDisplay,
    SamplesDisplay,
    ScoreClassifier,
    ScoreFieldDisplay,
    ScoreOverSampler,
    load_penguins,
)
from scorefield.display.displays import COLOURS
from scorefield.evaluation.remedies import NOTHING
from scorefield.evaluation.statistics import estimate, seed_means
from scorefield.studies.benchmark.arms import DISTILLED, NOISE, OUR_CLASSIFIER, OURS, SMOTE_ROWS
from scorefield.studies.benchmark.classifiers import CLASSIFIERS
from scorefield.studies.benchmark.learning import LEARNING
from scorefield.studies.benchmark.summaries import METRICS, PROBABILITY_METRICS, Scores, scores_by_learner
from scorefield.studies.engine.page import collect
from scorefield.studies.paper.imbalanced import PAPER_10D, PAPER_FRAUD
from scorefield.studies.paper.registry import FRAUD, IMBALANCED_10D

HERE = pathlib.Path(__file__).parent
COLUMNS = ["bill_length_mm", "bill_depth_mm"]


def draw():
    """Generated rows of a model of the whole table; field, density and boundary of one of two columns."""
    penguins = load_penguins()
    whole = ScoreClassifier(random_state=0).fit(penguins.drop(columns="species"), penguins["species"])
    two = penguins.dropna(subset=COLUMNS)
    # In equal units, so that arrows have the directions in which densities rise on the picture.
    X, y = (two[COLUMNS] - two[COLUMNS].mean()) / two[COLUMNS].std(), two["species"]
    model = ScoreClassifier(random_state=0).fit(X, y)
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    SamplesDisplay.from_estimator(
        whole, penguins, penguins["species"], n=300, features=COLUMNS, random_state=0, ax=axes[0], size=14
    )
    axes[0].legend(fontsize=7)
    ScoreFieldDisplay.from_estimator(model, X, y, ax=axes[1], color="black")
    DensityDisplay.from_estimator(model, X, ax=axes[2], filled=True, colorbar=False)
    BoundaryDisplay.from_estimator(
        model, X, classes=["Adelie", "Chinstrap"], ax=axes[2], size=0, boundary_color="white", grid_resolution=40
    )
    axes[0].set_title("Sample: rows of three species")
    axes[1].set_title("The score field they follow")
    axes[2].set_title("Integrate and decide: density and boundary")
    for ax, unit in zip(axes, ("mm", "standardised", "standardised"), strict=True):
        ax.set(xlabel=f"bill length, {unit}", ylabel=f"bill depth, {unit}")
    axes[1].get_legend().remove()
    return figure


def draw_cards():
    """Name to figure: one small picture for each card of the home page."""
    penguins = load_penguins()
    X, y = penguins.drop(columns="species"), penguins["species"]
    two = penguins.dropna(subset=COLUMNS)
    plane, species = (two[COLUMNS] - two[COLUMNS].mean()) / two[COLUMNS].std(), two["species"]
    whole = ScoreClassifier(random_state=0).fit(X, y)
    model = ScoreClassifier(random_state=0).fit(plane, species)
    sampler = ScoreOverSampler(random_state=0, teacher=FrozenEstimator(whole))
    more, labels = sampler.fit_resample(X, y)
    figures = {}
    for name in ("classify", "teach", "understand", "paper"):
        figures[name], ax = plt.subplots(figsize=(4, 2.6), layout="constrained")
        if name == "classify":
            DensityDisplay.from_estimator(model, plane, ax=ax, filled=True, colorbar=False)
            BoundaryDisplay.from_estimator(
                model, plane, classes=["Adelie", "Chinstrap"], ax=ax, size=0, boundary_color="white", grid_resolution=40
            )
        elif name == "teach":
            rare = (labels == "Chinstrap").to_numpy()
            for part, colour, words in (
                (~sampler.is_synthetic_, "0.6", "real"),
                (sampler.is_synthetic_, COLOURS[1], "new"),
            ):
                ax.scatter(*more.loc[rare & part, COLUMNS].to_numpy(float).T, s=14, color=colour, label=words)
            ax.legend(fontsize=8, title="rows of the rare class", title_fontsize=8)
        elif name == "understand":
            ExplanationDisplay.from_estimator(
                whole, X, row=int((y == "Chinstrap").to_numpy().argmax()), n_columns=4, ax=ax
            )
        else:
            ScoreFieldDisplay.from_estimator(model, plane, species, ax=ax, color="black")
            ax.get_legend().remove()
        if name == "understand":
            ax.set_title("Why a Chinstrap?")
        else:
            ax.set(xlabel="bill length", ylabel="bill depth", xticks=[], yticks=[], title="")
    return figures


def draw_ranks(scores):
    """Mean ranks of classifiers by several measures, on one axis that can be read on a phone."""
    arms = sorted(scores.arms, key=lambda arm: scores.rank(arm, "average_precision"))
    figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    for metric, marker in zip(PROBABILITY_METRICS, "osD", strict=True):
        ranks = [scores.rank(arm, metric) for arm in arms]
        colours = [COLOURS[arm == OUR_CLASSIFIER] for arm in arms]
        ax.scatter(ranks, range(len(arms)), c=colours, marker=marker, s=28, alpha=0.7)
        ax.scatter([], [], c="0.4", marker=marker, s=28, label=METRICS[metric])
    for place, arm in enumerate(arms):
        ranks = [scores.rank(arm, metric) for metric in PROBABILITY_METRICS]
        ax.plot([min(ranks), max(ranks)], [place, place], color="0.8", zorder=0)
    ax.set(xlim=(1, len(arms)), xlabel=f"mean rank among {len(arms)}, 1 is best")
    ax.set_yticks(range(len(arms)), arms)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.legend(loc="upper right", frameon=False)
    return figure


def draw_speed():
    """Times of other ways as multiples of ours, for a training step and for over-sampling."""
    step, over = (
        [json.loads(line) for line in (HERE.parent / "results" / "speed" / f"{name}.jsonl").read_text().splitlines()]
        for name in ("score_matching_step", "oversample")
    )
    panels = {
        "One step of exact score matching": {
            row["job"]: row["ratio"] for row in step if row.get("batch") == 128 and "ratio" in row
        },
        "Over-sampling frauds tenfold": {
            row["job"]: row["ratio_warm"] for row in over if row["job"] not in ("ScoreOverSampler", "torch, one thread")
        },
    }
    names = {"jacfwd": "forward-mode Jacobians", "torch autograd loop": "torch, loop over columns",
             "torch": "the same job in torch"}  # fmt: skip
    figure, axes = plt.subplots(2, 1, figsize=(6.4, 4.6), layout="constrained")
    for ax, (title, ratios) in zip(axes, panels.items(), strict=True):
        jobs = sorted(ratios, key=ratios.get)
        ax.barh([names.get(job, job) for job in jobs], [ratios[job] for job in jobs], color=COLOURS[0])
        ax.axvline(1, color=COLOURS[1])
        for place, job in enumerate(jobs):
            ax.annotate(
                f"{ratios[job]:.2g}", (ratios[job], place), xytext=(4, -3), textcoords="offset points", fontsize=8
            )
        ax.set(title=title, xscale="log", xlabel="times ours (orange line); more is slower")
        ax.set_xlim(right=3 * max(ratios.values()))
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def draw_paper():
    """F1 of the arms of the paper's two over-sampling experiments, beside the values that it prints."""
    folder, experiments = HERE.parent / "results" / "paper", {"RF": IMBALANCED_10D, "XGB": FRAUD}
    found = collect(experiments.values(), folder, seeds=None, quick=False)
    printed = {IMBALANCED_10D.name: PAPER_10D["RF"], FRAUD.name: PAPER_FRAUD}
    figure, axes = plt.subplots(2, 1, figsize=(6.4, 6.4), layout="constrained")
    for ax, learner, (experiment, _, rows) in zip(axes, experiments, found, strict=True):
        arms = list(
            dict.fromkeys(row["arm"] for row in rows if row.get("learner") == learner and row.get("kind") == "arm")
        )
        for place, arm in enumerate(arms):
            own = seed_means(rows, "f1", arm=arm, learner=learner)
            colour = COLOURS[arm.startswith("ScoreOverSampler")]
            ax.plot([own.low, own.high], [place, place], color=colour)
            ax.plot(own.mean, place, "o", color=colour, label="our run, 95 % interval" if place == 0 else None)
            if arm in printed[experiment.name]:
                ax.plot(printed[experiment.name][arm][2], place, "x", color="black",
                        label="printed in the paper" if place == 0 else None)  # fmt: skip
        ax.set(xlabel="F1", title="simulation, forest" if learner == "RF" else "frauds, XGBoost")
        ax.set_yticks(range(len(arms)), arms)
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def draw_learning(by_learner):
    """Gains over the learner alone, mean over tables with 95 % intervals, of four ways to help it."""
    arms = {DISTILLED: COLOURS[1], OURS: "#7fb3e6", SMOTE_ROWS: "0.35", NOISE: "0.65"}
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 5.2), sharey=True, layout="constrained")
    for ax, metric in zip(axes, ("average_precision", "log_loss"), strict=True):
        for place, scores in enumerate(by_learner.values()):
            for offset, (arm, colour) in enumerate(arms.items()):
                found, y = estimate(scores.gain(arm, NOTHING, metric)), place + 0.18 * (offset - 1.5)
                ax.plot([found.low, found.high], [y, y], color=colour, linewidth=1.5)
                ax.plot(found.mean, y, "o", color=colour, markersize=5, label=arm if place == 0 else None)
        ax.axvline(0, color="0.6", linewidth=1, zorder=0)
        ax.set(xlabel=f"gain in {METRICS[metric]}")
        ax.locator_params(axis="x", nbins=5)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[1].set_xlim(left=-0.4)  # SMOTE before neighbours lies further left
    axes[0].set_yticks(range(len(by_learner)), by_learner)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return figure


def draw_benchmark():
    """Name to figure, from the committed rows of the benchmark."""
    folder = HERE.parent / "results" / "benchmark"
    found = collect([CLASSIFIERS, LEARNING], folder, seeds=None, quick=False)
    rows = {experiment.name: own for experiment, _, own in found}
    learners = scores_by_learner(rows["learning"])
    return {"classifiers": draw_ranks(Scores(rows["classifiers"])), "oversampling": draw_learning(learners)}


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "scorefield"  # the same file from the same rows
    for name, figure in {**draw_benchmark(), "speed": draw_speed(), "paper": draw_paper()}.items():
        figure.savefig(HERE / "images" / f"{name}.svg", metadata={"Date": None})
    for name, figure in {**draw_cards(), "penguins": draw()}.items():
        stream = io.BytesIO()
        figure.savefig(stream, dpi=90 if name == "penguins" else 140)
        few_colours = Image.open(stream).convert("RGB").quantize(256)  # less than half the size
        few_colours.save(HERE / "_static" / f"{name}.png", optimize=True)
