"""Codes of one column: learnt from its cells, then cells to numbers and codes, and back."""

import dataclasses
import math
from typing import Any

import numpy as np

from scorefield.data import kinds
from scorefield.data.cells import (
    NANOSECONDS,
    NUMERIC,
    Cells,
    empty_cells,
    in_stored_form,
    plain_array,
    positions,
    whole_array,
)
from scorefield.data.everyday_dates import COMPACT, write_compact_dates
from scorefield.data.grids import Grid
from scorefield.data.new_keys import key_pattern
from scorefield.data.texts import (
    write_dates,
    write_numbers,
)
from scorefield.data.zones import nearest_midnights, zone_in

MAX_LEVELS = 64
MAX_SINGLE_LEVELS = 32  # levels above which those of one row are pooled
MAX_DECIMALS = 6  # beyond the zeros that all numbers of a column below 0.1 have
# Steps of time, in nanoseconds, from the coarsest: day, hour, minute, second, and its thousandths.
TIME_STEPS = (86_400 * 10**9, 3_600 * 10**9, 60 * 10**9, 10**9, 10**6, 10**3, 1)


@dataclasses.dataclass
class Column:
    """Everything that encodes and decodes one column, in plain values."""

    name: Any
    kind: str
    form: str
    unit: str
    storage: dict[str, Any]
    text: dict[str, Any] | None = None
    decimals: int | None = None
    narrow: str | None = None  # the float dtype in which numbers have these decimals
    grid: dict[str, Any] | None = None  # of a `Grid`, where numbers have more than decimals in common
    offset: int = 0
    step: int = 1
    scale: float = 1.0
    midnights: bool = False  # all times are midnights of their time zone, which need not be days apart
    spikes: list[Any] = dataclasses.field(default_factory=list)
    levels: list[Any] = dataclasses.field(default_factory=list)
    level_values: np.ndarray | None = None
    pool: list[Any] = dataclasses.field(default_factory=list)
    pool_counts: list[int] = dataclasses.field(default_factory=list)
    constant: Any = None
    keys: dict[str, Any] | None = None  # the pattern that new identifiers follow

    def to_plain(self):
        """The fields that differ from their defaults, which keeps model files small."""
        usual = Column(self.name, self.kind, self.form, self.unit, {})
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        needed = ("name", "kind", "form", "unit", "storage", "level_values")
        return {name: value for name, value in fields.items() if name in needed or value != getattr(usual, name)}

    @property
    def has_number(self):
        return self.kind in kinds.NUMBER_KINDS

    @property
    def has_codes(self):
        return bool(self.levels or self.spikes)

    @property
    def n_levels(self):
        """Number of codes; that of a column with spikes counts the numbers beside them."""
        return 1 + len(self.spikes) if self.spikes else len(self.levels) + bool(self.pool)

    @property
    def spike_numbers(self):
        """The spikes as encoded numbers."""
        return _shifted(plain_array(self.form, self.spikes), self.offset, self.step) * self.scale


def is_category(kind, form):
    """True for columns of levels without an order or a distance; flags that are numbers have both."""
    return kind == "category" or (kind in ("flag", "constant") and form not in (*NUMERIC, "time", "duration"))


def fit_column(name, kind, cells, plain):
    """What encodes and decodes a column of a kind; `plain` numbers keep all their decimals."""
    column = Column(name, kind, cells.form, cells.unit, cells.storage, cells.text)
    if kind in kinds.SET_ASIDE:
        column.keys = key_pattern(cells) if kind == "identifier" else None
        return column
    levels, counts = kinds.tally(cells) if cells.known.any() else (np.zeros(0), np.zeros(0))
    if kind == "constant" or not len(levels) or (kind in kinds.LEVEL_KINDS and len(levels) == 1):
        column.kind, column.constant = "constant", levels.tolist()[0] if len(levels) else None
    elif kind in kinds.LEVEL_KINDS:
        _fit_levels(column, levels, counts)
    elif kind in ("date", "duration"):
        _fit_ticks(column, levels)
    else:
        if kind == "spiked number":
            column.spikes = kinds.wanted_spikes(levels, counts)
        _fit_number(column, levels, plain)
        _fit_grid(column, levels, counts)
    return column


def _fit_levels(column, levels, counts):
    """Levels in order; the rare ones of many are pooled."""
    kept = np.ones(len(levels), dtype=bool)
    if len(levels) > MAX_SINGLE_LEVELS:
        kept = counts > 1
    if not kept.any() or kept.sum() + (~kept).any() > MAX_LEVELS:  # a column without a level is not modelled
        kept = np.zeros(len(levels), dtype=bool)
        kept[np.argsort(-counts, kind="stable")[: MAX_LEVELS - 1]] = True
    if (~kept).sum() == 1:
        kept[:] = True
    column.levels, column.pool = levels[kept].tolist(), levels[~kept].tolist()
    column.pool_counts = counts[~kept].tolist()
    if column.kind == "ordered":
        values = levels.astype(np.float64) if column.form in NUMERIC else np.arange(len(levels), dtype=np.float64)
        pooled = [np.average(values[~kept], weights=counts[~kept])] if column.pool else []
        column.level_values = np.concatenate([values[kept], pooled])


def _fit_ticks(column, levels):
    """Seconds since the earliest time, in steps that all observed times share."""
    if column.kind == "date":
        column.offset = int(levels[0])
    if column.unit == "period":
        return
    tick = NANOSECONDS[column.unit]
    for nanoseconds in TIME_STEPS:
        step = max(nanoseconds // tick, 1)
        # Days start at midnight wherever the earliest time lies, so differences alone do not make a step.
        if not (levels % step).any():
            break
    column.step, zone = step, zone_in(column.storage)
    if zone is not None and step * tick < TIME_STEPS[0]:
        column.midnights = bool((nearest_midnights(levels, column.unit, zone) == levels).all())
    # Beyond it, seconds in float64 would not tell the steps apart, and numbers count steps.
    if (int(levels[-1]) - int(levels[0])) // step < kinds.EXACT // 8:
        column.scale = step * tick / 10**9


def _fit_number(column, levels, plain):
    if column.form == "whole":
        low, high = int(levels[0]), int(levels[-1])
        if max(abs(low), abs(high)) > kinds.EXACT:
            column.offset = low
            column.step = _common_step(levels, low) if high - low > kinds.EXACT else 1
    elif not plain:
        column.decimals, column.narrow = _decimals(levels.astype(np.float64))


def _fit_grid(column, levels, counts):
    """The grid of the numbers beside spikes, where they have decimals or are whole."""
    decimals = 0 if column.form == "whole" and (column.offset, column.step) == (0, 1) else column.decimals
    beside = ~np.isin(levels, column.spikes)
    if decimals is not None and beside.any():
        grid = Grid.fit(levels[beside], counts[beside], decimals)
        column.grid = None if grid.is_plain else grid.to_plain()


def _common_step(levels, low):
    return math.gcd(*(int(level) - low for level in levels.tolist()))


def _decimals(values):
    """Decimals of all values, and the float dtype in which they have them; (None, None) above MAX_DECIMALS."""
    largest = np.abs(values).max(initial=0)
    zeros = max(-math.floor(math.log10(largest)) - 1, 0) if largest else 0
    for narrow in (np.float64, np.float32, np.float16):
        with np.errstate(over="ignore"):
            if not (values.astype(narrow) == values).all():
                break
        for decimals in range(MAX_DECIMALS + zeros + 1):
            if (_rounded(values, decimals, narrow) == values).all():
                return decimals, np.dtype(narrow).name
    return None, None


def _rounded(values, decimals, narrow):
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(values, decimals)
        rounded = np.where(np.isfinite(rounded), rounded, values)  # too large to have decimals
        return rounded.astype(narrow).astype(np.float64)


def encode_column(cells, column):
    """Numbers and codes of a column, None where it has none."""
    return (None, _encode_levels(cells, column)) if column.levels else _encode_number(cells, column)


def _encode_levels(cells, column):
    codes = positions(cells.values, cells.known, [*column.levels, *column.pool])
    return np.minimum(codes, len(column.levels)).astype(np.int32)


def _encode_number(cells, column):
    """Numbers, and codes for a column with spikes."""
    numbers = np.full(len(cells.known), np.nan)
    numbers[cells.known] = _shifted(cells.values[cells.known], column.offset, column.step) * column.scale
    if not column.spikes:
        return numbers, None
    codes = positions(cells.values, cells.known, column.spikes) + 1
    codes[~cells.known] = -1
    numbers[codes != 0] = np.nan
    return numbers, codes.astype(np.int32)


def _shifted(values, offset, step):
    """(values - offset) / step as float64, computed in integers where that is what they are."""
    if (offset, step) == (0, 1):
        return values.astype(np.float64)
    if values.dtype.kind in "fb":
        return (values.astype(np.float64) - offset) / step
    if values.dtype == np.int64 and abs(offset) + _largest(values) <= np.iinfo(np.int64).max:
        whole, rest = np.divmod(values - np.int64(offset), np.int64(step))
        return whole + rest / step
    return np.array([(int(value) - offset) / step for value in values.tolist()], dtype=np.float64)


def _largest(values):
    """Largest absolute value as a Python integer: that of the lowest int64 is not an int64."""
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))


def decode_column(column, variable, numbers, codes, rng):
    """Cells of a column, in the fitted form."""
    if variable is None:
        if column.constant is None:
            return empty_cells(column.storage, len(numbers))
        values = plain_array(column.form, [column.constant]).repeat(len(numbers))
        return Cells(column.form, values, np.ones(len(values), dtype=bool), column.unit)
    if variable.number < 0:
        return _decode_levels(column, codes[:, variable.category], rng)
    number = numbers[:, variable.number]
    known = ~np.isnan(number)
    values = _unshifted(np.where(known, number, 0.0), column)
    if not column.spikes:
        return Cells(column.form, values, known, column.unit)
    code = codes[:, variable.category]
    known = np.where(code == 0, known, code > 0)
    spikes = plain_array(column.form, column.spikes)
    return Cells(column.form, np.where(code > 0, spikes[np.maximum(code - 1, 0)], values), known, column.unit)


def _decode_levels(column, codes, rng):
    codes = np.array(codes)
    pooled = codes == len(column.levels)
    if pooled.any() and column.pool:
        shares = np.array(column.pool_counts) / sum(column.pool_counts)
        codes[pooled] += rng.choice(len(column.pool), size=int(pooled.sum()), p=shares)
    levels = plain_array(column.form, [*column.levels, *column.pool])
    return Cells(column.form, levels[np.maximum(codes, 0)], codes >= 0, column.unit)


def _unshifted(numbers, column):
    """Inverse of `_shifted`, in the fitted form: whole numbers rounded, others to their decimals."""
    if column.grid is not None:
        numbers = Grid(**column.grid).snapped(numbers)
    if column.form == "number":
        return numbers if column.decimals is None else _rounded(numbers, column.decimals, column.narrow)
    if column.form == "flag":
        return numbers > 0.5
    values = np.rint(numbers / column.scale)
    within = np.abs(values).max(initial=0) < 2.0**63
    values = values.astype(np.int64) if within else whole_array(values.tolist())
    if (column.offset, column.step) != (0, 1):
        values = _scaled(values, column.step, column.offset)
    if column.form in ("time", "duration"):
        limits = np.iinfo(np.int64)
        values = np.clip(values, limits.min + 1, limits.max).astype(np.int64)
    return nearest_midnights(values, column.unit, zone_in(column.storage)) if column.midnights else values


def _scaled(values, step, offset):
    """values * step + offset in whole numbers, by Python's where int64 could overflow."""
    if values.dtype == np.int64 and _largest(values) * step + abs(offset) <= np.iinfo(np.int64).max:
        return values * np.int64(step) + np.int64(offset)
    return whole_array([value * step + offset for value in values.tolist()])


def ready_to_write(cells, column, storage):
    """Cells ready for a storage; times and numbers that the storage holds as text are written in their style."""
    cells = dataclasses.replace(cells, storage=storage)
    if column.text == COMPACT and storage["form"] in NUMERIC:
        cells = dataclasses.replace(cells, form="whole", unit="", values=write_compact_dates(cells.values))
    if column.text is None or storage["form"] != "object" or not cells.known.any():
        return in_stored_form(cells)
    write = write_dates if column.text["type"] == "date" else write_numbers
    texts = np.full(len(cells.known), None, dtype=object)
    texts[cells.known] = write(cells.values[cells.known], column.text)
    return dataclasses.replace(cells, form="object", unit="", values=texts)
