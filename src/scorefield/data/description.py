"""What each column of a table is taken for, in words."""

import html

import numpy as np

from scorefield.data.cells import NANOSECONDS, NUMERIC, Cells
from scorefield.data.coding import fit_column
from scorefield.data.containers import Table
from scorefield.data.everyday_dates import DATE
from scorefield.data.frames import write_pandas
from scorefield.data.keys import key_reason
from scorefield.data.kinds import SET_ASIDE, classify, tally, wanted_kinds
from scorefield.data.leaks import leaks
from scorefield.data.recognition import style_in_words
from scorefield.data.splits import same_cells
from scorefield.data.texts import write_dates, write_numbers
from scorefield.data.zones import local_times, zone_in

TITLES = {
    "column": "column",
    "kind": "kind",
    "gaps": "missing",
    "values": "values",
    "treatment": "what is done with it",
}
MODELLED_AS = {
    "number": "a number",
    "whole number": "a number, rounded",
    "spiked number": "a number or a spike",
    "ordered": "ordered levels",
    "flag": "two levels",
    "category": "levels",
    "date": "a number",
    "duration": "a number",
}
SHOWN_LEVELS = 3
SHOWN_LENGTH = 18  # characters of a level


class ColumnDescription:
    """Description of the columns of a table, printed as a table.

    Attributes
    ----------
    rows : list of dict
        Per column: `column`, `kind`, `gaps` (share of the rows), `values` and `treatment` (text), and `reason`: why it
        is set aside, or "as asked" for a kind that was given; None for other columns.
    repeated_rows : int
        Number of rows that equal an earlier one, without identifiers and free text.
    warnings : list of str
        Columns whose order alone predicts the label, where labels were given.
    """

    def __init__(self, rows, repeated_rows=0, warnings=()):
        self.rows, self.repeated_rows, self.warnings = rows, repeated_rows, list(warnings)

    @property
    def _notes(self):
        said = [f"warning: {sentence}" for sentence in self.warnings]
        if not self.repeated_rows:
            return said
        rows, repeat = ("row", "repeats") if self.repeated_rows == 1 else ("rows", "repeat")
        set_aside = any(row["kind"] in SET_ASIDE for row in self.rows)
        apart = " apart from the columns that are set aside" if set_aside else ""
        return [f"{self.repeated_rows:,} {rows} {repeat} an earlier one{apart}; splits keep them together.", *said]

    def __repr__(self):
        lines = self.cells()
        widths = [max(len(line[i]) for line in lines) for i in range(len(TITLES))]
        shown = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*shown, *self._notes])

    def _repr_html_(self):
        titles, *lines = self.cells()
        head = "".join(f"<th>{title}</th>" for title in titles)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in line) + "</tr>" for line in lines)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def to_plain(self):
        """All that is printed, in plain values."""
        return {"columns": self.rows, "repeated_rows": self.repeated_rows, "warnings": self.warnings}

    def cells(self):
        """The printed table as lists of text, the titles first."""
        lines = [list(TITLES.values())]
        for row in self.rows:
            gaps = _percent(row["gaps"]) if row["gaps"] else ""
            lines.append([str(row["column"]), row["kind"], gaps, row["values"], row["treatment"]])
        return lines


def describe_columns(table, columns=None, labels=None):
    """What each column of a table is taken for, and what will be done with it.

    Parameters
    ----------
    table : array, DataFrame or Table of shape (n_rows, n_columns)
        numpy, pandas, polars or pyarrow.
    columns : dict or None, default=None
        Kinds by name or position, in place of the inferred ones: "number", "whole number", "spiked number", "ordered",
        "flag", "category", "date", "duration", "identifier", "text" or "constant".
    labels : array-like of shape (n_rows,), default=None
        Labels of the rows: columns are named whose order alone predicts them, as keys do in a table that is sorted by
        label.

    Returns
    -------
    description : ColumnDescription
        Prints as a table; `rows` holds the same as a list of dictionaries.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import describe_columns
    >>> table = np.array([[1.5, "a", "2024-01-31"], [2.5, "b", "2024-02-29"], [None, "a", "2024-03-31"]], dtype=object)
    >>> describe_columns(table)
    column  kind    missing  values                    what is done with it
    0       number  33 %     1.5 to 2.5                modelled as a number; missing values too
    1       flag             a (67 %), b (33 %)        modelled as two levels
    2       date             2024-01-31 to 2024-03-31  modelled as a number; read as year-month-day
    """
    table = Table(table)
    asked, classified = wanted_kinds(table.names, columns), classify(table, columns)
    rows = [
        _row(*column, table.is_plain, "as asked" if column[0] in asked else _key_reason(column, classified))
        for column in classified
    ]
    compared = [cells for _, kind, cells in classified if kind not in SET_ASIDE]
    n_repeated = table.n_rows - len(np.unique(same_cells(compared))) if compared and table.n_rows else 0
    return ColumnDescription(rows, n_repeated, [] if labels is None else leaks(table, labels, columns))


def _key_reason(column, classified):
    """Why a column of whole numbers is an identifier; None for other columns."""
    name, kind, cells = column
    if kind != "identifier" or cells.form not in NUMERIC:
        return None
    others = (own for other, kind, own in classified if other != name and kind not in SET_ASIDE)
    return key_reason(name, cells, tally(cells)[0], others)


def _row(name, kind, cells, plain, reason):
    gaps = float(np.mean(~cells.known)) if len(cells.known) else 0.0
    column = fit_column(name, kind, cells, plain)
    levels, counts = tally(cells) if cells.form != "unknown" and cells.known.any() else (np.zeros(0), np.zeros(0))
    if reason is None and column.kind in SET_ASIDE:
        reason = _text_reason(column, levels, counts)
    return {
        "column": name,
        "kind": column.kind,
        "gaps": gaps,
        "values": _values(column, levels, counts),
        "treatment": _treatment(column, levels, gaps, reason),
        "reason": reason,
    }


def _values(column, levels, counts):
    if not len(levels):
        return ""
    if column.kind in ("identifier", "text"):
        return f"{len(levels):,} distinct"
    if column.kind == "constant":
        return _shown(column, levels[:1])[0]
    if not column.levels:
        low, high = _shown(column, levels[[0, -1]])
        shares = [counts[levels == spike].sum() / counts.sum() for spike in column.spikes]
        spikes = [
            f"{text} ({_percent(share)})" for text, share in zip(_shown(column, column.spikes), shares, strict=True)
        ]
        return f"{low} to {high}" + (f", spike at {', '.join(spikes)}" if spikes else "")
    first = np.arange(len(levels)) if column.kind == "ordered" else np.argsort(-counts, kind="stable")
    first = first[:SHOWN_LEVELS]
    shown = zip(_shown(column, levels[first]), counts[first] / counts.sum(), strict=True)
    more = f" and {len(levels) - SHOWN_LEVELS} more" if len(levels) > SHOWN_LEVELS else ""
    return ", ".join(f"{text} ({_percent(share)})" for text, share in shown) + more


def _percent(share):
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else "< 1 %"


def _shown(column, values):
    """Plain values as short text."""
    values = np.asarray(values)
    if column.form == "time":
        return _shown_times(column, values)
    if column.form == "duration":
        return [str(np.timedelta64(int(value), column.unit).astype("timedelta64[us]").item()) for value in values]
    if column.text is not None and "decimal" in column.text:
        return write_numbers(values.astype(float), column.text)
    texts = [f"{value:g}" if isinstance(value, float) else " ".join(str(value).split()) for value in values.tolist()]
    return [text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 3] + "..." for text in texts]


def _shown_times(column, values):
    if column.text is not None:
        return write_dates(values, column.text)
    if column.unit == "period":
        cells = Cells("time", values, np.ones(len(values), dtype=bool), "period", column.storage)
        return [str(period) for period in write_pandas(cells)]
    moments = values.view(f"M8[{column.unit}]")
    if _is_clock(column.storage):
        return [text.partition("T")[2] for text in np.datetime_as_string(moments, unit="s")]
    zone = zone_in(column.storage)
    if zone is not None:
        style = "%Y-%m-%d" if column.midnights else f"%Y-%m-%d %H:%M:%S {zone}"
        return [moment.strftime(style) for moment in local_times(values, column.unit, zone)]
    days = not (values % (NANOSECONDS["D"] // NANOSECONDS[column.unit])).any()
    texts = np.datetime_as_string(moments, unit="D" if days else "s")
    return [str(text).replace("T", " ") for text in texts]


def _is_clock(storage):
    """True for times of day."""
    storage = storage.get("inner", storage)
    dtype = storage.get("dtype", "")
    return storage.get("element") == "time" or dtype == "Time" or dtype.startswith(("time32", "time64"))


def _treatment(column, levels, gaps, reason):
    if column.kind in SET_ASIDE:
        in_new_rows = "new keys" if column.keys else "blank"
        return f"set aside: {reason}; {in_new_rows} in generated rows"
    if column.kind == "constant":
        return "filled with its value" if len(levels) else "left empty: no known cell"
    parts = [f"modelled as {MODELLED_AS[column.kind]}"]
    if column.text is not None and {"order", "decimal", "compact"} & set(column.text):
        parts.append(f"read as {style_in_words(column.text)}")
    if column.pool:
        parts.append(f"{len(column.pool)} rare levels are pooled")
    if gaps:
        parts.append("missing values too")
    return "; ".join(parts)


def _text_reason(column, levels, counts):
    if column.kind == "text":
        return "free text"
    if len(levels) and all(isinstance(level, str) and DATE.fullmatch(level) for level in levels.tolist()):
        return "dates in several spellings, of which one alone would be read"
    return "every value is different" if len(levels) == counts.sum() else "most values are different"
