"""The page on which readers choose among benchmark results, in a browser."""

import numpy as np
import pytest
from scipy.stats import rankdata

from scorefield.display.html import page
from scorefield.studies.benchmark.explorer import explorer
from scorefield.studies.benchmark.registry import EXPERIMENTS


@pytest.fixture
def rows():
    """Two learners and three arms; two arms tie on the second table."""
    values = {"nothing": [0.5, 0.7, 0.9], "SMOTE": [0.6, 0.7, 0.8], "ScoreOverSampler": [0.8, 0.9, 0.1]}
    return [
        {
            "arm": arm,
            "learner": learner,
            "table": f"table <{t}>",
            "split": 0,
            "average_precision": value,
            "seconds": 1.0,
        }
        for learner in ("forest", "logistic")
        for arm, own in values.items()
        for t, value in enumerate(own)
    ]


@pytest.mark.parametrize("width", [1200, 400])
def test_ranks_gains_and_filters(browser, rows, tmp_path, width):
    path = tmp_path / "results.html"
    path.write_text(page("Results", [explorer([(EXPERIMENTS["oversampling"], [], rows)])]), encoding="utf-8")
    browser.open(path, width)
    cells = "[...document.querySelectorAll('#{} .bars span')].map(span => span.textContent)"
    shown = browser.evaluate(cells.format("ranks"))
    values = np.array([[row["average_precision"] for row in rows[:9]]]).reshape(3, 3).T
    ranks = rankdata(-values, axis=1).mean(axis=0)
    assert dict(zip(shown[::2], shown[1::2], strict=True)) == {
        arm: f"{rank:.2f}" for arm, rank in zip(("nothing", "SMOTE", "ScoreOverSampler"), ranks, strict=True)
    }
    gains = browser.evaluate(cells.format("gains"))
    assert gains == ["table <0>", "+0.300", "table <1>", "+0.200", "table <2>", "-0.800"]
    browser.evaluate("field = document.getElementById('wanted'); field.value = '<2'; field.oninput(); 0")
    assert browser.evaluate(cells.format("gains")) == ["table <2>", "-0.800"]
    assert "number 3 of 3" in browser.evaluate("document.getElementById('verdict').textContent")
    assert browser.messages == []
    assert browser.overflow() <= 0
