"""The package as a whole: the direction of its imports, a lazy import, functions that fit a screen."""

import ast
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).parents[1] / "src" / "scorefield"
LAYERS = {
    1: {
        "_tree", "networks", "divergence", "fields", "truth", "kernel", "joint", "objectives", "minibatches",
        "training", "tasks", "chains", "samplers", "integration", "normalization", "flow", "decisions",
        "gaussian_theory",
    },
    2: {
        "_base", "density", "class_densities", "classifier", "ensemble", "oversampling", "tables",
        "prior_correction", "features", "labelling", "posterior", "datasets", "lazy", "streams", "buffer",
    },
    3: {
        "__main__", "advice", "benchmark", "cli", "commands", "distributed", "experiments", "files", "paper", "planes",
        "model_files", "plotting", "quality", "recipes", "report",
    },
}  # fmt: skip
FORBIDDEN = {1: {"sklearn", "imblearn", "pandas", "matplotlib", "typer"}, 2: {"matplotlib", "typer"}, 3: {"torch"}}


def layer_of(module):
    return next((layer for layer, names in LAYERS.items() if module in names), None)


def imports(path):
    """(package, module of scorefield or None) of every import statement, also those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            names = [
                f"{node.module}.{alias.name}" if node.module == "scorefield" else node.module for alias in node.names
            ]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            yield package, rest.split(".")[0] if package == "scorefield" else None


def violations(path, layer):
    for package, module in imports(path):
        if package in FORBIDDEN[layer]:
            yield f"{path.name} imports {package}"
        if module and (layer_of(module) or 0) > layer:
            yield f"{path.name} (layer {layer}) imports {module} (layer {layer_of(module)})"


def test_imports_point_down():
    for path in SOURCE.rglob("*.py"):
        if path.name == "__init__.py":
            continue
        layer = layer_of(path.relative_to(SOURCE).parts[0].removesuffix(".py"))
        assert layer, f"{path.name} belongs to no layer: add it to LAYERS"
        assert list(violations(path, layer)) == []


def test_an_upward_import_is_caught(tmp_path):
    (tmp_path / "fields.py").write_text("def f():\n    from sklearn.base import clone\n")
    assert list(violations(tmp_path / "fields.py", 1)) == ["fields.py imports sklearn"]


def test_import_is_lazy():
    code = (
        "import sys, scorefield; heavy = {'jax', 'sklearn', 'optax', 'blackjax', 'scipy'} & set(sys.modules); "
        "assert not heavy, heavy; scorefield.Langevin; assert 'jax' in sys.modules; "
        "import jax; assert not jax.config.jax_enable_x64; "
        "scorefield.ScoreClassifier, scorefield.resample_to_parquet; assert 'dask' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_name():
    import scorefield

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        scorefield.nothing  # noqa: B018
    assert set(scorefield.__all__) <= set(dir(scorefield))


def code_lines(source):
    """Lines that hold code: no blank line, comment or docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    skip = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            skip.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(source.splitlines(), start=1)
    return sum(1 for i, line in lines if i not in skip and line.strip() and not line.strip().startswith("#"))


def test_layer_one_stays_small():
    """It covers a whole field in about 1,700 lines of code, and every function fits a screen."""
    assert sum(code_lines((SOURCE / f"{name}.py").read_text()) for name in LAYERS[1]) < 1750
    for name in LAYERS[1]:
        for node in ast.walk(ast.parse((SOURCE / f"{name}.py").read_text())):
            if isinstance(node, ast.FunctionDef):
                docstring = len((ast.get_docstring(node, clean=False) or "").splitlines())
                length = node.end_lineno - node.lineno + 1 - docstring
                assert length <= 50, f"{name}.{node.name} has {length} lines"
