"""Absolute times of large jobs on the device that jax finds: scoring, sampling, training, and the fraud-sized jobs.

(a) 10 million x 10 rows scored by an energy [10, 128, 128], on the device and through `score_samples`; (b) the same by
a line integral of 64 nodes; (c) a million Langevin chains of 1,000 steps on that energy; (d) exact score matching of
[10, 128, 128, 10] in the trainer; (e) `ScoreClassifier()` and resampling on 284,807 x 30 rows: the frauds where
SCOREFIELD_DATA is set, else normal rows of that shape.

    python benchmarks/gpu.py [--quick] [--only a b c d e] [--out results/speed]
"""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from _timing import Rows, best_of, device_name, least, matmul_peak, network_flops, parse
from scorefield import Langevin, ScoreClassifier, ScoreDensity, ScoreOverSampler
from scorefield._jax.pytrees import stack
from scorefield.data.datasets import data_folder, fetch_creditcard
from scorefield.fields.networks import in_half
from scorefield.fields.neural import init_vector_field
from scorefield.inference.line_integrals import line_integral
from scorefield.training import loop as training
from scorefield.training.losses import Exact

D, HIDDEN, NODES = 10, (128, 128), 64
JOBS = "abcde"
LAYER_VALUES = 1 << (28 if jax.default_backend() != "cpu" else 20)  # floats of one layer a chunk: 1 GiB, or a cache


@partial(jax.jit, static_argnames="chunk")
def on_device(function, rows, *, chunk):
    """One program over all rows, in chunks: no copy to or from the host."""
    blocks = rows.reshape(-1, chunk, rows.shape[1])
    return jax.lax.map(jax.vmap(function), blocks).reshape(-1)


def chunk_for(n, width):
    """The largest power of two that divides n and keeps a layer within LAYER_VALUES."""
    chunk = 1
    while n % (2 * chunk) == 0 and 2 * chunk * width <= LAYER_VALUES:
        chunk *= 2
    return chunk


def fitted(model, n=1000):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, D)) + 2.0 * rng.integers(0, 2, (n, 1))).astype(np.float32)  # two clusters
    return ScoreDensity(model=model, hidden=HIDDEN, max_steps=200, random_state=0).fit(X)


class Bench:
    """The jobs with what they share."""

    def __init__(self, options):
        self.options, self.quick, self.repeats = options, options.quick, options.repeats
        backend = jax.default_backend()
        self.rows = Rows("gpu" if backend == "gpu" else f"gpu-job-on-{backend}", options)
        self.peak = matmul_peak(self.repeats)
        # 10,485,760: ten million, made a multiple of 2^20 so that chunks divide it.
        self.n = 1 << 14 if self.quick else 10 << 20
        self.rows.add(f"{device_name()} ({backend}): matrix product {self.peak / 1e12:.2f} Tflop/s",
                      job="matrix product", flops=self.peak)  # fmt: skip

    def report(self, name, seconds, items, unit, flops=None, **more):
        share = flops * items / seconds / self.peak if flops else None
        text = f"{name:<58} {seconds:10.4f} s, {items / seconds:12.4g} {unit}/s"
        self.rows.add(text + (f", {share:.1%} of the matrix product" if flops else ""),
                      job=name, seconds=seconds, items=items, unit=unit, share_of_peak=share, **more)  # fmt: skip

    def on_device(self, name, function, width, flops):
        key = jax.random.key(1)
        rows = jax.jit(lambda: jax.random.normal(key, (self.n, D)))().block_until_ready()
        chunk = chunk_for(self.n, width)
        seconds = best_of(lambda: on_device(function, rows, chunk=chunk).block_until_ready(), self.repeats)
        self.report(f"{name}, rows on the device", seconds, self.n, "rows", flops, chunk=chunk)

    def from_host(self, name, density, flops):
        X = np.random.default_rng(1).standard_normal((self.n, D), dtype=np.float32)
        seconds = best_of(lambda: density.score_samples(X), min(self.repeats, 2))
        self.report(f"{name}, score_samples from host to host", seconds, self.n, "rows", flops)
        begin = time.perf_counter()
        np.asarray(jax.device_put(X).sum())
        self.report("  of which a plain copy to the device takes", time.perf_counter() - begin, self.n, "rows")

    def a(self):
        density, flops = fitted("energy"), network_flops((D, *HIDDEN, 1))
        self.on_device("energy", density._log_density(), HIDDEN[0], flops)
        self.from_host("energy", density, flops)
        self.agreement(density)

    def agreement(self, density):
        """What the device's own matrix products and half precision change, beside full single precision."""
        X = np.random.default_rng(3).normal(size=(4096, D)).astype(np.float32)
        field = density.model_.field
        with jax.default_matmul_precision("highest"):
            score, log_density = (np.asarray(jax.vmap(f)(X)) for f in (field, field.potential))
        default = {"score": (field, score), "log density": (field.potential, log_density)}
        for name, function, truth in [*((n, f, t) for n, (f, t) in default.items()),
                                      ("score with networks in half precision", in_half(field), score)]:  # fmt: skip
            error = float(np.abs(np.asarray(jax.vmap(function)(X)) - truth).max() / truth.std())
            self.rows.add(f"{name}: at most {error:.1e} standard deviations from full precision",
                          job=f"agreement, {name}", error=error)  # fmt: skip

    def b(self):
        density, flops = fitted("mlp"), network_flops((D, *HIDDEN, D))
        function = line_integral(density.model_.field, density.model_.origin, n_nodes=NODES)
        self.on_device(f"line integral, {NODES} nodes", function, HIDDEN[0] * NODES, NODES * flops)
        if jax.default_backend() != "cpu" or self.quick:
            nodes = len(density.model_.unnormalised(density.model_.field).nodes)
            self.from_host(f"line integral, {nodes} nodes", density, nodes * flops)

    def c(self):
        density = fitted("energy")
        n, length = (1000, 20) if self.quick else (1_000_000, 1000)
        # A score of the energy is a forward and a backward pass, the latter without gradients of the weights.
        flops = 2 * length * network_flops((D, *HIDDEN, 1))
        for precision in ("half", "single"):
            sampler = Langevin(0.01, length, 1 - 1 / length, precision=precision)
            seconds = best_of(partial(density.draw, n, 0, sampler=sampler), min(self.repeats, 2))
            name = f"{n:,} Langevin chains x {length} steps on the energy, {precision}"
            self.report(name, seconds, n, "chains", flops, steps=length)

    def d(self):
        h1, h2 = HIDDEN
        flops = 3 * (network_flops((D, *HIDDEN, D)) + 2 * h1 * h2)  # see score_matching_step.py
        for batch in (128, 1024) if self.quick else (1024, 65_536):
            start = init_vector_field(jax.random.key(0), D, hidden=HIDDEN)
            state = training._initial_state(stack([start]))
            batches = jax.random.normal(jax.random.key(1), (1, training.CHUNK_STEPS, batch, D))
            keys, rate, total = jax.random.split(jax.random.key(2), 1), jnp.full(1, 1e-3), jnp.float32(1e4)

            def chunk(keys=keys, state=state, batches=batches, rate=rate, total=total):
                _, losses = training._train_chunk(keys, state, batches, Exact(), rate, total)
                losses.block_until_ready()

            step = best_of(chunk, self.repeats, training.CHUNK_STEPS)
            self.report(f"exact step, batch {batch:,}, the compiled chunk alone", step, batch, "rows", flops)
            n_steps = 100 if self.quick else 3000  # the trainer's default
            table = np.random.default_rng(2).standard_normal((100_000, D), dtype=np.float32)
            options = {"batch_size": batch, "max_steps": n_steps, "patience": None}
            run = partial(training.train_many, jax.random.key(3), [start], [table], Exact(), **options)
            step = best_of(run, min(self.repeats, 2), n_steps)
            self.report(f"exact step, batch {batch:,}, train_many", step, batch, "rows", flops, steps=n_steps)

    def e(self):
        rng = np.random.default_rng(0)
        n = 5000 if self.quick else 284_807
        if data_folder() is not None and not self.quick:
            X, y = fetch_creditcard(return_X_y=True)
        else:
            y = (np.arange(n) < max(50, n // 579)).astype(int)  # 492 of 284,807
            X = rng.normal(size=(n, 30)) + y[:, None]
        steps = {"max_steps": 100} if self.quick else {}
        jobs = {
            "ScoreClassifier().fit": lambda: ScoreClassifier(random_state=0, **steps).fit(X, y),
            "ScoreOverSampler().fit_resample to parity": lambda: ScoreOverSampler(random_state=0).fit_resample(X, y),
        }
        for name, job in jobs.items():
            self.report(f"{name}, {len(y):,} x 30, first", least(job, 1), len(y), "rows")
            self.report(f"{name}, {len(y):,} x 30, warm", least(job, min(self.repeats, 2)), len(y), "rows")
        model = ScoreClassifier(random_state=0, max_steps=100).fit(X, y)
        seconds = best_of(lambda: model.predict_proba(X), self.repeats)
        self.report(f"ScoreClassifier().predict_proba, {len(y):,} x 30", seconds, len(y), "rows")


def main():
    options = parse(__doc__, 3, lambda p: p.add_argument("--only", nargs="+", choices=list(JOBS), default=list(JOBS)))
    bench = Bench(options)
    for job in options.only:
        try:
            getattr(bench, job)()
        except Exception as error:  # a job that does not fit this device must not cost the rows of the others
            bench.rows.add(
                f"job {job} failed: {type(error).__name__}: {str(error)[:300]}", job=job, error=str(error)[:300]
            )
    bench.rows.write()


if __name__ == "__main__":
    main()
