"""Missing values of a table filled in several ways, of which the best on held-out cells of the table is chosen."""

from typing import NamedTuple

import jax
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng
from scorefield.data.containers import Table, fill_gaps, take_rows
from scorefield.models.donors import Pool, cells_of, energy_distance, table_of, with_donors

METHODS = ("draws", "neighbours", "leaves", "matching")
MAX_DONORS = 1024  # fitted rows that cells are copied from
COMPLETIONS = 5  # of these rows: draws from one completion alone would be too alike
STEPS_PER_FREE_COLUMN, FEWEST_STEPS = 6, 60  # a chain redraws one free column at a time; held ones need no steps
MAX_SWEPT = 64  # columns up to which methods that fit a model for each of them are tried
HELD_SHARE, MAX_JUDGED, JUDGED_DRAWS = 0.2, 400, 5  # cells that are held out to choose, rows, and draws of each


class Filling(NamedTuple):
    """How missing values of tables like the fitted one are filled; "draws" need no rows."""

    method: str
    scores: dict  # energy distance of each method that was compared, of held-out cells
    rows: np.ndarray | None = None  # flat ones of the fitted table
    numbers: np.ndarray | None = None  # of the same rows, in the units of the table
    completed: np.ndarray | None = None  # draws of these rows with all cells (COMPLETIONS, n, d)


def fit_filling(key, model, table, method="auto"):
    """A `Filling` by one method, or by the one that fills held-out cells best."""
    if method == "draws":
        return Filling(method, {})
    n = Table(table).n_rows
    if n > MAX_DONORS:
        chosen = host_rng(key, Stream.DONORS).choice(n, MAX_DONORS, replace=False)
        table = take_rows(Table(table).native, np.sort(chosen))
    rows, numbers = _read(model.space, table)
    completed, scores = _drawn(jax.random.fold_in(key, 1), model, rows, COMPLETIONS), {}
    if method == "auto":
        method = "neighbours"
        if len(model.space.layout.variables) <= MAX_SWEPT:
            scores = _scores(jax.random.fold_in(key, 2), model, rows, numbers, completed[0])
            method = min(scores, key=scores.get)
    return Filling(method, scores, rows, numbers, completed)


def filled_tables(key, model, filling, table, n):
    """n tables like the given one whose missing cells are filled; the known ones are as they were."""
    found = _all_cells(key, model, filling, *_read(model.space, table), n)
    return [_written(jax.random.fold_in(key, draw), model.space, own.raw, table) for draw, own in enumerate(found)]


def typical_table(key, model, filling, table, n):
    """A table whose missing cells take the median of n draws, or their commonest level."""
    raw = np.stack([own.raw for own in _all_cells(key, model, filling, *_read(model.space, table), n)])
    return _written(key, model.space, _typical(raw, model.space.layout), table)


def _read(space, table):
    """Flat rows of a table and its numbers."""
    return space.rows(table), space.encoder.encode(table).numbers


def _written(key, space, raw, table):
    return fill_gaps(table, table_of(space, raw, table, host_rng(key, Stream.POOLED_LEVELS)))


def _typical(draws, layout):
    """Median numbers and commonest codes of complete rows (draws, n, d)."""
    p = layout.n_numbers
    numbers, codes = np.where(draws[:, :, p : 2 * p] > 0, draws[:, :, :p], np.nan), draws[:, :, 2 * p :]
    counts = np.stack([(codes == level).sum(axis=0) for level in range(int(codes.max(initial=0)) + 1)])
    typical = counts.argmax(axis=0)
    known = ~np.isnan(numbers).all(axis=0)
    for number, category in layout.variables:
        if number >= 0 and category >= 0:
            known[:, number] = typical[:, category] == 0
    median = np.nanmedian(np.where(known, numbers, 0.0), axis=0)
    return np.hstack([np.where(known, median, 0.0), known, typical])


def _all_cells(key, model, filling, rows, numbers, n):
    """`Cells` of rows, n times, one after the other."""
    fitted = filling.rows is not None and np.array_equal(filling.rows, rows)
    drawn = list(filling.completed[:n]) if fitted else []
    if len(drawn) < n:
        drawn += list(_drawn(key, model, rows, n - len(drawn)))
    for draw, own in enumerate(drawn):
        if filling.method == "draws":
            yield cells_of(model.space, own, numbers)
        else:
            yield _copied(host_rng(key, Stream.DONORS, draw), model, filling, rows, numbers, draw, own)


def _copied(rng, model, filling, rows, numbers, draw, drawn):
    """`Cells` of one draw of rows whose missing cells are copied from donors."""
    space, completed = model.space, filling.completed[draw % len(filling.completed)]
    pool = Pool(cells_of(space, completed, filling.numbers), _present(space, filling.rows))
    cells = cells_of(space, drawn, numbers)
    return with_donors(rng, space.layout, filling.method, pool, cells, ~_present(space, rows))


def _present(space, rows):
    """True for every column of each flat row that has a value."""
    return np.asarray(map_rows(Method(space.layout, "present"), rows)).astype(bool)


def _drawn(key, model, rows, n):
    """n draws of flat rows from the energy, in one program (n, rows, d)."""
    free = ~_present(model.space, rows)
    most = 4 ** int(np.ceil(np.log(max(1, free.sum(axis=1).max(initial=0))) / np.log(4)))  # few numbers are compiled
    steps = max(FEWEST_STEPS, STEPS_PER_FREE_COLUMN * min(most, free.shape[1]))
    return model.impute(key, np.tile(rows, (n, 1)), n_steps=steps).reshape(n, *rows.shape)


def _scores(key, model, rows, numbers, completed):
    """Energy distance of each method that copies cells, from known cells that are held out; `completed` are rows whole.

    Plain draws are not compared: the energy has learned from the held-out cells.
    """
    rng, space = host_rng(key, Stream.DONORS), model.space
    index = rng.permutation(len(rows))[:MAX_JUDGED]
    rows, numbers = rows[index], numbers[index]
    known = _present(space, rows)
    judged = known & (rng.random(known.shape) < HELD_SHARE)
    judged &= judged.sum(axis=0) < known.sum(axis=0)  # of a column, some cells stay known
    true, hidden, kept = cells_of(space, completed[index], numbers), space.with_hidden(rows, judged), numbers.copy()
    for v, (number, _) in enumerate(space.layout.variables):
        kept[judged[:, v] & (number >= 0), number] = np.nan
    drawn, scores = _drawn(key, model, hidden, JUDGED_DRAWS), {}
    for method in METHODS[1:]:
        found = _all_cells(key, model, Filling(method, {}, hidden, kept, drawn), hidden, kept, JUDGED_DRAWS)
        scores[method] = float(np.mean([energy_distance(true, own, judged) for own in found]))
    return scores
