"""Documents that run: the README's example, and a doctest for every public name."""

import inspect
import pathlib
import re

import scorefield

README = pathlib.Path(__file__).parents[1] / "README.md"


def test_readme_example_runs_as_written(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 1
    exec(compile(blocks[0], "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    # Each is far above the share of positives, the average precision of a coin.
    assert all(float(line.split()[-1]) > 0.15 for line in lines)


def test_public_names_are_documented():
    for name in set(scorefield.__all__) - {"__version__"}:
        text = inspect.getdoc(getattr(scorefield, name))
        assert text.splitlines()[0].endswith((".", "here")), name
        assert "Examples\n" in text, name
        assert ">>> " in text, name
