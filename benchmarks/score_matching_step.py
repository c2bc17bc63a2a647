"""Time of one exact score-matching step on [10, 128, 128, 10], four ways, and the share of the machine's peak.

Closed-form divergence and jacfwd are timed in this library's trainer; where torch is installed, so are the usual
autograd loop over columns and one sliced projection. All in one run: read the ratios, not the times.

    python benchmarks/score_matching_step.py [--quick] [--out results/speed]
"""

from itertools import pairwise

import jax
import jax.numpy as jnp

from _timing import Rows, absent, best_of, best_torch, matmul_peak, parse
from scorefield._jax.pytrees import pytree, stack
from scorefield.fields.divergence import forward_divergence
from scorefield.fields.neural import VectorField, init_vector_field
from scorefield.training import loop as training
from scorefield.training.losses import Exact

SIZES = (10, 128, 128, 10)


@pytree
class ForwardField(VectorField):
    """The same network with its divergence by forward mode."""

    def value_and_divergence(self, x):
        return forward_divergence(self, x)


def ours(field_type, batch, repeats):
    """Seconds a step of the trainer's compiled chunk."""
    d = SIZES[0]
    model = stack([field_type(init_vector_field(jax.random.key(0), d, hidden=SIZES[1:-1]).network)])
    state = training._State(model, model, jax.vmap(training.OPTIMIZER.init)(model), jnp.zeros(1, jnp.int32))
    batches = jax.random.normal(jax.random.key(1), (1, training.CHUNK_STEPS, batch, d))
    keys, rate, total = jax.random.split(jax.random.key(2), 1), jnp.full(1, 1e-3), jnp.float32(1e4)

    def chunk():
        _, losses = training._train_chunk(keys, state, batches, Exact(), rate, total)
        losses.block_until_ready()

    return best_of(chunk, repeats, training.CHUNK_STEPS)


def torch_step(batch, repeats, *, sliced):
    """Seconds a step of the usual torch code, eager, with Adam, at the better number of threads."""
    import torch

    layers = []
    for a, b in pairwise(SIZES):
        layers += [torch.nn.Linear(a, b), torch.nn.SiLU()]
    net = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    rows = torch.randn(batch, SIZES[0])

    def step():
        x = rows.clone().requires_grad_(True)
        score = net(x)
        if sliced:
            v = torch.randint(0, 2, x.shape).float() * 2 - 1
            trace = (torch.autograd.grad((score * v).sum(), x, create_graph=True)[0] * v).sum(1)
        else:
            trace = sum(
                torch.autograd.grad(score[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(x.shape[1])
            )
        loss = (0.5 * (score**2).sum(1) + trace).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return best_torch(lambda: [step() for _ in range(20)], repeats, 20)


def main():
    options = parse(__doc__, repeats=7)
    rows = Rows("score_matching_step", options)
    d, h1, h2, _ = SIZES
    # Multiply-adds of one row: forward pass and the divergence's extra product; a backward pass costs twice that.
    operations = 2 * 3 * (d * h1 + h1 * h2 + h2 * d + h1 * h2)
    peak = matmul_peak(options.repeats)
    rows.add(f"matrix-product peak here: {peak / 1e9:.0f} Gflop/s on {jax.devices()[0].platform}",
             job="matrix product", flops=peak)  # fmt: skip
    no_torch = absent("torch", "pip install torch")
    for batch in (128, 1024):
        closed = ours(VectorField, batch, options.repeats)
        times = {"jacfwd": ours(ForwardField, batch, options.repeats)}
        if not no_torch:
            times["torch autograd loop"] = torch_step(batch, options.repeats, sliced=False)
            times["torch, one sliced projection"] = torch_step(batch, options.repeats, sliced=True)
        share = operations * batch / closed / peak
        rows.add(f"batch {batch}: closed form {closed * 1e3:.3f} ms a step, {share:.0%} of the peak",
                 job="closed form", batch=batch, seconds=closed, share_of_peak=share)  # fmt: skip
        for name, seconds in times.items():
            rows.add(
                f"batch {batch}: {name:<29} {seconds * 1e3:8.3f} ms, {seconds / closed:5.1f} x the closed form",
                job=name, batch=batch, seconds=seconds, ratio=seconds / closed,
            )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
