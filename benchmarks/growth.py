"""How the cost grows with rows, columns, width and chain length: exponents of a log-log fit, and one figure.

An exponent is fitted where the fixed cost no longer dominates: from the first size whose time is three times that of
the smallest, or over the largest half where none is (then the cost is nearly flat, and so is the exponent).

    python benchmarks/growth.py [--quick] [--out results/speed]
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from _timing import Rows, best_of, parse
from scorefield import Langevin, ScoreDensity, ScoreOverSampler
from scorefield._jax.pytrees import stack
from scorefield.fields.neural import init_vector_field
from scorefield.training import loop as training
from scorefield.training.losses import Exact

FIXED = 3.0  # times the smallest job's seconds: below it at least a third may be fixed cost


def density(model, d, hidden=(128, 128)):
    X = np.random.default_rng(0).normal(size=(1000, d))
    return ScoreDensity(model=model, hidden=hidden, max_steps=100, random_state=0).fit(X)


def score_rows(model):
    fitted = density(model, 10)

    def job(n):
        X = np.random.default_rng(1).normal(size=(n, 10)).astype(np.float32)
        return lambda: fitted.score_samples(X)

    return job


def resample_rows(n):
    """n rows in all, a tenth of them of the class that is brought to parity."""
    rng = np.random.default_rng(0)
    y = (np.arange(n) < n // 10).astype(int)
    X = rng.normal(size=(n, 10)) + y[:, None]
    model = ScoreDensity(model="energy", max_steps=100)
    return lambda: ScoreOverSampler(purpose="sharing", density=model, random_state=0).fit_resample(X, y)


def chunk_of_steps(d, hidden, batch):
    """One compiled chunk of exact score matching through the trainer, as in `score_matching_step.py`."""
    state = training._initial_state(stack([init_vector_field(jax.random.key(0), d, hidden=hidden)]))
    batches = jax.random.normal(jax.random.key(1), (1, training.CHUNK_STEPS, batch, d))
    keys, rate, total = jax.random.split(jax.random.key(2), 1), jnp.full(1, 1e-3), jnp.float32(1e4)

    def job():
        _, losses = training._train_chunk(keys, state, batches, Exact(), rate, total)
        losses.block_until_ready()

    return job


def chains(model):
    fitted = density(model, 10)

    def job(length):
        sampler = Langevin(0.01, length, 1 - 1 / length)
        return lambda: fitted.draw(100, 0, sampler=sampler)

    return job


def exponent(sizes, times):
    """The slope of log time over log size beyond the fixed cost, and the index from which it was taken."""
    grown = np.flatnonzero(np.asarray(times) >= FIXED * times[0])
    first = min(grown[0] if len(grown) else len(sizes) // 2, len(sizes) - 2)
    return float(np.polyfit(np.log(sizes[first:]), np.log(times[first:]), 1)[0]), int(first)


def studies(quick):
    """Title, name of the size, sizes and a function from a size to a job."""
    powers = lambda low, high: [10**k for k in range(low, high + 1)]  # noqa: E731
    columns = (2, 5, 10, 20) if quick else (2, 3, 5, 10, 20, 30, 50, 70, 100)
    widths = (32, 64, 128) if quick else (32, 64, 128, 256, 512, 1024)
    lengths = (10, 30, 100) if quick else (100, 300, 1000, 3000, 10_000)
    top = 4 if quick else 6
    return [
        ("scoring, energy", "rows", powers(2, top), score_rows("energy")),
        ("scoring, line integral", "rows", powers(2, top - 1), score_rows("mlp")),
        ("resampling to parity", "rows", powers(3, top - 1), resample_rows),
        ("exact step, batch 128", "columns", columns, lambda d: chunk_of_steps(d, (128, 128), 128)),
        ("exact step, batch 1,024", "columns", columns, lambda d: chunk_of_steps(d, (128, 128), 1024)),
        ("exact step, batch 128", "width", widths, lambda w: chunk_of_steps(10, (w, w), 128)),
        ("100 Langevin chains, energy", "chain length", lengths, chains("energy")),
        ("100 Langevin chains, vector network", "chain length", lengths, chains("mlp")),
    ]


def draw(found, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    names = list(dict.fromkeys(size for _, size, *_ in found))
    figure, axes = plt.subplots(1, len(names), figsize=(3.6 * len(names), 4), layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        for title, size, sizes, times, slope, first in found:
            if size == name:
                line = axis.loglog(sizes, times, "o-", mfc="none", label=f"{title}: {slope:.2f}")[0]
                axis.loglog(sizes[first:], times[first:], "o", color=line.get_color())
        axis.set(xlabel=name, ylabel="seconds" if axis is axes[0] else None)
        for side in (axis.xaxis, axis.yaxis):
            side.set_minor_formatter(NullFormatter())  # over less than a decade its labels overlap
        axis.legend(fontsize=7, title="job: exponent over the filled points", title_fontsize=7,
                    loc="lower center", bbox_to_anchor=(0.5, 1.0))  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main():
    options = parse(__doc__, repeats=3)
    rows = Rows("growth", options)
    found = []
    for title, name, sizes, make in studies(options.quick):
        sizes = list(sizes)
        times = []
        for size in sizes:
            times.append(best_of(make(size), options.repeats))
            rows.rows.append({**rows.common, "job": title, "size": name, "value": size, "seconds": times[-1]})
        slope, first = exponent(sizes, times)
        found.append((title, name, sizes, times, slope, first))
        rows.add(
            f"{title:<36} {times[0]:8.4f} s at {sizes[0]:,} and {times[-1]:8.4f} s at {sizes[-1]:,} {name}: exponent "
            f"{slope:.2f} from {sizes[first]:,} on",
            job=title, size=name, exponent=slope, fitted_from=sizes[first], fitted_to=sizes[-1],
        )  # fmt: skip
    rows.write()
    path = pathlib.Path(options.out) / f"growth{'-quick' if options.quick else ''}.svg"
    draw(found, path)
    print(f"figure in {path}")


if __name__ == "__main__":
    main()
