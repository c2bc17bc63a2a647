"""Documents that run: the README's example, the code and commands of the docs, and a doctest for every public name."""

import inspect
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
    from scorefield.cli import app

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
