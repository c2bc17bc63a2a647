"""Units of columns: means, scales and normal scores that rows are standardised with."""

import numpy as np
from scipy.special import ndtri

from scorefield.data.grids import ROWS_PER_KNOT, SHARED
from scorefield.fields.gaussian import shrunk_covariance
from scorefield.fields.moments import weighted_mean

FEWEST_KNOTS, MAX_KNOTS = 4, 257
LEAST_VARIANCE = 1e-6  # of a direction, where columns have unit variance: the rounding of single precision


def column_units(X, weights=None):
    """Mean and scale of each column, in double precision."""
    mean = weighted_mean(X, weights)
    # Divided before it is squared: columns of 1e30 or 1e-30 neither overflow nor vanish.
    widest = np.abs(X - mean).max(axis=0)
    unit = np.where(widest > 0, widest, 1.0)
    deviation = unit * np.sqrt(weighted_mean(((X - mean) / unit) ** 2, weights))
    return mean, column_scale(mean, deviation, X.dtype)


def covariance_of_columns(z, weights=None):
    """Covariance of standardised rows, of few rows with their correlations shrunk; zero in constant columns."""
    covariance = np.zeros((z.shape[1], z.shape[1]))
    varying = np.flatnonzero(np.ptp(z, axis=0) > LEAST_VARIANCE)  # mixed and unmixed again, constants have rounding
    if len(varying):
        covariance[np.ix_(varying, varying)] = shrunk_covariance(z[:, varying], weights=weights)
    return covariance


def decorrelation(z, weights=None):
    """The symmetric matrix that gives standardised rows unit covariance, and its inverse.

    It is the identity for uncorrelated columns, and changes others as little as possible (Kessy, Lewin & Strimmer
    2018). Correlations of few rows are shrunk; directions narrower than LEAST_VARIANCE keep that width.
    """
    covariance = covariance_of_columns(z, weights)
    values, vectors = np.linalg.eigh(covariance + np.diag(np.diag(covariance) == 0))
    values = np.sqrt(np.maximum(values, LEAST_VARIANCE))
    return (vectors / values) @ vectors.T, (vectors * values) @ vectors.T


def raw_rows(z, mean, scale):
    """Rows in the units of the table from standardised ones in single precision, whose rounding is removed."""
    # Six digits of the scale: single precision holds seven, and a column of whole numbers or cents gets them back.
    digits = 5 - np.floor(np.log10(scale)).astype(int)
    rows = z.astype(np.float64) * scale + mean
    return np.column_stack([np.round(column, n) for column, n in zip(rows.T, digits.tolist(), strict=True)])


def column_scale(mean, deviation, dtype):
    """The deviation of each column; a constant column is scaled by its size instead."""
    tiny = 8 * np.finfo(dtype).eps * np.abs(mean)  # rounding of the values themselves
    return np.where(deviation > tiny, deviation, np.where(mean != 0, np.abs(mean), 1.0))


def safe_deviation(rows):
    """Standard deviation of each column, 1 for constant columns; safe to divide by, also for very large values."""
    rows = np.asarray(rows, dtype=float)
    # Powers of two scale without rounding, so that squares do not overflow and other values keep their bits.
    unit = np.ldexp(1.0, np.frexp(np.abs(rows).max(axis=0))[1] - 1)
    deviation = unit * (rows / unit).std(axis=0)
    return np.where(deviation > 0, deviation, 1.0)


class NormalScores:
    """Columns as standard normal numbers by their ranks, piecewise linear between knots; gaps stay NaN.

    Skewed columns and outliers get the noise and the steps that suit them. On the way back a value that several rows
    share takes the whole range of its ranks, so that generated numbers repeat it as often. Beyond the last knots the
    map goes on in a straight line.
    """

    def __init__(self, knots):
        self.knots = knots  # per column an array (4, k): values, scores, and the range of scores of each value

    @classmethod
    def fit(cls, numbers):
        """Knots of an array (n, d); NaN are left out."""
        return cls([_rank_knots(column[~np.isnan(column)]) for column in np.asarray(numbers, float).T])

    def transform(self, numbers):
        """Normal scores of numbers."""
        return self._map(numbers, [(knots[0], knots[1]) for knots in self.knots])

    def inverse_transform(self, scores):
        """Numbers of normal scores."""
        return self._map(scores, [(knots[2:].T.ravel(), np.repeat(knots[0], 2)) for knots in self.knots])

    def log_slopes(self, numbers):
        """Log derivatives of the scores in the numbers, (n, d); 0 at gaps."""
        slopes = np.zeros(numbers.shape)
        for j, column in enumerate(np.asarray(numbers, float).T):
            values, scores = self.knots[j][:2]
            rates = np.log(np.diff(scores) / np.diff(values))
            places = np.searchsorted(values, column, side="right") - 1
            slopes[:, j] = np.where(np.isnan(column), 0.0, rates[places.clip(0, len(rates) - 1)])
        return slopes

    def with_long_tails(self):
        """The same map, but ends of a column that lie far from its bulk are further out than by their ranks.

        A rank makes any extreme value an ordinary maximum. See `_long_tails`.
        """
        return NormalScores([_long_tails(knots) for knots in self.knots])

    def _map(self, numbers, ways):
        result = np.empty(np.shape(numbers))
        for j, (column, (x, y)) in enumerate(zip(np.asarray(numbers, float).T, ways, strict=True)):
            values, scores = self.knots[j][:2]
            ends = (scores, values) if y[0] == values[0] else (values, scores)
            first, last = ((ends[1][k] - ends[1][k - 1]) / (ends[0][k] - ends[0][k - 1]) for k in (1, -1))
            beyond = np.where(column < x[0], y[0] + (column - x[0]) * first, y[-1] + (column - x[-1]) * last)
            result[:, j] = np.where((column < x[0]) | (column > x[-1]), beyond, np.interp(column, x, y))
        return result


def _rank_knots(known):
    """Values, scores, and first and last score of those values that many rows share or that are quantiles."""
    values, counts = np.unique(known, return_counts=True)
    if len(values) < 2:  # any scale will do
        centre = values[0] if len(values) else 0.0
        scores = np.array([-1.0, 1.0])
        return np.stack([centre + max(abs(centre), 1.0) * scores, scores, scores, scores])
    above = np.cumsum(counts) / counts.sum()
    below = above - counts / counts.sum()
    scores = ndtri((below + above) / 2)
    shared = counts >= SHARED
    low, high = ndtri(below), ndtri(above)
    low[0], high[-1] = scores[0], scores[-1]
    n_knots = int(np.clip(counts.sum() // ROWS_PER_KNOT, FEWEST_KNOTS, MAX_KNOTS))
    spread = np.searchsorted(above, np.linspace(0, 1, n_knots)).clip(0, len(values) - 1)
    kept = np.unique(np.concatenate([[0, len(values) - 1], spread, np.flatnonzero(shared)]))
    low, high = np.where(shared, low, scores), np.where(shared, high, scores)
    return np.stack([values, scores, low, high])[:, kept]


def _long_tails(knots):
    """Knots whose first and last score grow with the distance of the value from the bulk.

    Where a straight line from the bulk ends beyond the rank's score by some excess, the score moves out by log(1 +
    excess): a value fifty deviations away stands out, while the largest one of a heavy-tailed column does not outweigh
    the other columns. An end that many rows share is part of the bulk. The slope is that of the segment before the end
    or, if it is less, that from the middle: two values close together must not send the rest of the column far away.
    """
    values, scores, low, high = knots.copy()
    k, middle = len(values), int(np.abs(scores).argmin())
    for end, inner, next_inner, sign in ((0, 1, 2, -1), (k - 1, k - 2, k - 3, 1)):
        if k < 4 or low[end] < high[end]:
            continue
        starts = [j for j in (next_inner, middle) if (inner - j) * sign > 0]
        slope = min((scores[inner] - scores[j]) / (values[inner] - values[j]) for j in starts)
        excess = scores[inner] + slope * (values[end] - values[inner]) - scores[end]
        scores[end] += sign * np.log1p(max(sign * excess, 0.0))
    return np.stack([values, scores, low, high])


def reflected(values, low, high):
    """Values reflected at the bounds, and clipped where they are beyond both after that."""
    values = np.where(values < low, 2 * low - values, values)
    values = np.where(values > high, 2 * high - values, values)
    return np.clip(values, low, np.maximum(low, high))


def column_spread(numbers):
    """Standard deviation of each column, computed in units of its largest value to avoid overflow."""
    unit = np.abs(numbers).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    return unit * (numbers / unit).std(axis=0)
