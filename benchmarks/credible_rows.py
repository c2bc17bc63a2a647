"""Can a judge tell generated rare rows from fresh real ones? Ours beside SMOTENC, independent columns and more.

The rare class of four mixed tables. Gradient boosting is trained to tell generated rows from real rows that no
generator saw; its cross-validated AUC is .5 where it cannot. The training rows themselves show the limit. A near-copy
is a generated row that is closer to a training row than 95 % of fresh real rows are; fresh rows have .05 of them by
definition. Distances add absolute differences of normal scores and the number of different categories.

    python benchmarks/credible_rows.py [--quick] [--repeats 5] [--jobs 2] [--before SRC] [--out results/mixed]

CTGAN and arfpy are run where they are installed. `--before` is the folder `src` of an older version of this library,
which is given categories as such and tables without gaps, since it refused them.
"""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTENC
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from _mixed import TABLES, as_codes, boosting, load_mixed, parallel
from _timing import Rows, parse, with_jobs
from scorefield import ScoreDensity, ScoreOverSampler
from scorefield.data.row_space import RowSpace, split_rows
from scorefield.studies.benchmark.mixed_tables import encode_ordinal, text_columns

NAMES = ("adult", "telco-churn", "default", "titanic")
BEFORE = """
import pickle, sys, warnings
warnings.simplefilter("ignore")
from scorefield import ScoreOverSampler
with open(sys.argv[1], "rb") as file:
    frame, y, n, seed = pickle.load(file)
rows = ScoreOverSampler({1: n}, random_state=seed).fit_resample(frame, y)[0].iloc[len(frame):]
with open(sys.argv[1], "wb") as file:
    pickle.dump(rows, file)
"""


def ours(frame, y, n, seed, quick):
    density = ScoreDensity(max_steps=50) if quick else None
    sampler = ScoreOverSampler(
        purpose="sharing", sampling_strategy={1: int(y.sum()) + n}, density=density, random_state=seed
    )
    return sampler.fit_resample(frame, y)[0][sampler.is_synthetic_]


def version_before(frame, y, n, seed, quick):
    """The over-sampler of an older version, in a process of its own."""
    if not os.environ.get("OLDER_SCOREFIELD"):
        raise ImportError("no older version was given")
    codes, encoder, text = encode_ordinal(frame)
    filled = codes.astype(frame.drop(columns=text).dtypes)
    if text:
        filled[text] = pd.DataFrame(encoder.inverse_transform(codes[text]), columns=text).astype("category")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table"
        path.write_bytes(pickle.dumps((filled, y, int(y.sum()) + n, seed)))
        environment = {**os.environ, "PYTHONPATH": os.environ["OLDER_SCOREFIELD"]}
        subprocess.run([sys.executable, "-c", BEFORE, path], check=True, env=environment)
        rows = pickle.loads(path.read_bytes()).reset_index(drop=True)
    return rows.astype(dict.fromkeys(text, object))


def smotenc(frame, y, n, seed, quick):
    """SMOTENC on codes, with gaps filled by the median or the commonest level; SMOTE has no way to keep them."""
    codes, encoder, text = encode_ordinal(frame)
    sampler = SMOTENC([frame.columns.get_loc(name) for name in text], sampling_strategy={1: int(y.sum()) + n},
                      random_state=seed)  # fmt: skip
    rows = sampler.fit_resample(codes, y)[0][len(frame) :].reset_index(drop=True)
    if text:
        rows[text] = encoder.inverse_transform(rows[text])
    whole = [name for name in frame if frame[name].dtype.kind in "iu"]
    return rows.round(dict.fromkeys(whole, 0))


def independent_columns(frame, y, n, seed, quick):
    """Every column drawn on its own from the rare rows: right margins, no relations."""
    rng, rare = np.random.default_rng(seed), frame[y == 1]
    return pd.DataFrame({name: rare[name].to_numpy()[rng.integers(0, len(rare), n)] for name in frame})


def training_rows(frame, y, n, seed, quick):
    return frame[y == 1].sample(n, random_state=seed)


def ctgan(frame, y, n, seed, quick):
    from ctgan import CTGAN

    codes, encoder, text = encode_ordinal(frame[y == 1])
    model = CTGAN(epochs=10 if quick else 300, verbose=False)
    model.fit(codes, discrete_columns=text)
    rows = model.sample(n)
    rows[text] = encoder.inverse_transform(rows[text])
    return rows


def arf(frame, y, n, seed, quick):
    from arfpy import arf as forests

    vars(np).setdefault("in1d", np.isin)  # a name of numpy 1, which arfpy still uses
    rare = frame[y == 1].dropna().reset_index(drop=True)
    rare = rare.astype(dict.fromkeys(text_columns(rare), object))
    # It takes columns by name and by position, which agree for numbers alone.
    model = forests.arf(rare.set_axis(range(rare.shape[1]), axis=1), verbose=False)
    model.forde()
    return model.forge(n).set_axis(rare.columns, axis=1)


METHODS = {
    "training rows": training_rows, "ours": ours, "version before": version_before, "SMOTENC": smotenc,
    "independent columns": independent_columns, "CTGAN": ctgan, "arf": arf,
}  # fmt: skip


def judged(real, generated, seed):
    """AUC of telling generated from real rows."""
    a, b = as_codes(real, generated[list(real.columns)])
    both, labels = pd.concat([a, b], ignore_index=True), np.repeat([0, 1], [len(a), len(b)])
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    judge = boosting(real, seed).set_params(early_stopping=False)
    return roc_auc_score(labels, cross_val_predict(judge, both, labels, cv=folds, method="predict_proba")[:, 1])


def nearest(rows, others, layout):
    """Distance of each row to the nearest of the others."""
    (x, known, codes), (x_other, known_other, codes_other) = (split_rows(part, layout) for part in (rows, others))
    x, x_other = np.where(known, x, 0.0), np.where(known_other, x_other, 0.0)
    return np.array([
        np.min(np.abs(x_other - own).sum(axis=1) + (codes_other != code).sum(axis=1))
        for own, code in zip(x, codes, strict=True)
    ])  # fmt: skip


def measure(task):
    """Measures of one method on one split of a table, or None where the method is not installed."""
    name, method, seed, quick = task
    warnings.simplefilter("ignore")
    frame, y = load_mixed(name)
    order = np.random.default_rng(seed).permutation(len(frame))
    kept, rest = order[: TABLES[name][1]], order[TABLES[name][1] :]
    frame_kept, y_kept = frame.iloc[kept].reset_index(drop=True), y[kept]
    rare, fresh = frame_kept[y_kept == 1], frame.iloc[rest][y[rest] == 1].reset_index(drop=True)
    n = min(len(rare), len(fresh))
    fresh = fresh.iloc[:n]
    try:
        generated = METHODS[method](frame_kept, y_kept, n, seed, quick).reset_index(drop=True)
    except ImportError:
        return None
    space = RowSpace.fit(rare)
    rows, made, real = (space.rows(part[list(rare.columns)]) for part in (rare, generated, fresh))
    usual = np.quantile(nearest(real, rows, space.layout), 0.05)
    near = np.mean(nearest(made, rows, space.layout) <= usual)
    auc = judged(fresh, generated, seed)
    return {"table": name, "method": method, "seed": seed, "n": n, "auc": float(auc), "near_copies": float(near)}


def with_options(parser):
    with_jobs(parser)
    parser.add_argument("--before", type=pathlib.Path, help="folder src of an older version")


def main():
    options = parse(__doc__, repeats=5, extend=with_options, out="results/mixed")
    os.environ["OLDER_SCOREFIELD"] = str(options.before or "")
    results = Rows("credible_rows", options)
    names, repeats = (NAMES[-1:], 1) if options.quick else (NAMES, options.repeats)
    tasks = [(name, method, seed, options.quick) for name in names for method in METHODS for seed in range(repeats)]
    found = [row for row in parallel(measure, tasks, options.jobs) if row]
    for row in sorted(found, key=lambda row: (row["table"], row["method"], row["seed"])):
        results.rows.append({**results.common, **row})
    table = pd.DataFrame(found).groupby(["table", "method"])[["auc", "near_copies"]].mean().unstack("table")
    order = [method for method in METHODS if method in table.index]
    print(table.loc[order].round(3).to_string())
    print(pd.DataFrame(found).groupby("method")[["auc", "near_copies"]].mean().loc[order].round(3).to_string())
    results.write()


if __name__ == "__main__":
    sys.exit(main())
