"""Relations between columns that rows keep, such as "start <= end" and "total == a + b", read by a small grammar.

relation = sum (operator sum)+        operator = "<=" | "<" | "==" | "=" | ">=" | ">"
sum      = [sign] term (sign term)*   term = name | quoted name | number
"""

import dataclasses
import re
from typing import Any

import numpy as np

from scorefield.data.cells import NANOSECONDS, NUMERIC, convert_ticks, whole_array
from scorefield.data.kinds import SET_ASIDE

TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"[^"]*"|'[^']*'|`[^`]*`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<name>[^\W\d][\w.]*)
    |(?P<operator><=|>=|==|<|>|=)
    |(?P<sign>[+-]))""",
    re.VERBOSE,
)
OPERATORS = ("<=", "<", "==", "=", ">=", ">")
FORMS = "'start <= end', 'total == a + b' or ('start', '<=', 'end')"
TIMES = ("time", "duration")
SINGLE_PRECISION = 1e-5  # of the spread of a column: with a margin, since scores are stored and not the numbers
ROUNDING = 8  # units in the last place of the largest term that a sum of few floats may be off by


@dataclasses.dataclass(frozen=True)
class Relation:
    """sum of sign * column + constant, compared with zero by "<=", "<" or "=="; a missing cell keeps it."""

    text: str
    terms: tuple[tuple[int, Any], ...]  # signs and names of columns
    constant: float
    operator: str

    @property
    def names(self):
        """Names of its columns."""
        return [name for _, name in self.terms]

    def all_known(self, cells):
        """Rows in which all its columns are known."""
        return np.all([cells[name].known for name in self.names], axis=0)

    def kept(self, cells, columns, *, rounded=False):
        """Rows that keep it: those of a dict of Cells in the forms of the fitted `columns`, a dict of Column.

        Numbers that were `rounded` to single precision may be off by as much.
        """
        known = self.all_known(cells)
        excess, allowed = self._excess(cells, columns)
        if rounded:
            spreads = [np.ptp(self._values(cells[name], columns).astype(float)) for name in self.names if known.any()]
            allowed = allowed + SINGLE_PRECISION * max(spreads, default=0.0)
        if self.operator == "==":
            found = abs(excess) <= allowed
        else:
            found = excess <= allowed if self.operator == "<=" else excess < -allowed
        return ~known | np.asarray(found, bool)

    def _excess(self, cells, columns):
        """Left side less right side, and how much of it may be rounding."""
        parts = [(sign, self._values(cells[name], columns)) for sign, name in self.terms]
        total = sum(sign * values for sign, values in parts) + self._constant
        if total.dtype.kind != "f" or len(self.terms) == 1 or self._compares_two:
            return total, 0
        decimals = [columns[name].decimals for name in self.names if columns[name].form == "number"]
        if None not in decimals:
            return total, 0.5 * 10.0 ** -max([*decimals, _decimals_of(self.constant)])
        sizes = np.max([np.abs(values) for _, values in parts], axis=0)
        return total, ROUNDING * max(_precision(cells[name]) for name in self.names) * sizes

    @property
    def _compares_two(self):
        """True for a comparison of two columns, which needs no allowance for rounding."""
        return sorted(sign for sign, _ in self.terms) == [-1, 1] and self.constant == 0

    @property
    def _constant(self):
        return int(self.constant) if float(self.constant).is_integer() else self.constant

    def _values(self, cells, columns):
        """The column in the unit of the relation: whole numbers as far as that is what all of them are."""
        values = np.where(cells.known, cells.values, 0)
        if cells.form in TIMES:
            unit = self._unit(columns)
            return _safe(convert_ticks(values.astype(np.int64), cells.unit, unit))
        whole = all(columns[name].form in ("whole", "flag") for name in self.names)
        if whole and isinstance(self._constant, int):
            return _safe(values.astype(np.int64) if values.dtype == bool else values)
        return values.astype(np.float64)

    def _unit(self, columns):
        """The finest unit of its times."""
        units = [columns[name].unit for name in self.names]
        return units[0] if "period" in units else min(units, key=NANOSECONDS.__getitem__)

    def solved(self, name, cells, columns):
        """Values of one column, in its form and on its grid, that an equality has where all others are known."""
        sign = next(sign for sign, other in self.terms if other == name)
        others = [(part, other) for part, other in self.terms if other != name]
        total = sum(part * self._values(cells[other], columns) for part, other in others) + self._constant
        values, column = -sign * total, columns[name]
        if column.form in TIMES:
            return convert_ticks(_within_int64(values), self._unit(columns), column.unit)
        if column.form == "flag":
            return values > 0.5
        if column.form == "whole":
            return whole_array(np.rint(values)) if values.dtype.kind == "f" else values
        values = values.astype(np.float64)
        return values if column.decimals is None else np.round(values, column.decimals)


def _safe(values):
    """Whole numbers, as Python's where a sum of several could overflow."""
    largest = max(-int(values.min(initial=0)), int(values.max(initial=0)))
    return values.astype(np.int64) if largest < 1 << 58 else np.array(values.tolist(), dtype=object)


def _within_int64(values):
    limits = np.iinfo(np.int64)
    return np.clip(values, limits.min + 1, limits.max).astype(np.int64)


def _precision(cells):
    """Spacing of the floats that hold a column, relative to their size."""
    try:
        return float(np.finfo(cells.storage.get("dtype", "f8").lower()).eps)
    except (TypeError, ValueError):
        return float(np.finfo(np.float64).eps)


def _decimals_of(number):
    return len(repr(float(number)).partition(".")[2].rstrip("0"))


def parse_relations(constraints, names):
    """The `Relation`s of the constraints that users write, for a table with these column names.

    Parameters
    ----------
    constraints : None, str, or list of str and of tuples (column, operator, column)
    names : list
        Names of the columns; positions for an array, whose columns text calls x0, x1 and so on.

    Returns
    -------
    relations : list of Relation

    Examples
    --------
    >>> from scorefield.data.relations import parse_relations
    >>> relation, = parse_relations(["'net price' + tax == total"], ["net price", "tax", "total"])
    >>> relation.terms, relation.operator
    (((1, 'net price'), (1, 'tax'), (-1, 'total')), '==')
    """
    if constraints is None:
        return []
    if isinstance(constraints, str) or (isinstance(constraints, tuple) and is_triple(constraints)):
        constraints = [constraints]
    return [relation for one in constraints for relation in _parse(one, list(names))]


def is_triple(value):
    return len(value) == 3 and value[1] in OPERATORS


def _parse(constraint, names):
    """The relations of one constraint: a chain such as a <= b <= c has several."""
    if isinstance(constraint, str):
        sides, operators = _read_text(constraint, names)
        text = constraint.strip()
    elif isinstance(constraint, tuple | list) and is_triple(constraint):
        left, operator, right = constraint
        sides, operators = [_side(left, names), _side(right, names)], [operator]
        text = f"{left} {operator} {right}"
    else:
        raise ValueError(f"Expected a constraint such as {FORMS}, got {constraint!r}.")
    pairs = zip(sides, operators, sides[1:], strict=False)
    return [_relation(text, *pair) for pair in pairs]


def _side(side, names):
    """A sum from one end of a tuple: a column by its name or position, or text."""
    if side in names:
        return [(1, side)], 0.0
    if isinstance(side, str):
        return _read_text(side, names, n_operators=0)[0][0]
    if isinstance(side, int | float) and not isinstance(side, bool):
        return [], float(side)
    raise ValueError(f"Expected a column or a number in a constraint, got {side!r}; the columns are {_listed(names)}.")


def _relation(text, left, operator, right):
    flipped = -1 if operator in (">=", ">") else 1
    terms = [(flipped * sign, name) for sign, name in left[0]] + [(-flipped * sign, name) for sign, name in right[0]]
    used = [name for _, name in terms]
    twice = {name for name in used if used.count(name) > 1}
    if twice or not used:
        found = f"{sorted(map(str, twice))} more than once" if twice else "none"
        raise ValueError(f"Expected different columns in the constraint {text!r}, got {found}; name each of them once.")
    canonical = {"=": "==", ">=": "<=", ">": "<"}.get(operator, operator)
    return Relation(text, tuple(terms), flipped * (left[1] - right[1]), canonical)


def _read_text(text, names, n_operators=None):
    """Sums (terms, constant) and the operators between them."""
    sums: list = [([], 0.0)]
    operators, sign, place = [], 1, 0
    expects_term = True
    while text[place:].strip():
        match = TOKEN.match(text, place)
        if match is None:
            raise _unreadable(text, text[place:].strip())
        place, kind, token = match.end(), match.lastgroup, match.group(match.lastgroup)
        if kind == "operator" and not expects_term:
            operators.append(token)
            sums.append(([], 0.0))
            sign, expects_term = 1, True
        elif kind == "sign":
            sign = (sign if expects_term else 1) * (-1 if token == "-" else 1)
            expects_term = True
        elif kind != "operator" and expects_term:
            terms, constant = sums[-1]
            if kind == "number":
                sums[-1] = terms, constant + sign * float(token)
            else:
                terms.append((sign, _column(token[1:-1] if kind == "quoted" else token, names, text)))
            expects_term = False
        else:
            raise _unreadable(text, token)
    if expects_term or (len(operators) == 0 if n_operators is None else len(operators) != n_operators):
        raise _unreadable(text, "its end")
    return sums, operators


def _unreadable(text, what):
    return ValueError(
        f"Expected a constraint such as {FORMS}, got {text!r}, which cannot be read at {what!r}; use +, -, <=, <, ==, "
        "> and >= between columns and numbers, and quote names that hold anything but letters, digits and _."
    )


def _column(name, names, text):
    if name in names:
        return name
    if re.fullmatch(r"x\d+", name) and int(name[1:]) in names:  # arrays
        return int(name[1:])
    raise ValueError(
        f"Expected a column in the constraint {text!r}, got {name!r}; the columns are {_listed(names)}, and names that "
        "hold spaces or signs are quoted."
    )


def _listed(names, most=20):
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def check_relations(relations, columns):
    """Refuse relations between columns that cannot be compared; `columns` is a dict of Column by name."""
    for relation in relations:
        kinds = {name: columns[name] for name in relation.names}
        for name, column in kinds.items():
            if column.kind in SET_ASIDE:
                raise ValueError(
                    f"Expected columns that are generated in the constraint {relation.text!r}, got the {column.kind} "
                    f"{name!r}; leave it out, or say what it is by `columns`."
                )
            if column.form not in (*NUMERIC, *TIMES):
                raise ValueError(
                    f"Expected numbers or dates in the constraint {relation.text!r}, got the {column.kind} {name!r}."
                )
        _check_times(relation, kinds)


def _check_times(relation, columns):
    """Times are compared with times; they differ by durations, which numbers are not."""
    forms = [columns[name].form for name in relation.names]
    if not set(forms) & set(TIMES):
        return
    balance = sum(sign for (sign, _), form in zip(relation.terms, forms, strict=True) if form == "time")
    units = {columns[name].unit for name in relation.names}
    if set(forms) - set(TIMES) or balance or relation.constant or ("period" in units and len(units) > 1):
        told = ", ".join(f"{name!r} ({column.kind})" for name, column in columns.items())
        raise ValueError(
            f"Expected dates to be compared with dates, or a date and a duration with a date, in the constraint "
            f"{relation.text!r}, got {told}."
        )


def count_violations(relations, cells, columns, *, rounded=False):
    """Sentences such as "3 of 50 rows violate 'start <= end'", for the relations that some rows violate."""
    found = []
    for relation in relations:
        n_violating = int((~relation.kept(cells, columns, rounded=rounded)).sum())
        if n_violating:
            n_rows = len(cells[relation.names[0]].known)
            found.append(f"{n_violating:,} of {n_rows:,} rows violate {relation.text!r}")
    return found


def refuse_violations(relations, cells, columns, rows="training rows", *, rounded=False):
    """Raise an error that counts the rows which violate each relation."""
    found = count_violations(relations, cells, columns, rounded=rounded)
    if found:
        raise ValueError(
            f"Expected {rows} that keep the constraints, got {'; '.join(found)}; correct the rows or leave the "
            "constraint out."
        )
