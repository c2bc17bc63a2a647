"""The display of a diagnosis."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pytest

from scorefield import DiagnosisDisplay, ScoreDensity
from scorefield.diagnose.diagnosis import BAD, GOOD, LOOK, Check, Diagnosis, not_measured
from scorefield.display.diagnosis import VERDICT_COLOURS


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_each_check_has_a_line_in_the_colour_of_its_verdict():
    checks = [Check(f"k{i}", f"$name {i}", 0.5, "$x_{", verdict) for i, verdict in enumerate((GOOD, LOOK, BAD))]
    display = DiagnosisDisplay(Diagnosis([*checks, not_measured("k3", "last", "no rows")], "4 held-out rows")).plot()
    display.ax_.figure.canvas.draw()
    assert [label.get_text() for label in display.ax_.get_yticklabels()][-1] == "last"
    assert [line.get_color() for line in display.ax_.lines] == list(VERDICT_COLOURS.values())
    assert "not measured: no rows" in [text.get_text() for text in display.ax_.texts]
    assert display.ax_.get_title() == "Judged on 4 held-out rows: bad"


def test_from_an_estimator_with_held_out_rows(rng):
    model = ScoreDensity(model="gaussian", random_state=0).fit(rng.normal(size=(100, 2)))
    _, ax = plt.subplots()
    display = DiagnosisDisplay.from_estimator(model, 3 + rng.normal(size=(100, 2)), ax=ax)
    assert display.ax_ is ax
    assert display.diagnosis["stein_p_value"].verdict == BAD
    assert display.diagnosis["score_gain"].note == "no better than no field"
