"""Our arms on the 22 tables, before and after noise followed correlations and probabilities were calibrated.

The rows before are those of the commit that each names, on the same splits as the first repetition of `scorefield
benchmark`. Means before and after, and the gain over 20 sets of rows with a 95 % interval, where positive is better.

    python benchmarks/before_after.py
"""

import json
import pathlib

import numpy as np

from scorefield.evaluation.ranks import signed_rank
from scorefield.evaluation.statistics import estimate
from scorefield.studies.benchmark.registry import DEFAULT, EXPERIMENTS
from scorefield.studies.benchmark.summaries import METRICS, PROBABILITY_METRICS, Scores
from scorefield.studies.engine.page import collect

FOLDER = pathlib.Path(__file__).parents[1] / "results" / "benchmark"
COMPARED = (*PROBABILITY_METRICS, "f1")


def compared():
    """Arm and learner to their scores before and after, of the first repetition."""
    before = [json.loads(line) for line in (FOLDER / "before.jsonl").read_text().splitlines()]
    found = collect([EXPERIMENTS[name] for name in DEFAULT], FOLDER, seeds=None, quick=False)
    splits = {row["split"] for row in before}
    after = [row for _, _, rows in found for row in rows if row["split"] in splits]
    times = {"before": before, "after": after}
    return {
        own: Scores([{**row, "arm": time} for time, rows in times.items() for row in rows
                     if (row["arm"], row["learner"]) == own])
        for own in dict.fromkeys((row["arm"], row["learner"]) for row in before)
    }  # fmt: skip


def gain(scores, metric):
    """The gain and its interval in words."""
    return estimate(scores.gain("after", "before", metric)).text("+")


def main():
    for (arm, learner), scores in compared().items():
        print(f"{arm}, {learner}")
        for metric in COMPARED:
            means = " to ".join(f"{np.mean(scores.column(name, metric)):.3f}" for name in ("before", "after"))
            chance = signed_rank(scores.gain("after", "before", metric))
            print(f"  {METRICS[metric]}: {means}, gain {gain(scores, metric)}, signed-rank p {chance:.3f}")


if __name__ == "__main__":
    main()
