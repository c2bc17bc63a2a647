"""Peak memory and seconds of a fit to Parquet files of growing size: the peak must not grow with the rows.

Files are written and fitted in processes of their own, and removed afterwards. With `--whole` the same files are also
read into memory and fitted there.

    python benchmarks/stream_memory.py [--rows 1000000 4000000 16000000] [--columns 10] [--steps 2000] [--whole]
"""

import argparse
import pathlib
import tempfile

from _timing import fresh_process

WRITE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, n, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng, names = np.random.default_rng(0), [f"x{j}" for j in range(d)] + ["y"]
with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names[:-1]] + [("y", pa.int64())])) as writer:
    for start in range(0, n, 1 << 18):
        y = (rng.random(min(1 << 18, n - start)) < 0.02).astype(np.int64)
        X = rng.normal(size=(len(y), d)) + y[:, None]
        writer.write_table(pa.table([*X.T.copy(), y], names=names))
"""
FIT = """
import json, sys
from scorefield import ScoreClassifier
path, steps, whole = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"
given = path, "y"
if whole:
    import pandas as pd
    table = pd.read_parquet(path)
    given = table.drop(columns="y"), table["y"]
model = ScoreClassifier(max_steps=steps, random_state=0).fit(*given)
print(json.dumps(len(model.classes_)))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000, 16_000_000])
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--whole", action="store_true", help="also fit in memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table.parquet"
        for n in options.rows:
            fresh_process(WRITE, path, n, options.columns)
            size = path.stat().st_size / 1e6
            for whole in [False, True] if options.whole else [False]:
                seconds, memory, _ = fresh_process(FIT, path, options.steps, whole)
                way = "in memory" if whole else "streamed"
                print(
                    f"{way}, {n:>10,} rows x {options.columns}, {size:6.0f} MB on disk: peak {memory:6.0f} MB, "
                    f"{seconds:5.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
