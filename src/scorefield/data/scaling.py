"""Units of columns: means and scales that rows are standardised with."""

import numpy as np


def column_scale(mean, deviation, dtype):
    """The unit of each column: its deviation, or for a constant column its size, so that it keeps its unit."""
    tiny = 8 * np.finfo(dtype).eps * np.abs(mean)  # rounding of the values themselves
    return np.where(deviation > tiny, deviation, np.where(mean != 0, np.abs(mean), 1.0))
