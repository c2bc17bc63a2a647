"""Over-sampling the fraud minority, 369 rows to 3,690 on V1 to V10, end to end: ours and what else there is.

The table is the training part of the `fraud` experiment, 212,332 x 10. Peers that are not installed are left out, and
so is the whole benchmark without the data (SCOREFIELD_DATA). The torch job is the plain one: denoising score matching
of an energy network of our size, as many steps of our batch size as ours took, then as many Langevin steps. Ours does
more in each step (two noise draws, a contrast, held-out losses, an anchor at the end).

    python benchmarks/oversample.py [--quick] [--only SMOTE ADASYN] [--out results/speed]
"""

import os
import pathlib
import tempfile
import warnings
from functools import partial
from itertools import pairwise

import numpy as np

from _timing import Rows, absent, best_of, cold_seconds, least, parse

POSITIVES = 3690
COLD = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import oversample
stored = np.load(sys.argv[2])
oversample.METHODS[sys.argv[3]](stored["X"], stored["y"], sys.argv[4] == "True", int(sys.argv[5]))
"""


def ours(X, y, quick, steps):
    from scorefield import ScoreDensity, ScoreOverSampler

    density = ScoreDensity(max_steps=100) if quick else None
    sampler = ScoreOverSampler(purpose="sharing", sampling_strategy={1: POSITIVES}, density=density, random_state=0)
    result = sampler.fit_resample(X, y)
    ours.density = sampler.densities_[1]  # tells the torch job its number of steps
    return result


def smote(X, y, quick, steps):
    from imblearn.over_sampling import SMOTE

    return SMOTE(sampling_strategy={1: POSITIVES}, random_state=0).fit_resample(X, y)


def adasyn(X, y, quick, steps):
    from imblearn.over_sampling import ADASYN

    return ADASYN(sampling_strategy={1: POSITIVES}, random_state=0).fit_resample(X, y)


def forest_diffusion(X, y, quick, steps):
    """Its own defaults: 50 noise levels, 100 copies of the rows, boosted trees for every level and column."""
    from ForestDiffusion import ForestDiffusionModel

    small = {"n_t": 3, "duplicate_K": 5, "n_estimators": 5} if quick else {}
    rows = X[y == 1]
    model = ForestDiffusionModel(rows, n_jobs=-1, seed=0, **small)
    return append(X, y, model.generate(batch_size=POSITIVES - len(rows)))


def ctgan(X, y, quick, steps):
    import pandas as pd
    from ctgan import CTGAN

    rows = pd.DataFrame(X[y == 1], columns=[f"V{i + 1}" for i in range(X.shape[1])])
    model = CTGAN(epochs=2) if quick else CTGAN()
    model.fit(rows)
    return append(X, y, model.sample(POSITIVES - len(rows)).to_numpy())


def torch_job(X, y, quick, steps, threads=None):
    import torch

    torch.set_num_threads(threads or os.cpu_count())
    torch.manual_seed(0)
    rows = X[y == 1]
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    data = torch.tensor((rows - mean) / scale, dtype=torch.float32)
    n, d = data.shape
    sigma = 0.25 * n ** (-1 / (d + 4))
    sizes = (d, 128, 128, 1)
    layers = []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), torch.nn.SiLU()]
    net = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def score(x, create_graph):
        potential = net(x).sum() - 0.5 * (x**2).sum()  # a Gaussian base, as ours has
        return torch.autograd.grad(potential, x, create_graph=create_graph)[0]

    for _ in range(steps):
        x = data[torch.randint(0, n, (128,))]
        z = torch.randn_like(x)
        noisy = (x + sigma * z).requires_grad_(True)
        loss = 0.5 * ((sigma * score(noisy, True) + z) ** 2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x = data[torch.randint(0, n, (POSITIVES - n,))]
    for _ in range(50):
        step = score(x.requires_grad_(True), False)
        x = (x + 0.5 * 0.01 * step + 0.01**0.5 * torch.randn_like(x)).detach()
    return append(X, y, x.numpy() * scale + mean)


def append(X, y, rows):
    return np.concatenate([X, rows]), np.concatenate([y, np.ones(len(rows), y.dtype)])


METHODS = {
    "ScoreOverSampler": ours,
    "SMOTE": smote,
    "ADASYN": adasyn,
    "torch": torch_job,
    "torch, one thread": partial(torch_job, threads=1),
    "ForestDiffusion": forest_diffusion,
    "CTGAN": ctgan,
}
NEEDS = {"torch": "torch", "torch, one thread": "torch", "ForestDiffusion": "ForestDiffusion", "CTGAN": "ctgan"}
SLOW = ("ForestDiffusion", "CTGAN")  # minutes each, and nothing to warm: run once


def main():
    from scorefield.data.datasets import data_folder
    from scorefield.studies.paper.imbalanced import split_fraud

    options = parse(__doc__, extend=lambda p: p.add_argument("--only", nargs="+", choices=METHODS, default=METHODS))
    if data_folder() is None:
        raise SystemExit("Expected the credit-card data in the folder SCOREFIELD_DATA, got no such variable; set it.")
    X, _, y, _ = split_fraud(0)
    if quick_rows := options.quick:
        keep = (y == 1) | (np.random.default_rng(0).random(len(y)) < 0.05)
        X, y = X[keep], y[keep]
    rows = Rows("oversample", options)
    ours(X, y, quick_rows, 0)
    history = ours.density.history_
    steps = int(history["steps"][-1]) if history else 3000  # of the energy, unless "auto" chose a closed form
    print(f"{len(y):,} x {X.shape[1]} rows, {np.sum(y == 1)} positives to {POSITIVES}; ours chose "
          f"{ours.density.model_name_}, {steps} steps", flush=True)  # fmt: skip
    reference = {}
    with tempfile.TemporaryDirectory() as folder:
        stored = pathlib.Path(folder) / "table.npz"
        np.savez(stored, X=X, y=y)
        for name in ["ScoreOverSampler", *(n for n in options.only if n != "ScoreOverSampler")]:
            if name in NEEDS and absent(NEEDS[name], f"pip install {NEEDS[name]}"):
                continue
            cold = warm = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _, y_more = METHODS[name](X, y, quick_rows, steps) if name not in SLOW else (None, None)
                job = lambda name=name: METHODS[name](X, y, quick_rows, steps)  # noqa: E731
                warm = least(job, 1) if name in SLOW else best_of(job, options.repeats)
            if name not in SLOW:
                where = (str(pathlib.Path(__file__).parent), stored, name, quick_rows, steps)
                cold = cold_seconds(COLD, min(options.repeats, 3), *where)
            reference = reference or {"warm": warm, "cold": cold}
            parts = [f"warm {warm:8.3f} s ({warm / reference['warm']:7.2f} x ours)"]
            if cold:
                parts.append(f"cold process {cold:6.2f} s ({cold / reference['cold']:5.2f} x ours)")
            rows.add(
                f"{name:<17} {', '.join(parts)}",
                job=name, n=len(y), positives_after=None if y_more is None else int(np.sum(y_more == 1)), steps=steps,
                warm_seconds=warm, cold_seconds=cold, ratio_warm=warm / reference["warm"],
                ratio_cold=cold and cold / reference["cold"],
            )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
