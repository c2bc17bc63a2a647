"""The reproduction: statistics, rows on disk, every experiment's rows and section, and the committed run."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time

import matplotlib
import numpy as np
import pytest
from scipy import stats

from scorefield.evaluation.statistics import (
    FAILS,
    HOLDS,
    WITHIN_NOISE,
    by_seed,
    estimate,
    paired,
    verdict_between,
    verdict_positive,
)
from scorefield.studies.engine import runs
from scorefield.studies.engine.experiment import Experiment, Section, compact, of_kind
from scorefield.studies.engine.page import write_report
from scorefield.studies.paper.registry import EXPERIMENTS, STUDY
from scorefield.studies.paper.settings import divergence

matplotlib.use("Agg")
COMMITTED = pathlib.Path(__file__).parents[2] / "results" / "paper"


def test_interval_is_students(rng):
    values = rng.normal(3, 2, size=12)
    low, high = stats.t.interval(0.95, 11, loc=values.mean(), scale=stats.sem(values))
    found = estimate(values)
    np.testing.assert_allclose([found.mean, found.low, found.high], [values.mean(), low, high])
    assert np.isnan(estimate([1.0]).low)
    assert "one seed" in str(estimate([1.0]))


def test_interval_covers_as_often_as_it_says(rng):
    draws = [estimate(rng.normal(size=8)) for _ in range(2000)]
    covered = np.mean([e.low <= 0 <= e.high for e in draws])
    assert abs(covered - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 2000)


def test_pairs_share_seeds():
    rows = [{"seed": s, "arm": a, "f1": v} for s, a, v in ((0, "a", 3.0), (1, "a", 5.0), (0, "b", 1.0), (2, "b", 9.0))]
    assert by_seed(rows, "f1", arm="a") == {0: 3.0, 1: 5.0}
    assert paired(rows, "f1", {"arm": "a"}, {"arm": "b"}).mean == 2.0


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0, 1.1, 0.9], HOLDS),
        ([1.0, -0.5, 0.4], WITHIN_NOISE),
        ([-1.0, -1.1], FAILS),
        ([], FAILS),
        ([1.0], WITHIN_NOISE),
    ],
)
def test_verdict_of_a_difference(values, verdict):
    assert verdict_positive(estimate(values)) == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.5, 0.51, 0.49], HOLDS),
        ([0.2, 0.8, 0.95], WITHIN_NOISE),
        ([1.5, 0.9, 1.2], FAILS),
        ([3.0, 3.1], FAILS),
    ],
)
def test_verdict_of_a_range(values, verdict):
    assert verdict_between(estimate(values), 0.0, 1.0) == verdict


def test_divergence_is_that_of_the_definition(rng):
    p, q = rng.random(50), rng.random(50)
    p, q = p / p.sum(), q / q.sum()
    m = (p + q) / 2
    assert divergence(3 * p, q) == pytest.approx(0.5 * (stats.entropy(p, m) + stats.entropy(q, m)))
    assert divergence(p, p) == pytest.approx(0, abs=1e-12)


def test_compact_keeps_few_digits():
    assert compact(np.array([[1 / 3, 2e-9]]), 2) == [[0.33, 2e-09]]


def counting(calls, name="counting"):
    def run(seed, config):
        calls.append(seed)
        return [{"kind": "value", "x": np.float32(seed), "size": config["size"], "grid": np.arange(2)}]

    return Experiment(name, "Counting", "Nothing.", run, lambda rows: Section(), 3, 1, {"size": 5}, {"size": 1})


def test_a_finished_seed_is_not_repeated(tmp_path):
    calls, seen = [], []
    experiment = counting(calls)
    tasks = [(experiment, seed, experiment.settings(False)) for seed in range(3)]
    runs.run_all(tasks[:2], tmp_path)
    runs.run_all(tasks, tmp_path, finished=lambda task: seen.append(task[1]))
    assert calls == [0, 1, 2]
    assert seen == [0, 1, 2]
    header, rows = runs.read_rows(tmp_path, experiment, {"size": 5})[2]
    assert rows == [{"experiment": "counting", "seed": 2, "kind": "value", "x": 2.0, "size": 5, "grid": [0, 1]}]
    assert {"jax", "python", "scorefield"} <= set(header["versions"])
    runs.run_all([(experiment, 0, experiment.settings(True))], tmp_path)  # other settings: rows of their own
    assert calls == [0, 1, 2, 0]
    runs.run_all(tasks, tmp_path)
    assert calls == [0, 1, 2, 0]


def failing(seed, config):
    if seed == 1:
        raise ValueError("no such\nluck")
    return [{"kind": "value"}]


def test_a_failed_seed_does_not_take_the_others_with_it(tmp_path):
    experiment = Experiment("failing", "Failing", "Nothing.", failing, lambda rows: Section(), 3, 1)
    failures = runs.run_all([(experiment, seed, {}) for seed in range(3)], tmp_path)
    assert failures == ["failing, seed 1: ValueError: no such luck"]
    assert set(runs.read_rows(tmp_path, experiment, {})) == {0, 2}


def test_processes_are_started_with_the_flags_of_the_parent(monkeypatch):
    for own in ("", "--xla_backend_optimization_level=0"):
        monkeypatch.setenv("XLA_FLAGS", own)
        with runs._one_thread_each():
            assert os.environ["XLA_FLAGS"] == f"{own} {runs.ONE_THREAD['XLA_FLAGS']}".strip()
        assert os.environ["XLA_FLAGS"] == own


def dying(seed, config):
    if seed == 1:
        os._exit(9)  # as one that is killed for its memory
    return [{"kind": "value"}]


def test_a_killed_process_ends_the_run_with_an_error(tmp_path):
    experiment = Experiment("dying", "Dying", "Nothing.", dying, Section, 3, 1)
    with pytest.raises(RuntimeError, match="one that was killed"):
        runs.run_all([(experiment, seed, {}) for seed in range(3)], tmp_path, jobs=2)


def test_processes_give_the_same_rows_as_one(tmp_path):
    experiment = EXPERIMENTS["linear-1d"]
    tasks = [(experiment, seed, experiment.config) for seed in range(3)]
    for jobs in (1, 2):
        assert runs.run_all(tasks, tmp_path / str(jobs), jobs=jobs) == []
    one, two = (runs.read_rows(tmp_path / str(jobs), experiment, experiment.config) for jobs in (1, 2))
    assert list(one) == list(two) == [0, 1, 2]  # in the order of the seeds, whichever was done first
    assert [rows for _, rows in one.values()] == [rows for _, rows in two.values()]


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:9]], [2]),  # the last line is cut
        (lambda lines: lines[:-1], [2]),  # whole lines, but fewer than the seed says
        (lambda lines: [lines[0], *lines[2:]], [0]),
        (lambda lines: lines[1:], [0]),  # rows without what precedes them
        (lambda lines: [*lines[:2], "\0" * 9, *lines[3:]], [1]),
    ],
)
def test_damaged_seeds_are_run_again_and_the_others_kept(tmp_path, damage, lost):
    calls = []
    experiment = counting(calls)
    tasks = [(experiment, seed, experiment.settings(False)) for seed in range(3)]
    runs.run_all(tasks, tmp_path)
    path = runs.rows_path(tmp_path, experiment, experiment.config)
    whole = runs.read_rows(tmp_path, experiment, experiment.config)
    path.write_text("\n".join(damage(path.read_text().splitlines())) + "\n")
    with pytest.warns(UserWarning, match="damaged ones; they are run again"):
        runs.run_all(tasks, tmp_path)
    assert calls == [0, 1, 2, *lost]
    again = runs.read_rows(tmp_path, experiment, experiment.config)
    assert [rows for _, rows in again.values()] == [rows for _, rows in whole.values()]


def test_seeds_of_two_commands_and_of_earlier_settings_share_a_file(tmp_path):
    calls = []
    experiment = counting(calls)
    changed = dataclasses.replace(experiment, config={"size": 6})

    def meanwhile(task):  # another command finishes a seed while this one runs
        if task[1] == 0:
            runs.run_all([(experiment, 5, experiment.config)], tmp_path)

    runs.run_all([(experiment, seed, experiment.config) for seed in (0, 1)], tmp_path, finished=meanwhile)
    assert list(runs.read_rows(tmp_path, experiment, experiment.config)) == [0, 1, 5]
    runs.run_all([(changed, 1, changed.config)], tmp_path)  # as after a change of the code
    assert list(runs.read_rows(tmp_path, changed, changed.config)) == [1]
    assert calls == [0, 5, 1, 1]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    runs.write_whole(path, "old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        runs.write_whole(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_a_killed_run_leaves_whole_files_and_resumes(tmp_path):
    command = [
        sys.executable,
        "-m",
        "scorefield",
        "reproduce",
        "logistic-1d",
        "--seeds",
        "400",
        "--out",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    path = tmp_path / "rows" / "logistic-1d.jsonl"

    def lines():
        return path.read_text().splitlines() if path.exists() else []

    deadline = time.monotonic() + 120
    while len(lines()) < 6 and time.monotonic() < deadline:  # three seeds
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = lines()
    entries = [json.loads(line) for line in before]
    done = [entry["seed"] for entry in entries if "versions" in entry]
    assert 3 <= len(done) < 400
    assert done == list(range(len(done)))
    assert len(entries) == sum(1 + entry["rows"] for entry in entries if "versions" in entry)
    subprocess.run([*command[:5], "--seeds", str(len(done) + 1), "--out", str(tmp_path)], check=True)
    assert lines()[: len(before)] == before  # with the times that they took: not run again
    assert len(lines()) > len(before)
    assert (tmp_path / "index.html").exists()


SMALL = {
    "gaussian-1d": {}, "gaussian-2d": {}, "logistic-1d": {}, "logistic-2d": {}, "linear-1d": {}, "linear-2d": {},
    "recover-1d": {"n": 200, "hidden": [8, 8], "our_steps": 100},
    "recover-2d": {"n": 100, "hidden": [8, 8], "our_steps": 100},
    "augment-2d": {"n": 50, "hidden": [8, 8], "n_chains": 5},
    "multimodal-2d": {"n": 50, "hidden": [8, 8]},
    "imbalanced-10d": {"hidden": [8, 8], "network": False},
    "generative-10d": {"hidden": [8, 8], "our_steps": 100},
    "errata": {"steps": 100},
}  # fmt: skip


# Those that take longest are run by `make test-all`.
LONG = ("imbalanced-10d", "generative-10d", "recover-2d")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in SMALL])
def test_an_experiment_runs_and_its_section_is_drawn_from_rows(name):
    experiment = EXPERIMENTS[name]
    config = {**experiment.config, **SMALL[name]}
    assert set(config) == set(experiment.config)
    _, rows = runs.run_seed(experiment, 0, config)
    section = experiment.show(rows)
    assert section.claims or section.tables
    for figure in section.figures:
        drawn = figure.draw()
        assert all(ax.get_xlabel() for ax in drawn.axes if ax.get_visible()), figure.name
        matplotlib.pyplot.close(drawn)


def test_the_same_seed_gives_the_same_rows():
    experiment = EXPERIMENTS["linear-1d"]
    assert experiment.run(3, experiment.config) == experiment.run(3, experiment.config)
    assert experiment.run(3, experiment.config) != experiment.run(4, experiment.config)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("SCOREFIELD_DATA"), reason="SCOREFIELD_DATA is not set")
def test_the_fraud_split_has_the_papers_counts_and_swaps_training_labels_only():
    from scorefield.data.datasets import fetch_creditcard
    from scorefield.studies.paper.imbalanced import split_fraud

    X, X_test, y, y_test = split_fraud(0)
    assert (len(y), y.sum(), len(y_test), y_test.sum()) == (212_332, 369, 72_475, 123)
    bunch = fetch_creditcard()
    columns = bunch.data[:, bunch.feature_names.index("V1") :][:, :10]
    truth = {}
    for row, label in zip(map(bytes, np.ascontiguousarray(columns)), bunch.target, strict=True):
        truth.setdefault(row, set()).add(int(label))
    wrong = [label not in truth[row] for row, label in zip(map(bytes, np.ascontiguousarray(X)), y, strict=True)]
    assert 30 <= sum(wrong) <= 36  # of the 36 swapped, less rows whose duplicates carry the other label
    assert all(label in truth[row] for row, label in zip(map(bytes, np.ascontiguousarray(X_test)), y_test, strict=True))


def committed(name):
    experiment = EXPERIMENTS[name]
    read = runs.read_rows(COMMITTED, experiment, experiment.settings(False))
    assert set(read) == set(range(experiment.seeds)), f"results/paper lacks {name} with the settings of the code"
    return [row for _, rows in read.values() for row in rows]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_committed_run_is_whole(name):
    rows = committed(name)
    assert {row["seed"] for row in rows} == set(range(EXPERIMENTS[name].seeds))


def test_seeds_are_as_many_as_promised():
    assert EXPERIMENTS["imbalanced-10d"].seeds >= 20
    assert EXPERIMENTS["generative-10d"].seeds >= 20
    assert EXPERIMENTS["fraud"].seeds >= 10
    assert EXPERIMENTS["generative-fraud"].seeds >= 10


def test_the_committed_summary_is_that_of_the_committed_rows(tmp_path):
    import shutil

    shutil.copytree(COMMITTED / "rows", tmp_path / "rows")
    path, _ = write_report(STUDY, list(EXPERIMENTS.values()), tmp_path)
    assert (tmp_path / "summary.md").read_text() == (COMMITTED / "summary.md").read_text()
    assert path.read_text().count("<img ") == sum(
        len(EXPERIMENTS[name].show(committed(name)).figures) for name in EXPERIMENTS
    )


def test_the_committed_run_meets_the_papers_regimes():
    fits = of_kind(committed("recover-1d"), "fit", mode="paper")
    for label in (0, 1):
        assert np.mean([row["jsd"] for row in fits if row["label"] == label]) <= 0.07
    linear = committed("linear-1d")
    assert np.mean([row["jsd"] for row in of_kind(linear, "fit")]) < 0.005
    assert abs(np.mean([row["x"] for row in of_kind(linear, "boundary")])) < 0.05
    forest = of_kind(committed("imbalanced-10d"), "arm", learner="RF")
    means = {arm: np.mean([r["f1"] for r in forest if r["arm"] == arm]) for arm in ("nothing", "SMOTE")}
    assert 0.1 <= means["nothing"] <= 0.35
    assert 0.3 <= means["SMOTE"] <= 0.5
