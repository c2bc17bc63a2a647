"""Milliseconds of `predict_proba` of few rows beside XGBoost's, and processor seconds of a first fit, before and after.

All rows of one table are predicted in one process; numbers, a frame of numbers, and a frame of mixed columns. A first
fit is a process of its own from its start to its first prediction of iris, with no program kept; its seconds are those
of the processor, in turns with the older version.

    python benchmarks/one_row.py [--quick] [--repeats 5] [--before SRC] [--out results/speed]

`--before` is the folder `src` of an older version of this library.
"""

import os
import pathlib

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from _timing import Rows, best_of, fresh_process, parse
from scorefield import ScoreClassifier, load_penguins

COLD = """
import json, os
from sklearn.datasets import load_iris
from scorefield import ScoreClassifier
X, y = load_iris(return_X_y=True)
ScoreClassifier(random_state=0).fit(X, y).predict_proba(X)
print(json.dumps({"seconds": sum(os.times()[:2])}))
"""
CALLS = 20  # per repeat


def with_before(parser):
    parser.add_argument("--before", type=pathlib.Path, help="folder src of an older version")


def tables():
    """Names, tables and class numbers."""
    X, y = load_breast_cancer(return_X_y=True)
    yield "numbers", X, y
    yield "frame of numbers", pd.DataFrame(X).add_prefix("c"), y
    penguins = load_penguins()
    species = np.unique(penguins.pop("species"), return_inverse=True)[1]
    texts = penguins.columns[[not pd.api.types.is_numeric_dtype(each) for each in penguins.dtypes]]
    yield "mixed frame", penguins.astype(dict.fromkeys(texts, "category")), species


def cold_seconds(source=None):
    """Processor seconds of a first fit in a process of its own, with the library in a folder or as it is."""
    kept = {name: os.environ.pop(name) for name in ("JAX_COMPILATION_CACHE_DIR", "PYTHONPATH") if name in os.environ}
    if source or "PYTHONPATH" in kept:
        os.environ["PYTHONPATH"] = str(source or kept["PYTHONPATH"])
    try:
        return fresh_process(COLD)[2]["seconds"]
    finally:
        os.environ.pop("PYTHONPATH", None)
        os.environ.update(kept)


def main():
    from xgboost import XGBClassifier

    options = parse(__doc__, repeats=5, extend=with_before)
    rows = Rows("one_row", options)
    for name, X, y in tables():
        ours = ScoreClassifier(random_state=0).fit(X, y)
        theirs = XGBClassifier(n_jobs=1, enable_categorical=True).fit(X, y)
        for n in (1, 100):
            job = lambda model: best_of(lambda: model.predict_proba(X[:n]), options.repeats * CALLS)  # noqa: B023, E731
            seconds, reference = job(ours), job(theirs)
            rows.add(
                f"{name:<17} {n:3d} rows {seconds * 1e3:6.2f} ms, XGBoost {reference * 1e3:6.2f} ms: "
                f"{seconds / reference:.1f} times",
                table=name, n=n, seconds=seconds, xgboost_seconds=reference,
            )  # fmt: skip
    found = {"now": [], "before": []}
    for _ in range(1 if options.quick else options.repeats):
        found["now"].append(cold_seconds())
        if options.before:
            found["before"].append(cold_seconds(options.before))
    for version, seconds in found.items():
        if seconds:
            rows.add(f"first fit of iris, {version}: {min(seconds):.1f} s", version=version, seconds=min(seconds))
    rows.write()


if __name__ == "__main__":
    main()
