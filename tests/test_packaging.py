"""Files around the package: workflows that name existing commands, one version, one list of lint commands."""

import pathlib
import re
import tomllib

import pytest
import yaml
from typer.testing import CliRunner

import scorefield
from scorefield.cli.app import app

ROOT = pathlib.Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RECIPES = dict(re.findall(r"^([\w-]+):.*\n((?:\t.*\n?)*)", (ROOT / "Makefile").read_text(), flags=re.M))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def commands(path):
    """All `run` lines of a workflow."""
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path):
    targets = [line.split()[1] for line in commands(path) if line.startswith("make ")]
    assert targets
    assert set(targets) <= set(RECIPES)


def test_workflows_cover_tests_docs_and_wheel():
    assert {"make test", "make test-all", "make test-lowest", "make docs", "make dist"} <= {
        " ".join(line.split()[:2]) for path in WORKFLOWS for line in commands(path)
    }


def test_windows_runs_the_commands_of_make_test():
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]["windows"]["steps"]
    lint = RECIPES["lint"].replace("$(BIN)/", "").split("\n\t")
    suite = RECIPES["test"].replace("$(WORKERS)", "2").split("$(BIN)/")[1]
    assert [step["run"] for step in steps if "run" in step][1:] == [line.strip() for line in (*lint, suite)]


def test_the_lowest_python_is_tested():
    lowest = PROJECT["requires-python"].removeprefix(">=")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    assert all(lowest in jobs[name]["strategy"]["matrix"]["python"] for name in ("newest", "windows"))
    assert jobs["lowest"]["steps"][1]["with"]["python-version"] == lowest
    assert f"Programming Language :: Python :: {lowest}" in PROJECT["classifiers"]


def test_a_commit_is_checked_by_make_lint():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [hook["entry"] for hook in hooks] == ["make lint"]


def test_the_citation_agrees_with_the_project():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["title"] == PROJECT["name"]
    assert citation["abstract"] == PROJECT["description"]
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]


def test_the_command_prints_the_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"scorefield {scorefield.__version__}\n")
