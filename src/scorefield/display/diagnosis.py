"""Display of a diagnosis: one line per check, coloured by its verdict."""

from scorefield.diagnose.diagnosis import BAD, GOOD, LOOK, NOT_MEASURED
from scorefield.display.displays import COLOURS
from scorefield.display.planes import plain_label

VERDICT_COLOURS = {GOOD: COLOURS[2], LOOK: COLOURS[4], BAD: COLOURS[1], NOT_MEASURED: "0.6"}
MARKERS = {GOOD: "o", LOOK: "^", BAD: "X", NOT_MEASURED: "."}  # verdicts are told without colours too
LINE_HEIGHT = 0.32  # inches


class DiagnosisDisplay:
    """The checks of a fitted model, from top to bottom, with their values and verdicts.

    Parameters
    ----------
    diagnosis : Diagnosis
        What ``diagnose`` of an estimator returns.

    Attributes
    ----------
    ax_ : matplotlib axes

    Examples
    --------
    >>> from scorefield import DiagnosisDisplay, ScoreDensity
    >>> from scorefield.paper import make_gaussians
    >>> X, _ = make_gaussians(random_state=0)
    >>> display = DiagnosisDisplay.from_estimator(ScoreDensity(model="gaussian", random_state=0).fit(X))
    >>> display.diagnosis.checks[0].name
    'score-matching gain'
    """

    def __init__(self, diagnosis):
        self.diagnosis = diagnosis

    @classmethod
    def from_estimator(cls, estimator, *held_out, random_state=None, ax=None):
        """Diagnose an estimator and draw the checks; ``held_out`` are the rows, and labels, that ``diagnose`` takes."""
        return cls(estimator.diagnose(*held_out, random_state=random_state)).plot(ax)

    def plot(self, ax=None):
        """Draw a mark for each check, with its value, what was expected and the verdict."""
        import matplotlib.pyplot as plt

        checks = self.diagnosis.checks
        if ax is None:
            _, ax = plt.subplots(figsize=(9, 1 + LINE_HEIGHT * len(checks)), layout="constrained")
        for line, check in enumerate(checks):
            _, value, expected, verdict = map(plain_label, check.cells())
            ax.plot(0, line, MARKERS[check.verdict], color=VERDICT_COLOURS[check.verdict], markersize=9)
            told = f"{value} ({expected}): {verdict}" if value else verdict
            ax.text(0.3, line, told, va="center", fontsize=9, color="black" if value else "0.4")
        ax.set_yticks(range(len(checks)), [plain_label(check.name) for check in checks])
        ax.set(xlim=(-0.3, 10), ylim=(len(checks) - 0.5, -0.5), xticks=[])
        ax.set_title(plain_label(f"Judged on {self.diagnosis.rows.partition(',')[0]}: {self.diagnosis.verdict}"))
        ax.spines[["top", "right", "bottom"]].set_visible(False)
        self.ax_ = ax
        return self
