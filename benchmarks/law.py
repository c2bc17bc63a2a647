"""Do generated rows follow the law of the rare class? Distances to the truth of ours, its peers and fresh rows.

A 2-D banana and a 10-D mixture of correlated Gaussians, at several numbers of rare rows, beside a common class with the
same law moved by 1.5 in every column. 1,000 rows are generated and compared with fresh rows of the truth:

- energy distance, in units of the truth's deviations; fresh rows show what 1,000 rows leave to chance
- AUC of a forest that tells generated from fresh rows; .5 is chance
- median distance to the nearest training row, divided by that of fresh rows; 0 is a copy, 1 a new row

    python benchmarks/law.py [--quick] [--repeats 5] [--out results/law]
"""

import sys
import warnings

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE, RandomOverSampler
from scipy.spatial.distance import cdist
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from _timing import Rows, parse
from scorefield import ScoreDensity, ScoreOverSampler, compare_tables

N_GENERATED = 1000
ROWS = (50, 200, 1000)


def banana(rng, n):
    x = rng.normal(size=n)
    return np.column_stack([x, 0.5 * x**2 + 0.3 * rng.normal(size=n)])


def correlated_mixture(rng, n):
    d = 10
    powers = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    factors = [np.linalg.cholesky(rho**powers) for rho in (0.9, -0.6)]
    second = rng.random(n) < 0.3
    z = rng.normal(size=(n, d))
    return np.where(second[:, None], 2.0 * (np.arange(d) % 2) + z @ factors[1].T, z @ factors[0].T)


LAWS = {"banana": banana, "correlated mixture": correlated_mixture}


def by_sampler(make):
    """Rows that an over-sampler adds to the rare class."""

    def generate(X, y, seed):
        sampler = make(seed, int(np.sum(y == 1)) + N_GENERATED)
        return sampler.fit_resample(X, y)[0][len(X) :]

    return generate


def our_sampler(quick, **options):
    options |= {"purpose": "sharing", "density": ScoreDensity(max_steps=100) if quick else None}
    return by_sampler(lambda seed, n: ScoreOverSampler(sampling_strategy={1: n}, random_state=seed, **options))


def mixture(X, y, seed):
    """Scikit-learn's mixture of the rare rows, the number of parts chosen by BIC."""
    rare = X[y == 1]
    fits = [GaussianMixture(k, random_state=seed, reg_covar=1e-3).fit(rare) for k in range(1, 7) if k < len(rare)]
    return min(fits, key=lambda fit: fit.bic(rare)).sample(N_GENERATED)[0]


def kernel_density(X, y, seed):
    """Scikit-learn's kernel density of standardised rare rows, with a cross-validated bandwidth."""
    rare = X[y == 1]
    mean, scale = rare.mean(axis=0), rare.std(axis=0)
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.logspace(-1.2, 0.2, 12)}, cv=5).fit((rare - mean) / scale)
    return mean + scale * search.best_estimator_.sample(N_GENERATED, random_state=seed)


def methods(quick):
    return {
        "ours": our_sampler(quick),
        "ours, clear": our_sampler(quick, where="clear"),
        "SMOTE": by_sampler(lambda seed, n: SMOTE(sampling_strategy={1: n}, random_state=seed)),
        "ROSE": by_sampler(
            lambda seed, n: RandomOverSampler(sampling_strategy={1: n}, shrinkage=1.0, random_state=seed)
        ),
        "GaussianMixture": mixture,
        "KernelDensity": kernel_density,
    }


def energy_distance(a, b):
    """2 E|a - b| - E|a - a'| - E|b - b'|, with means over distinct pairs, so that equal laws have mean zero."""
    within = [cdist(rows, rows).sum() / (len(rows) * (len(rows) - 1)) for rows in (a, b)]
    return float(2 * cdist(a, b).mean() - sum(within))


def measure(generated, train, fresh, others, seed):
    """Distances of generated rows from fresh ones; `others` are fresh rows too, for the usual distance to `train`."""
    scale = fresh.std(axis=0)
    generated, train, fresh, others = (rows / scale for rows in (generated, train, fresh, others))
    usual = np.median(cdist(others, train).min(axis=1))
    return {
        "energy_distance": energy_distance(generated, fresh),
        "auc": compare_tables(pd.DataFrame(fresh), pd.DataFrame(generated), random_state=seed).auc,
        "nearest_ratio": float(np.median(cdist(generated, train).min(axis=1)) / usual),
    }


def rows_of(law, n, seed, quick):
    """Measures of each method for one draw of the training rows."""
    rng = np.random.default_rng([seed, n])
    draw = LAWS[law]
    train, fresh, others = draw(rng, n), draw(rng, N_GENERATED), draw(rng, N_GENERATED)
    common = draw(rng, n + 2 * N_GENERATED) + 1.5
    X, y = np.concatenate([common, train]), np.repeat([0, 1], [len(common), n])
    found = {name: generate(X, y, seed) for name, generate in methods(quick).items()}
    found["fresh rows"] = draw(rng, N_GENERATED)
    return {name: measure(rows, train, fresh, others, seed) for name, rows in found.items()}


def main():
    options = parse(__doc__, repeats=5, out="results/law")
    results = Rows("law", options)
    counts = ROWS[:1] if options.quick else ROWS
    print(f"{'law':<19} {'rows':>5} {'method':<20} {'energy distance':>16} {'AUC':>14} {'nearest ratio':>14}")
    for law in LAWS:
        for n in counts:
            seeds = [rows_of(law, n, seed, options.quick) for seed in range(options.repeats)]
            for name in seeds[0]:
                cells = []
                for measured in seeds[0][name]:
                    values = np.array([seed[name][measured] for seed in seeds])
                    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
                    cells.append(f"{values.mean():.3f} +- {error:.3f}")
                for seed, found in enumerate(seeds):
                    results.rows.append(
                        {**results.common, "law": law, "n": n, "method": name, "seed": seed, **found[name]}
                    )
                print(f"{law:<19} {n:>5} {name:<20} {cells[0]:>16} {cells[1]:>14} {cells[2]:>14}", flush=True)
    results.write()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
