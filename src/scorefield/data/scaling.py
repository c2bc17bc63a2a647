"""Units of columns: means and scales that rows are standardised with."""

import numpy as np


def column_scale(mean, deviation, dtype):
    """The unit of each column: its deviation, or for a constant column its size, so that it keeps its unit."""
    tiny = 8 * np.finfo(dtype).eps * np.abs(mean)  # rounding of the values themselves
    return np.where(deviation > tiny, deviation, np.where(mean != 0, np.abs(mean), 1.0))


def safe_deviation(rows):
    """Standard deviation of each column, 1 for constant columns; safe to divide by, also for very large values."""
    rows = np.asarray(rows, dtype=float)
    # Powers of two scale without rounding, so that squares do not overflow and other values keep their bits.
    unit = np.ldexp(1.0, np.frexp(np.abs(rows).max(axis=0))[1] - 1)
    deviation = unit * (rows / unit).std(axis=0)
    return np.where(deviation > 0, deviation, 1.0)
