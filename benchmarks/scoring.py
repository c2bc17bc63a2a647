"""Log densities of 72,475 x 10 rows: an energy, a line integral of 64 nodes, the probability flow; one width, 128.

72,475 is the test part of the paper's fraud table. The field of the line integral is the network [10, 128, 128, 10].

    python benchmarks/scoring.py [--quick] [--out results/speed]
"""

import numpy as np

from _timing import Rows, best_of, matmul_peak, network_flops, parse
from scorefield import ScoreDensity
from scorefield._jax.batching import map_rows
from scorefield.inference.line_integrals import line_integral

D, HIDDEN = 10, (128, 128)
NODES, FLOW_EVALUATIONS = 64, 4 * 32  # the flow takes 32 steps of four stages


def main():
    options = parse(__doc__)
    rows = Rows("scoring", options)
    n = 4000 if options.quick else 72_475
    rng = np.random.default_rng(0)
    train, X = rng.normal(size=(1000, D)), rng.normal(size=(n, D))
    fitted = {
        name: ScoreDensity(model=name, hidden=HIDDEN, max_steps=200, random_state=0).fit(train)
        for name in ("energy", "mlp", "diffusion")
    }
    mlp = fitted["mlp"]
    # What score_samples does for such a model, with 64 nodes in place of its own 32.
    integral = line_integral(mlp.model_.field, mlp.model_.origin, n_nodes=NODES)
    product = 2 * HIDDEN[0] * HIDDEN[1]  # of the closed-form divergence
    jobs = {
        "energy": (lambda: fitted["energy"].score_samples(X), network_flops((D, *HIDDEN, 1))),
        "line integral, 64 nodes": (
            lambda: map_rows(integral, X, points=NODES, standardize=(mlp.model_.mean, mlp.model_.scale)),
            NODES * network_flops((D, *HIDDEN, D)),
        ),
        "line integral, as score_samples has it": (
            lambda: mlp.score_samples(X),
            len(mlp.model_.unnormalised(mlp.model_.field).nodes) * network_flops((D, *HIDDEN, D)),
        ),
        "probability flow": (
            lambda: fitted["diffusion"].score_samples(X),
            FLOW_EVALUATIONS * (network_flops((D + 5, *HIDDEN, D)) + product),
        ),
    }
    peak = matmul_peak(options.repeats)
    first = None
    for name, (job, flops) in jobs.items():
        seconds = best_of(job, options.repeats)
        first = first or seconds
        share = n * flops / seconds / peak
        rows.add(
            f"{name:<39} {seconds * 1e3:9.1f} ms, {seconds / n * 1e6:7.2f} us a row, {seconds / first:6.1f} x the "
            f"energy, {share:.0%} of the matrix-product peak",
            job=name, n=n, d=D, seconds=seconds, ratio=seconds / first, share_of_peak=share,
        )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
