"""The demonstration: its data, what it says, and its page, with few splits."""

import re

import matplotlib
import numpy as np
import pytest
from imblearn.over_sampling import RandomOverSampler
from sklearn.dummy import DummyClassifier

from scorefield import ScoreClassifier, ScoreDensity, ScoreOverSampler
from scorefield.data.datasets import load_penguins
from scorefield.studies.demo import penguins
from scorefield.studies.demo.story import tell

matplotlib.use("Agg")
HEADINGS = [
    "The table", "Generated rows", "Are they credible?", "Do they help?", "Can the probabilities be trusted?",
    "Your own table",
]  # fmt: skip


def stand_ins():
    """Estimators that need no training: compiling ours takes most of a minute."""
    return [RandomOverSampler(), DummyClassifier(strategy="prior")]


def small_networks():
    sampler = ScoreOverSampler(purpose="sharing", density=ScoreDensity(hidden=(8,), max_steps=20))
    return [sampler, ScoreClassifier(n_members=2, hidden=(8,), max_steps=20)]


@pytest.fixture(scope="module", params=[stand_ins, pytest.param(small_networks, marks=pytest.mark.slow)])
def told(request, tmp_path_factory):
    """(path of the page, lines) of a run with two splits."""
    lines, done = [], []
    path = tell(
        tmp_path_factory.mktemp("demo"), say=lines.append, settings=penguins.Settings(2, *request.param()),
        progress=lambda *counts: done.append(counts),
    )  # fmt: skip
    assert done == [(0, 2), (1, 2), (2, 2)]
    return path, lines


def test_every_stage_is_one_line_and_the_last_names_the_page(told):
    path, lines = told
    stages = [line for line in lines if re.match(r"\d/5 ", line)]
    assert [line[:3] for line in stages] == [f"{i}/5" for i in range(1, 6)]
    assert all("\n" not in line for line in lines)
    assert str(path) in lines[-1]


def test_the_page_has_its_parts_and_asks_the_network_for_nothing(told):
    text = told[0].read_text()
    assert re.findall(r"<h2>(.*?)</h2>", text) == HEADINGS
    assert text.count("<img ") == 3
    for part in (
        "flipper_length_mm",
        "SMOTENC, then boosting",
        "boosting, taught by ScoreClassifier, over boosting",
        "Means over 2 splits",
        "CC0",
    ):
        assert part in text
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text) == []
    commands = re.search(r"Your own table</h2><pre>(.*?)</pre>", text, flags=re.S)[1].splitlines()
    assert [command.split()[:3] for command in commands] == [
        ["scorefield", name, "your.csv"] for name in ("columns", "resample", "advise")
    ]


@pytest.mark.parametrize("width", [1200, 390])
def test_a_browser_shows_the_page_without_overflow(browser, told, width):
    browser.open(told[0], width)
    assert browser.messages == []
    assert all(browser.evaluate("[...document.images].map(image => image.naturalWidth > 0)"))
    assert browser.overflow() <= 0


def test_the_rare_species_is_thinned_at_random_and_nothing_else():
    whole = load_penguins()
    table, left_out = penguins.thinned(whole, 1)
    rare = whole["species"] == "Chinstrap"
    assert (table["species"] == "Chinstrap").sum() == penguins.KEPT
    assert (len(table), len(left_out)) == (300, rare.sum() - penguins.KEPT)
    assert set(left_out["species"]) == {"Chinstrap"}
    others = [part[part["species"] != "Chinstrap"].reset_index(drop=True) for part in (table, whole)]
    assert others[0].equals(others[1])
    assert not np.array_equal(penguins.thinned(whole, 2)[1]["bill_length_mm"], left_out["bill_length_mm"])
