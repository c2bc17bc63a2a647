"""Extensions of the documentation: formulas, the command-line reference, links to other libraries."""

import importlib
import json
import pathlib
import posixpath
import re
import sys
import types

import jax
import numpy as np
import pytest

import scorefield
import scorefield.paper

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
    public = {*scorefield.__all__, *scorefield.paper.__all__, *(f"paper.{name}" for name in scorefield.paper.__all__)}
    assert set(entries) <= public
    assert {name for names in entries.values() for name in names} <= public | outside


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


def modules_of_page(path):
    """Code of the files that a page includes under the names of modules, by these names."""
    included = r"^\.\. literalinclude:: (.+)\n   :caption: src/(.+)\.py\n"
    found = re.findall(included, path.read_text(), flags=re.M)
    return {name.replace("/", "."): (path.parent / file).read_text() for file, name in found}


@pytest.fixture
def extended(monkeypatch):
    """The modules that the page on extensions adds, imported in its order."""
    found = {}
    for name, code in modules_of_page(ROOT / "docs" / "extending.rst").items():
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(code, f"{name} of extending.rst", "exec"), module.__dict__)
        found[name.removeprefix("scorefield.")] = module
    return found


def test_the_page_on_extensions_adds_a_field_a_model_and_an_estimator(extended, keeps_the_promises_of_a_model):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = 3 * y[:, None] + rng.laplace(size=(300, 2)) * [1, 2]
    field = extended["fields.laplace"].fit_laplace(X[y == 0].astype(np.float32))
    np.testing.assert_allclose(jax.grad(field.potential)(X[0]), field(X[0]), rtol=1e-5)
    normal = rng.normal(size=(20_000, 2))  # importance draws: the density integrates to one
    draws, log_proposal = 5 * normal, np.sum(-0.5 * normal**2 - np.log(5 * np.sqrt(2 * np.pi)), axis=1)
    weights = np.exp(jax.vmap(field.potential)(draws) - log_proposal)
    assert abs(weights.mean() - 1) < 4 * weights.std() / np.sqrt(len(weights))
    classifier = extended["estimators.laplace"].LaplaceClassifier().fit(X, y)
    keeps_the_promises_of_a_model(classifier.model_, X[:20])
    assert classifier.score(X, y) > 0.8
    with pytest.raises(ValueError, match="NaN"):
        classifier.predict(np.full((1, 2), np.nan))
