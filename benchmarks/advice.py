"""How often `advise` is wrong: its winners on simulated tables where the right advice is known.

- noise: the columns say nothing of the class; no remedy is right
- same: logistic regression on two Gaussians, whose threshold or weights do all that more rows could; over-sampling is
  wrong
- threshold: the same classes, more rows and rarer; doing nothing misses most rare rows, so advice to do nothing is a
  miss and over-sampling is wrong
- disc: rare rows fill a disc, for a tree with large leaves and no probabilities; over-sampling is right

The share of each kind of advice with a 95 % interval (Clopper and Pearson).

    python benchmarks/advice.py [--quick] [--repeats 100] [--jobs 2] [--out results/advice]
"""

import sys
import warnings
from collections import Counter

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from _mixed import parallel
from _timing import Rows, parse, with_jobs
from scorefield import advise
from scorefield.evaluation.recipes import OVER_SAMPLERS
from scorefield.evaluation.remedies import NOTHING


class CoarseTree(DecisionTreeClassifier):
    """A tree that decides by the majority of its leaves: no threshold helps it, more rows of the rare class do."""

    def predict_proba(self, X, check_input=True):
        return np.round(super().predict_proba(X, check_input))


def gaussians(rng, n_common, n_rare, shift):
    X = np.concatenate([rng.normal(0, 1, (n_common, 2)), rng.normal(shift, 1, (n_rare, 2))])
    return X, np.repeat([0, 1], [n_common, n_rare])


def disc(rng):
    common = rng.uniform(-3, 3, (1200, 2))
    common = common[np.linalg.norm(common, axis=1) > 1]
    angle, radius = rng.uniform(0, 2 * np.pi, 30), 0.8 * np.sqrt(rng.uniform(size=30))
    rare = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return np.concatenate([common, rare]), np.repeat([0, 1], [len(common), 30])


KINDS = {
    "noise": lambda rng: (*gaussians(rng, 340, 60, 0.0), DecisionTreeClassifier(max_depth=3, random_state=0)),
    "same": lambda rng: (*gaussians(rng, 340, 60, 1.5), LogisticRegression()),
    "threshold": lambda rng: (*gaussians(rng, 900, 60, 1.0), LogisticRegression()),
    "disc": lambda rng: (*disc(rng), CoarseTree(min_samples_leaf=40, random_state=0)),
}


def measure(task):
    """The advice on one table."""
    kind, seed = task
    warnings.simplefilter("ignore")
    X, y, estimator = KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind)]))
    found = advise(X, y, estimator, minutes=None, random_state=seed)
    advice = (
        "over-sample" if found.winner in OVER_SAMPLERS else "nothing" if found.winner in (None, NOTHING) else "other"
    )
    return {
        "kind": kind,
        "seed": seed,
        "winner": found.winner,
        "advice": advice,
        "verdict": found.verdict.split(":")[0],
    }


def main():
    options = parse(__doc__, repeats=100, extend=with_jobs, out="results/advice")
    rows = Rows("advice", options)
    tasks = [(kind, seed) for seed in range(2 if options.quick else options.repeats) for kind in KINDS]
    for row in parallel(measure, tasks, options.jobs):
        rows.rows.append({**rows.common, **row})
    rows.write()
    for kind in KINDS:
        own = [row for row in rows.rows if row["kind"] == kind]
        print(kind, dict(Counter(row["winner"] for row in own)))
        for advice in ("nothing", "other", "over-sample"):
            count = sum(row["advice"] == advice for row in own)
            low, high = binomtest(count, len(own)).proportion_ci()
            print(f"  {advice}: {count / len(own):.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    sys.exit(main())
