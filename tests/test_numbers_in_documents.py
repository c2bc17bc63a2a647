"""Numbers in documents: every cell of a table by its row and column, and sentences where they stand."""

import csv
import functools
import importlib.util
import json
import pathlib
import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from scorefield.evaluation.statistics import estimate
from scorefield.studies.benchmark.registry import EXPERIMENTS
from scorefield.studies.benchmark.summaries import METRICS, RANKED, scores_by_learner
from scorefield.studies.engine.page import collect

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "results"
FOLDERS = ("docs", "docs/evidence", "docs/guide", "docs/tutorials")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted((ROOT / folder).glob("*.rst")))]
COMMAND = re.compile(r"(scorefield (?:reproduce|benchmark)(?: [\w-]+)*|python\s+benchmarks/\w+)")
NUMBER = r"[-+]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)"


class Table(NamedTuple):
    """A table of a document, the text before it, and the last command that this text names."""

    before: str
    command: str
    columns: list[str]
    rows: dict[str, list[str]]


def tables_of(text):
    """Tables of Markdown, and list-tables and csv-tables of reStructuredText, in order."""
    markdown = r"(?:^\|.*\|\n?)+"
    listed = r"^\.\. (?:list|csv)-table::\n(?:[ \t].*\n?|\n)+"
    for found in re.finditer(f"{markdown}|{listed}", text, flags=re.M):
        if ".. csv" in found[0]:
            kept = re.sub(r"^ +:header: ", "", found[0], flags=re.M).splitlines()[1:]
            kept = [line.strip() for line in kept if line.strip() and not line.strip().startswith(":")]
            head, *lines = csv.reader(kept, skipinitialspace=True)
        elif found[0].startswith("|"):
            head, _, *lines = [
                [cell.strip() for cell in line.strip("|").split(" | ")] for line in found[0].splitlines()
            ]
        else:
            blocks = found[0].split("   * - ")[1:]
            head, *lines = [[" ".join(cell.split()) for cell in block.split("\n     -")] for block in blocks]
        before = text[: found.start()]
        commands = [" ".join(command.split()) for command in COMMAND.findall(before)]
        rows = {name.replace("`", ""): cells for name, *cells in lines}
        yield Table(before, commands[-1] if commands else "", head, rows)


def numbers_of(table):
    """(row, column, cell) of the cells that hold a number."""
    for row, cells in table.rows.items():
        for column, cell in zip(table.columns[1:], cells, strict=True):
            if re.search(r"\d", cell):
                yield row, column, cell


def wrong_cells(table, expected):
    """Cells that differ from `expected(row, column)`."""
    return [(row, column, cell, expected(row, column)) for row, column, cell in numbers_of(table)
            if cell != expected(row, column)]  # fmt: skip


@pytest.fixture(scope="module")
def benchmark():
    """The rows of the committed benchmark by experiment."""
    found = collect(EXPERIMENTS.values(), RESULTS / "benchmark", seeds=None, quick=False)
    return {experiment.name: rows for experiment, _, rows in found}


@pytest.fixture(scope="module")
def measured(benchmark):
    """Experiment to learner to scores."""
    return {name: scores_by_learner(rows) for name, rows in benchmark.items()}


def check_benchmark(table, by_learner):
    """Cells "mean (rank)": the columns are learners, or measures of classifiers."""
    named = (table.columns[0] or table.before.split("\n\n")[-2]).lower()
    places = {metric: named.find(METRICS[metric].lower()) for metric in RANKED}
    measures = sorted((metric for metric, place in places.items() if place >= 0), key=places.get)
    by_name = {METRICS[metric]: metric for metric in RANKED}

    def expected(row, column):
        scores, wanted = (by_learner[column], measures) if column in by_learner else (
            by_learner["itself"], [by_name[column]])  # fmt: skip
        return ", ".join(f"{np.nanmean(scores.column(row, m)):.3f} ({scores.rank(row, m):.1f})" for m in wanted)

    return wrong_cells(table, expected)


def check_paper(table, experiment):
    """A part of one table in the experiment's summary, which another test makes from the rows."""
    summary = (RESULTS / "paper" / "summary.md").read_text()
    section = re.search(rf"^## {experiment}:.*?(?=^## |\Z)", summary, flags=re.M | re.S)[0]
    found = []
    for whole in tables_of(section):
        if set(table.rows) <= set(whole.rows) and set(table.columns[1:]) <= set(whole.columns):
            found.append(wrong_cells(table, lambda row, column, t=whole: t.rows[row][t.columns.index(column) - 1]))
    return min(found, key=len, default="no table of the summary has these rows and columns")


def speed(name):
    """Rows of a speed benchmark by job; of those for several batches by job and batch."""
    rows = map(json.loads, (RESULTS / "speed" / f"{name}.jsonl").read_text().splitlines())
    return {(row["job"], row["batch"]) if "batch" in row else row["job"]: row for row in rows}


def classifier_time_cells():
    rows = {(row["table"], row["method"]): row for row in rows_of("speed", "classifier_time.jsonl").to_dict("records")}
    cells = {}
    for table in dict.fromkeys(table for table, method in rows if method != "cold"):
        own = rows[table, "ScoreClassifier"]
        times = [f"{own['seconds'] / rows[table, m]['seconds']:.2f}" for m in ("XGBoost, tuned", "version before")]
        methods = ("ScoreClassifier", "XGBoost, tuned", "HistGradientBoosting", "forest of 500")
        cells[table] = times + [f"{rows[table, method]['log_loss']:.3f}" for method in methods]
    return cells


def large_table_cells():
    rows = rows_of("speed", "large_tables.jsonl")
    methods = ("ScoreClassifier", "HistGradientBoosting", "XGBoost")
    cells = {}
    for table, own in rows.groupby("table"):
        own = own.set_index("method")
        cells[table] = [f"{own.loc[m, 'seconds']:.0f} s, {own.loc[m, 'log_loss']:.4f}" for m in methods]
    return cells


def speed_cells(name):
    """Words in the name of a row to its cells, for the tables of one speed benchmark."""
    if name == "classifier_time":
        return classifier_time_cells()
    if name == "large_tables":
        return large_table_cells()
    rows = speed(name)
    if name == "score_matching_step":
        jobs = {"Jacobians": "jacfwd", "torch loop": "torch autograd loop", "sliced": "torch, one sliced projection"}
        return {words: [f"{rows[job, 128]['ratio']:.1f} times faster"] for words, job in jobs.items()}
    if name == "scoring":
        jobs = {"an energy": "energy", "64 nodes": "line integral, 64 nodes", "flow": "probability flow",
                "32 nodes": "line integral, as score_samples has it"}  # fmt: skip
        return {words: [f"{rows[job]['ratio']:.0f}", f"{100 * rows[job]['share_of_peak']:.0f} %"]
                for words, job in jobs.items()}  # fmt: skip
    if name == "oversample":
        digits = {"SMOTE": 2, "ADASYN": 2, "torch": 2, "CTGAN": 1, "ForestDiffusion": 0}
        ours = {"ScoreOverSampler": [f"1 ({rows['ScoreOverSampler']['warm_seconds']:.1f} s)"]}
        return ours | {job: [f"{rows[job]['ratio_warm']:.{n}f}"] for job, n in digits.items()}
    if name == "classes":
        jobs, there = {job: job for job in rows} | {"8 members": "8 joint members"}, speed("classes-gpu")
        return {words: [f"{found[job]['ratio']:.2f}" for found in (rows, there)] for words, job in jobs.items()}
    if name == "gpu":
        seconds = {job: row["seconds"] for job, row in rows.items() if "seconds" in row}
        large = rows["exact step, batch 65,536, train_many"]
        chains = seconds["1,000,000 Langevin chains x 1000 steps on the energy, half"]
        fit, parity = "ScoreClassifier().fit, 284,807 x 30", "ScoreOverSampler().fit_resample to parity, 284,807 x 30"
        return {
            "by an energy": [f"{seconds['energy, rows on the device']:.3f} s"],
            "score_samples": [f"{seconds['energy, score_samples from host to host']:.2f} s"],
            "line integral": [f"{seconds['line integral, 64 nodes, rows on the device']:.2f} s"],
            "Langevin chains": [f"{chains:.1f} s"],
            "batch 1,024": [f"{1e6 * seconds['exact step, batch 1,024, train_many']:.0f} us"],
            "batch 65,536": [f"{large['items'] / large['seconds'] / 1e6:.0f} million rows a second"],
            "ScoreClassifier": [f"{seconds[f'{fit}, first']:.0f} s, {seconds[f'{fit}, warm']:.1f} s"],
            "parity": [f"{seconds[f'{parity}, first']:.0f} s, {seconds[f'{parity}, warm']:.1f} s"],
        }
    raise AssertionError(f"no rule for the cells of {name}")


@functools.cache
def rows_of(folder, name):
    """The rows of a file of results."""
    return pd.DataFrame(map(json.loads, (RESULTS / folder / name).read_text().splitlines()))


def advice_cell(row, column):
    """A cell of the table of advice on simulated tables: the share of tables of a kind with this advice."""
    rows = rows_of("advice", "advice.jsonl")
    own = rows[rows["kind"] == row]
    if column == "tables":
        return str(len(own))
    low, high = binomtest(int((own["advice"] == column).sum()), len(own)).proportion_ci()
    return f"{(own['advice'] == column).mean():.2f} [{low:.2f}, {high:.2f}]"


@functools.cache
def before_after():
    """The benchmark of that name, as a module, and what it compares."""
    spec = importlib.util.spec_from_file_location("before_after", ROOT / "benchmarks" / "before_after.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.compared()


def before_after_cell(row, column):
    module, found = before_after()
    by_name = {METRICS[metric]: metric for metric in module.COMPARED}
    (scores,) = [scores for (arm, learner), scores in found.items() if row in (arm, f"{arm}, {learner}")]
    return module.gain(scores, by_name[column])


def where_cell(row, column):
    """A cell "mean (rank)" of the table of where rows are kept; columns are learners."""
    rows = rows_of("where", "where.jsonl")
    wide = rows[rows["learner"] == column].pivot_table(index="table", columns="where", values="average_precision")
    return f"{wide[row].mean():.3f} ({wide.rank(axis=1, ascending=False).mean()[row]:.1f})"


def law_cell(row, column):
    """A cell "energy distance / AUC" of the table of known distributions; a column is "distribution, rows"."""
    rows = rows_of("law", "law.jsonl")
    law, n = column.split(", ")
    own = rows[(rows["law"] == law) & (rows["n"] == int(n.replace(",", ""))) & (rows["method"] == row)]
    return f"{own['energy_distance'].mean():.3f} / {own['auc'].mean():.2f}"


def settings_cell(row, column):
    """A cell of the table of the paper's open settings: a mean over fresh seeds with its interval."""
    rows = rows_of("paper", "paper_settings.jsonl")
    number = 0 if row == "as reproduced" else int(row.split()[1].strip(","))
    own = rows[(rows["part"] == "fresh") & (rows["setting"] == number)]
    return str(estimate(own[{"F1": "f1", "average precision": "average_precision"}[column]].fillna(0.0)))


def check_speed(table, name):
    cells = speed_cells(name)

    def expected(row, column):
        (words,) = [words for words in cells if words in row]
        return cells[words][table.columns.index(column) - 1]

    return wrong_cells(table, expected)


MIXED = ("adult", "telco-churn", "default", "titanic", "penguins")
SCORES = {"average precision": "average_precision", "log loss": "log_loss", "Brier score": "brier"}
IMPUTED = {"AvgMAE": "avg_mae", "MinMAE": "min_mae", "coverage": "coverage", "energy": "energy",
           "average precision": "average_precision", "seconds": "seconds"}  # fmt: skip


def mixed_cell(name, before, row, column):
    """A cell of a table of one benchmark of mixed tables; what was measured stands in the paragraph before it."""
    rows = rows_of("mixed", f"{name}.jsonl")
    if name == "credible_rows":
        own = rows[rows["method"] == row]
        if column == "near-copies":
            return f"{own['near_copies'].mean():.3f}"
        return f"{(own if column == 'mean' else own[own['table'] == column])['auc'].mean():.3f}"
    if name == "impute":  # means over the tables that every method filled
        if "gaps" in rows:
            by_others = "given other columns" in before.strip().split("\n\n")[-1]
            rows = rows[rows["gaps"] == ("by others" if by_others else "at random")]
        n_methods = rows["method"].nunique()
        rows = rows.groupby("table").filter(lambda own: own["method"].nunique() == n_methods)
        own = rows.loc[rows["method"] == row, IMPUTED[column]].mean()
        return f"{own:.1f}" if column == "seconds" else f"{own:.3f}"
    said = before.strip().split("\n\n")[-1]
    gaps = said[:4] if said[:4] in ("10 %", "30 %") else "none"
    gaps += " by label" if "three times" in said or "in the same way" in said else ""
    rows = rows[(rows["table"].isin(MIXED) == ("mixed tables" in said)) & (rows["gaps"] == gaps)]
    wide = rows.pivot_table(index="table", columns="arm", values=SCORES[column])
    rank = wide.rank(axis=1, ascending=column != "average precision").mean()
    return f"{wide[row].mean():.3f} ({rank[row]:.1f})"


def outlier_cell(before, row, column):
    """A cell of a table of outlier detection; the setting is the first word of the paragraph before it."""
    rows = rows_of("outliers", "outliers.jsonl")
    rows = rows[rows["setting"] == before.strip().split("\n\n")[-1].split()[0].strip(":").lower()]
    measure = {"ROC AUC": "roc_auc", "average precision": "average_precision", "seconds": "seconds"}[column]
    wide = rows.pivot_table(index="table", columns="method", values=measure)
    if measure == "seconds":
        return f"{wide[row].mean():.1f}"
    return f"{wide[row].mean():.3f} ({wide.rank(axis=1, ascending=False).mean()[row]:.1f})"


def check(table, measured):
    """What is wrong in a table, if its numbers are those of committed rows."""
    if table.command.startswith("scorefield benchmark"):
        return check_benchmark(table, measured[table.command.split()[-1]])
    if table.command.startswith("scorefield reproduce"):
        return check_paper(table, table.command.split()[-1])
    name = table.command.rpartition("/")[2]
    if name and (RESULTS / "mixed" / f"{name}.jsonl").exists():
        return wrong_cells(table, lambda row, column: mixed_cell(name, table.before, row, column))
    others = {"advice": advice_cell, "where": where_cell, "before_after": before_after_cell, "law": law_cell,
              "paper_settings": settings_cell}  # fmt: skip
    if name in others:
        return wrong_cells(table, others[name])
    if name == "outliers":
        return wrong_cells(table, lambda row, column: outlier_cell(table.before, row, column))
    return check_speed(table, name) if name and (RESULTS / "speed" / f"{name}.jsonl").exists() else []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_show_the_numbers_of_the_rows(page, measured):
    for table in tables_of(page.read_text()):
        if any(numbers_of(table)):
            assert check(table, measured) == [], table.columns


@pytest.mark.parametrize(
    ("path", "right", "wrong"),
    [
        ("docs/evidence/classifiers.rst", "forest, 0.645 (5.2)", "forest, 0.653 (5.6)"),  # that of the next row
        ("docs/evidence/speed.rst", ", 1.04\n", ", 1.40\n"),  # digits swapped
        ("docs/evidence/mixed_tables.rst", "ours, 0.708", "ours, 0.963"),  # that of SMOTENC
        ("docs/guide/outliers.rst", ", 0.310 (3.1)\n", ", 0.287 (3.6)\n"),  # that of the next row
    ],
)
def test_a_number_in_another_place_is_noticed(path, right, wrong, measured):
    text = (ROOT / path).read_text()
    assert right in text
    assert any(check(table, measured) for table in tables_of(text.replace(right, wrong)) if any(numbers_of(table)))


def test_a_number_of_another_arm_is_noticed():
    text = "`scorefield reproduce fraud`\n\n| | F1 |\n|---|---|\n| nothing | 0.763 [0.737, 0.788] |\n"
    (right,) = tables_of(text)
    (wrong,) = tables_of(text.replace("nothing", "SMOTE"))
    assert check(right, {}) == []
    assert check(wrong, {}) == [("SMOTE", "F1", "0.763 [0.737, 0.788]", "0.764 [0.746, 0.781]")]


def speed_sentences():
    step, scoring, peers, fits = (speed(name) for name in ("score_matching_step", "scoring", "oversample", "fit"))
    ours, smote = peers["ScoreOverSampler"], peers["SMOTE"]
    yield f"At batch 1,024 it runs at {100 * step['closed form', 1024]['share_of_peak']:.0f} %"
    yield f"{step['jacfwd', 128]['ratio']:.1f} times faster than forward-mode Jacobians"
    yield f"{step['torch autograd loop', 128]['ratio']:.1f} times faster than the usual torch loop"
    yield f"{100 * step['closed form', 1024]['share_of_peak']:.0f} % of the machine's matrix-product peak"
    yield f"an energy is {scoring['line integral, 64 nodes']['ratio']:.0f} times faster"
    yield f"{peers['ForestDiffusion']['ratio_warm']:.0f} times faster than by ForestDiffusion"
    yield f"{peers['CTGAN']['ratio_warm']:.1f} times faster than by CTGAN"
    yield f"SMOTE is {1 / smote['ratio_warm']:.0f} times faster than ours"
    yield (
        f"it takes {ours['cold_seconds']:.1f} s in all for that job, {ours['cold_seconds'] / ours['warm_seconds']:.1f} "
        f"times its warm time (with SMOTE {smote['cold_seconds']:.1f} s)"
    )
    ratios = [f"{row['ratio']:.2f}" for row in speed("cross_validation").values()]
    yield f"cost {ratios[0]}, {ratios[1]} and {ratios[2]} times as much"
    ratio, warm = ({job: row[key] for job, row in fits.items()} for key in ("ratio", "warm_seconds"))
    yield f"takes {ratio['energy']:.1f} times as long as a warm fit of an energy ({warm['energy']:.1f} s)"
    yield f"{ratio['mlp']:.1f} times for a vector network ({warm['mlp']:.1f} s)"
    yield f"{ratio['diffusion']:.0f} for a diffusion model ({warm['diffusion']:.1f} s)"
    yield f'{ratio["auto"]:.1f} for ``"auto"`` ({warm["auto"]:.1f} s)'
    yield f"{ratio['classifier']:.1f} for ``ScoreClassifier()``"
    yield f"whose eight members take {warm['classifier']:.1f} s"
    imports, statement = speed("import_time"), "from scorefield import ScoreDensity"
    yield f"``{statement}`` takes {imports[statement]['seconds']:.1f} s"
    whole = speed("memory")["fit_resample"]  # the last of several sizes
    yield f"to parity adds {whole['added']:.0f} MB to {whole['before']:.0f}, {whole['result']:.0f} of them its result"


def classifier_sentences():
    found = rows_of("speed", "classifier_time.jsonl").fillna({"kept": ""}).to_dict("records")
    rows = {(row["table"], row["method"], row["kept"]): row["seconds"] for row in found}
    tables = [table for table, method, _ in rows if method == "ScoreClassifier"]
    xgboost, before = (
        np.exp(np.mean([np.log(rows[t, "ScoreClassifier", ""] / rows[t, m, ""]) for t in tables]))
        for m in ("XGBoost, tuned", "version before")
    )
    yield (
        f"In the geometric mean it takes {xgboost:.2f} times as long as the tuned XGBoost and {before:.2f} times as "
        "long as the version before"
    )
    cold, kept = (rows["iris", "cold", what] for what in ("nothing kept", "programs kept"))
    yield f"needs {cold:.1f} s for iris, from its start to its end, and {kept:.1f} s where an earlier one kept"
    large = rows_of("speed", "large_tables.jsonl").set_index(["table", "method"])
    for table, words in (("fraud, 100,000 rows", "on the frauds"), ("500 columns", "with 500 columns")):
        ours, other = (large.loc[(table, m), "average_precision"] for m in ("ScoreClassifier", "XGBoost"))
        yield f"{ours:.2f} against {other:.2f} {words}"
    truth = large.loc[("26 simulated classes", "the true posterior"), "log_loss"]
    yield f"the true posterior, whose log loss is {truth:.4f}"
    ours, other = (large.loc[("letter", m), "accuracy"] for m in ("ScoreClassifier", "XGBoost"))
    yield f"on the letters its accuracy is {ours:.3f} (XGBoost {other:.3f})"
    tried = rows_of("paper", "paper_settings.jsonl").fillna({"f1": 0.0})
    means = tried[(tried["part"] == "search") & (tried["setting"] > 0)].groupby("setting")["f1"].mean()
    yield f"{(means > 0.4).sum()} of {len(means)} has a mean above .4"


def claim_sentences(benchmark):
    said = (RESULTS / "paper" / "summary.md").read_text()
    hold, noise, fail = map(int, re.search(r"Claims: (\d+) holds, (\d+) holds within noise, (\d+) does", said).groups())
    yield (
        f"of {hold + noise + fail} claims, some of them ours, {hold} hold, {noise} hold within noise and {fail} do not"
    )
    claims = [claim for name, rows in benchmark.items() for claim in EXPERIMENTS[name].show(rows).claims]
    yield from (f"{claim.text} ({claim.evidence})" for claim in claims)
    counts = Counter(claim.verdict for claim in claims)
    hold, noise, fail = (counts[verdict] for verdict in ("holds", "holds within noise", "does not hold"))
    yield f"Of {len(claims)} claims {hold} hold, {noise} hold within noise and {fail} do not"
    yield f"Claims: {hold} hold, {noise} hold within noise, {fail} do not"


def paper_sentences():
    summary = (RESULTS / "paper" / "summary.md").read_text()

    def value(experiment, column, row):
        section = re.search(rf"^## {experiment}:.*?(?=^## |\Z)", summary, flags=re.M | re.S)[0]
        (table,) = [table for table in tables_of(section) if column in table.columns and row in table.rows]
        cell = table.rows[row][table.columns.index(column) - 1]
        return f"{float(cell.split()[0]):.2f}".lstrip("0")

    arms = ("ScoreClassifier", "ScoreDensity per class")
    fraud = [value("generative-fraud", "F1", arm) for arm in arms]
    simulation = [value("generative-10d", "average precision", arm) for arm in arms]
    yield f"the joint form has F1 {fraud[0]}, separate densities {fraud[1]}"
    yield f"separate densities are better: average precision {simulation[1]}, joint {simulation[0]}"


def wrong_sentences(page, sentences):
    """Places in a page that are one of the sentences but for their numbers."""
    page = " ".join(page.split())
    for sentence in sentences:
        parts = re.split(f"({NUMBER})", sentence)
        pattern = "".join(NUMBER if i % 2 else re.escape(part) for i, part in enumerate(parts))
        yield from (found for found in re.findall(rf"(?<![\d.]){pattern}", page) if found != sentence)


@pytest.fixture(scope="module")
def sentences(benchmark):
    """Sentences with numbers, made once from the rows for all pages."""
    return [*speed_sentences(), *classifier_sentences(), *claim_sentences(benchmark), *paper_sentences()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sentences_have_the_numbers_of_the_rows(page, sentences):
    assert list(wrong_sentences(page.read_text(), sentences)) == []


def test_a_wrong_number_in_a_sentence_is_noticed():
    text = (ROOT / "docs" / "guide" / "generative.rst").read_text()
    found = "the joint form has F1 .88, separate densities .51"
    assert list(wrong_sentences(text.replace("has F1 .78", "has F1 .88"), paper_sentences())) == [found]
    text = "It is\n3.6 times faster than forward-mode Jacobians."
    assert list(wrong_sentences(text, speed_sentences())) == ["3.6 times faster than forward-mode Jacobians"]
    assert list(wrong_sentences("It is faster than Jacobians.", speed_sentences())) == []
