"""Experiments, and the claims, tables and figures of their sections in a report."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Claim:
    """A claim that rows could refute, its verdict, and the numbers behind the verdict."""

    text: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Table:
    """A table of a report: caption, column names and rows of cells."""

    caption: str
    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Figure:
    """A figure of a report: name, caption and a function that draws it on demand."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Section:
    """The part of a report about one experiment, made only from its rows."""

    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


@dataclass(frozen=True)
class Experiment:
    """An experiment; `paper` describes it, or what the paper does.

    `run(seed, config)` returns rows, dicts of plain values; `show(rows)` makes the section of the report. `quick` holds
    the changes of a quick run to `config`.
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

    def count(self, asked: int | None, quick: bool) -> int:
        """Seeds to run: the usual ones, or those asked for; where they number splits, no more than there are."""
        if asked is None:
            return self.quick_seeds if quick else self.seeds
        settings = self.settings(quick)
        if "n_folds" not in settings:
            return asked
        return min(asked, len(settings["tables"]) * settings["n_folds"] * settings["n_repeats"])

    def settings(self, quick: bool) -> dict[str, Any]:
        """Configuration of a full or a quick run."""
        return {**self.config, **(self.quick if quick else {})}


def of_kind(rows: list[dict[str, Any]], kind: str, **match: Any) -> list[dict[str, Any]]:
    """Rows of one kind that match."""
    return [row for row in rows if row["kind"] == kind and all(row.get(k) == v for k, v in match.items())]


def compact(values: Any, digits: int = 5) -> Any:
    """A number or nested lists of numbers with few digits, which keeps files of rows small."""
    if getattr(values, "ndim", 0) == 0:
        return float(f"{float(values):.{digits}g}")
    return [compact(value, digits) for value in values]
