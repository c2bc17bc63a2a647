"""Display of a drift: one bar per column, coloured where it changed, and the class shares before and after."""

from scorefield.display.displays import COLOURS
from scorefield.display.planes import plain_label
from scorefield.evaluation.drift import drift

MOST_SHOWN = 25  # columns
BAR_HEIGHT = 0.3  # inches


class DriftDisplay:
    """Columns from the most changed one on, with their statistics; class shares above them.

    Parameters
    ----------
    drift : Drift
        What :func:`drift` returns.

    Attributes
    ----------
    ax_ : matplotlib axes

    Examples
    --------
    >>> from scorefield import DriftDisplay, ScoreDensity
    >>> from scorefield.paper import make_gaussians
    >>> tables = [make_gaussians(random_state=seed)[0] for seed in range(3)]
    >>> model = ScoreDensity(model="gaussian", random_state=0).fit(tables[0])
    >>> DriftDisplay.from_estimator(model, tables[1], tables[2]).drift.changed
    []
    """

    def __init__(self, drift):
        self.drift = drift

    @classmethod
    def from_estimator(cls, estimator, new_rows, reference, *, level=0.05, random_state=0, ax=None):
        """Compare new rows with reference rows by a fitted model, and draw what changed."""
        return cls(drift(estimator, new_rows, reference, level=level, random_state=random_state)).plot(ax)

    def plot(self, ax=None):
        """Draw a bar for each column; those that changed are filled, and tell how."""
        import matplotlib.pyplot as plt

        shown = self.drift.columns[:MOST_SHOWN]
        if ax is None:
            _, ax = plt.subplots(figsize=(8, 1.5 + BAR_HEIGHT * len(shown)), layout="constrained")
        for place, column in enumerate(shown):
            colour = COLOURS[1] if column["changed"] else "0.8"
            ax.barh(place, column["statistic"], color=colour)
            if column["changed"]:
                partner = "" if column["with"] is None else f" to {column['with']}"
                told = f" {column['kind']}{partner}, p = {column['p_value']:.3g}"
                ax.text(column["statistic"], place, plain_label(told), va="center", fontsize=9)
        ax.set_yticks(range(len(shown)), [plain_label(column["column"]) for column in shown])
        ax.invert_yaxis()
        ax.set(xlabel="largest difference of means in standard errors", xlim=(0, None))
        ax.margins(x=0.35)
        ax.set_title(plain_label(self._title()), fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_ = ax
        return self

    def _title(self):
        changed = f"{len(self.drift.changed)} of {len(self.drift.columns)} columns changed"
        if self.drift.label_p_value is None or self.drift.label_p_value >= self.drift.level:
            return changed
        shares = ", ".join(f"{e['label']} {e['reference']:.0%} to {e['new']:.0%}" for e in self.drift.labels[:4])
        return f"{changed}; class shares: {shares}"
