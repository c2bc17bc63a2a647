"""The verdict of `advise`: which remedy to use by one metric, in one sentence, with intervals."""

import dataclasses
from collections.abc import Callable

import numpy as np

from scorefield.evaluation.ranks import EQUIVALENT
from scorefield.evaluation.recipes import OVER_SAMPLERS
from scorefield.evaluation.remedies import NOTHING
from scorefield.evaluation.statistics import (
    Estimate,
    Measured,
    gain_between,
    mean_measured,
    measured_average_precision,
    measured_f1,
    measured_mean,
)

UNDECIDED = 0.05  # a smaller gain counts as none; advice is undecided while a larger one cannot be ruled out
ERROR = 0.05  # chance of wrong advice, one half for over-samplers and one half for the other remedies


def _f1(y, called, probability):
    return measured_f1(y, called.mean(axis=0))


def _average_precision(y, called, probability):
    return mean_measured([measured_average_precision(y, own) for own in probability])


def _brier(y, called, probability):
    return measured_mean(((probability - y) ** 2).mean(axis=0))


def _log_loss(y, called, probability):
    likely = np.where(y == 1, probability, 1 - probability)
    return measured_mean(-np.log(np.clip(likely, 1e-7, 1)).mean(axis=0))


@dataclasses.dataclass(frozen=True)
class Metric:
    """What remedies are compared by.

    `measure(y, called, probability)` takes arrays of shape (repetitions, rows): decisions and probabilities.
    """

    label: str
    words: str
    measure: Callable[[np.ndarray, np.ndarray, np.ndarray], Measured]
    is_loss: bool = False

    def gain(self, first, second, y, groups, confidence=0.95) -> Estimate:
        """Difference between two measures; positive is better."""
        first, second = (second, first) if self.is_loss else (first, second)
        return gain_between(first, second, y, groups, confidence=confidence)

    def best(self, measured, names):
        """The best of some remedies."""
        return (min if self.is_loss else max)(names, key=lambda name: measured[name].value)

    def size(self, share, nothing):
        """A difference that matters: a share of the whole range, or of the loss of doing nothing."""
        return share * (2 * nothing if self.is_loss else 1.0)

    def without_skill(self, y):
        """The measure of calling every row rare, with the share of rare rows as its probability."""
        return self.measure(y, np.ones((1, len(y))), np.full((1, len(y)), y.mean()))


METRICS = {
    "f1": Metric(
        "F1",
        "the rare rows that are found and the alarms that are right, in one number",
        _f1,
    ),
    "average_precision": Metric(
        "average precision", "how well rare rows come first, at all thresholds", _average_precision
    ),
    "brier": Metric("Brier score", "the mean squared error of probabilities", _brier, is_loss=True),
    "log_loss": Metric("log loss", "of probabilities; sure and wrong costs most", _log_loss, is_loss=True),
}


def words(mean, low, high, *_):
    """A gain and its interval."""
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def gain_over_nothing(metric, y, measured, groups, name):
    return metric.gain(measured[name], measured[NOTHING], y, groups, _confidence(name, measured))


def _confidence(name, names):
    """Bonferroni's correction: one half of the error is for the over-samplers, the other for the other remedies."""
    n_over = sum(other in OVER_SAMPLERS for other in names)
    return 1 - ERROR / 2 / max(n_over if name in OVER_SAMPLERS else len(names) - n_over - 1, 1)


def decide(metric, y, measured, groups):
    """The remedy to use, or None, and a sentence about it, from the measure of each remedy.

    An over-sampler is advised if its gain over the best other remedy has an interval above zero, and that remedy if its
    gain over doing nothing has one. The best are chosen on the same rows, so the intervals are widened. Every gain in
    the sentence is over doing nothing, as in the table: gains over different baselines cannot be compared by eye.
    """
    simple = metric.best(measured, [name for name in measured if name not in OVER_SAMPLERS])
    over = metric.best(measured, [name for name in measured if name in OVER_SAMPLERS])
    best, nothing = metric.best(measured, list(measured)), measured[NOTHING].value
    usable = NOTHING if metric.is_loss or nothing > 0 else None
    matters, undecided = metric.size(EQUIVALENT, nothing), metric.size(UNDECIDED, nothing)
    baseline = f"Gains are in {metric.label} over doing nothing ({nothing:.3f})."

    blind = metric.without_skill(y)
    skill = metric.gain(measured[best], blind, y, groups, _confidence(best, measured))
    if not skill.low > 0:
        advised = "do nothing" if usable else "none is advised, and doing nothing finds no rare row"
        return usable, (
            f"Undecided: {advised}. No remedy is reliably better than treating all rows alike, with {metric.label} "
            f"{blind.value:.3f}; the best, {best}, has {measured[best].value:.3f}."
        )
    gap = metric.gain(measured[over], measured[simple], y, groups, _confidence(over, measured))
    gains = {name: gain_over_nothing(metric, y, measured, groups, name) for name in measured if name != NOTHING}
    if gap.low > 0 and gap.mean > matters:
        more = f", clearly more than {simple}, the best other remedy" if simple != NOTHING else ""
        return over, f"Over-sample with {over}: it gains {words(*gains[over])}{more}. {baseline}"
    best_over = f"{over}, the best over-sampler, gains {words(*gains[over])}"
    if simple != NOTHING and gains[simple].low > 0 and gains[simple].mean > matters:
        return simple, (
            f"Do not over-sample, use {simple}: it gains {words(*gains[simple])}. {best_over}, which is not clearly "
            f"more. {baseline}"
        )
    hopeful = max(gains, key=lambda name: gains[name].high)
    if usable and gains[hopeful].high <= undecided:
        return NOTHING, f"No difference: do nothing. No remedy gains more than {undecided:.3g}; {best_over}. {baseline}"
    advised = "do nothing for now" if usable else f"use {best} for now, as doing nothing finds no rare row"
    other = "" if hopeful == over else f"; {best_over}"
    return usable or best, (
        f"Undecided: {advised}. No remedy is reliably better than doing nothing, but {hopeful} may be: it gains "
        f"{words(*gains[hopeful])}{other}. More rows or minutes would tell. {baseline}"
    )
