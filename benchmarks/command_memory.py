"""Peak memory of the commands: `predict` against the number of rows, and `resample` on the whole fraud table.

`predict` streams its table, so its peak must not grow with the rows; `resample` needs the table in memory.

    python benchmarks/command_memory.py [--rows 100000 400000 1600000]
"""

import argparse
import pathlib
import tempfile

import numpy as np
import pandas as pd

from _timing import timed_process
from scorefield import fetch_creditcard
from scorefield.data.datasets import data_folder


def peak(*arguments):
    """Peak resident megabytes and seconds of one command."""
    seconds, memory, _ = timed_process(["-m", "scorefield", *map(str, arguments), "-q"])
    return memory, seconds


def table(n, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.05).astype(int)
    X = rng.normal(size=(n, 10)) + y[:, None]
    return pd.DataFrame(X.round(4), columns=[f"x{i}" for i in range(10)]).assign(y=y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 400_000, 1_600_000])
    counts = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        table(5000, 0).to_csv(folder / "train.csv", index=False)
        peak("fit", folder / "train.csv", "--target", "y", "-o", folder / "m.skops")
        for n in counts:
            table(n, 1).to_csv(folder / "new.csv", index=False)
            memory, seconds = peak("predict", folder / "m.skops", folder / "new.csv", "-o", folder / "s.csv", "--force")
            print(f"predict, {n:>9,} rows: peak {memory:6.0f} MB, {seconds:5.1f} s", flush=True)
        if data_folder() is None:
            print("resample on the fraud data: left out, since SCOREFIELD_DATA is not set")
            return
        bunch = fetch_creditcard()
        frauds = pd.DataFrame(bunch.data, columns=bunch.feature_names).assign(Class=bunch.target)
        frauds.to_csv(folder / "creditcard.csv", index=False)
        options = ("--target", "Class", "-o", folder / "more.parquet")
        memory, seconds = peak("resample", folder / "creditcard.csv", *options)
        shape = f"{len(frauds):,} x {frauds.shape[1] - 1}"
        print(f"resample, {shape} to parity: peak {memory:6.0f} MB, {seconds:5.1f} s")


if __name__ == "__main__":
    main()
