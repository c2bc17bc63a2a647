"""Tables, figures and claims for experiments that compare arms over seeds."""

import numpy as np

from scorefield.display.displays import SamplesDisplay
from scorefield.evaluation.metrics import LOWER_IS_BETTER, NAMES
from scorefield.evaluation.statistics import paired, seed_means, verdict_positive
from scorefield.studies.engine.experiment import Claim, Figure, Table, of_kind
from scorefield.studies.paper.settings import panels

MEASURES = ("recall", "precision", "f1", "errors", "average_precision", "roc_auc", "brier")


def arms_of(rows, **match):
    """Arms in the order in which they were run."""
    return list(dict.fromkeys(row["arm"] for row in of_kind(rows, "arm", **match)))


def scores_table(rows, caption, paper=None, **match):
    """Measures of every arm, and the paper's recall, precision and F1 if it has the arm."""
    paper, arms = paper or {}, of_kind(rows, "arm", **match)
    table = []
    for arm in arms_of(rows, **match):
        printed = " / ".join(f"{value:.2f}" for value in paper[arm]) if arm in paper else ""
        cells = [seed_means(arms, metric, arm=arm) for metric in MEASURES]
        table.append([arm, printed, *cells])
    return Table(caption, ["arm", "paper: recall / precision / F1", *(NAMES[metric] for metric in MEASURES)], table)


def differences_table(rows, caption, arms, references, metrics=("recall", "f1", "average_precision", "brier"), **match):
    """Differences between arms and references, paired by seed; a star marks intervals without zero."""
    selected, table = of_kind(rows, "arm", **match), []
    for arm in arms:
        for reference in references:
            cells = []
            for metric in metrics:
                gap = paired(selected, metric, {"arm": arm}, {"arm": reference})
                star = " *" if gap.n > 1 and not gap.low <= 0 <= gap.high else ""
                cells.append(gap.text("+") + star)
            table.append([f"{arm} less {reference}", *cells])
    return Table(caption, ["difference", *(NAMES[m] for m in metrics)], table)


def superiority_claim(rows, text, metric, arm, reference, **match):
    """Claim that one arm beats another in a metric, paired by seed."""
    selected = of_kind(rows, "arm", **match)
    first, second = {"arm": arm}, {"arm": reference}
    gap = (
        paired(selected, metric, second, first)
        if metric in LOWER_IS_BETTER
        else paired(selected, metric, first, second)
    )
    return Claim(text, verdict_positive(gap), f"paired gain in {NAMES[metric]}: {gap}")


def confusion_figure(rows, caption, **match):
    """Figure of the mean confusion matrices of all arms."""

    def draw():
        from sklearn.metrics import ConfusionMatrixDisplay

        arms = arms_of(rows, **match)
        figure, axes = panels(len(arms), 4, height=2.5)
        for ax, arm in zip(axes, arms, strict=True):
            own = of_kind(rows, "arm", arm=arm, **match)
            matrix = np.mean([[[r["tn"], r["fp"]], [r["fn"], r["tp"]]] for r in own], axis=0)
            shares = matrix / matrix.sum(axis=1, keepdims=True)
            ConfusionMatrixDisplay(shares).plot(
                ax=ax, include_values=False, colorbar=False, cmap="Blues", im_kw={"vmin": 0, "vmax": 1}
            )
            for (i, j), count in np.ndenumerate(matrix):
                ax.text(
                    j, i, f"{count:.1f}", ha="center", va="center", color="white" if shares[i, j] > 0.6 else "black"
                )
            ax.set_title(arm, fontsize=9)
        return figure

    return Figure("confusion", caption, draw)


def samples_figure(rows, caption):
    """Figure of original and generated positives in the first two columns, one panel per sampler."""

    def draw():
        (table,) = of_kind(rows, "table", seed=0)
        generated = of_kind(rows, "generated", seed=0)
        figure, axes = panels(len(generated), 3, height=3.5, sharex=True, sharey=True)
        low, high = np.quantile(table["positives"], [0.01, 0.99], axis=0)
        for i, (ax, row) in enumerate(zip(axes, generated, strict=True)):
            ax.scatter(*np.transpose(table["negatives"]), s=3, color="0.8", label="negatives")
            display = SamplesDisplay(table["positives"], row["rows"], table["names"])
            display.plot(ax, size=8, legend=i == 0)
            ax.set_title(row["arm"])
        margin = 0.6 * (high - low)
        axes[0].set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
        return figure

    return Figure("samples", caption, draw)
