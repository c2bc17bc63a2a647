"""The result of `advise`, as text, plot and page."""

import dataclasses

import numpy as np

from scorefield.data.files import write_whole
from scorefield.display.displays import COLOURS
from scorefield.display.html import page, picture, table, tag
from scorefield.evaluation.metrics import LOWER_IS_BETTER, NAMES
from scorefield.evaluation.verdicts import METRICS, words

N_FOLDS = 5
MEASURES = ("f1", "recall", "precision", "average_precision", "brier")


def _gain(row):
    return words(row["gain"], row["low"], row["high"])


@dataclasses.dataclass(frozen=True)
class Advice:
    """Result of `advise`: a verdict in words, the mean measures of each remedy, the remedy to use and code for it."""

    verdict: str
    table: list
    winner: str | None
    code: str
    metric: str
    n_repetitions: int
    n_rows: int

    @property
    def n_splits(self):
        """Train-test splits behind the table."""
        return N_FOLDS * self.n_repetitions

    def _basis(self):
        times = "repetition" if self.n_repetitions == 1 else "repetitions"
        return f"{self.n_repetitions} {times} of {N_FOLDS} train-test splits of {self.n_rows} rows"

    def __str__(self):
        labels = {name: NAMES[name] for name in MEASURES} | {"average_precision": "AP"}
        widths = {name: max(len(label) + 2, 7) for name, label in labels.items()}
        head = "".join(f"{label:>{widths[name]}}" for name, label in labels.items())
        lines = [f"{'':<29}{head}{'gain over nothing':>25}"]
        for row in self.table:
            cells = "".join(f"{row[name]:>{width}.3f}" for name, width in widths.items())
            mark = "> " if row["remedy"] == self.winner else "  "
            lines.append(f"{mark + row['remedy']:<29}{cells}{_gain(row):>25}")
        return "\n".join([self.verdict, *lines, f"(>: advised. {self._gain_note()} {self._basis()})"])

    def _gain_note(self):
        metric = METRICS[self.metric]
        direction = "lower" if metric.is_loss else "higher"
        return f"gain: by how much {metric.label} ({metric.words}) is {direction} than after doing nothing."

    def plot(self, axes=None):
        """Draw F1, average precision and Brier score of every remedy, and return the figure."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(1, 3, figsize=(11, 0.6 + 0.45 * len(self.table)), sharey=True, layout="constrained")
        names = [row["remedy"] for row in self.table]
        for ax, measure in zip(axes, ("f1", "average_precision", "brier"), strict=True):
            for place, row in enumerate(self.table):
                colour = COLOURS[row["remedy"] == self.winner]
                ax.plot(row["values"][measure], np.full(self.n_splits, place), "|", color=colour, alpha=0.5)
                ax.plot(row[measure], place, "o", color=colour)
            title = NAMES[measure] + " (less is better)" * (measure in LOWER_IS_BETTER)
            ax.set(title=title, yticks=range(len(names)), yticklabels=names)
        axes[0].invert_yaxis()
        return axes[0].figure

    def write_page(self, path, *, replace=True):
        """Write a self-contained HTML page with the verdict, the table, the plot and the code."""
        names = [row["remedy"] + " (advised)" * (row["remedy"] == self.winner) for row in self.table]
        cells = [
            [name, *(f"{row[m]:.3f}" for m in MEASURES), _gain(row)]
            for name, row in zip(names, self.table, strict=True)
        ]
        body = [
            tag("h1", "Is over-sampling worth it here?"),
            tag("p", tag("b", self.verdict)),
            table("F1, recall and precision of all test parts together, means over them of the others, and the gain "
                  f"over doing nothing with its interval. {self._gain_note().capitalize()}",
                  ["remedy", *(NAMES[m] for m in MEASURES), "gain over nothing"], cells),
            picture(self.plot(), "Ticks: test parts. Dots: the table's numbers. The advised remedy is orange."),
            tag("p", f"{self._basis()}. " + (f"Code for {self.winner}:" if self.winner else "No remedy is advised.")),
            tag("pre", self.code),
        ]  # fmt: skip
        write_whole(path, page("Is over-sampling worth it here?", body), replace=replace)
