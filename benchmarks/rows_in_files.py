"""Can a judge tell the rare rows that `scorefield resample` writes to a file from real ones, nothing stripped?

Lines of each raw file are split into a table to learn from and fresh ones. `scorefield resample --purpose sharing`
doubles the rare class; every file is then read by `pandas.read_csv` alone, and gradient boosting is trained to tell the
generated rows from fresh rare ones. Its cross-validated AUC is .5 where it cannot. Identifiers are left out. It also
lists the columns whose type, or the text columns of at most 100 levels whose levels, are not those of the input.

    python benchmarks/rows_in_files.py [--quick] [--repeats 3] [--out results/mixed]
"""

import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from _mixed import TABLES
from _timing import Rows, parse
from credible_rows import judged
from scorefield.data.datasets import data_folder

# Labels of the files, and the columns that tell one row from every other.
FILES = {
    "adult": ("income", []),
    "telco-churn": ("Churn", ["customerID"]),
    "titanic": ("Survived", ["PassengerId", "Name", "Ticket", "Cabin"]),
}
FEW_LEVELS = 100


def split_lines(path, n, seed):
    """The header of a file, n random lines of it, and the others."""
    header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [line for line in lines if line.strip()]
    order = np.random.default_rng(seed).permutation(len(lines))
    return header, [lines[i] for i in sorted(order[:n])], [lines[i] for i in sorted(order[n:])]


def differences(before, after):
    """Columns of a file whose type or levels another one does not have."""
    found = []
    for name in before:
        if before[name].dtype != after[name].dtype:
            found.append(f"{name}: {before[name].dtype} became {after[name].dtype}")
        elif not is_numeric_dtype(before[name]) and before[name].nunique() <= FEW_LEVELS:
            more = set(after[name].dropna()) - set(before[name].dropna())
            found += [f"{name}: {more}"] if more else []
    return found


def for_judge(frame):
    """Rows as the judge takes them: columns of numbers that are text in the file, for their blanks, as numbers."""
    frame = frame.reset_index(drop=True)
    wide = [name for name in frame if not is_numeric_dtype(frame[name]) and frame[name].nunique() > FEW_LEVELS]
    return frame.assign(**{name: pd.to_numeric(frame[name], errors="coerce") for name in wide})


def measure(name, seed, quick):
    """The AUC of one split of a file, and what differs between its columns and those of the output."""
    target, left_out = FILES[name]
    rare_label, n = TABLES[name]
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"{part}.csv" for part in ("kept", "fresh", "more")]
        header, kept, fresh = split_lines(data_folder() / "mixed" / f"{name}.csv", n // 10 if quick else n, seed)
        for path, lines in zip(paths, (kept, fresh), strict=False):
            path.write_text(header + "".join(lines), encoding="utf-8")
        labels = pd.read_csv(paths[0])[target]
        rare = labels.unique()[[str(label).strip() == str(rare_label) for label in labels.unique()]][0]
        wanted = f"{str(rare).strip()}={2 * int((labels == rare).sum())}"
        options = ["--target", target, "--output", str(paths[2]), "--strategy", wanted, "--purpose", "sharing"]
        command = [sys.executable, "-m", "scorefield", "resample", str(paths[0]), *options]
        subprocess.run([*command, "--seed", str(seed), "--quiet"], check=True)
        before, real, after = (pd.read_csv(path) for path in paths)
    generated = after.iloc[len(before) :]
    real = real[real[target] == rare]
    n = min(len(real), len(generated))
    real, generated = (for_judge(part.drop(columns=left_out).iloc[:n]) for part in (real, generated))
    return {"table": name, "seed": seed, "n": n, "auc": float(judged(real, generated, seed)),
            "differences": differences(before, after)}  # fmt: skip


def main():
    options = parse(__doc__, repeats=3, out="results/mixed")
    warnings.simplefilter("ignore")
    results = Rows("rows_in_files", options)
    names = ["titanic"] if options.quick else list(FILES)
    for name in names:
        for seed in range(1 if options.quick else options.repeats):
            row = measure(name, seed, options.quick)
            results.rows.append({**results.common, **row})
            print(f"{name:12} seed {seed}: AUC {row['auc']:.3f} of {row['n']} rows; {row['differences']}", flush=True)
    results.write()


if __name__ == "__main__":
    sys.exit(main())
