"""Rows of mixed tables on request: chains of the energy within the region that conditions and relations leave.

Starts are weighted by what the energy gives the requested cells beside the rest of a row, p(cells | rest): real rows
weighted so have the conditional law (importance resampling), which the chains then smooth.
"""

import dataclasses
import itertools

import jax
import numpy as np
from scipy.special import ndtr, ndtri

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method, leaf
from scorefield._jax.random import Stream, host_rng
from scorefield.data.cells import NANOSECONDS
from scorefield.data.row_space import flat_rows, split_rows
from scorefield.fields.rows import NO_SHARE
from scorefield.sampling.regions import Inequalities, Region
from scorefield.sampling.row_chains import walk

STEP = 0.1  # of the numbers' Langevin chain, in units of the noise
STEPS_PER_COLUMN, FEWEST_STEPS = 8, 100  # starts are weighted, but come from fewer rows than those of plain chains
MAX_BASES = 1024  # rows that starts are chosen among
MAX_CASES = 256  # combinations of listed numbers
FEWEST_PER_CASE = 64
JUST_BELOW_HALF = 0.499999  # of a step of a column's grid: what rounds to a bound meets it


@dataclasses.dataclass
class FlatRequest:
    """A request in the coordinates of flat rows."""

    region: Region
    redrawn_only: np.ndarray  # (columns,) with bounds, which steps would leave
    asked: np.ndarray  # (columns,) with a condition
    held: np.ndarray  # (columns,) with a value
    cases: list  # of dicts from columns to (number or None, code or None): values to hold


def flat_request(space, base, request):
    """A `FlatRequest`, or an error where conditions exclude each other."""
    layout, encoder = space.layout, space.encoder
    log_shares = np.array(base.log_shares, np.float32)
    low, high = (ends.astype(np.float32) for ends in _observed_range(space.scores))
    asked, held, bounded = (np.zeros(len(layout.variables), bool) for _ in range(3))
    listed = {}
    for condition in request.conditions:
        if condition.column.kind == "constant":
            continue
        allowed = condition.allowed()
        column, levels = _in_layout(space, condition.name, allowed.levels)
        number, category = layout.variables[column]
        asked[column] = True
        if levels is not None:
            row = log_shares[column, : len(levels)]
            log_shares[column, : len(levels)] = np.where(levels, row, NO_SHARE)
            if (log_shares[column, : len(levels)] <= NO_SHARE / 2).all():
                raise ValueError(f"Expected conditions that some level of {condition.name!r} meets, got {request}.")
        if number < 0:
            held[column] = (log_shares[column] > NO_SHARE / 2).sum() == 1
            continue
        if condition.values is None:
            bounded[column] = True
            ends = _ends(space.scores, number, allowed, _grid(condition.column))
            low[number], high[number] = max(low[number], ends[0]), min(high[number], ends[1])
        else:
            held[column] = True
            listed[column] = _held_values(space.scores, number, allowed, category)
    cases = [dict(zip(listed, chosen, strict=True)) for chosen in itertools.product(*listed.values())]
    if len(cases) > MAX_CASES:
        raise ValueError(
            f"Expected at most {MAX_CASES} combinations of numbers, got {len(cases)}; give bounds instead."
        )
    inequalities = _inequalities(space, request, encoder)
    margins = dataclasses.replace(base, log_shares=log_shares)
    return FlatRequest(Region(margins, low, high, inequalities), bounded, asked, held, cases)


def _observed_range(scores):
    """Least and greatest score of each column."""
    ends = [(knots[1, 0], knots[1, -1]) for knots in scores.knots]
    return np.array(ends, float).reshape(-1, 2).T


def _in_layout(space, name, levels):
    """The column of the layout that a column of the table is modelled by, and which of its levels are allowed."""
    if name in space.names:
        return space.names.index(name), levels
    category = next(v.category for v in space.encoder.variables if v.name == name)
    while category not in space.kept:
        source, image = next((source, image) for source, derived, image in space.ties if derived == category)
        category, levels = source, np.where(image >= 0, levels[np.maximum(image, 0)], False)
    place = space.kept.index(category)
    return next(v for v, (_, k) in enumerate(space.layout.variables) if k == place), levels


def _grid(column):
    """Half a step of the grid that encoded numbers are rounded to; 0 without one."""
    if column.form == "number":
        return 0.0 if column.decimals is None else JUST_BELOW_HALF * 10.0**-column.decimals
    return JUST_BELOW_HALF * column.scale


def _ends(scores, number, allowed, reach):
    """Bounds of scores: those of all numbers that are rounded to what the bounds hold."""
    values, _, first, last = scores.knots[number]
    low, high = allowed.low - reach, allowed.high + reach
    lowest = -np.inf if np.isneginf(low) else np.interp(low, values, first)
    highest = np.inf if np.isposinf(high) else np.interp(high, values, last)
    return lowest, highest


def _held_values(scores, number, allowed, category):
    """(score, code) for every value that a number is held at; a spike has no score."""
    widths = np.full((len(allowed.numbers), len(scores.knots)), np.nan)
    widths[:, number] = allowed.numbers
    found = [(float(z), 0 if category >= 0 else None) for z in scores.transform(widths)[:, number]]
    if category >= 0:
        found += [(None, int(code)) for code in np.flatnonzero(allowed.levels) if code > 0]
    return found


def _inequalities(space, request, encoder):
    """The relations that chains are kept within; None without any. Equalities are kept by computing a cell."""
    relations = [relation for relation in request.relations if relation.operator != "=="]
    terms, owners, constants = [], [], []
    for relation in relations:
        found, constant = [], float(relation.constant)
        for sign, name in relation.terms:
            term, offset = _term(space, request.columns[name], name, relation, request.columns)
            constant += sign * offset
            if term is not None:
                found.append((term[0], term[1], term[2], sign * term[3], sign * term[4]))
        if not found:
            continue
        size = max(float(np.ptp(part)) for *_, values, levels in found for part in (values, levels)) or 1.0
        terms += [(*places, values / size, levels / size) for *places, values, levels in found]
        owners += [len(constants)] * len(found)
        constants.append(constant / size)
    if not constants:
        return None
    numbers, categories, scores, values, levels = zip(*terms, strict=True)
    n_knots, n_levels = max(map(len, scores)), max(map(len, levels))
    members = np.zeros((len(constants), len(terms)), np.float32)
    members[owners, np.arange(len(terms))] = 1.0
    return Inequalities(
        np.array(numbers), np.array(categories), leaf([_padded(part, n_knots) for part in scores]),
        leaf([_padded(part, n_knots) for part in values]), leaf([_padded(part, n_levels) for part in levels]),
        members, leaf(constants),
    )  # fmt: skip


def _padded(values, size):
    return np.pad(np.asarray(values, float), (0, size - len(values)), mode="edge")


def _term(space, column, name, relation, columns):
    """(number, category, scores, values, levels) of a column in the units of a relation, and a constant beside them.

    Without a term for a column of one value.
    """
    factor = _factor(column, relation, columns)
    if column.kind == "constant":
        return None, 0.0 if column.constant is None else float(column.constant) * factor
    variable = next(v for v in space.encoder.variables if v.name == name)
    levels = np.array([*column.levels, *_mean_of_pool(column)], float) * factor
    if variable.number < 0:
        place, every = _in_layout_values(space, variable.category, levels)
        return (-1, place, [0.0], np.zeros(1), every - every.min()), float(every.min())
    knots = space.scores.knots[variable.number]
    offset = column.offset * factor
    rate = column.step / column.scale * factor
    scores, values = knots[2:].T.ravel(), np.repeat(knots[0], 2) * rate
    place = space.layout.variables[space.names.index(name)][1]
    spikes = np.array([0.0, *column.spikes], float) * factor - offset if column.spikes else np.zeros(1)
    return (variable.number, place, scores, values, spikes), offset


def _mean_of_pool(column):
    return [np.average(np.array(column.pool, float), weights=column.pool_counts)] if column.pool else []


def _factor(column, relation, columns):
    """Units of a relation in a tick of a column."""
    if column.form not in ("time", "duration") or column.unit == "period":
        return 1.0
    finest = min((columns[name].unit for name in relation.names), key=NANOSECONDS.__getitem__)
    return NANOSECONDS[column.unit] / NANOSECONDS[finest]


def _in_layout_values(space, category, values):
    """The category of the layout that a category of the table is modelled by, and the values of its levels."""
    while category not in space.kept:
        source, image = next((source, image) for source, derived, image in space.ties if derived == category)
        category, values = source, np.where(image >= 0, values[np.maximum(image, 0)], 0.0)
    return space.kept.index(category), values


def weighted_starts(key, energy, space, flat, bases, base_log_weights, n):
    """n flat rows that meet the conditions, chosen by p(requested cells | rest) among rows with those cells replaced.

    Listed numbers take turns in proportion to their probability.
    """
    rng = host_rng(key, Stream.CHAIN_STARTS)
    if len(bases) > MAX_BASES:
        chosen = rng.choice(len(bases), MAX_BASES, replace=False)
        bases, base_log_weights = bases[chosen], base_log_weights[chosen]
    per_case = min(len(bases), max(FEWEST_PER_CASE, MAX_BASES // len(flat.cases)))
    rows, weights = [], []
    for case in flat.cases:
        chosen = rng.choice(len(bases), per_case, replace=False)
        candidates, hidden, log_q = _replaced(rng, space, flat, bases[chosen], case)
        potential = Method(energy, "potential")
        gain = map_rows(potential, candidates) - map_rows(potential, hidden)
        rows.append(candidates)
        weights.append(gain.astype(float) - log_q + base_log_weights[chosen])
    rows, weights = np.concatenate(rows), np.concatenate(weights)
    shares = np.exp(weights - weights.max())
    return rows[_systematic(rng, shares / shares.sum(), n)]


def _systematic(rng, shares, n):
    """n indices in proportion to shares, each as often as expected up to one, in random order."""
    places = (rng.random() + np.arange(n)) / n
    return rng.permutation(np.searchsorted(np.cumsum(shares), places).clip(0, len(shares) - 1))


def _replaced(rng, space, flat, rows, case):
    """Rows with requested cells drawn from the margins within the region, the same without them, and log margins."""
    layout, region = space.layout, flat.region
    z, known, codes = split_rows(rows, layout)
    z = np.where(known, z, np.nan)
    hidden_z, hidden_codes, log_q = z.copy(), codes.copy(), np.zeros(len(rows))
    deviations, log_shares = (
        np.asarray(part, float) for part in (region.margins.deviations, region.margins.log_shares)
    )
    for column in np.flatnonzero(flat.asked):
        number, category = layout.variables[column]
        value, code = case.get(column, (None, None))
        levels = np.zeros(len(rows), int)
        if category >= 0:
            hidden_codes[:, category] = -1
            if column in case:
                levels[:] = code
            else:
                shares = np.exp(log_shares[column])
                levels = rng.choice(len(shares), len(rows), p=shares / shares.sum())
                log_q += log_shares[column][levels] - np.log(shares.sum())
            codes[:, category] = levels
        if number >= 0:
            hidden_z[:, number] = np.nan
            if column in case:
                z[:, number] = np.nan if value is None else value
                continue
            drawn, log_density = _truncated(rng, deviations[number], region.low[number], region.high[number], len(rows))
            z[:, number] = np.where(levels == 0, drawn, np.nan)
            log_q += np.where(levels == 0, log_density, 0.0)
    candidates = flat_rows(z, codes, space.precision)
    return candidates, flat_rows(hidden_z, hidden_codes, space.precision), log_q


def _truncated(rng, deviation, low, high, n):
    """Gaussian numbers between bounds, and their log densities."""
    flipped = low + high > 0
    a, b = (-high, -low) if flipped else (low, high)
    below, above = ndtr(a / deviation), ndtr(b / deviation)
    share = max(above - below, np.finfo(float).tiny)
    drawn = np.clip(deviation * ndtri(below + share * rng.random(n)), a, b)
    log_density = -0.5 * (drawn / deviation) ** 2 - np.log(deviation * np.sqrt(2 * np.pi) * share)
    return (-drawn if flipped else drawn), log_density


def chains_within(key, model, energy, flat, starts, free=None):
    """One chain of an energy from each start, within the region, with held columns as they are.

    Where no mask of the free cells is given, all cells that a start has are free.
    """
    layout = model.space.layout
    if free is None:
        free = np.asarray(map_rows(Method(layout, "present"), starts)).astype(bool) & ~flat.held
    n_steps = max(FEWEST_STEPS, STEPS_PER_COLUMN * len(layout.variables))
    return walk(
        key, energy, model.joint.base, model.color, starts, free, step=STEP, n_steps=n_steps, region=flat.region,
        redrawn_only=flat.redrawn_only,
    )  # fmt: skip


def requested_rows(key, model, energy, bases, base_log_weights, request, n):
    """n flat rows of an energy that meet a request up to rounding and to equalities.

    `bases` are rows that the chains may start from, with log weights.
    """
    flat = flat_request(model.space, model.joint.base, request)
    key_starts, key_walk = jax.random.split(key)
    starts = weighted_starts(key_starts, energy, model.space, flat, bases, base_log_weights, n)
    return chains_within(key_walk, model, energy, flat, starts)
