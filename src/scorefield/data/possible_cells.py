"""What the cells of generated rows may be: within limits, whole where whole, and values that a column repeats.

For tables of plain numbers. A DataFrame whose columns repeat values is a mixed table, and learns them as levels; all
columns of an array are numbers to the model, which would make .37 of a flag.
"""

import dataclasses

import numpy as np
from scipy.stats import rankdata

from scorefield.data.containers import Table, is_frame
from scorefield.data.kinds import are_common, are_levels, is_whole
from scorefield.data.scaling import reflected

JUST_BELOW_HALF = 0.499999
MOST = 0.5
FEWEST_RANKED = 256  # draws: among so many, a draw's rank tells its quantile to a few hundredths


def given_limits(bounds, d):
    """Bounds (low, high), each one number or one for each of d columns, as two arrays (d,)."""
    if len(bounds) != 2:
        raise ValueError(f"Expected bounds to be 'observed' or a pair (low, high), got {len(bounds)} items.")
    try:
        low, high = (np.broadcast_to(np.asarray(b, float), (d,)) for b in bounds)
    except ValueError as error:
        raise ValueError(f"Expected bounds of one number or one for each of {d} numeric columns: {error}") from error
    if not (low <= high).all():  # false for NaN too
        raise ValueError("Expected bounds with low <= high and no NaN, got others in some column.")
    return low, high


@dataclasses.dataclass(frozen=True)
class PossibleCells:
    """Limits (low, high) or None, a mask of the columns of whole numbers, and the values that columns repeat.

    ``repeated`` maps the number of a column to its repeated values: all those of a column of few values, or those that
    hold a good share of the rows.
    """

    limits: tuple | None
    whole: np.ndarray
    repeated: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def of_array(cls, numbers, limits):
        """What the columns of an array of numbers may hold.

        Examples
        --------
        >>> import numpy as np
        >>> from scorefield.data.possible_cells import PossibleCells
        >>> flag, spiked = np.arange(100) % 2, np.maximum(np.arange(100) - 50, 0)
        >>> cells = PossibleCells.of_array(np.column_stack([flag, spiked, np.arange(100) / 4]), None)
        >>> cells.whole.tolist(), cells.repeated
        ([True, True, False], {0: array([0., 1.]), 1: array([0.])})
        """
        whole, repeated = np.zeros(numbers.shape[1], dtype=bool), {}
        for i, column in enumerate(numbers.T):
            values, counts = np.unique(column, return_counts=True)
            whole[i] = is_whole(values)
            values = values if are_levels(values, len(column)) else values[are_common(counts)]
            if len(values):
                repeated[i] = values
        return cls(limits, whole, repeated)

    @classmethod
    def of_table(cls, table, numbers, limits):
        """What the cells of an array or frame of numbers may hold; frames whose columns repeat values are mixed."""
        if not is_frame(table):
            return cls.of_array(numbers, limits)
        table = Table(table)
        return cls(limits, np.array([table.cells(name).form == "whole" for name in table.names]))

    def rows_to_draw(self, n):
        """How many rows to draw where n are wanted: ranks among few draws would say little about each."""
        return max(n, FEWEST_RANKED) if self.repeated else n

    def repeats_most(self, own):
        """True if most columns that vary in the rows hold repeated values alone: a small step leads back to its row."""
        varying = np.flatnonzero(np.ptp(own, axis=0) > 0)
        alone = [np.isin(own[:, i], self.repeated.get(i, [])).all() for i in varying]
        return bool(alone) and np.mean(alone) > MOST

    def applied_to(self, drawn, own, rng):
        """Drawn rows with possible cells; `own` are the rows of their class.

        Rows are reflected at the limits, so that they do not pile up there, and whole numbers are rounded. A column
        that repeats values has them as often as the class does: cells take the values at their own quantiles in the
        class, interpolated between values that are not repeated.
        """
        result = np.array(self._reflected(drawn))
        for i, values in self.repeated.items():
            known = own[:, i]
            if self.limits is not None:
                known = known[(self.limits[0][i] <= known) & (known <= self.limits[1][i])]
            if len(known):  # ranks are those before reflection, which would turn the ends of a column around
                result[:, i] = _at_quantiles(drawn[:, i], np.sort(known), values, rng)
        return np.where(self.whole, np.rint(result), result)

    def within(self, drawn):
        """Drawn rows reflected at the limits, with whole numbers rounded."""
        result = self._reflected(drawn)
        return np.where(self.whole, np.rint(result), result)

    def _reflected(self, drawn):
        if self.limits is None:
            return drawn
        # A whole number stands for what is rounded to it, so the outermost ones reach half a unit further.
        low = np.where(self.whole, np.ceil(self.limits[0]) - JUST_BELOW_HALF, self.limits[0])
        high = np.where(self.whole, np.floor(self.limits[1]) + JUST_BELOW_HALF, self.limits[1])
        return reflected(drawn, low, high)


def _at_quantiles(drawn, known, repeated, rng):
    """Numbers at the quantiles of the draws among known ones: repeated ones exactly, others interpolated."""
    # One random offset makes the shares of few draws right on average.
    quantiles = (rankdata(drawn, method="ordinal") - rng.random()) / len(drawn)
    taken = known[(quantiles * len(known)).astype(np.intp).clip(0, len(known) - 1)]
    others = ~np.isin(taken, repeated)
    if others.any():
        within = (rankdata(drawn[others], method="ordinal") - 0.5) / others.sum()
        taken[others] = np.quantile(known[~np.isin(known, repeated)], within)
    return taken
