"""The grid of a column's numbers: the step that all of them share, and the last digits that are frequent near a number.

Body masses are multiples of 25, more often of 50; ages are whole, with .5 where they were estimated and months below 1.
"""

import dataclasses
import math

import numpy as np

ROWS_PER_KNOT = 20  # a slope between two knots is then known to a fifth; fewer would follow single rows
SHARED = 5  # rows from which on a value is one that numbers repeat
STEP_EVIDENCE = 20.0  # nats: random whole numbers would have a common step once in exp(20) columns
BY_CHANCE = 0.001  # p-value below which last digits are taken to be uneven
MOST_DIGITS = 10**6  # multiples of the step that last digits are looked at among
EXACT = 2**53  # whole numbers up to here are exact in float64
FEWEST_ROWS = 50  # five for each last digit: the usual floor of a chi-squared cell
NARROW = 0.15  # of the standard deviation that a cell of the grid may have: the noise that numbers are learned with
MAX_VALUES = 1024  # values that a grid keeps, as its quantiles where there are more
NEAR_SHARE = 0.02  # share of the rows, at most ROWS_PER_KNOT on each side, that are near a number
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # of Fibonacci hashing: 2^64 divided by the golden ratio


@dataclasses.dataclass(frozen=True)
class Grid:
    """Numbers are multiples of `step` times 10^-decimals and, up to `period`, end like observed ones near them.

    `values` and `counts` are observed numbers in units of 10^-decimals, none where the step tells everything.
    """

    decimals: int
    step: int
    period: int
    values: np.ndarray
    counts: np.ndarray

    @classmethod
    def fit(cls, levels, counts, decimals):
        """The grid of distinct sorted numbers with these decimals, and how often each occurs."""
        with np.errstate(over="ignore"):
            ticks = np.rint(levels.astype(np.float64) * 10.0**decimals)
        if np.abs(ticks).max(initial=0) > EXACT:
            return cls(decimals, 1, 1, np.zeros(0, np.int64), np.zeros(0, np.int64))
        ticks = ticks.astype(np.int64)
        step = _step(ticks)
        period = _period(ticks, counts, step)
        if period <= step:
            return cls(decimals, step, step, ticks[:0], counts[:0])
        if len(ticks) > MAX_VALUES:
            places = (np.cumsum(counts) - 1).searchsorted(np.linspace(0, counts.sum() - 1, MAX_VALUES))
            ticks, counts = np.unique(ticks[places], return_counts=True)
        return cls(decimals, step, period, ticks, counts)

    @property
    def is_plain(self):
        """True if rounding to the decimals is all there is to do."""
        return self.step == 1 and not len(self.values)

    def snapped(self, numbers):
        """Numbers on the grid.

        An observed number stays. Another one becomes an observed number at most half a period from it, of those that
        few rows share if there are any: `NormalScores` already repeat what many share. Where there is none, it ends
        like an observed number near it. Its own digits choose among several.
        """
        ticks = numbers * 10.0**self.decimals
        if not len(self.values):
            return np.rint(ticks / self.step) * self.step / 10.0**self.decimals
        rounded = np.rint(ticks)
        found, _ = self._chosen(ticks, self.counts, np.inf)
        found += np.rint((ticks - found) / self.period) * self.period
        for counts in (self.counts, np.where(self.counts < SHARED, self.counts, 0)):
            near, any_near = self._chosen(ticks, counts, self.period / 2)
            found = np.where(any_near, near, found)
        found = np.where(np.isin(rounded, self.values), rounded, found)
        return np.clip(found, *self._ends(rounded)) / 10.0**self.decimals

    def _chosen(self, ticks, counts, distance):
        """For each number one of the observed numbers of the rows near it, and whether there are any."""
        ranks = np.concatenate([[0], np.cumsum(counts)])
        n = int(ranks[-1])
        reach = int(np.clip(NEAR_SHARE * self.counts.sum(), 1, ROWS_PER_KNOT))
        rank, low, high = (ranks[np.searchsorted(self.values, ticks + side)] for side in (0, -distance, distance))
        first, last = np.maximum(np.maximum(rank - reach, 0), low), np.minimum(np.minimum(rank + reach, n), high)
        row = np.minimum(first + (_chance(ticks) * (last - first)).astype(int), max(n - 1, 0))
        places = np.searchsorted(ranks[1:], row, side="right").clip(0, len(self.values) - 1)
        return self.values[places].astype(np.float64), first < last

    def _ends(self, rounded):
        """Observed numbers bound those within their range; others are free."""
        low, high = self.values[0], self.values[-1]
        return np.where(rounded < low, -np.inf, low), np.where(rounded > high, np.inf, high)

    def to_plain(self):
        """Plain values and arrays."""
        fields = {name: getattr(self, name) for name in ("decimals", "step", "period")}
        return {**fields, "values": self.values, "counts": self.counts}


def _step(ticks):
    """The greatest common divisor; 1 where few numbers could share it by chance."""
    step = int(np.gcd.reduce(np.abs(ticks)))
    return step if step > 1 and np.count_nonzero(ticks) * math.log(step) > STEP_EVIDENCE else 1


def _period(ticks, counts, step):
    """The least power of ten up to which last digits are uneven among the multiples of the step."""
    n = int(counts.sum())
    widest = NARROW * math.sqrt(12) * _deviation(ticks, counts)
    period, base = step, 1
    while n >= FEWEST_ROWS and 10 * base <= min(widest, MOST_DIGITS * step):
        base, unit = 10 * base, max(base, step)
        if base % step:  # the multiples of 25 have no last digit of their own, but a last pair of digits
            continue
        if not _uneven(ticks % base // unit, counts, np.bincount(np.arange(0, base, step) // unit)):
            break
        period = base
    return period


def _deviation(ticks, counts):
    """Standard deviation of the bulk, so that a heavy tail does not widen it."""
    above = np.cumsum(counts) / counts.sum()
    low, high = ticks[np.searchsorted(above, [0.25, 0.75])]
    return (high - low) / 1.349


def _uneven(digits, counts, possible):
    """True if digits differ in frequency from those of equally likely numbers by more than chance."""
    from scipy.stats import chisquare

    found = np.bincount(digits, weights=counts, minlength=len(possible))
    return len(possible) > 1 and bool(chisquare(found, possible * found.sum() / possible.sum()).pvalue < BY_CHANCE)


def _chance(numbers):
    """A number in [0, 1) from the bits of each number: the same rows become the same table without a key."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    return (bits * GOLDEN >> np.uint64(11)) / 2.0**53
