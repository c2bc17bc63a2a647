"""The package as a whole: the direction of its imports, a lazy import, functions that fit a screen."""

import ast
import doctest
import pathlib
import pickle
import re
import subprocess
import sys
import tomllib

import pytest

import scorefield
import scorefield.paper

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = ROOT / "src" / "scorefield"
# The one ordered list of folders is the map in CONTRIBUTING.md; a folder may import itself and those below it.
MAP = re.findall(r"^\| `(\w+)/` \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.M)
FOLDERS = [folder for folder, _ in MAP]
CORE = FOLDERS[FOLDERS.index("data") + 1 :]  # what knows nothing of scikit-learn
FORBIDDEN_IN_CORE = {"sklearn", "imblearn", "pandas"}
ONLY_ABOVE = {"matplotlib": "display", "typer": "cli", "rich": "cli", "torch": "nowhere"}


def imported(path):
    """Dotted names of all imports of a module, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def violations(path, folder):
    """What a module of a folder imports against the order of the folders."""
    below = FOLDERS[FOLDERS.index(folder) :]
    for name in imported(path):
        package, *rest = name.split(".")
        if package == "scorefield" and rest[0] in FOLDERS and rest[0] not in below:
            yield f"{folder}/{path.name} imports {rest[0]}, which is above it"
        if package in FORBIDDEN_IN_CORE and folder in CORE:
            yield f"{folder}/{path.name} imports {package}"
        if package in ONLY_ABOVE and ONLY_ABOVE[package] not in below:
            yield f"{folder}/{path.name} imports {package}"


def test_imports_point_down():
    modules = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE]
    assert len(modules) > 50
    found = [line for path in modules for line in violations(path, path.relative_to(SOURCE).parts[0])]
    assert found == []


def test_only_the_entry_points_lie_beside_the_folders():
    assert {path.name for path in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py", "paper.py"}


@pytest.mark.parametrize(
    ("folder", "code", "said"),
    [
        ("fields", "def f():\n    from sklearn.base import clone\n", "imports sklearn"),
        ("fields", "from scorefield.training.loop import train\n", "imports training, which is above it"),
        ("data", "from scorefield import estimators\n", "imports estimators, which is above it"),
        ("estimators", "import matplotlib.pyplot as plt\n", "imports matplotlib"),
    ],
)
def test_an_upward_import_is_caught(tmp_path, folder, code, said):
    (tmp_path / "module.py").write_text(code)
    assert list(violations(tmp_path / "module.py", folder)) == [f"{folder}/module.py {said}"]


def test_the_map_of_the_folders_is_true():
    """CONTRIBUTING.md names every folder once, and each says what it holds."""
    folders = {path.parent.name: path for path in SOURCE.glob("*/__init__.py")}
    assert sorted(FOLDERS) == sorted(folders)
    assert all(ast.get_docstring(ast.parse(path.read_text())) for path in folders.values())


def test_a_public_estimator_has_a_file_of_its_own():
    defined = [
        (path.name, node.name)
        for path in (SOURCE / "estimators").glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name in scorefield.__all__
    ]
    assert {"ScoreDensity", "ScoreClassifier", "ScoreOverSampler", "ScoreImputer"} <= {name for _, name in defined}
    assert len({path for path, _ in defined}) == len(defined)


def test_the_core_is_type_checked():
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["files"]
    assert sorted(checked) == sorted(f"src/scorefield/{folder}" for folder in CORE)


def test_tests_mirror_the_folders():
    assert {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"} <= {
        *FOLDERS,
        "docs",
    }


def test_import_is_lazy():
    code = (
        "import sys, scorefield; heavy = {'jax', 'sklearn', 'optax', 'blackjax', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy; scorefield.Langevin; assert 'jax' in sys.modules; "
        "import jax; assert not jax.config.jax_enable_x64; "
        "scorefield.ScoreClassifier, scorefield.resample_to_parquet; assert 'dask' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", [scorefield, scorefield.paper])
def test_unknown_name(module):
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_names_of_the_paper_stand_apart():
    assert not set(scorefield.paper.__all__) & set(scorefield.__all__)


STABLE = [
    name
    for name in [*scorefield.__all__, "LabellingClassifier"]
    if getattr(scorefield, name).__class__ is not str and getattr(scorefield, name).__module__ == "scorefield"
]


@pytest.mark.parametrize("name", STABLE)
def test_examples_and_pickles_of_classes_with_a_stable_name(name):
    """pytest looks for examples by module, and pickles name one: these classes name the package instead."""
    cls = getattr(scorefield, name)
    assert pickle.loads(pickle.dumps(cls)) is cls
    examples = [test for test in doctest.DocTestFinder().find(cls, name, module=False) if test.examples]
    assert examples
    for test in examples:
        assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_all_estimators_and_samplers_have_a_stable_name():
    assert {
        "ScoreDensity",
        "ScoreClassifier",
        "ScoreOverSampler",
        "PriorCorrectedClassifier",
        "ScoreFeatures",
        "ScoreOutlierDetector",
        "LabellingClassifier",
        "Langevin",
        "AnnealedLangevin",
        "MALA",
        "HMC",
        "ReverseDiffusion",
    } <= set(STABLE)
