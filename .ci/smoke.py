"""Smoke test of an installed wheel; `--cli` also runs the command, which needs the extra `cli`."""

import importlib.metadata
import importlib.resources
import subprocess
import sys

import numpy as np

import scorefield

files = importlib.metadata.files("scorefield")
outside = {file.parts[0] for file in files} - {"scorefield", f"scorefield-{scorefield.__version__}.dist-info", ".."}
assert not outside, f"the wheel also holds {outside}"
assert importlib.resources.files("scorefield").joinpath("py.typed").is_file()
assert importlib.resources.files("scorefield").joinpath("data", "penguins.csv").is_file()
assert importlib.metadata.version("scorefield") == scorefield.__version__

rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3)), np.repeat([0, 1], [50, 10])
density = scorefield.ScoreDensity("gaussian")
rows, labels = scorefield.ScoreOverSampler(density=density, random_state=0).fit_resample(X, y)
assert np.array_equal(np.bincount(labels), [50, 50])
assert np.isfinite(rows).all()
assert np.array_equal(rows[:60], X)

if "--cli" in sys.argv:
    said = subprocess.run(["scorefield", "--version"], check=True, capture_output=True, text=True).stdout
    assert said == f"scorefield {scorefield.__version__}\n", said
