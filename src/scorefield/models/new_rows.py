"""New rows of a table for a learner: chains of a teacher's energy in continuous columns, redrawn cells elsewhere.

A teacher without a joint energy of numbers proposes redrawn cells alone: it labels rows, and any classifier can.
"""

import jax
import numpy as np
from sklearn.frozen import FrozenEstimator

from scorefield.data.checks import cast_numbers
from scorefield.data.containers import Table, copy_cells, is_frame
from scorefield.data.encoding import TableEncoder
from scorefield.data.kinds import ROWS_PER_LEVEL
from scorefield.data.possible_cells import PossibleCells
from scorefield.data.row_space import RowSpace
from scorefield.data.spaces import is_mixed, numbers_as_table
from scorefield.models.number_model import NumberModel
from scorefield.models.teaching import redrawn_sources, short_chains

FEW_VALUES = 64  # of a column of numbers: a step of a chain would lead to a value that no row has


def energy_of(teacher):
    """The joint energy of numbers that a teacher has learned, or None."""
    inner = teacher.estimator if isinstance(teacher, FrozenEstimator) else teacher
    model = getattr(inner, "model_", None)
    return model if isinstance(model, NumberModel) else None


class NewRows:
    """Draws rows of a table by short steps from its own rows.

    Parameters
    ----------
    X : array, DataFrame or Table
    teacher : fitted classifier
    possible : PossibleCells or None
        Of a table of numbers; None are those of the table.
    columns : dict or None
        Kinds of columns.
    """

    def __init__(self, X, teacher, possible=None, columns=None):
        self.X, self.columns, self.energy = X, columns, energy_of(teacher)
        if self.energy is None:
            self.groups = _tied_columns(X, columns)
            return
        self.numbers = _numbers(X)
        if possible is None:
            possible = PossibleCells.of_table(X, self.numbers, (self.numbers.min(axis=0), self.numbers.max(axis=0)))
        self.possible = possible
        on_grid = [_few_values(column) for column in self.numbers.T]
        redrawn = np.array([few or i in self.possible.repeated for i, few in enumerate(on_grid)], bool)
        self.groups = np.where(redrawn, np.cumsum(redrawn) - 1, -1)
        self.on_grid = np.array(on_grid, bool)

    def drawn(self, rng, parents, classes, n_steps, pool):
        """A table of one new row for each parent; redrawn cells are those of rows of the `pool`."""
        sources = redrawn_sources(rng, parents, pool, self.groups)
        if self.energy is None:
            return copy_cells(self.X, sources)
        return self._as_table(self._moved(rng, sources, classes, n_steps))

    def _moved(self, rng, sources, classes, n_steps):
        """Numbers (n, d) after the chains; cells on a grid and values that a column repeats are held."""
        cells = self.numbers[sources, np.arange(self.numbers.shape[1])]
        free = np.repeat(~self.on_grid[None], len(cells), axis=0)
        for i, values in self.possible.repeated.items():
            free[:, i] &= ~np.isin(cells[:, i], values)
        if not free.any():
            return cells
        model = self.energy
        key = jax.random.key(int(rng.integers(1 << 32)))
        mean, scale = model.space.units
        rows = (cells - mean) / scale
        moved = short_chains(key, model.joint, model.color, rows, classes, free.astype(np.float32), n_steps)
        return np.where(free, self.possible.within(moved * scale + mean), cells)

    def _as_table(self, numbers):
        if is_frame(self.X):
            return numbers_as_table(TableEncoder(self.columns).fit(self.X), numbers, self.X)
        return cast_numbers(numbers, self.X.dtype)


def _numbers(X):
    table = Table(X)
    return np.column_stack([table.cells(name).values for name in table.names]).astype(np.float64)


def _few_values(column):
    n_values = len(np.unique(column))
    return n_values < 2 or n_values <= min(FEW_VALUES, len(column) / ROWS_PER_LEVEL)


def _tied_columns(X, columns):
    """A number for each column, the same for those of which one determines the other: they are copied together."""
    groups = np.arange(len(Table(X).names))
    if not is_mixed(X, columns):
        return groups
    space = RowSpace.fit(X, columns)
    names = [column.name for column in space.encoder.columns_]
    of_category = [names.index(v.name) for v in space.encoder.variables if v.category >= 0]
    for source, derived, _ in space.ties:
        first, second = groups[of_category[source]], groups[of_category[derived]]
        groups[groups == second] = first
    return np.unique(groups, return_inverse=True)[1]
