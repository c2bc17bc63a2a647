"""The benchmark's folds, ranks and summaries; its committed rows."""

import itertools
import json
import math
import pathlib
from collections import Counter

import numpy as np
import pytest
from imblearn.over_sampling import RandomOverSampler
from scipy.stats import rankdata
from sklearn.ensemble import RandomForestClassifier

from scorefield.evaluation import remedies
from scorefield.evaluation.ranks import (
    corrected_interval,
    corrected_share,
    critical_difference,
    mean_ranks,
    signed_rank,
    wins_ties_losses,
)
from scorefield.evaluation.statistics import FAILS, HOLDS
from scorefield.studies.benchmark import generators, oversampling, tables
from scorefield.studies.benchmark.arms import GeneratorOverSampler, gaussian_rows, kde_rows
from scorefield.studies.benchmark.registry import DEFAULT, EXPERIMENTS, STUDY
from scorefield.studies.benchmark.summaries import show_classifiers, show_oversampling
from scorefield.studies.engine.page import collect, write_report

PEERS = ("peers", "classifier-peers")  # experiments that need other packages, with committed rows
TAUGHT = ("learning", "mixed-learning")
REPORTED = (*TAUGHT, *DEFAULT, *PEERS)
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).round(1)
    X = np.concatenate([X, X[:60]])  # exact duplicates
    y = (X[:, 0] + 0.1 * X[:, 1] > 1.2).astype(int)
    return X, y


def test_splits_keep_equal_rows_together_and_the_development_half_in_training(table):
    X, y = table
    groups = tables.same_rows(X)
    development, other = tables.development_half(X, y)
    assert not set(groups[development]) & set(groups[other])
    tested = []
    for kept, held in tables.splits(X, y, n_folds=2, n_repeats=2, max_rows=10_000):
        assert not set(groups[kept]) & set(groups[held])
        assert set(development) <= set(kept)
        assert not set(development) & set(held)
        tested.append(held)
    assert len(tested) == 4
    for repeat in (tested[:2], tested[2:]):
        assert sorted(np.concatenate(repeat).tolist()) == sorted(other.tolist())  # each row is tested once
    assert set(tested[0]) != set(tested[2])


def test_inner_folds_keep_equal_rows_together(table, monkeypatch):
    monkeypatch.setattr(tables, "load", lambda name: table)
    split = oversampling.Split("only", 0, 0, EXPERIMENTS["oversampling"].config)
    groups = tables.same_rows(split.X)
    assert len(set(groups)) < len(groups)
    for kept, held in split.inner:
        assert not set(groups[kept]) & set(groups[held])
    assert sorted(np.concatenate([held for _, held in split.inner])) == list(range(len(split.y)))


def test_thinning_keeps_the_class_shares():
    y = (np.arange(10_000) % 20 == 0).astype(int)
    kept = tables.thin(np.arange(10_000), y, 1000, np.random.default_rng(0))
    assert len(kept) == 1000
    assert y[kept].mean() == 0.05
    assert tables.thin(np.arange(50), y[:50], 1000, None).tolist() == list(range(50))


def test_ranks_and_critical_difference():
    # By hand: (1, 2, 3), (1.5, 1.5, 3), (3, 2, 1) of scores where more is better.
    assert mean_ranks([[0.9, 0.8, 0.1], [0.5, 0.5, 0.2], [0.1, 0.2, 0.3]]).tolist() == pytest.approx(
        [5.5 / 3, 5.5 / 3, 7 / 3]
    )
    assert mean_ranks([[0.9, 0.8]], lower_is_better=True).tolist() == [2, 1]
    # Demsar (2006), section 3.2.4: four classifiers, fourteen data sets, 1.25 at 5 %.
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert wins_ties_losses([0.02, 0.01, 0.0, -0.3]) == (1, 2, 1)
    assert signed_rank(np.zeros(3)) == 1.0
    assert signed_rank(np.arange(10) + 1.0, alternative="greater") < 0.01
    assert signed_rank(np.arange(10) + 1.0, alternative="less") > 0.9


def test_signed_ranks_are_exact_with_ties_and_zeros():
    """Against all assignments of signs to the ranks."""
    gains = np.array([0.0, 0.1, -0.1, 0.2, 0.2, -0.2, 0.3, 0.4, 0.4, 0.0])
    ranks = rankdata(np.abs(gains[gains != 0]))
    sums = np.array([np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(ranks))])
    total = ranks[gains[gains != 0] > 0].sum()
    greater, less = np.mean(sums >= total), np.mean(sums <= total)
    assert signed_rank(gains, alternative="greater") == greater
    assert signed_rank(gains, alternative="less") == less
    assert signed_rank(gains) == 2 * min(greater, less)


def test_corrected_interval_is_wider_than_the_naive_one_and_covers():
    """Means over splits that share their training rows: the naive interval misses far more than one time in twenty."""
    rng, missed, naive = np.random.default_rng(0), 0, 0
    n, share = 10, 1 / 4
    for _ in range(2000):
        common = rng.normal() * math.sqrt(share)  # what the overlap leaves in common between the splits
        gaps = common + rng.normal(size=n)
        found = corrected_interval(gaps, share)
        missed += not found.low <= 0 <= found.high
        reach = 2.262 * gaps.std(ddof=1) / math.sqrt(n)
        naive += abs(gaps.mean()) > reach
    assert missed / 2000 < 0.07
    assert naive / 2000 > 0.15
    assert math.isnan(corrected_interval([1.0], share).low)


def test_interval_of_a_share_stays_inside_and_covers():
    """Shares of 200 trials near one: their plain interval would often reach beyond it."""
    rng, missed, beyond = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        values = rng.binomial(200, 0.99, size=6) / 200
        found = corrected_share(values, 0)
        assert 0 <= found.low <= found.mean + 1e-12
        assert found.mean - 1e-12 <= found.high <= 1
        missed += not found.low <= 0.99 <= found.high
        beyond += corrected_interval(values, 1).high > 1
    assert missed / 1000 < 0.05 + 5 * math.sqrt(0.05 * 0.95 / 1000)
    assert beyond > 500
    assert corrected_share([1.0, 1.0], 1)[:3] == (1, 1, 1)
    assert math.isnan(corrected_share([0.5], 1).low)


@pytest.mark.parametrize("generate", [gaussian_rows, kde_rows])
def test_generators_have_the_moments_of_the_class(generate):
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal([1, -2], [[1, 0.6], [0.6, 2]], 2000)
    drawn = generate(rows, 20_000, 0)
    np.testing.assert_allclose(drawn.mean(axis=0), rows.mean(axis=0), atol=0.06)
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(0.6 / math.sqrt(2), abs=0.06)


def test_a_run_gives_every_arm_and_logs_what_was_chosen(table, monkeypatch):
    monkeypatch.setattr(tables, "load", lambda name: table)
    monkeypatch.setattr(oversampling, "learners", lambda seed: {"forest": RandomForestClassifier(10, random_state=0)})
    sampler = RandomOverSampler(random_state=0)
    monkeypatch.setattr(oversampling, "over_samplers", lambda n, seed: {"random": sampler})
    monkeypatch.setattr(oversampling, "ScoreOverSampler", lambda **_: RandomOverSampler())
    config = {**EXPERIMENTS["tuned"].config, "tables": ["only"], "max_rows": 300}
    rows = oversampling.run(1, config)
    assert [row["arm"] for row in rows] == [
        "nothing", "tuned threshold", "class weights", "random", "ScoreOverSampler, tuned",
    ]  # fmt: skip
    assert {row["table"] for row in rows} == {"only"}
    assert {row["split"] for row in rows} == {1}
    tuned = rows[-1]
    assert set(tuned["chosen"]) == {"chain", "ratio"}
    assert len(tuned["inner"]) == len(oversampling.RATIOS) * len(oversampling.CHAINS)
    assert rows[1]["average_precision"] == rows[0]["average_precision"]  # a threshold moves no probability
    json.dumps(rows)


def test_other_generators_run_beside_ours(table, monkeypatch):
    monkeypatch.setattr(tables, "load", lambda name: table)
    monkeypatch.setattr(generators, "learners", lambda seed: {"forest": RandomForestClassifier(10, random_state=0)})
    beside = dict.fromkeys(generators.BESIDE, RandomOverSampler(random_state=0))
    monkeypatch.setattr(generators, "over_samplers", lambda n, seed: beside)
    monkeypatch.setattr(generators, "PEERS", {"Gaussian": ("numpy", gaussian_rows)})
    rows = generators.run(0, {**EXPERIMENTS["peers"].config, "tables": ["only"], "max_rows": 300})
    assert [row["arm"] for row in rows] == ["nothing", *generators.BESIDE, "Gaussian"]
    assert rows[-1]["n"] == rows[1]["n"] > rows[0]["n"]  # balanced
    assert all("threshold" not in row for row in rows)
    section = EXPERIMENTS["peers"].show(rows)
    assert any("clear has a better mean rank than Gaussian" in claim.text for claim in section.claims)


def test_missing_peers_are_named(monkeypatch):
    monkeypatch.setattr(generators, "PEERS", {"A": ("numpy", None), "B": ("not_there", None)})
    with pytest.raises(ValueError, match="packages of all peers, got no not_there; pip install"):
        generators.run(0, EXPERIMENTS["peers"].config)


def test_whatever_a_generator_raises_only_its_arm_is_refused(table):
    def fails(rows, n, seed):
        raise KeyError("no such column")

    X, y = table
    sampler = GeneratorOverSampler(fails)
    _, labels, refused = oversampling.resampled(sampler, X, y)
    assert len(labels) == len(y)
    assert "KeyError" in refused


def made_up_rows(arms, gains, n_tables=12, learner="forest"):
    """Rows of arms whose measures differ by known amounts."""
    rng, rows = np.random.default_rng(0), []
    for table in range(n_tables):
        base = rng.uniform(0.3, 0.6)
        for arm, gain in zip(arms, gains, strict=True):
            for split in range(3):
                value = base + gain + 0.002 * rng.normal()
                row = {"average_precision": value, "roc_auc": value, "f1": value, "f1_tuned": value, "brier": 1 - value,
                       "log_loss": 1 - value, "seconds": 1.0, "megabytes": None}  # fmt: skip
                rows.append({"kind": "arm", "arm": arm, "learner": learner, "table": f"t{table}", "split": split,
                             "test_share": 0.3, **row})  # fmt: skip
    return rows


@pytest.mark.parametrize(("gain", "verdict"), [(0.05, HOLDS), (-0.05, FAILS)])
def test_claims_follow_the_rows(gain, verdict):
    arms = ("nothing", "tuned threshold", "noise .3", "SMOTE", "ADASYN", "ScoreOverSampler, clear")
    section = show_oversampling(made_up_rows(arms, (0, 0, 0, 0, 0, gain)))
    assert {claim.verdict for claim in section.claims} == {verdict}
    arms = ("naive Bayes", "QDA", "KDE", "GMM", "paper's", "ScoreClassifier", "forest", "boosting, tuned")
    section = show_classifiers(made_up_rows(arms, (0, 0, 0, 0, 0, gain, 0, 0)))
    assert {claim.verdict for claim in section.claims} == {verdict}


def test_pages_and_diagrams_are_drawn(tmp_path):
    arms = ("nothing", "tuned threshold", "noise .3", "SMOTE", "ADASYN", "ScoreOverSampler, clear")
    section = show_oversampling(made_up_rows(arms, (0, 0.01, 0.02, 0.03, 0.04, 0.05)))
    for figure in section.figures:
        figure.draw().savefig(tmp_path / f"{figure.name}.png")
    assert (tmp_path / "ranks-forest.png").stat().st_size > 5000


@pytest.fixture(scope="module")
def committed():
    found = collect(EXPERIMENTS.values(), ROOT / "results" / "benchmark", seeds=None, quick=False)
    assert {experiment.name for experiment, _, _ in found} == set(REPORTED)
    return found


def test_the_summary_comes_from_the_rows(committed, tmp_path, monkeypatch):
    import shutil

    shutil.copytree(ROOT / "results" / "benchmark" / "rows", tmp_path / "rows")
    monkeypatch.setattr("scorefield.studies.engine.page._section", lambda *parts: "")  # the page's pictures take longer
    write_report(STUDY, [EXPERIMENTS[name] for name in REPORTED], tmp_path)
    assert (tmp_path / "summary.md").read_text() == (ROOT / "results" / "benchmark" / "summary.md").read_text()


def test_committed_rows_are_of_all_tables_splits_and_learners(committed):
    five = set(remedies.learners(0))
    learners = {"oversampling": five, "peers": five, "mixed-oversampling": {"logistic", "forest", "boosting"}}
    learners |= dict.fromkeys(TAUGHT, five)
    splits = {"mixed-learning": 8}  # one repetition, of the essential arms
    for experiment, _, rows in committed:
        assert {row["table"] for row in rows} == set(experiment.config["tables"])
        arms = Counter((row["arm"], row["learner"]) for row in rows)
        assert {learner for _, learner in arms} == learners.get(experiment.name, {"itself"})
        assert set(arms.values()) == {splits.get(experiment.name, experiment.seeds)}
        for row in rows:
            assert 0 <= row["average_precision"] <= 1
            assert row["seconds"] >= 0
