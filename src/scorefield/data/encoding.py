"""Tables as arrays of numbers and codes, and tables from such arrays, exactly."""

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from scorefield.data import kinds
from scorefield.data.cells import (
    NANOSECONDS,
    NUMERIC,
    Cells,
    convert_ticks,
    empty_cells,
    in_stored_form,
    plain_array,
    positions,
    whole_array,
)
from scorefield.data.containers import Table, write_table
from scorefield.data.texts import TICK, date_style, read_dates, read_numbers, write_dates, write_numbers

MAX_LEVELS = 64
MAX_SINGLE_LEVELS = 32  # levels above which those of one row are pooled
MAX_DECIMALS = 6
# Steps of time, in nanoseconds, from the coarsest: day, hour, minute, second, and its thousandths.
TIME_STEPS = (86_400 * 10**9, 3_600 * 10**9, 60 * 10**9, 10**9, 10**6, 10**3, 1)
CATEGORY_KINDS = ("ordered", "flag", "category")


class Encoded(NamedTuple):
    """Rows as arrays: `numbers` (n, p), NaN at gaps and spikes; `codes` (n, q), -1 at gaps and unseen levels."""

    numbers: np.ndarray
    codes: np.ndarray


class Variable(NamedTuple):
    """What a model sees of a column: its position among the numbers and among the codes, -1 where it has none."""

    name: Any
    kind: str
    number: int
    category: int
    n_levels: int


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
    offset: int = 0
    step: int = 1
    scale: float = 1.0
    spikes: list[Any] = dataclasses.field(default_factory=list)
    levels: list[Any] = dataclasses.field(default_factory=list)
    level_values: np.ndarray | None = None
    pool: list[Any] = dataclasses.field(default_factory=list)
    pool_counts: list[int] = dataclasses.field(default_factory=list)
    constant: Any = None


class TableEncoder:
    """Turns tables into numbers and codes, and back.

    Parameters
    ----------
    columns : dict or None, default=None
        Kinds of columns by name or position, in place of the inferred ones; see `scorefield.data.kinds.KINDS`.

    Attributes
    ----------
    variables : list of Variable
        The columns that a model sees, in the order of the table.
    level_values : list of (ndarray or None)
        Per category: positions of the levels of an ordered column, None for other kinds.
    set_aside : list
        Names of the identifiers and of free text; they are empty in decoded tables.
    constants : list
        Names of the columns with at most one known value.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield.data.encoding import TableEncoder
    >>> table = np.array([[1.5, "a"], [2.5, "b"], [None, "a"]], dtype=object)
    >>> encoder = TableEncoder().fit(table)
    >>> numbers, codes = encoder.encode(table)
    >>> numbers.ravel()
    array([1.5, 2.5, nan])
    >>> codes.ravel()
    array([0, 1, 0], dtype=int32)
    >>> encoder.decode((numbers, codes)).tolist()
    [[1.5, 'a'], [2.5, 'b'], [None, 'a']]
    """

    def __init__(self, columns=None):
        self.columns = columns

    def fit(self, table):
        """Learn what each column is.

        Parameters
        ----------
        table : array, DataFrame or Table of shape (n_rows, n_columns)
            numpy, pandas, polars or pyarrow.

        Returns
        -------
        self : TableEncoder
        """
        table = Table(table)
        if not table.n_rows or not table.names:
            raise ValueError(
                f"Expected a table with rows and columns, got {table.n_rows} rows and {len(table.names)} columns; "
                "check how it was read or filtered."
            )
        self.container_ = table.container
        self.columns_ = [fit_column(*column, table.is_plain) for column in kinds.classify(table, self.columns)]
        return self

    @property
    def variables(self):
        variables, n_numbers, n_categories = [], 0, 0
        for column in self.columns_:
            has_number, has_codes = column.kind in kinds.NUMBER_KINDS, bool(column.levels or column.spikes)
            if has_number or has_codes:
                number, category = n_numbers if has_number else -1, n_categories if has_codes else -1
                variables.append(Variable(column.name, column.kind, number, category, _n_levels(column)))
                n_numbers, n_categories = n_numbers + has_number, n_categories + has_codes
        return variables

    @property
    def level_values(self):
        return [column.level_values for column in self.columns_ if column.levels or column.spikes]

    @property
    def set_aside(self):
        return [column.name for column in self.columns_ if column.kind in kinds.SET_ASIDE]

    @property
    def constants(self):
        return [column.name for column in self.columns_ if column.kind == "constant"]

    def check(self, table):
        """The table, opened; one ValueError names all columns that are missing.

        Parameters
        ----------
        table : array, DataFrame or Table
            Frames may hold more columns, in any order; arrays have as many as in `fit`.

        Returns
        -------
        table : Table
        """
        table, names = Table(table), [column.name for column in self.columns_]
        if table.container["type"] == "numpy":
            if len(table.names) != len(names):
                raise ValueError(
                    f"Expected {len(names)} columns, as in fit, got {len(table.names)}; give the same ones."
                )
            return table
        missing = [name for name in names if name not in table.names]
        if missing:
            raise ValueError(
                f"Expected the columns of the fitted table, got none named {', '.join(map(repr, missing))}; add them, "
                "with gaps if they are not known."
            )
        return table

    def encode(self, table):
        """Rows as numbers and codes.

        Parameters
        ----------
        table : array, DataFrame or Table of shape (n_rows, n_columns)
            The columns of `fit`.

        Returns
        -------
        rows : Encoded
        """
        table = self.check(table)
        numbers, codes, problems = [], [], []
        for i, column in enumerate(self.columns_):
            if column.kind in kinds.SET_ASIDE or column.kind == "constant":
                continue
            cells, problem = _like_fitted(table.cells(_name_in(table, column, i)), column)
            if problem is not None:
                problems.append(f"column {column.name!r}: {problem}")
                continue
            if column.levels:
                codes.append(_encode_levels(cells, column))
                continue
            number, code = _encode_number(cells, column)
            numbers.append(number)
            codes.extend([] if code is None else [code])
        kinds.refuse(problems)
        return Encoded(
            np.column_stack(numbers) if numbers else np.zeros((table.n_rows, 0)),
            np.column_stack(codes) if codes else np.zeros((table.n_rows, 0), dtype=np.int32),
        )

    def decode(self, rows, like=None, rng=None):
        """A table of encoded rows.

        Parameters
        ----------
        rows : Encoded or (numbers, codes)
            As `encode` returns them.
        like : array, DataFrame or Table, optional
            A table whose container and dtypes the result takes, in place of those of the fitted table.
        rng : numpy Generator, int or None
            Draws members of pooled levels.

        Returns
        -------
        table : array, DataFrame or Table of shape (n_rows, n_columns)
            Identifiers and free text are empty, constants are filled. Whole numbers with gaps take pandas' nullable
            dtype of the same width; in arrays they become float64.
        """
        numbers, codes = (np.asarray(part) for part in rows)
        if not np.isfinite(numbers[~np.isnan(numbers)]).all():
            raise ValueError("Expected finite numbers or NaN for gaps to decode, got infinity; clip them.")
        rng, where = np.random.default_rng(rng), {variable.name: variable for variable in self.variables}
        like = None if like is None else self.check(like)
        columns = []
        for i, column in enumerate(self.columns_):
            cells = _decode_column(column, where.get(column.name), numbers, codes, rng)
            storage = column.storage if like is None else like.cells(_name_in(like, column, i)).storage
            columns.append(_written(cells, column, storage))
        container = self.container_ if like is None else like.container
        return write_table(container, [column.name for column in self.columns_], columns)

    def to_plain(self):
        """The encoder as a dictionary of text, numbers, lists and arrays.

        Returns
        -------
        plain : dict
        """
        return {"container": self.container_, "columns": [dataclasses.asdict(column) for column in self.columns_]}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`.

        Parameters
        ----------
        plain : dict

        Returns
        -------
        encoder : TableEncoder
        """
        encoder = cls()
        encoder.container_ = plain["container"]
        encoder.columns_ = [Column(**column) for column in plain["columns"]]
        return encoder


def _n_levels(column):
    if column.spikes:
        return 1 + len(column.spikes)
    return len(column.levels) + bool(column.pool)


def _name_in(table, column, i):
    """Arrays are read by position, frames by name."""
    return i if table.container["type"] == "numpy" else column.name


def fit_column(name, kind, cells, plain):
    """What encodes and decodes a column of a kind; `plain` numbers keep all their decimals."""
    column = Column(name, kind, cells.form, cells.unit, cells.storage, cells.text)
    if kind in kinds.SET_ASIDE:
        return column
    levels, counts = kinds.tally(cells) if cells.known.any() else (np.zeros(0), np.zeros(0))
    if kind == "constant" or not len(levels):
        column.kind, column.constant = "constant", levels.tolist()[0] if len(levels) else None
    elif kind in CATEGORY_KINDS:
        _fit_levels(column, levels, counts)
    elif kind in ("date", "duration"):
        _fit_ticks(column, levels)
    else:
        if kind == "spiked number":
            column.spikes = kinds.wanted_spikes(levels, counts)
        _fit_number(column, levels, plain)
    return column


def _fit_levels(column, levels, counts):
    """Levels in order; the rare ones of many are pooled."""
    kept = np.ones(len(levels), dtype=bool)
    if len(levels) > MAX_SINGLE_LEVELS:
        kept = counts > 1
    if kept.sum() + (~kept).any() > MAX_LEVELS:
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
    column.step, column.scale = step, step * tick / 10**9


def _fit_number(column, levels, plain):
    if column.form == "whole":
        low, high = int(levels[0]), int(levels[-1])
        if max(abs(low), abs(high)) > kinds.EXACT:
            column.offset = low
            column.step = _common_step(levels, low) if high - low > kinds.EXACT else 1
    elif not plain:
        column.decimals, column.narrow = _decimals(levels.astype(np.float64))


def _common_step(levels, low):
    return math.gcd(*(int(level) - low for level in levels.tolist()))


def _decimals(values):
    """Decimals of all values, and the float dtype in which they have them; (None, None) above MAX_DECIMALS."""
    for narrow in (np.float64, np.float32, np.float16):
        if not (values.astype(narrow) == values).all():
            break
        for decimals in range(MAX_DECIMALS + 1):
            if (_rounded(values, decimals, narrow) == values).all():
                return decimals, np.dtype(narrow).name
    return None, None


def _rounded(values, decimals, narrow):
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(values, decimals)
        rounded = np.where(np.isfinite(rounded), rounded, values)  # too large to have decimals
        return rounded.astype(narrow).astype(np.float64)


def _like_fitted(cells, column):
    """Cells of a table in the form of the fitted column, and the problem if they cannot have it."""
    known, form = cells.known, cells.form
    if not known.any():
        return empty_cells({"form": column.form, "unit": column.unit}, len(known)), None
    if form == "object" and column.form != "object":
        return _read_text(cells, column)
    if form == column.form and form in ("time", "duration"):
        if cells.unit != column.unit and "period" in (cells.unit, column.unit):
            return cells, "expected periods of time in both tables or in neither; convert the column."
        return dataclasses.replace(cells, values=convert_ticks(cells.values, cells.unit, column.unit)), None
    mixed = column.storage.get("element") == "mixed"
    if form == column.form != "unknown" or (form in NUMERIC and (column.form in NUMERIC or mixed)):
        return cells, kinds.infinity_in(cells)
    return cells, f"expected {column.form} cells, as in the fitted table, got {form} cells; convert the column."


def _read_text(cells, column):
    """Cells of text as the numbers or times of the fitted column."""
    texts, values = [str(value) for value in cells.values[cells.known]], None
    if column.form in NUMERIC:
        values = read_numbers(texts)
    elif column.form == "time" and column.unit != "period":
        values = _ticks_of(texts, column)
    if values is None and column.levels:
        return cells, None  # levels that the fitted column has not
    if values is None:
        return cells, f"expected cells as in the fitted table ({column.kind}), got {texts[0]!r}; correct the cells."
    filled = np.zeros(len(cells.known), dtype=values.dtype)
    filled[cells.known] = values
    cells = Cells("number" if column.form in NUMERIC else "time", filled, cells.known, column.unit)
    return cells, kinds.infinity_in(cells)


def _ticks_of(texts, column):
    """Ticks of ISO text of the fitted style, or of the style of the first text."""
    for style in (column.text, date_style(texts[0])):
        ticks = None if style is None else read_dates(texts, style)
        if ticks is not None:
            return convert_ticks(ticks, TICK[style["unit"]], column.unit)
    return None


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
    if (offset, step) == (0, 1) or values.dtype.kind in "fb":
        return values.astype(np.float64) if (offset, step) == (0, 1) else (values.astype(np.float64) - offset) / step
    limits = np.iinfo(np.int64)
    if values.dtype == np.int64 and len(values):
        low, high = int(values.min()) - offset, int(values.max()) - offset
        if limits.min <= low and high <= limits.max and limits.min <= offset <= limits.max:
            values = values - np.int64(offset)
            whole, rest = np.divmod(values, np.int64(step))
            return whole.astype(np.float64) + rest / step
    return np.array([(int(value) - offset) / step for value in values.tolist()], dtype=np.float64)


def _decode_column(column, variable, numbers, codes, rng):
    """Cells of a column, in the fitted form."""
    n = len(numbers)
    if variable is None:
        if column.constant is None:
            return empty_cells(column.storage, n)
        return Cells(
            column.form, plain_array(column.form, [column.constant]).repeat(n), np.ones(n, dtype=bool), column.unit
        )
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
    if column.form == "number":
        return numbers if column.decimals is None else _rounded(numbers, column.decimals, column.narrow)
    if column.form == "flag":
        return numbers > 0.5
    values = np.rint(numbers / column.scale)
    within = np.abs(values).max(initial=0) < 2.0**63
    values = values.astype(np.int64) if within else whole_array(values.tolist())
    if (column.offset, column.step) != (0, 1):
        values = whole_array([value * column.step + column.offset for value in values.tolist()])
    if column.form in ("time", "duration"):
        limits = np.iinfo(np.int64)
        values = np.clip(values, limits.min + 1, limits.max).astype(np.int64)
    return values


def _written(cells, column, storage):
    """Cells ready for a storage; times and numbers that the storage holds as text are written in their style."""
    cells = dataclasses.replace(cells, storage=storage)
    if column.text is None or storage["form"] != "object" or not cells.known.any():
        return in_stored_form(cells)
    write = write_dates if column.text["type"] == "date" else write_numbers
    texts = np.full(len(cells.known), None, dtype=object)
    texts[cells.known] = write(cells.values[cells.known], column.text)
    return dataclasses.replace(cells, form="object", unit="", values=texts)
