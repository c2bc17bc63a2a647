"""Filled tables whose rows keep relations between columns: cells computed, and rows drawn anew, until they do."""

import jax
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.errors import warn_caller
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng
from scorefield.data.containers import Table, append_rows, replace_cells, take_rows
from scorefield.data.row_requests import RowRequest
from scorefield.fields.joint import AnyClass
from scorefield.models.requested_rows import chains_within, flat_request

MOST_REDRAWS = 10  # of the rows that do not keep a relation yet
MOST_NAMED = 10  # rows in a warning


def keep_relations(key, model, request, table, filled):
    """A filled table of which every row that the table leaves open keeps the relations of a `RowRequest`.

    Where an equality has a missing cell, one is computed; rows that still violate a relation are drawn anew by chains
    within it. Known cells stay. Rows whose known cells violate a relation, and those for which no draw keeps all, are
    left as they came, with a warning that names them.
    """
    whole = Table(table)
    known = {name: whole.cells(name).known for name in whole.names}
    contradicted = ~request.relations_kept(whole.native)
    values, wrong = _completed(request, _renumbered(filled), known)
    wrong &= ~contradicted
    for attempt in range(MOST_REDRAWS):
        places = np.flatnonzero(wrong)
        if not len(places):
            break
        part = take_rows(whole.native, places)
        drawn = _drawn_within(jax.random.fold_in(key, attempt), model, request, part)
        drawn, still = _completed(request, _renumbered(drawn), {name: own[places] for name, own in known.items()})
        order = np.arange(len(wrong))
        order[places[~still]] = len(wrong) + np.flatnonzero(~still)
        values = take_rows(append_rows(values, drawn), order)
        wrong[places[~still]] = False
    left = contradicted | wrong
    _warn_of(left, contradicted, request)
    return replace_cells(whole.native, values, {name: ~own & ~left for name, own in known.items()})


def filled_within(key, model, table, constraints):
    """A filled table like the given one, whose rows keep constraints."""
    return keep_constraints(key, model, constraints, table, model.filled(key, table))


def keep_constraints(key, model, constraints, table, filled):
    """The filled table, with rows that keep constraints; see `keep_relations`."""
    if not constraints:
        return filled
    return keep_relations(key, model, RowRequest(model.space.encoder, None, constraints), table, filled)


def _renumbered(table):
    return table.reset_index(drop=True) if hasattr(table, "iloc") else table


def _completed(request, table, known):
    """A table with one cell of each equality computed, of those that are not known, and the rows that violate one."""
    values = request.completed(table, free={name: ~own for name, own in known.items()})
    return values, ~request.relations_kept(values)


def _drawn_within(key, model, request, table):
    """A table like the given one whose missing cells are drawn by chains within the relations."""
    space = model.space
    flat, rows = flat_request(space, model.joint.base, request), space.rows(table)
    free = ~np.asarray(map_rows(Method(space.layout, "present"), rows)).astype(bool)
    starts = model.drawn_from_margins(host_rng(key, Stream.IMPUTED), rows, free)
    drawn = chains_within(key, model, AnyClass(model.joint), flat, starts, free)
    return space.table(drawn, like=table, rng=host_rng(key, Stream.POOLED_LEVELS))


def _warn_of(left, contradicted, request):
    """Name the rows that are left as they came."""
    reasons = (
        (contradicted, "their known cells violate"),
        (left & ~contradicted, "no draw of their missing cells keeps"),
    )
    for rows, why in reasons:
        if rows.any():
            places = np.flatnonzero(rows).tolist()
            more = f" and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
            warn_caller(
                f"Rows {', '.join(map(str, places[:MOST_NAMED]))}{more} (counted from 0) are left as they came: {why} "
                f"{request}; correct them."
            )
