"""Seconds of explain, boundary_distance, counterfactuals and diagnose on adult.csv, first and warm.

A ScoreClassifier of 3,000 rows explains 100 others, finds their distances and three counterfactuals each with the age
held, and is diagnosed on 5,000. Shares of rows with a boundary and with a counterfactual stand beside the seconds.

    python benchmarks/explain.py [--quick] [--repeats 1] [--out results/speed]
"""

import sys
import time
import warnings

import numpy as np

from _mixed import load_mixed
from _timing import Rows, parse
from scorefield import ScoreClassifier, boundary_distance, counterfactuals, explain


def main():
    options = parse(__doc__, repeats=1)
    warnings.simplefilter("ignore")
    rows = Rows("explain", options)
    X, y = load_mixed("adult")
    order = np.random.default_rng(0).permutation(len(X))
    n_fit, n_asked, n_judged = (300, 20, 300) if options.quick else (3000, 100, 5000)
    fitted, asked, judged = np.split(order[: n_fit + n_asked + n_judged], [n_fit, n_fit + n_asked])
    steps = {"max_steps": 50, "n_members": 2} if options.quick else {}
    model = ScoreClassifier(random_state=0, **steps).fit(X.iloc[fitted], y[fitted])
    table = X.iloc[asked]
    jobs = {
        "explain": lambda: explain(model, table).errors.max(),
        "boundary_distance": lambda: boundary_distance(model, table).converged.mean(),
        "counterfactuals": lambda: len(np.unique(counterfactuals(model, table, fixed=["age"]).index)) / len(table),
        "diagnose": lambda: len(model.diagnose(X.iloc[judged], y[judged], random_state=0).checks),
    }
    meanings = {
        "explain": "largest error of a sum, in nats", "boundary_distance": "share with a boundary",
        "counterfactuals": "share with a credible row of the other class", "diagnose": "checks",
    }  # fmt: skip
    for name, job in jobs.items():
        seconds = []
        for _ in range(options.repeats + 1):
            begin = time.perf_counter()
            found = float(job())
            seconds.append(time.perf_counter() - begin)
        rows.add(
            f"{name:<18} first {seconds[0]:6.1f} s, warm {min(seconds[1:]):6.1f} s; {meanings[name]}: {found:.3g}",
            job=name, first_seconds=seconds[0], seconds=min(seconds[1:]), meaning=meanings[name], found=found,
        )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    sys.exit(main())
