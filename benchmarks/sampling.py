"""100 Langevin chains of 1,000 steps on a vector network [2, 128, 256, 128, 2], beside a plain torch loop.

Once with the last state of each chain kept, as the over-sampler does, and once with all of them, as the paper does.

    python benchmarks/sampling.py [--quick] [--out results/speed]
"""

import numpy as np

from _timing import Rows, absent, best_of, best_torch, matmul_peak, network_flops, parse
from scorefield import Langevin, ScoreDensity

SIZES = (2, 128, 256, 128, 2)
N_CHAINS = 100
STEP = 0.01


def torch_job(model, starts, n_steps, keep_all):
    """The same weights and the same number of steps in eager torch."""
    import torch

    network = model["network"]
    layers = []
    for weight, bias in zip(network["weights"], network["biases"], strict=True):
        linear = torch.nn.Linear(*weight.shape)
        linear.weight.data, linear.bias.data = torch.tensor(weight.T.copy()), torch.tensor(bias)
        layers += [linear, torch.nn.SiLU()]
    net = torch.nn.Sequential(*layers[:-1])

    def run():
        x, kept = torch.tensor(starts), []
        with torch.no_grad():
            for _ in range(n_steps):
                x = x + 0.5 * STEP * net(x) + STEP**0.5 * torch.randn_like(x)
                if keep_all:
                    kept.append(x)
        return torch.stack(kept).numpy() if keep_all else x.numpy()

    return run


def main():
    options = parse(__doc__)
    rows = Rows("sampling", options)
    n_steps = 50 if options.quick else 1000
    X = np.random.default_rng(0).normal(size=(1000, 2))
    density = ScoreDensity(model="mlp", hidden=SIZES[1:-1], max_steps=100 if options.quick else 1000, random_state=0)
    density.fit(X)
    peak = matmul_peak(options.repeats)
    no_torch = absent("torch", "pip install torch")
    for kept, discard, n in (("last", 1 - 1 / n_steps, N_CHAINS), ("all", 0.0, N_CHAINS * n_steps)):
        sampler = Langevin(STEP, n_steps, discard)
        drawn = density.draw(n, 0, sampler=sampler)
        if drawn.n_diverged or len(drawn.rows) != n:
            raise SystemExit(f"Expected {n} rows of chains that stay, got {len(drawn.rows)}; the ratio would mislead.")
        ours = best_of(lambda s=sampler, n=n: density.draw(n, 0, sampler=s), options.repeats)
        share = N_CHAINS * n_steps * network_flops(SIZES) / ours / peak
        rows.add(
            f"{kept:<4} states kept: {ours * 1e3:8.1f} ms for {N_CHAINS} chains x {n_steps} steps, "
            f"{share:.0%} of the matrix-product peak",
            job="scorefield", kept=kept, chains=N_CHAINS, steps=n_steps, seconds=ours, share_of_peak=share,
        )  # fmt: skip
        if not no_torch:
            model = density.model_
            job = torch_job(model.plain_field, model.start_rows[:N_CHAINS], n_steps, kept == "all")
            theirs = best_torch(job, options.repeats)
            rows.add(
                f"{kept:<4} states kept: {theirs * 1e3:8.1f} ms in a torch loop, {theirs / ours:.1f} x ours",
                job="torch", kept=kept, chains=N_CHAINS, steps=n_steps, seconds=theirs, ratio=theirs / ours,
            )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
