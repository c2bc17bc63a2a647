"""Error of every model against known densities, beside KernelDensity and GaussianMixture.

For a 2-D and a 5-D mixture at several row counts: mean |log p - truth| over fresh rows, and the Fisher divergence
1/2 E |s - truth|^2; means over seeds with their standard error.

    python benchmarks/density_truth.py [--seeds 5] [--rows 200 1000 5000] [--out rows.jsonl]
"""

import argparse
import json
import time
from collections import defaultdict

import jax
import numpy as np
from sklearn.mixture import GaussianMixture as FittedMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield.fields.diffusion import init_diffusion_field
from scorefield.fields.flow import FlowLogDensity
from scorefield.fields.gaussian import fit_gaussian
from scorefield.fields.mixtures import mixture, random_mixture
from scorefield.fields.neural import init_energy_field, init_vector_field
from scorefield.fields.random_features import fit_kernel
from scorefield.inference.anchors import importance_anchor
from scorefield.inference.line_integrals import line_integral
from scorefield.training.loop import train
from scorefield.training.losses import ContrastiveDenoising, Exact, MultilevelDenoising, NoisyRows, default_noise

HIDDEN = (128, 128)
N_TEST = 4000


def anchored(key, log_density, rows, test):
    return map_rows(log_density, test) + importance_anchor(key, log_density, rows).offset


def gaussian(key, rows, test):
    field = fit_gaussian(rows)
    return field, map_rows(Method(field, "potential"), test)


def kernel(key, rows, test):
    field = fit_kernel(key, rows, noise=default_noise(*rows.shape)).field
    return field, anchored(key, Method(field, "potential"), rows, test)


def mlp(key, rows, test):
    start = init_vector_field(key, rows.shape[1], hidden=HIDDEN)
    field = train(key, start, rows, NoisyRows(Exact(), default_noise(*rows.shape))).model
    return field, anchored(key, line_integral(field, rows.mean(axis=0)), rows, test)


def energy(key, rows, test):
    start = init_energy_field(key, fit_gaussian(rows), hidden=HIDDEN)
    field = train(key, start, rows, ContrastiveDenoising(default_noise(*rows.shape))).model
    return field, anchored(key, Method(field, "potential"), rows, test)


def diffusion(key, rows, test):
    start = init_diffusion_field(key, rows, hidden=HIDDEN, sigma_min=default_noise(*rows.shape))
    field = train(key, start, rows, MultilevelDenoising(), batch_size=512, max_steps=5000).model
    return field, map_rows(FlowLogDensity(field), test)


def kernel_density(key, rows, test):
    """Scikit-learn's estimator with a cross-validated bandwidth; its score is that of the equal mixture of kernels."""
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.logspace(-1.5, 0.3, 15)}, cv=5).fit(rows)
    width = search.best_params_["bandwidth"]
    log_density = search.best_estimator_.score_samples(test)
    scores = []
    for block in np.array_split(test, 16):
        logits = -np.sum((block[:, None] - rows) ** 2, axis=2) / (2 * width**2)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores.append((weights @ rows / weights.sum(axis=1, keepdims=True) - block) / width**2)
    return np.concatenate(scores), log_density


def gaussian_mixture(key, rows, test):
    """Scikit-learn's mixture, the number of parts chosen by BIC: the right family for this truth."""
    fits = [FittedMixture(k, random_state=0, n_init=2).fit(rows) for k in range(1, 9)]
    best = min(fits, key=lambda fit: fit.bic(rows))
    return mixture(best.weights_, best.means_, best.covariances_), best.score_samples(test)


MODELS = (gaussian, kernel, mlp, energy, diffusion, kernel_density, gaussian_mixture)
PEERS = ("kernel_density", "gaussian_mixture")


def evaluate(model, d, n, seed):
    """One row of results. Rows are standardised for every model alike and log densities carried back."""
    truth = random_mixture(jax.random.key(100 * d + seed), d)
    rows = np.asarray(truth.sample(jax.random.key(2 * seed), n))
    test = np.asarray(truth.sample(jax.random.key(2 * seed + 1), N_TEST))
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    begin = time.perf_counter()
    field, log_density = model(jax.random.key(seed), (rows - mean) / scale, (test - mean) / scale)
    seconds = time.perf_counter() - begin
    score = field if isinstance(field, np.ndarray) else map_rows(Method(field, "__call__"), (test - mean) / scale)
    error = np.abs(log_density - np.log(scale).sum() - map_rows(Method(truth, "potential"), test))
    fisher = 0.5 * np.sum((score / scale - map_rows(Method(truth, "__call__"), test)) ** 2, axis=1)
    return {
        "model": model.__name__, "d": d, "n": n, "seed": seed, "seconds": round(seconds, 2),
        "abs_error": float(error.mean()), "fisher": float(fisher.mean()),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--out")
    args = parser.parse_args()
    results = defaultdict(list)
    print(f"{'d':>2} {'rows':>5} {'model':<17} {'mean |log p - truth|':>21} {'Fisher divergence':>19} {'seconds':>8}")
    for d in (2, 5):
        for n in args.rows:
            means = {}
            for model in MODELS:
                rows = [evaluate(model, d, n, seed) for seed in range(args.seeds)]
                results[d, n] += rows
                stats = []
                for name in ("abs_error", "fisher"):
                    values = np.array([row[name] for row in rows])
                    stats.append((values.mean(), values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0))
                means[model.__name__] = [mean for mean, _ in stats]
                cells = "  ".join(f"{mean:11.3f} +- {error:.3f}" for mean, error in stats)
                print(
                    f"{d:>2} {n:>5} {model.__name__:<17} {cells} {np.median([r['seconds'] for r in rows]):8.1f}",
                    flush=True,
                )
            ours = {name: value for name, value in means.items() if name not in PEERS}
            best = min(ours, key=lambda name: ours[name][0])
            wins = [a < b for a, b in zip(ours[best], means["kernel_density"], strict=True)]
            verdict = "beats" if all(wins) else "does not beat"
            print(f"{d:>2} {n:>5} best of ours by log density: {best}; it {verdict} KernelDensity in both measures")
    if args.out:
        with open(args.out, "w") as file:
            file.writelines(json.dumps(row) + "\n" for rows in results.values() for row in rows)


if __name__ == "__main__":
    main()
