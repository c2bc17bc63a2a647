"""The playground page: its closed forms, and what dragging, touching and typing do in a browser."""

import pathlib

import numpy as np
import pytest

from scorefield import ScoreClassifier, export_json

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "_static" / "playground.html"
# Where a point lies in the window, in pixels.
AT = "(([x, y], box) => [box.left + (x / X + 1) / 2 * box.width, box.top + (1 - y / Y) / 2 * box.height])"


def pixel(browser, point):
    return browser.evaluate(f"{AT}({list(point)}, canvas.getBoundingClientRect())")


def mouse(browser, start, end):
    for kind, (x, y) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)


def touch(browser, start, end):
    for kind, points in (("touchStart", [start]), ("touchMove", [end]), ("touchEnd", [])):
        browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])


def boundary(browser):
    """Middles of the segments of the boundary, and the page's log odds there."""
    ends = np.array(browser.evaluate("refresh(), scene.segments"))
    middles = (ends[:, :2] + ends[:, 2:]) / 2
    odds = f"{middles.tolist()}.map(([x, y]) => logJoint(1, x, y) - logJoint(0, x, y))"
    return middles, np.array(browser.evaluate(odds))


@pytest.mark.parametrize(("drag", "width"), [(mouse, 1280), (touch, 390)])
def test_a_dragged_point_moves_the_boundary(browser, drag, width):
    browser.open(PAGE, width)
    browser.evaluate("canvas.scrollIntoView()")
    before, odds = boundary(browser)
    assert np.abs(odds).max() < 0.05  # linear between nodes of the grid
    drag(browser, pixel(browser, browser.evaluate("state.points[1][0]")), pixel(browser, [-2.5, 2.0]))
    assert browser.evaluate("state.points[1][0]") == pytest.approx([-2.5, 2.0], abs=0.03)  # about a pixel
    assert browser.evaluate("state.points.map(points => points.length)") == [44, 16]
    after, odds = boundary(browser)
    assert np.abs(odds).max() < 0.05
    moved = np.linalg.norm(after[:, None] - before, axis=-1).min(axis=1)
    assert moved.max() > 0.3
    assert browser.messages == []


def test_painting_adds_points_of_the_chosen_class(browser):
    browser.open(PAGE, 1280)
    mouse(browser, pixel(browser, [-3.5, 2.7]), pixel(browser, [-3.0, 2.7]))
    assert browser.evaluate("state.points.map(points => points.length)") == [44, 18]


def test_the_score_is_the_gradient_of_the_log_density(browser):
    browser.open(PAGE)
    worst = browser.evaluate("""(() => {
      Math.random = randomStream(5);
      const h = 1e-4, errors = [];
      for (const noise of [0.2, 0.4, 1.2]) for (const label of [0, 1]) for (let k = 0; k < 50; k++) {
        state.noise = noise;
        const x = X * (2 * Math.random() - 1), y = Y * (2 * Math.random() - 1), [sx, sy] = score(label, x, y);
        const slope = (dx, dy) => (logDensity(label, x + dx, y + dy) - logDensity(label, x - dx, y - dy)) / (2 * h);
        const error = Math.hypot(sx - slope(h, 0), sy - slope(0, h));
        errors.push(error / (1 + Math.hypot(sx, sy)));
      }
      return Math.max(...errors);
    })()""")
    assert worst < 1e-4  # h^2 / 6 times the third derivative, at most about (distance / noise^2)^3 / 10, over the score


def test_the_density_integrates_to_one_and_equals_that_of_the_grid(browser):
    browser.open(PAGE)
    total, gap = browser.evaluate("""(() => {
      const grid = logJointGrid(1), at = (n) => [-X + (n % COLUMNS) * CELL, -Y + Math.floor(n / COLUMNS) * CELL];
      state.noise = 0.2;
      state.points[1] = [[X, Y]];  // the product of factors underflows at the other corner
      const small = logJointGrid(1);
      const gap = Math.max(...small.map((value, n) => Math.abs(value - logJoint(1, ...at(n)))));
      return [grid.reduce((sum, value) => sum + Math.exp(value), 0) * CELL * CELL / state.share, gap];
    })()""")
    assert total == pytest.approx(1, abs=0.002)  # a little lies outside the plot
    assert gap < 1e-9


def test_chains_reach_the_density(browser):
    """With one point the law is a Gaussian, and the discrete chain's variance is larger by 1 / 143."""
    browser.open(PAGE, reduced_motion="reduce")
    positions = """(() => {
      Math.random = randomStream(3);
      place("pair");
      chains = Array.from({ length: 1000 }, () => newChain());
      const [[x, y]] = state.points[1], relative = () => chains.flatMap(({ at: [a, b] }) => [a - x, b - y]);
      const start = relative();
      for (let i = 0; i < 500; i++) chains.forEach(step);
      return [start, relative()];
    })()"""
    start, end = np.array(browser.evaluate(positions)) / 0.4

    def z_scores(values):
        variance = 144 / 143
        return np.array([values.mean() / np.sqrt(variance / values.size),
                         (values.var() / variance - 1) / np.sqrt(2 / values.size)])  # fmt: skip

    assert np.abs(z_scores(end)).max() < 3
    assert np.abs(z_scores(start)).max() > 10


def test_the_share_moves_the_boundary_by_the_log_of_its_odds(browser):
    browser.open(PAGE)
    odds = "logJoint(1, 0.3, 0.2) - logJoint(0, 0.3, 0.2)"
    before = browser.evaluate(odds)
    browser.evaluate("$('share').value = 50, $('share').dispatchEvent(new Event('input', { bubbles: true }))")
    assert browser.evaluate(odds) - before == pytest.approx(np.log(4))


def test_points_are_moved_and_removed_by_the_keyboard(browser):
    browser.open(PAGE)
    x, y = browser.evaluate("canvas.focus(), state.points[0][0]")
    for key in ("n", "ArrowRight", "ArrowUp"):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
    assert browser.evaluate("state.points[0][0]") == pytest.approx([x + 0.1, y + 0.1])
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Delete")
    assert browser.evaluate("state.points[0].length") == 43


@pytest.mark.parametrize(("motion", "moves"), [("reduce", False), ("no-preference", True)])
def test_chains_rest_where_motion_is_unwanted(browser, motion, moves):
    browser.open(PAGE, reduced_motion=motion)
    wait = "new Promise(done => { const begin = chains.map(c => c.at); setTimeout(() => done(begin), 300); })"
    before = browser.evaluate(wait)
    assert (browser.evaluate("chains.map(c => c.at)") != before) == moves


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_window_and_logs_nothing(browser, width, scheme):
    browser.open(PAGE, width, color_scheme=scheme)
    assert browser.overflow() <= 0
    assert browser.messages == []
    unnamed = "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).map(e => e.id)"
    assert browser.evaluate(unnamed) == []


def test_the_page_takes_the_theme_of_a_page_around_it(browser):
    browser.open(PAGE)
    ink = "new Promise(done => setTimeout(() => done(colours.ink)))"
    light = browser.evaluate(ink)
    dark = browser.evaluate(f"postMessage({{ theme: 'dark' }}, '*'), {ink}")
    browser.open(PAGE, color_scheme="dark")
    assert browser.evaluate(ink) == dark != light


def test_the_page_asks_the_network_for_nothing():
    text = PAGE.read_text()
    assert "http" not in text
    assert "src=" not in text


@pytest.fixture(scope="module")
def model(random_networks, with_random_rules):
    """A classifier of two columns, far from zero and of different units, that whitens them too."""
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], [150, 50])
    X = rng.normal(size=(200, 2)) @ [[1.0, 0.6], [0.0, 0.5]] + 1.5 * (y == "yes")[:, None]
    with random_networks():
        model = ScoreClassifier(n_members=2, hidden=(16, 16), priors=[0.6, 0.4], calibration=None, random_state=1)
        model.fit(X * [1, 20] + [1000, -5], y)
    fitted = model.model_
    fitted.temperature, fitted.intercepts, fitted.anchors = 1.5, np.array([0.2, -0.1]), np.zeros((2, 2))
    return with_random_rules(model, 0.25)


def in_units_of_table(model, points):
    return np.asarray(points) * model.model_.space.scale + model.model_.space.mean


def show(browser, model, path):
    export_json(model, path)
    choose(browser, path)


def choose(browser, path):
    """Choose a file, and wait until the page tells of it."""
    browser.evaluate("$('readout').textContent = 'Reading'")
    document = browser.call("DOM.getDocument")["root"]["nodeId"]
    node = browser.call("DOM.querySelector", nodeId=document, selector="#model")["nodeId"]
    browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])
    browser.evaluate(
        "new Promise(done => (function look() {"
        "  $('readout').textContent.startsWith('Reading') ? setTimeout(look, 20) : done();"
        "})())"
    )


def test_a_model_of_a_file_is_drawn(browser, model, tmp_path):
    browser.open(PAGE, 1280, reduced_motion="reduce")
    before, _ = boundary(browser)
    show(browser, model, tmp_path / "model.json")
    assert "model.json is shown" in browser.evaluate("$('readout').textContent")
    points = np.random.default_rng(1).uniform([-3, -2.5], [3, 2.5], (50, 2))
    X = in_units_of_table(model, points)
    found = browser.evaluate(f"{points.tolist()}.map(([x, y]) => probabilityOfRare(x, y))")
    np.testing.assert_allclose(found, model.predict_proba(X)[:, 1], atol=1e-5)
    assert np.ptp(found) > 0.3
    after, odds = boundary(browser)
    assert np.linalg.norm(after[:, None] - before, axis=-1).min(axis=1).max() > 0.3
    assert np.abs(odds).max() < 0.2  # linear between nodes of the grid
    at_boundary = model.predict_proba(in_units_of_table(model, after))[:, 1]
    np.testing.assert_allclose(np.log(at_boundary / (1 - at_boundary)), odds, atol=1e-4)
    assert browser.evaluate("[$('name-0').textContent, $('name-1').textContent]") == ["no", "yes"]
    assert browser.messages == []


def test_the_field_of_a_model_is_the_difference_of_its_log_densities(browser, model, tmp_path):
    browser.open(PAGE, reduced_motion="reduce")
    show(browser, model, tmp_path / "model.json")
    cell, corner = browser.evaluate("[CELL, [-X, -Y]]")
    nodes = np.random.default_rng(2).integers(10, 70, (20, 2))
    points = corner + cell * nodes
    for label in (0, 1):
        found = np.array(browser.evaluate(f"{points.tolist()}.map(([x, y]) => score({label}, x, y))"))
        sides = [points + sign * cell * np.eye(2)[j] for j in (0, 1) for sign in (1, -1)]
        logs = model.log_likelihood(in_units_of_table(model, np.concatenate(sides)))[:, label].reshape(2, 2, -1)
        np.testing.assert_allclose(found, ((logs[:, 0] - logs[:, 1]) / (2 * cell)).T, atol=1e-3)
        # Between the nodes it is the field up to the third derivative over half a cell.
        between = points + 0.4 * cell
        found = np.array(browser.evaluate(f"{between.tolist()}.map(([x, y]) => score({label}, x, y))"))
        expected = model.grad_log_density(in_units_of_table(model, between))[:, label] * model.model_.space.scale
        assert np.abs(found - expected).mean() < 0.05 * np.abs(expected).mean()


def test_points_come_back_after_a_model(browser, model, tmp_path):
    browser.open(PAGE)
    show(browser, model, tmp_path / "model.json")
    assert browser.evaluate("[$('share').disabled, $('add').disabled, state.points]") == [True, True, [[], []]]
    mouse(browser, pixel(browser, [-3.5, 2.7]), pixel(browser, [-3.0, 2.7]))
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="n")
    assert browser.evaluate("state.points") == [[], []]
    told = float(browser.evaluate("$('readout').textContent.match(/^x0 ([\\d.]+), x1/)[1]"))
    assert told == pytest.approx(in_units_of_table(model, [-3, 0])[0], abs=0.1)  # four digits, and a pixel
    browser.evaluate("$('shape').value = 'ring', $('shape').dispatchEvent(new Event('input', { bubbles: true }))")
    assert browser.evaluate("[$('share').disabled, $('name-1').textContent]") == [False, "Rare"]
    assert browser.evaluate("state.points.map(points => points.length)") == [44, 16]
    assert browser.messages == []


@pytest.mark.parametrize(
    "content", ["no JSON", "null", "[]", '{"format": 1}', '{"format": 3, "model": "ScoreDensity"}']
)
def test_other_files_are_refused(browser, tmp_path, content):
    (tmp_path / "model.json").write_text(content)
    browser.open(PAGE)
    choose(browser, tmp_path / "model.json")
    assert browser.evaluate("$('readout').textContent").startswith("model.json: ")
    assert browser.evaluate("state.points.map(points => points.length)") == [44, 16]
    assert browser.messages == []
