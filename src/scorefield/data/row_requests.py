"""What rows are asked to be: conditions on their cells and relations between them, checked and completed on tables."""

import dataclasses

import numpy as np

from scorefield.data.cells import Cells, plain_array, positions
from scorefield.data.coding import ready_to_write
from scorefield.data.conditions import check_seen_range, on_step, parse_conditions
from scorefield.data.containers import Table, write_table
from scorefield.data.likeness import like_fitted
from scorefield.data.new_keys import new_keys
from scorefield.data.relations import check_relations, parse_relations, refuse_violations


class RowRequest:
    """Conditions and relations for tables like the one that an encoder was fitted to.

    Parameters
    ----------
    encoder : TableEncoder
    given : None or dict
        Conditions, see `scorefield.data.conditions.parse_conditions`.
    constraints : None or list
        Relations, see `scorefield.data.relations.parse_relations`.
    seen : None or table
        Rows of the fitted table, or two of them with the least and the greatest numbers: conditions and completed cells
        stay within the range of its numbers.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from scorefield.data.encoding import TableEncoder
    >>> from scorefield.data.row_requests import RowRequest
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"]).assign(total=lambda t: t.a + t.b)
    >>> request = RowRequest(TableEncoder().fit(table), {"a": (0, None)}, ["total == a + b"])
    >>> bool(request.met(table).mean() == (table.a >= 0).mean())
    True
    >>> drawn = table.assign(total=0.0)
    >>> bool(request.met(drawn).any()), bool(np.allclose(request.completed(drawn).total, table.total))
    (False, True)
    """

    def __init__(self, encoder, given=None, constraints=None, seen=None):
        self.columns = {column.name: column for column in encoder.columns_}
        self.conditions = parse_conditions(given, encoder.columns_)
        self.relations = parse_relations(constraints, list(self.columns))
        check_relations(self.relations, self.columns)
        self.ranges = {} if seen is None else self._ranges(seen)
        check_seen_range(self.conditions, self.ranges)
        self._check_held()

    def __bool__(self):
        return bool(self.conditions or self.relations)

    @property
    def equalities(self):
        """The relations that hold for next to no random row, and are kept by computing a cell."""
        return [relation for relation in self.relations if relation.operator == "=="]

    @property
    def held(self):
        """Names of the columns with a single value."""
        return {c.name for c in self.conditions if c.values is not None and len(c.values) == 1}

    @property
    def holds_numbers(self):
        """True if some number is asked for by value, which a random row has next to never."""
        return any(c.values is not None and c.column.has_number for c in self.conditions)

    def _ranges(self, seen):
        """Least and greatest value of each column without levels, in its form."""
        table, ranges = Table(seen), {}
        for name, column in self.columns.items():
            if column.has_number:
                cells = self._read(table, name)
                values = [*cells.values[cells.known].tolist(), *column.spikes]
                if values:
                    ranges[name] = min(values), max(values)
        return ranges

    def _check_held(self):
        """Refuse conditions whose values contradict a relation."""
        values = {c.name: c.values for c in self.conditions if c.name in self.held}
        for relation in self.relations:
            if set(relation.names) <= set(values):
                cells = {name: _one_row(values[name], self.columns[name]) for name in relation.names}
                if not relation.kept(cells, self.columns).all():
                    told = " and ".join(str(c) for c in self.conditions if c.name in relation.names)
                    raise ValueError(
                        f"Expected conditions that keep {relation.text!r}, got {told}; change one of them."
                    )

    def _read(self, table, name):
        """Cells of a table like the fitted one, in the form of the fitted column."""
        return like_fitted(table.cells(name), self.columns[name])[0]

    def _cells(self, table, relations=None):
        names = {name for relation in self.relations for name in relation.names}
        if relations is None:
            names |= {condition.name for condition in self.conditions}
        return {name: self._read(table, name) for name in names}

    def met(self, table):
        """Rows of a table that meet everything."""
        table = Table(table)
        cells, result = self._cells(table), np.ones(table.n_rows, bool)
        for condition in self.conditions:
            result &= condition.met(cells[condition.name])
        for relation in self.relations:
            result &= relation.kept(cells, self.columns)
        return result

    def relations_kept(self, table):
        """Rows of a table that keep all relations."""
        table = Table(table)
        cells = self._cells(table, self.relations)
        return np.all([np.ones(table.n_rows, bool), *(r.kept(cells, self.columns) for r in self.relations)], axis=0)

    def refuse_violations(self, table, rows="training rows", *, rounded=False):
        """Refuse a table whose rows violate relations, with their number; rows may be `rounded` to single precision."""
        if self.relations:
            cells = self._cells(Table(table), self.relations)
            refuse_violations(self.relations, cells, self.columns, rows, rounded=rounded)

    def completed(self, table, *, hold=False, free=None, rng=None):
        """A table of which one cell of each equality is computed from the others.

        Parameters
        ----------
        table : table like the fitted one
        hold : bool
            Write the values that are asked for too: rows were drawn given them, up to rounding and rare levels.
        free : None or dict
            Where cells may be computed, for names of columns a mask of rows; None for all columns without a condition
            on their value.
        rng : numpy Generator, int or None
            Chooses among rare levels that were pooled.
        """
        whole = Table(table)
        changed = self._held_cells(whole, np.random.default_rng(rng)) if hold else {}
        if self.equalities:
            cells = self._cells(whole) | changed
            if free is None:
                wanted = {condition.name for condition in self.conditions if condition.values is not None}
                free = {name: np.full(whole.n_rows, name not in wanted) for name in cells}
            changed |= self._computed(cells, free)
        written = {
            name: ready_to_write(cells, self.columns[name], whole.cells(name).storage)
            for name, cells in changed.items()
        }
        return _rewritten(whole, written) if written else table

    def with_new_keys(self, table, rng=None):
        """A table whose identifiers are new keys that continue the pattern of their column, where it has one."""
        whole, rng = Table(table), np.random.default_rng(rng)
        written = {}
        for name, column in self.columns.items():
            if column.keys is not None:
                cells = new_keys(column.keys, whole.n_rows, column.storage, rng)
                written[name] = ready_to_write(cells, column, column.storage)
        return _rewritten(whole, written) if written else table

    def _held_cells(self, table, rng):
        """Cells of the columns whose value is asked for: exactly that, also where it is a pooled level."""
        changed = {}
        for condition in self.conditions:
            if condition.values is None:
                continue
            cells, column = self._read(table, condition.name), self.columns[condition.name]
            values, known = cells.values, cells.known
            if len(condition.values) == 1:
                values, known = np.repeat(condition.values, table.n_rows), np.ones(table.n_rows, bool)
            elif column.pool:
                values = _pooled_as_asked(cells, column, condition, rng)
            elif column.has_number:
                asked = np.sort(condition.values)
                nearest = np.searchsorted((asked[1:] + asked[:-1]) / 2, values)
                values = np.where(known, asked[nearest], values)
            own = dataclasses.replace(cells, form=column.form, unit=column.unit, values=values, known=known)
            changed[condition.name] = own
        return changed

    def _computed(self, cells, free):
        """Cells with one of each equality computed from the others, where all others are known or free."""
        cells, taken = dict(cells), {name: np.zeros(len(own.known), bool) for name, own in cells.items()}
        changed = set()
        for relation in self.equalities:
            names = relation.names
            to_do = relation.all_known(cells)
            for name in sorted(names, key=self._preference(relation)):
                rows = to_do & free[name] & ~taken[name]
                if not rows.any():
                    continue
                values = relation.solved(name, cells, self.columns)
                own = cells[name].values
                both = values.dtype if values.dtype == object else own.dtype
                cells[name] = dataclasses.replace(cells[name], values=np.where(rows, values, own).astype(both))
                changed.add(name)
                to_do = to_do & ~rows
                for other in names:  # later equalities must not change what this one was computed from
                    taken[other] = taken[other] | rows
        return {name: cells[name] for name in changed}

    def _preference(self, relation):
        """Order in which columns are computed: numbers before levels, fine grids first, and then lone columns."""
        signs = {name: sign for sign, name in relation.terms}

        def order(name):
            column = self.columns[name]
            fine = column.decimals if column.decimals is not None else (0 if column.form != "number" else 99)
            return bool(column.levels), -fine, list(signs.values()).count(signs[name]) > 1

        return order

    def possible(self, table):
        """Rows whose computed cells are levels or within the range of numbers that was seen; a missing cell is."""
        whole = Table(table)
        result = np.ones(whole.n_rows, bool)
        for name in {name for relation in self.equalities for name in relation.names} - self.held:
            cells, column = self._read(whole, name), self.columns[name]
            if column.levels:
                result &= ~cells.known | (positions(cells.values, cells.known, [*column.levels, *column.pool]) >= 0)
            elif name in self.ranges:
                low, high = self.ranges[name]
                within = np.asarray((cells.values >= low) & (cells.values <= high), bool)
                result &= ~cells.known | (within & on_step(column, cells.values))
        return result

    def __str__(self):
        return ", ".join([*map(str, self.conditions), *(relation.text for relation in self.relations)])


def _rewritten(table, written):
    """A table with other cells in some columns."""
    columns = [written[name] if name in written else table.cells(name) for name in table.names]
    return write_table(table.container, table.names, columns)


def _one_row(values, column):
    return Cells(column.form, values, np.ones(len(values), bool), column.unit, column.storage)


def _pooled_as_asked(cells, column, condition, rng):
    """Values in which the pooled levels are those that a condition names, in proportion to their counts."""
    pool = plain_array(column.form, column.pool)
    asked = positions(pool, np.ones(len(pool), bool), condition.values) >= 0
    pooled = positions(cells.values, cells.known, column.pool) >= 0
    if not asked.any():
        return cells.values
    shares = np.where(asked, column.pool_counts, 0)
    return np.where(pooled, pool[rng.choice(len(pool), len(pooled), p=shares / shares.sum())], cells.values)
