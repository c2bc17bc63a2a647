"""Peak memory that scoring adds against the number of rows (up to ten million), and that of resampling the frauds.

Each count has a process of its own: what is added is the peak after scoring less the peak before, when the model has
been fitted and used once and the table is there. Bounded work adds the results, four bytes a row, and little else.

    python benchmarks/memory.py [--quick] [--out results/speed]
"""

import numpy as np

from _timing import Rows, fresh_process, parse
from scorefield.data.datasets import data_folder

D = 10
START = """
import json, resource, sys, time
import numpy as np

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)

def peak_from_here():
    try:  # Linux forgets the peak of the past on this; elsewhere what is added below that peak is not seen
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass
    return peak()
"""
SCORE = """
from scorefield import ScoreDensity

n, d, dtype, method = int(sys.argv[1]), int(sys.argv[2]), np.dtype(sys.argv[3]), sys.argv[4]
rng = np.random.default_rng(0)
density = ScoreDensity(model="energy", max_steps=100, random_state=0).fit(rng.normal(size=(1000, d)).astype(dtype))
X = np.empty((n, d), dtype)
for begin in range(0, n, 100_000):
    X[begin : begin + 100_000] = rng.normal(size=(min(100_000, n - begin), d))
getattr(density, method)(X[:20_000])
before, begin = peak_from_here(), time.perf_counter()
result = getattr(density, method)(X)
seconds = time.perf_counter() - begin
mega = 1 << 20
print(json.dumps({"added": peak() - before, "before": before, "table": X.nbytes / mega, "result": result.nbytes / mega,
                  "seconds": seconds}))
"""
RESAMPLE = """
from scorefield import ScoreOverSampler, fetch_creditcard

X, y = fetch_creditcard(return_X_y=True)
kept = np.random.default_rng(0).random(len(y)) < float(sys.argv[1])
X, y = X[kept | (y == 1)], y[kept | (y == 1)]
before, begin = peak_from_here(), time.perf_counter()
X_more, y_more = ScoreOverSampler(random_state=0).fit_resample(X, y)
seconds = time.perf_counter() - begin
mega = 1 << 20
print(json.dumps({"added": peak() - before, "before": before, "table": X.nbytes / mega, "result": X_more.nbytes / mega,
                  "seconds": seconds, "n": len(y), "n_after": len(y_more)}))
"""


def describe(found):
    return (
        f"adds {found['added']:7.0f} MB to {found['before']:6.0f} MB (table {found['table']:6.0f} MB, result "
        f"{found['result']:5.0f} MB) in {found['seconds']:6.1f} s"
    )


def main():
    options = parse(__doc__, repeats=1)
    rows = Rows("memory", options)
    counts = (20_000, 100_000) if options.quick else (100_000, 1_000_000, 3_000_000, 10_000_000)
    for dtype in ("float32", "float64"):
        added = []
        for n in counts:
            _, total, found = fresh_process(START + SCORE, n, D, dtype, "score_samples")
            added.append(found["added"])
            rows.add(f"score_samples, {n:>10,} x {D} {dtype}: {describe(found)}",
                     job="score_samples", n=n, d=D, dtype=dtype, peak=total, **found)  # fmt: skip
        slope = (added[-1] - added[0]) * (1 << 20) / (counts[-1] - counts[0])
        cell = np.dtype(dtype).itemsize
        rows.add(f"score_samples, {dtype}: {slope:.0f} bytes added a row; a row is {D * cell}, its result {cell}",
                 job="score_samples, slope", d=D, dtype=dtype, bytes_a_row=slope)  # fmt: skip
    if data_folder() is None:
        print("resampling the frauds: left out, since SCOREFIELD_DATA is not set")
    else:
        for share in (0.05,) if options.quick else (0.1, 0.3, 1.0):
            _, total, found = fresh_process(START + RESAMPLE, share)
            rows.add(f"fit_resample, {found['n']:>8,} x 30 frauds to parity: {describe(found)}",
                     job="fit_resample", peak=total, **found)  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
