"""Display of real and generated tables: the columns that differ most, and the correlations of both."""

import numpy as np

from scorefield.display.displays import COLOURS
from scorefield.display.planes import plain_label
from scorefield.evaluation.quality import column_distance, compared_columns, correlations

REAL, GENERATED = "black", COLOURS[1]
MAX_LEVELS = 12  # bars of a category; the others are left out
N_BINS = 40


class CredibilityDisplay:
    """Distributions and correlations of a real and a generated table.

    Parameters
    ----------
    columns : list of ComparedColumn
        The columns that differ most, in that order.
    distances : list of float
        Of the distributions of these columns.
    correlations : pair of ndarray
        Correlations of pairs of numbers in the real and in the generated table.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import CredibilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> display = CredibilityDisplay.from_tables(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)))
    >>> len(display.columns)
    2
    """

    def __init__(self, columns, distances, correlations):
        self.columns = columns
        self.distances = distances
        self.correlations = correlations

    @classmethod
    def from_tables(cls, real, synthetic, columns=None, n_columns=5, **plot):
        """Compare two tables of the same columns, and draw them.

        ``columns`` maps names to kinds, as in :func:`compare_tables`; ``n_columns`` is the most columns to draw.
        """
        found, _ = compared_columns(real, synthetic, columns)
        distances = [column_distance(column)["distance"] for column in found]
        order = np.argsort(distances, kind="stable")[::-1][:n_columns]
        numbers = [column for column in found if not column.is_category]
        pairs = np.triu_indices(len(numbers), 1)
        both = [
            correlations(np.column_stack([getattr(column, part) for column in numbers]))[pairs]
            if numbers
            else np.zeros(0)
            for part in ("real", "generated")
        ]
        return cls([found[i] for i in order], [distances[i] for i in order], tuple(both)).plot(**plot)

    def plot(self, figsize=None):
        """Draw one picture per column, and one of the correlations where there are two numbers or more."""
        import matplotlib.pyplot as plt

        n_shown = len(self.columns) + (len(self.correlations[0]) > 0)
        n_across = min(3, n_shown)
        n_down = -(-n_shown // n_across)
        size = (3.7 * n_across, 3 * n_down) if figsize is None else figsize
        self.figure_, axes = plt.subplots(n_down, n_across, figsize=size, layout="constrained", squeeze=False)
        self.axes_ = axes.ravel()
        for ax, column, distance in zip(self.axes_, self.columns, self.distances, strict=False):
            (_draw_levels if column.is_category else _draw_numbers)(ax, column)
            ax.set(title=plain_label(f"{column.name}: distance {distance:.2f}"), yticks=[])
        if len(self.correlations[0]):
            self._draw_correlations(self.axes_[len(self.columns)])
        for ax in self.axes_[n_shown:]:
            ax.set_visible(False)
        self.axes_[0].legend(["real", "generated"], fontsize=8)
        return self

    def _draw_correlations(self, ax):
        real, generated = self.correlations
        ax.plot([-1, 1], [-1, 1], color="0.7", linewidth=0.8)
        ax.scatter(real, generated, s=12, color=GENERATED)
        ax.set(title="correlations", xlabel="real", ylabel="generated", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))


def _draw_numbers(ax, column):
    parts = [part[~np.isnan(part)] for part in (column.real, column.generated)]
    edges = np.histogram_bin_edges(np.concatenate(parts), N_BINS)
    for part, colour in zip(parts, (REAL, GENERATED), strict=True):
        ax.hist(part, bins=edges, density=len(part) > 0, histtype="step", color=colour)


def _draw_levels(ax, column):
    levels = [plain_label(level) for level in column.levels[:MAX_LEVELS]]
    places = np.arange(len(levels))
    for part, colour, shift in ((column.real, REAL, -0.2), (column.generated, GENERATED, 0.2)):
        known = part[~np.isnan(part)].astype(int)
        shares = np.bincount(known, minlength=len(column.levels)) / max(len(known), 1)
        ax.bar(places + shift, shares[: len(levels)], 0.4, color=colour)
    ax.set_xticks(places, levels, rotation=45, ha="right", fontsize=8)
