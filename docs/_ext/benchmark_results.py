"""The page of benchmark results that the guide embeds, written from the committed rows before every build."""

import pathlib

from scorefield.display.html import page
from scorefield.studies.benchmark.explorer import explorer
from scorefield.studies.benchmark.registry import EXPERIMENTS
from scorefield.studies.engine.page import collect

DOCS = pathlib.Path(__file__).parents[1]


def write_results(app=None, path=DOCS / "_static" / "results.html"):
    """Write the page; experiments without rows are left out."""
    found = collect(EXPERIMENTS.values(), DOCS.parent / "results" / "benchmark", seeds=None, quick=False)
    path.write_text(page("Benchmark results", [explorer(found)]), encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write_results)
    return {"parallel_read_safe": True}
