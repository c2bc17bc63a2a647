"""The built documentation in a browser: nothing is cut off, nothing fails, nothing is asked of the network."""

import pathlib
import re

import pytest

BUILT = pathlib.Path(__file__).parents[2] / "docs" / "_build" / "html"
REMOTE = re.compile(r'(?:src="|<link rel="stylesheet"[^>]*href=")(?:https?:)?//[^"]*')
EXEMPT = ".visually-hidden, dialog, .sphx-glr-script-out, .pst-scrollable-table-container"
# Elements that cut off or scroll what they hold, or reach beyond the window. Tables and printed results may scroll.
CUT_OFF = """[...document.querySelectorAll('main *, header *, footer *')].filter(element => {
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  if (!box.width || style.visibility === 'hidden' || style.clip !== 'auto' || element.closest(EXEMPT)) return false;
  return box.right > innerWidth + 1 || style.overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1;
}).map(element => element.tagName + ': ' + element.textContent.trim().slice(0, 60))""".replace("EXEMPT", repr(EXEMPT))


@pytest.fixture(scope="module")
def pages():
    found = sorted(path for path in BUILT.rglob("*.html") if "_static" not in path.parts)
    if not found:
        pytest.skip("the documentation has not been built (make docs)")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 400])
def test_pages_show_everything_they_hold(browser, pages, width):
    for page in pages:
        browser.open(page, width)
        assert browser.evaluate(CUT_OFF) == [], page
        assert browser.overflow() <= 0, page
        assert [message for message in browser.messages if '"type": "log"' not in message] == [], page


@pytest.mark.slow
def test_pages_ask_the_network_for_nothing(pages):
    for page in pages:
        assert REMOTE.findall(page.read_text()) == [], page


@pytest.mark.slow
def test_formulas_are_drawn(browser, pages):
    browser.open(BUILT / "theory.html")
    sizes = "[...document.querySelectorAll('math')].map(math => math.getBoundingClientRect().height)"
    assert min(browser.evaluate(sizes)) > 5
    formulas = browser.evaluate("[...document.querySelectorAll('.formula')].map(formula => formula.textContent)")
    assert any(text.startswith("J(s)=E[") for text in formulas)
    assert "\\" not in browser.evaluate("document.querySelector('main').textContent")


def test_text_that_is_cut_off_is_noticed(browser, tmp_path):
    path = tmp_path / "page.html"
    style = "width: 99px; overflow: hidden; white-space: nowrap"
    path.write_text(f'<main><p style="{style}">A long title that is cut off</p></main>')
    browser.open(path)
    assert browser.evaluate(CUT_OFF) == ["P: A long title that is cut off"]
