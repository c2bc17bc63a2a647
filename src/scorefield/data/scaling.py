"""Units of columns: the means and scales that rows are standardised with."""

import numpy as np

from scorefield.fields.gaussian import shrunk_covariance

LEAST_VARIANCE = 1e-6  # of a direction, where columns have unit variance: the rounding of single precision


def column_units(X):
    """Mean and scale of each column, in double precision."""
    mean = X.mean(axis=0, dtype=np.float64)
    # Divided before it is squared: columns of 1e30 or 1e-30 neither overflow nor vanish.
    widest = np.abs(X - mean).max(axis=0)
    unit = np.where(widest > 0, widest, 1.0)
    deviation = unit * np.sqrt(np.mean(((X - mean) / unit) ** 2, axis=0))
    return mean, column_scale(mean, deviation, X.dtype)


def decorrelation(z):
    """The symmetric matrix that gives standardised rows unit covariance, and its inverse.

    It is the identity for uncorrelated columns, and changes others as little as possible (Kessy, Lewin & Strimmer
    2018). Correlations of few rows are shrunk; directions narrower than LEAST_VARIANCE keep that width.
    """
    correlation = np.eye(z.shape[1])
    varying = np.flatnonzero(np.ptp(z, axis=0) > 0)
    if len(varying) > 1:
        correlation[np.ix_(varying, varying)] = shrunk_covariance(z[:, varying])
    values, vectors = np.linalg.eigh(correlation)
    values = np.sqrt(np.maximum(values, LEAST_VARIANCE))
    return (vectors / values) @ vectors.T, (vectors * values) @ vectors.T


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
