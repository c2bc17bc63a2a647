"""What an experiment is, and what a section of the report is made of."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Claim:
    """A claim that the rows could refute: the words, the verdict on it, and the numbers behind the verdict."""

    text: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Table:
    """A caption, column names, and rows of cells."""

    caption: str
    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Figure:
    """A name, a caption, and a function that draws it: figures are made when a report asks for them."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Section:
    """What the report shows of one experiment; made from its rows alone."""

    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Experiment:
    """An experiment; `paper` says in words what it is, or what the paper does.

    `run(seed, config)` returns rows, which are dicts of plain values; `show(rows)` makes the section of the report.
    `quick` holds what a quick run changes in `config`.
    """

    name: str
    title: str
    paper: str
    run: Callable[[int, dict[str, Any]], list[dict[str, Any]]]
    show: Callable[[list[dict[str, Any]]], Section]
    seeds: int
    quick_seeds: int
    config: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)

    def settings(self, quick: bool) -> dict[str, Any]:
        """The configuration of a full or a quick run."""
        return {**self.config, **(self.quick if quick else {})}


def of_kind(rows: list[dict[str, Any]], kind: str, **match: Any) -> list[dict[str, Any]]:
    """The rows of one kind that match."""
    return [row for row in rows if row["kind"] == kind and all(row.get(k) == v for k, v in match.items())]


def compact(values: Any, digits: int = 5) -> list[Any]:
    """An array as nested lists of numbers with few digits: rows are text, and a picture needs no more."""
    if getattr(values, "ndim", 0) == 0:
        return float(f"{float(values):.{digits}g}")  # type: ignore[return-value]
    return [compact(value, digits) for value in values]
