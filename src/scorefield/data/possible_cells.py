"""What the cells of generated rows may be: within limits, whole where whole, and values that a column repeats.

For tables of plain numbers. A DataFrame whose columns repeat values is a mixed table, and learns them as levels; all
columns of an array are numbers to the model, which would make .37 of a flag.
"""

import dataclasses

import numpy as np
from scipy.stats import rankdata

from scorefield.data.kinds import are_levels, spikes_of
from scorefield.data.scaling import reflected

JUST_BELOW_HALF = 0.499999


def repeated_values(numbers):
    """Column to the exact values that it repeats: all those of a column of few values, else its spikes.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield.data.possible_cells import repeated_values
    >>> flag, spiked = np.arange(100) % 2, np.maximum(np.arange(100) - 50, 0)
    >>> repeated_values(np.column_stack([flag, spiked, np.arange(100)]) / 4)
    {0: array([0.  , 0.25]), 1: array([0.])}
    """
    found = {}
    for i, column in enumerate(numbers.T):
        values, counts = np.unique(column, return_counts=True)
        values = values if are_levels(values, len(column)) else np.array(spikes_of(values, counts))
        if len(values):
            found[i] = values
    return found


@dataclasses.dataclass(frozen=True)
class PossibleCells:
    """Limits (low, high) or None, a mask of the columns of whole numbers, and the values that columns repeat."""

    limits: tuple | None
    whole: np.ndarray
    repeated: dict

    def of(self, drawn, own, rng):
        """Drawn rows with possible cells; `own` are the rows of their class.

        Rows are reflected at the limits, so that they do not pile up there, and whole numbers are rounded. A column
        that repeats values has them as often as the class does: cells take the values at their own quantiles in the
        class, where these are repeated ones. One random offset a column makes the shares of few draws right on average.
        """
        if self.limits is not None:
            # A whole number stands for what is rounded to it, so the outermost ones reach half a unit further.
            low = np.where(self.whole, np.ceil(self.limits[0]) - JUST_BELOW_HALF, self.limits[0])
            high = np.where(self.whole, np.floor(self.limits[1]) + JUST_BELOW_HALF, self.limits[1])
            drawn = reflected(drawn, low, high)
        result = np.where(self.whole, np.rint(drawn), drawn)
        for i, values in self.repeated.items():
            quantiles = (rankdata(drawn[:, i], method="ordinal") - rng.random()) / len(drawn)
            taken = np.sort(own[:, i])[(quantiles * len(own)).astype(np.intp).clip(0, len(own) - 1)]
            known = np.isin(taken, values)
            if self.limits is not None:
                known &= (self.limits[0][i] <= taken) & (taken <= self.limits[1][i])
            result[known, i] = taken[known]
        return result
