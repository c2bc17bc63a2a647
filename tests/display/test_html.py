"""HTML pages: escaping, self-containment, and what a browser makes of them."""

import os
import re
import shutil
import subprocess

import matplotlib
import pytest

from scorefield.display.html import page, picture, table, tag
from scorefield.studies.engine import runs
from scorefield.studies.engine.page import write_report
from scorefield.studies.paper.registry import EXPERIMENTS, STUDY

matplotlib.use("Agg")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# The middle ones keep a browser from looking for updates at every start.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0",
)  # fmt: skip
# Counted in the page itself: pictures in it, pictures that failed, and whether it is wider than the window.
PROBE = """<script>addEventListener("load", () => {
  const images = [...document.images];
  document.body.dataset.images = images.length;
  document.body.dataset.broken = images.filter(i => !(i.complete && i.naturalWidth > 0)).length;
  document.body.dataset.overflow = document.documentElement.scrollWidth - innerWidth;
});</script>"""


def browse(path, folder, width=1200):
    """(data attributes of the body, console messages) of a page with the probe added."""
    probed = folder / "probed.html"
    probed.write_text(path.read_text().replace("</body>", PROBE + "</body>"))
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--dump-dom",
               f"file://{probed}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = dict(re.findall(r'data-(images|broken|overflow)="(-?\d+)"', done.stdout))
    messages = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return {name: int(value) for name, value in found.items()}, messages


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    chosen = [EXPERIMENTS[name] for name in ("gaussian-1d", "gaussian-2d", "logistic-1d", "linear-2d")]
    runs.run_all([(e, seed, e.settings(True)) for e in chosen for seed in range(e.quick_seeds)], folder)
    return write_report(STUDY, chosen, folder, quick=True)[0]


needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")


@needs_browser
@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_shows_the_report_without_errors(report, tmp_path, width):
    found, messages = browse(report, tmp_path, width)
    assert messages == []
    assert found["images"] >= 4
    assert found["broken"] == 0
    assert found["overflow"] <= 0  # tables scroll by themselves


@needs_browser
def test_a_broken_page_is_noticed(tmp_path):
    path = tmp_path / "bad.html"
    body = '<img src="missing.png"><script>console.error("broken")</script><div style="width:3000px">wide</div>'
    path.write_text(f"<html><body>{body}</body></html>")
    found, messages = browse(path, tmp_path)
    assert found["broken"] == 1
    assert any("broken" in message for message in messages)
    assert found["overflow"] > 0


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
