"""Means with intervals over seeds, paired differences, gains in a measure of rows, and verdicts on claims."""

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student

HOLDS, WITHIN_NOISE, FAILS = "holds", "holds within noise", "does not hold"


class Estimate(NamedTuple):
    """Mean over seeds with a 95 % interval, which is nan for a single seed."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self):
        return self.text()

    def text(self, sign=""):
        """Mean and interval with digits to suit their size; `sign="+"` shows the sign of each number."""
        if self.n < 2:
            return f"{self.mean:{sign}.3g} (one seed)"
        largest = max(abs(value) for value in (self.mean, self.low, self.high))
        places = 1 if largest >= 10 else 3 if largest >= 0.01 else 5
        mean, low, high = (f"{value:{sign}.{places}f}" for value in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"


def estimate(values):
    """Mean and Student's 95 % interval of values over seeds."""
    values = np.asarray([v for v in values if v is not None], dtype=float)
    n = len(values)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean = float(values.mean())
    if n < 2:
        return Estimate(mean, math.nan, math.nan, n)
    half = float(student.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n))
    return Estimate(mean, mean - half, mean + half, n)


def by_seed(rows, metric, **match):
    """Map from seed to the value of a metric in the rows that match."""
    return {r["seed"]: r[metric] for r in rows if metric in r and all(r.get(k) == v for k, v in match.items())}


def seed_means(rows, metric, **match):
    """Estimate of a metric from the mean of each seed: rows of one seed are not independent."""
    seeds: dict[int, list[float]] = {}
    for row in rows:
        if row.get(metric) is not None and all(row.get(k) == v for k, v in match.items()):
            seeds.setdefault(row["seed"], []).append(row[metric])
    return estimate([np.mean(values) for values in seeds.values()])


def paired(rows, metric, first, second):
    """Difference of a metric between two selections of rows (dicts to match), over their common seeds."""
    a, b = by_seed(rows, metric, **first), by_seed(rows, metric, **second)
    return estimate([a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())])


class Measured(NamedTuple):
    """A measure of held-out rows, and its derivative by the weight of each row."""

    value: float
    by_row: np.ndarray


def measured_f1(y, called):
    """F1 of the share of times, in [0, 1], that each row is called positive: of the counts summed over the times."""
    size = max(float(np.sum(y + called)), 1e-12)
    value = float(2 * np.sum(y * called) / size)
    return Measured(value, (2 * y * called - value * (y + called)) / size)


def measured_average_precision(y, values):
    """Average precision of values that rank the rows, equal values together."""
    _, places = np.unique(-values, return_inverse=True)  # 0 is the highest value
    ones = np.bincount(places, y)
    found, called = np.cumsum(ones), np.cumsum(np.bincount(places))
    n_ones = max(float(y.sum()), 1e-12)
    precision = found / called
    value = float(np.sum(ones * precision) / n_ones)

    def of_lower(terms):
        """Sums of the terms at the value of each row and at lower ones: those that its weight changes."""
        return np.cumsum(terms[::-1])[::-1][places]

    own = y * (precision[places] - value + of_lower(ones / called))
    return Measured(value, (own - of_lower(ones * found / called**2)) / n_ones)


def measured_mean(losses):
    """Mean loss."""
    return Measured(float(losses.mean()), (losses - losses.mean()) / len(losses))


def mean_measured(several):
    """The mean of several measures of the same rows."""
    values, by_row = zip(*several, strict=True)
    return Measured(float(np.mean(values)), np.mean(by_row, axis=0))


def gain_between(first, second, y, groups, *, confidence=0.95):
    """Difference of a measure between two rules for the same held-out rows, with an interval.

    The error is that of the mean influence of a row on the difference, so that rows which both treat alike add nothing
    to it. It is consistent for cross-validated measures of stable learners (Bayle, Bayle, Janson & Mackey 2020). Equal
    rows (`groups`) count as one. Student's quantile has as many degrees of freedom as distinct positive rows.
    """
    error = math.sqrt(np.sum(np.bincount(groups, first.by_row - second.by_row) ** 2))
    positives = len(np.unique(groups[y == 1]))
    reach = float(student.ppf(0.5 + confidence / 2, max(positives - 1, 1))) * error
    mean = first.value - second.value
    return Estimate(mean, mean - reach, mean + reach, len(y))


def verdict_positive(difference):
    """Verdict on the claim that a difference is positive."""
    if difference.n == 0 or not difference.mean > 0:
        return FAILS
    return HOLDS if difference.low > 0 else WITHIN_NOISE


def verdict_between(value, low, high):
    """Verdict on the claim that a mean lies in a range; within noise if its interval reaches beyond."""
    if value.n == 0 or not low <= value.mean <= high:
        return FAILS
    return HOLDS if low <= value.low and value.high <= high else WITHIN_NOISE  # false for the nan of a single seed


def auc_interval(values, labels):
    """AUC with ties counted half, and DeLong's 95 % interval, for values of a rule that did not see these rows."""
    ones, zeros = values[labels == 1], values[labels == 0]
    ranks = rankdata(np.concatenate([ones, zeros]))
    above = (ranks[: len(ones)] - rankdata(ones)) / len(zeros)  # share of zeros below each of the ones
    below = (ranks[len(ones) :] - rankdata(zeros)) / len(ones)
    auc = float(above.mean())
    error = np.sqrt(above.var(ddof=1) / len(ones) + below.var(ddof=1) / len(zeros))
    reach = student.ppf(0.975, min(len(ones), len(zeros)) - 1) * error
    return auc, (float(max(0, auc - reach)), float(min(1, auc + reach)))
