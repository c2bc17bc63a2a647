"""Reports of studies: an HTML page and a text summary, both made only from rows."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from scorefield.data.files import write_whole
from scorefield.display.html import Raw, page, picture, table, tag
from scorefield.evaluation.statistics import FAILS, HOLDS, WITHIN_NOISE
from scorefield.studies.engine.runs import read_rows

MARKS = {HOLDS: ("good", "✓"), WITHIN_NOISE: ("noise", "≈"), FAILS: ("bad", "✗")}


QUICK = (
    "A quick run is too short for verdicts, so none are given: it has few seeds and trains briefly. It shows that "
    "everything runs, and what a full run reports."
)


class Study(NamedTuple):
    """A group of experiments: title, introduction and command of its report, and the rule of its verdicts."""

    title: str
    introduction: str
    command: str
    lead: str = ""  # precedes the description of each experiment
    rule: str = ""
    explorer: Callable[[list], Raw] | None = (
        None  # part of the page in which readers choose; takes what `collect` finds
    )

    def opening(self, quick):
        """The introduction, with the rule of the verdicts if there are any."""
        return self.introduction if quick else f"{self.introduction} {self.rule}"


def collect(experiments, folder, *, seeds, quick):
    """(experiment, headers, rows) of each experiment with rows for these settings."""
    found = []
    for experiment in experiments:
        read = read_rows(folder, experiment, experiment.settings(quick))
        wanted = [read[seed] for seed in range(experiment.count(seeds, quick)) if seed in read]
        if wanted:
            headers, rows = zip(*wanted, strict=True)
            found.append((experiment, list(headers), [row for part in rows for row in part]))
    return found


def _verdict(verdict):
    style, mark = MARKS[verdict]
    return tag("span", f"{mark} {verdict}", class_=f"verdict {style}")


def _claims(claims, quick, shown=str):
    """Column names and rows of a table of claims; a quick run has no verdicts."""
    if quick:
        return ["claim", "numbers of this run"], [[claim.text, claim.evidence] for claim in claims]
    return ["claim", "verdict", "evidence"], [[claim.text, shown(claim.verdict), claim.evidence] for claim in claims]


def _section(lead, quick, experiment, headers, section):
    seconds = sum(header["seconds"] for header in headers)
    parts = [
        tag("h2", experiment.title, id=experiment.name),
        tag("p", tag("b", lead), experiment.paper),
    ]
    if section.claims:
        parts.append(table("Claims", *_claims(section.claims, quick, _verdict)))
    parts += [table(t.caption, t.columns, t.rows) for t in section.tables]
    parts += [picture(figure.draw(), figure.caption) for figure in section.figures]
    versions = sorted({str(header["versions"]) for header in headers})
    settings = (
        f"seeds: {', '.join(str(h['seed']) for h in headers)}\n"
        f"settings: {headers[0]['config']}\nversions: {' and '.join(versions)}\nseconds, all seeds: {seconds:.0f}"
    )
    parts.append(tag("details", tag("summary", "Settings, versions, time"), tag("pre", settings)))
    return tag("section", *parts)


def write_report(study, experiments, folder, *, seeds=None, quick=False):
    """Write index.html and summary.md from the rows in a folder; return the page's path and its line on verdicts."""
    found = collect(experiments, folder, seeds=seeds, quick=quick)
    sections = [(experiment, headers, experiment.show(rows)) for experiment, headers, rows in found]
    counts = Counter(claim.verdict for _, _, section in sections for claim in section.claims)
    total = QUICK if quick else "Claims: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in MARKS) + "."
    body = [
        tag("h1", study.title),
        tag("p", tag("b", total)),
        tag("p", study.opening(quick)),
        _overview(sections, quick),
        *([study.explorer(found)] if study.explorer and found else []),
        *(_section(study.lead, quick, *parts) for parts in sections),
    ]
    path = folder / "index.html"
    write_whole(path, page(study.title, [Raw(part) for part in body]))
    write_whole(folder / "summary.md", summary(study, sections, total, quick))
    return path, total


def _overview(sections, quick):
    """Table of the experiments, with the counts of their verdicts."""
    marks = [] if quick else list(MARKS)
    lines = [
        [
            tag("a", experiment.title, href=f"#{experiment.name}"),
            len(headers),
            *(sum(claim.verdict == verdict for claim in section.claims) for verdict in marks),
        ]
        for experiment, headers, section in sections
    ]
    return table("Experiments", ["experiment", "seeds", *marks], lines)


def _markdown_table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*lines, *("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows)]


def summary(study, sections, total, quick):
    """Claims and tables of the report as Markdown."""
    names = " ".join(experiment.name for experiment, _, _ in sections)
    command = f"{study.command} {names}" + (" --quick" if quick else "")
    lines = [
        f"# {study.title}",
        "",
        f"`{command}` wrote this file from its rows.",
        "",
        *([total, "", study.opening(quick)] if quick else [study.opening(quick), "", total]),
        "",
    ]
    for experiment, headers, section in sections:
        lines += [f"## {experiment.name}: {experiment.title}", "", f"{experiment.paper} Seeds: {len(headers)}.", ""]
        if section.claims:
            lines += [*_markdown_table(*_claims(section.claims, quick)), ""]
        for part in section.tables:
            lines += [part.caption, "", *_markdown_table(part.columns, part.rows), ""]
    return "\n".join(lines)
