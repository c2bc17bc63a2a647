"""Extensions of the documentation: formulas, the command-line reference, links to other libraries."""

import importlib
import json
import pathlib
import posixpath
import re

import pytest

import scorefield

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def extension(monkeypatch, request):
    """Imports a module of docs/_ext."""
    monkeypatch.syspath_prepend(request.config.rootpath / "docs" / "_ext")
    return importlib.import_module


def test_links_lead_to_names_that_exist(extension):
    libraries = extension("inventories").LIBRARIES
    for _, _, names in libraries.values():
        for name in (name for kind in names.values() for name in kind):
            module, _, last = name.rpartition(".")
            assert hasattr(importlib.import_module(module), last), name


def test_inventories_are_read_by_sphinx(extension, tmp_path):
    inventory = pytest.importorskip("sphinx.util.inventory", reason="Sphinx is not installed")
    address, path = extension("inventories").mapping(tmp_path)["imblearn"]
    with open(path, "rb") as file:
        found = inventory.InventoryFile.load(file, address, posixpath.join)
    name = "imblearn.over_sampling.SMOTE"
    assert f"{address}/references/generated/{name}.html#{name}" in repr(found["py:class"][name])


def test_pages_point_to_names_that_have_a_page(extension):
    entries, libraries = extension("see_also").ENTRIES, extension("inventories").LIBRARIES
    outside = {name for _, _, names in libraries.values() for kind in names.values() for name in kind}
    assert set(entries) <= set(scorefield.__all__)
    assert {name for names in entries.values() for name in names} <= set(scorefield.__all__) | outside


def test_the_reference_has_every_command_and_option(extension):
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    import typer

    from scorefield.cli.app import app

    command_line = extension("command_line")
    group = typer.main.get_command(app)
    found = command_line.commands_of(group, "scorefield")
    assert [name for name, _ in found] == [f"scorefield {name}" for name in group.commands]
    for name, command in found:
        text = command_line.section_of(name, command).astext()
        assert all(option in text for parameter in command.params for option in parameter.opts), name
        assert "[b]" not in text


def test_formulas_keep_the_spaces_of_tex(extension):
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
    text = extension("mathml").formula(r"\log p(x) = -|x|")
    assert "xmlns" not in text
    assert '<mi>log</mi><mspace width="0.167em" /><mi>p</mi>' in text
    assert '<mo form="prefix" lspace="0" rspace="0">\N{MINUS SIGN}</mo>' in text
    assert text.count('form="prefix"') == 2
    assert text.count('form="postfix"') == 1


def test_the_page_of_results_holds_all_committed_numbers(extension, tmp_path):
    path = tmp_path / "results.html"
    extension("benchmark_results").write_results(path=path)
    text = path.read_text()
    results = json.loads(re.search(r"const results = (\{.*\});", text)[1])
    classifiers = results["classifiers"]["learners"]["itself"]
    assert len(classifiers["tables"]) == 22
    place = classifiers["arms"].index("ScoreClassifier")
    lines = (ROOT / "results" / "benchmark" / "rows" / "classifiers.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    own = [row["log_loss"] for row in rows if (row.get("arm"), row.get("table")) == ("ScoreClassifier", "oil")]
    shown = classifiers["metrics"]["log_loss"]["values"][classifiers["tables"].index("oil")][place]
    assert shown == pytest.approx(sum(own) / len(own), abs=1e-4)
    assert {"logistic", "forest", "boosting"} <= set(results["oversampling"]["learners"])
