"""Display of what columns contribute to the log odds of a row."""

import numpy as np

from scorefield.display.displays import COLOURS, new_axes
from scorefield.display.planes import plain_label
from scorefield.explanations.explanation import explain


class ExplanationDisplay:
    """Contributions of columns to the log odds of one row, as bars.

    Parameters
    ----------
    columns : list
        Names, the strongest first; the last one may stand for all others.
    contributions : ndarray
        In nats.
    values : list of str
        Cells of the row; empty for the columns that are drawn together.
    label : label
        The class that is explained.
    log_odds, baseline : float
        Of the row, and on average.

    Attributes
    ----------
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ExplanationDisplay
    >>> display = ExplanationDisplay(["age", "pay"], np.array([1.5, -0.5]), ["54", "0"], "yes", 0.7, -0.3)
    """

    def __init__(self, columns, contributions, values, label, log_odds, baseline):
        self.columns = columns
        self.contributions = contributions
        self.values = values
        self.label = label
        self.log_odds = log_odds
        self.baseline = baseline

    @classmethod
    def from_estimator(cls, model, X, row=0, label=None, n_columns=10, baseline=None, ax=None, **plot):
        """Explain one row of a table with :func:`explain`, and draw the strongest columns."""
        one = X.iloc[[row]] if hasattr(X, "iloc") else X[row : row + 1]
        return cls.from_explanation(explain(model, one, label, baseline), one, 0, n_columns, ax=ax, **plot)

    @classmethod
    def from_explanation(cls, explanation, X, row=0, n_columns=10, ax=None, **plot):
        """Draw one row of an :class:`Explanation` of the table X."""
        shown, others = explanation.strongest(row, n_columns), explanation.others(row, n_columns)
        cells = _cells(X, row, explanation.columns)
        cells = [*(cells[name] for name, _ in shown), *[""] * (others is not None)]
        shown = [*shown, *filter(None, [others])]
        display = cls(
            [name for name, _ in shown], np.array([value for _, value in shown]), cells,
            explanation.labels.tolist()[row], float(explanation.log_odds[row]),
            float(explanation.baseline_log_odds[row]),
        )  # fmt: skip
        return display.plot(ax, **plot)

    def plot(self, ax=None, **options):
        """Draw the bars, the strongest above; options go to matplotlib's ``barh``."""
        title = f"log odds of {plain_label(self.label)}: {self.log_odds:+.2f}, {self.baseline:+.2f} on average"
        self.ax_ = new_axes(ax, ["contribution in nats"], title)
        colours = np.where(self.contributions > 0, COLOURS[1], COLOURS[0]).tolist()
        names = [
            f"{plain_label(name)} = {value}".removesuffix(" = ")
            for name, value in zip(self.columns, self.values, strict=True)
        ]
        places = np.arange(len(names))[::-1]
        self.ax_.barh(places, self.contributions, **{"color": colours, **options})
        self.ax_.set_yticks(places, names)
        self.ax_.axvline(0, color="0.5", linewidth=0.8)
        return self


def _cells(X, row, columns):
    """The cells of a row as short texts, by the name of the column."""
    if hasattr(X, "iloc"):
        values = X.iloc[row].to_dict()
    elif hasattr(X, "row"):
        values = X.row(row, named=True)
    elif hasattr(X, "column_names"):
        values = X.slice(row, 1).to_pylist()[0]
    else:
        values = dict(enumerate(np.asarray(X)[row].tolist()))
    values = dict(zip(columns, values.values(), strict=True)) if set(values) != set(columns) else values
    return {name: f"{value:.4g}" if isinstance(value, float) else plain_label(value) for name, value in values.items()}
