"""HTML pages: escaping, self-containment, and what a browser makes of them."""

import html
import os
import re
import shutil

import matplotlib
import pytest

from scorefield.display.html import page, picture, table, tag
from scorefield.studies.engine import runs
from scorefield.studies.engine.page import collect, write_report
from scorefield.studies.paper.registry import EXPERIMENTS, STUDY

matplotlib.use("Agg")
IMAGES = "[...document.images].map(image => image.complete && image.naturalWidth > 0)"


CHOSEN = [EXPERIMENTS[name] for name in ("gaussian-1d", "gaussian-2d", "logistic-1d", "linear-2d")]
VERDICT = re.compile(r"holds|does not hold")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of experiments whose quick runs differ from the full ones in the number of seeds alone."""
    folder = tmp_path_factory.mktemp("report")
    assert all(experiment.settings(True) == experiment.settings(False) for experiment in CHOSEN)
    runs.run_all([(e, seed, e.config) for e in CHOSEN for seed in range(e.quick_seeds)], folder)
    return folder


@pytest.fixture(scope="module")
def report(folder):
    return write_report(STUDY, CHOSEN, folder, seeds=max(e.quick_seeds for e in CHOSEN))[0]


@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_shows_the_report_without_errors(browser, report, width):
    browser.open(report, width)
    shown = browser.evaluate(IMAGES)
    assert browser.messages == []
    assert len(shown) >= 4
    assert all(shown)
    assert browser.overflow() <= 0  # tables scroll by themselves


def test_a_broken_page_is_noticed(browser, tmp_path):
    path = tmp_path / "bad.html"
    body = '<img src="missing.png"><script>console.error("broken")</script><div style="width:3000px">wide</div>'
    path.write_text(f"<html><body>{body}</body></html>")
    browser.open(path)
    assert browser.evaluate(IMAGES) == [False]
    assert any("broken" in message for message in browser.messages)
    assert browser.overflow() > 0


def test_the_report_asks_the_network_for_nothing(report):
    text = report.read_text()
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text) == []
    assert "url(" not in text
    assert "<script" not in text


def test_the_report_has_a_verdict_for_every_claim_and_the_settings(report):
    text = report.read_text()
    for name in ("gaussian-1d", "gaussian-2d", "logistic-1d", "linear-2d"):
        assert f'id="{name}"' in text
    n_claims = len(re.findall(r'class="verdict ', text))
    assert n_claims == 7
    assert "versions: {&#x27;python&#x27;" in text
    assert os.fspath(report.parent) not in text  # no path of this machine


def test_a_quick_run_says_first_that_it_has_no_verdicts(folder, tmp_path):
    shutil.copytree(folder / "rows", tmp_path / "rows")
    path, said = write_report(STUDY, CHOSEN, tmp_path, quick=True)
    assert said.startswith("A quick run is too short for verdicts")
    for text in (path.read_text().partition("</style>")[2], (tmp_path / "summary.md").read_text(), said):
        assert not VERDICT.search(text)
    assert re.search(r"</h1><p><b>A quick run is too short for verdicts", path.read_text())
    claims = [claim.text for e in CHOSEN for claim in e.show(collect([e], folder, seeds=None, quick=True)[0][2]).claims]
    assert all(html.escape(claim) in path.read_text() for claim in claims)


def test_text_is_escaped():
    assert str(tag("p", "a < b & c")) == "<p>a &lt; b &amp; c</p>"
    assert "&lt;script&gt;" in table("<script>", ["<b>"], [["<i>"]])
    assert 'lang="en"' in page("x", [])


def test_a_picture_is_inside_the_page():
    figure = matplotlib.pyplot.figure(figsize=(1, 1))
    found = picture(figure, 'a "caption"')
    assert 'src="data:image/png;base64,' in found
    assert 'alt="a &quot;caption&quot;"' in found
    assert not matplotlib.pyplot.fignum_exists(figure.number)
