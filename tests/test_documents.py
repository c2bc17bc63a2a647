"""Documents that run: the README's example, the code and commands of the docs, and a doctest for every public name."""

import inspect
import json
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

import pytest

import scorefield

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.rst")) + sorted((ROOT / "docs" / "guide").glob("*.rst"))


def test_readme_example_runs_as_written(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 1
    exec(compile(blocks[0], "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    # Each is far above the share of positives, the average precision of a coin.
    assert all(float(line.split()[-1]) > 0.15 for line in lines)


def blocks_of(page):
    """(language, text) of the code blocks of a page, in order."""
    found = re.findall(r"\.\. code-block:: (python|console)\n\n((?:   .*\n|\n)+)", page.read_text())
    return [(language, textwrap.dedent(text)) for language, text in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_and_commands_of_the_docs_run(page, tmp_path, monkeypatch):
    blocks = blocks_of(page)
    if not blocks:
        pytest.skip("a page without code")
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, str(page), "exec"), names)
            continue
        for line in text.splitlines():
            assert line.startswith("$ scorefield ") or not line
            if line:
                command = [sys.executable, "-m", *shlex.split(line[2:])]
                subprocess.run(command, check=True, capture_output=True)


def test_every_command_is_documented():
    from scorefield.cli.app import app

    text = "".join(page.read_text() for page in PAGES)
    for command in app.registered_commands:
        assert f"scorefield {command.callback.__name__}" in text, command.callback.__name__


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs" / "api.rst").read_text().split()
    assert set(scorefield.__all__) - {"__version__"} <= set(text)


def test_public_names_are_documented():
    for name in set(scorefield.__all__) - {"__version__"}:
        text = inspect.getdoc(getattr(scorefield, name))
        assert text.splitlines()[0].endswith((".", "here")), name
        assert "Examples\n" in text, name
        assert ">>> " in text, name


def test_the_gallery_has_its_examples():
    examples = sorted((ROOT / "examples").glob("plot_*.py"))
    assert len(examples) >= 8
    for path in examples:
        assert path.read_text().rstrip().endswith("plt.show()"), path.name


def speed(name):
    """Rows of a speed benchmark by job; of those for several batches by job and batch."""
    lines = (ROOT / "results" / "speed" / f"{name}.jsonl").read_text().splitlines()
    rows = map(json.loads, lines)
    return {(row["job"], row["batch"]) if "batch" in row else row["job"]: row for row in rows}


def speed_claims():
    """What the performance page says, from the rows."""
    step, scoring, peers = speed("score_matching_step"), speed("scoring"), speed("oversample")
    for job in ("jacfwd", "torch autograd loop", "torch, one sliced projection"):
        yield f"- {step[job, 128]['ratio']:.1f} times faster"
    yield f"At batch 1,024 it runs at {100 * step['closed form', 1024]['share_of_peak']:.0f} %"
    for row in scoring.values():
        yield f"- {row['ratio']:.0f} - {100 * row['share_of_peak']:.0f} %"
    for job, digits in (("SMOTE", 2), ("CTGAN", 1), ("ForestDiffusion", 0)):
        yield f"* - {job} - {peers[job]['ratio_warm']:.{digits}f}"
    yield f"it takes {peers['ScoreOverSampler']['cold_seconds']:.1f} s in all for that job"
    ratios = [f"{row['ratio']:.2f}" for row in speed("cross_validation").values()]
    yield f"cost {ratios[0]}, {ratios[1]} and {ratios[2]} times as much"
    fits = speed("fit")
    yield f"takes {fits['energy']['ratio']:.1f} times as long as a warm fit of an energy"
    yield f"whose eight members take {fits['classifier']['warm_seconds']:.1f} s"
    for here, there in zip(speed("classes").values(), speed("classes-gpu").values(), strict=True):
        yield f"- {here['ratio']:.2f} - {there['ratio']:.2f}"
    statement = "from scorefield import ScoreDensity"
    yield f"``{statement}`` takes {speed('import_time')[statement]['seconds']:.1f} s"
    whole = speed("memory")["fit_resample"]  # the last of several sizes
    yield f"to parity adds {whole['added']:.0f} MB to {whole['before']:.0f}, {whole['result']:.0f} of them its result"
    gpu = speed("gpu")
    yield f"on the device - {gpu['energy, rows on the device']['seconds']:.3f} s"
    yield f"from and to host arrays - {gpu['energy, score_samples from host to host']['seconds']:.2f} s"
    yield f"on the device - {gpu['line integral, 64 nodes, rows on the device']['seconds']:.2f} s"
    chains = gpu["1,000,000 Langevin chains x 1000 steps on the energy, half"]
    yield f"1,000 steps on the energy - {chains['seconds']:.1f} s"
    yield f"held-out losses - {1e6 * gpu['exact step, batch 1,024, train_many']['seconds']:.0f} us"
    large = gpu["exact step, batch 65,536, train_many"]
    yield f"{large['items'] / large['seconds'] / 1e6:.0f} million rows a second"


def readme_speed_claims():
    """The same for the README."""
    step, scoring, peers = speed("score_matching_step"), speed("scoring"), speed("oversample")
    yield f"{step['jacfwd', 128]['ratio']:.1f} times faster than forward-mode Jacobians"
    yield f"{step['torch autograd loop', 128]['ratio']:.1f} times faster than the usual torch loop"
    yield f"{100 * step['closed form', 1024]['share_of_peak']:.0f} % of the machine's matrix-product peak"
    yield f"an energy is {scoring['line integral, 64 nodes']['ratio']:.0f} times faster"
    yield f"{peers['ForestDiffusion']['ratio_warm']:.0f} times faster than by ForestDiffusion"
    yield f"{peers['CTGAN']['ratio_warm']:.1f} times faster than by CTGAN"
    yield f"SMOTE is {1 / peers['SMOTE']['ratio_warm']:.0f} times faster than ours"


@pytest.mark.parametrize(
    ("path", "claims"), [("docs/guide/performance.rst", speed_claims), ("README.md", readme_speed_claims)]
)
def test_speeds_in_the_documents_are_those_of_the_rows(path, claims):
    page = " ".join((ROOT / path).read_text().split())
    assert [claim for claim in claims() if claim not in page] == []
    assert next(claims()).replace("times faster", "times slower") not in page  # the control: a text not there
