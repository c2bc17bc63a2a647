"""What the commands do with tables and models, apart from the command line itself."""

import os

import numpy as np

from scorefield.data.columns import check_numbers
from scorefield.data.files import write_whole
from scorefield.data.parquet import ParquetTable
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import MODELS, ScoreDensity
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.sampling.samplers import Langevin

STREAMED_BYTES = 256 << 20  # larger Parquet files are read in parts: in memory a table takes several times its file
NEAR = {"step_size": 0.02, "chain_length": 50, "discard": 0.98}  # the over-sampler's default chain: one row per chain
COLOURS = {"real": "black", "generated": "#D55E00"}
UNKNOWN_MEMORY = 1 << 40  # bytes assumed where the system does not tell its memory


def _strategy(text, labels):
    """A sampling strategy from its text: a name, a ratio, or label=count pairs."""
    if "=" in text:
        known, wanted = {str(label): label for label in labels}, {}
        for pair in text.split(","):
            name, _, count = pair.partition("=")
            if name.strip() not in known or not count.strip().isdecimal():
                raise ValueError(
                    f"Expected label=count with a label of {list(known)} in --strategy, got {pair!r}; correct it."
                )
            wanted[known[name.strip()]] = int(count)
        return wanted
    try:
        return float(text)
    except ValueError:
        return text


def _check_memory(n_rows, n_columns):
    """Refuse to make a table that this machine could not hold; one value takes eight bytes."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = UNKNOWN_MEMORY
    needed = 8 * n_rows * n_columns
    if needed > memory:
        raise ValueError(
            f"Expected rows that fit into the {memory >> 30} GiB of memory, got {n_rows:,} rows of {n_columns} "
            f"columns, which need at least {needed >> 30:,} GiB; ask for fewer rows."
        )


def resample(table, target, *, strategy="auto", model="auto", chain=None, seed=0, mark=False, verbose=0):
    """The table with generated rows, and the counts of each label before and after."""
    if model not in ("auto", *MODELS):
        raise ValueError(f"Expected --model auto, {', '.join(MODELS)}, got {model!r}; choose one of them.")
    if mark and "is_synthetic" in table:
        raise ValueError("Expected no column is_synthetic in the table with --mark, got one; rename it.")
    X, y = table.drop(columns=[target]), table[target]
    sampler = Langevin(**{**NEAR, **chain}) if chain else None
    counts = _strategy(strategy, y.unique())
    if isinstance(counts, dict):
        _check_memory(sum(counts.values()), table.shape[1])
    over = ScoreOverSampler(counts, ScoreDensity(model=model, verbose=verbose), sampler, random_state=seed)
    X_more, y_more = over.fit_resample(X, y)
    result = X_more.copy()  # not fragmented: inserting a column into many blocks is slow
    result.insert(table.columns.get_loc(target), target, y_more.astype(y.dtype))
    if mark:
        result["is_synthetic"] = over.is_synthetic_
    before, after = (part.value_counts().to_dict() for part in (y, y_more))
    return result, before, after


def fit(table, target, *, seed=0, verbose=0):
    """A `ScoreClassifier` of a table of numbers, with the column names and dtypes that `sample` needs."""
    X, y = table.drop(columns=[target]), table[target]
    text = [name for name in X.columns if X[name].dtype.kind not in "iufb"]
    if text:
        raise ValueError(f"Expected numbers in every column, got text in {text[0]!r}; encode it as numbers or drop it.")
    _check_no_gaps(X)
    model = ScoreClassifier(random_state=seed, verbose=verbose).fit(X.astype(np.float64), y.to_numpy())
    integers = [name for name in X.columns if X[name].dtype.kind in "iu"]
    return {"model": model, "target": target, "columns": list(table.columns), "integers": integers}


def _check_no_gaps(X):
    if X.isna().to_numpy().any():
        empty = X.columns[X.isna().any()][0]
        raise ValueError(f"Expected no missing values, got some in column {empty!r}; fill or drop them.")


def is_large(path):
    """True if a table is read in parts for a fit: a folder, or a large Parquet file."""
    return path.is_dir() or (path.suffix == ".parquet" and path.is_file() and path.stat().st_size > STREAMED_BYTES)


def fit_parquet(path, target, *, seed=0, verbose=0):
    """Like `fit`, from Parquet files that need not fit into memory; returns the number of rows too."""
    table = ParquetTable(path, target)
    model = ScoreClassifier(random_state=seed, verbose=verbose).fit(path, target)
    stored = {"model": model, "target": target, "columns": list(table.columns), "integers": table.integers}
    return stored, table.n_rows


def scores(stored, part):
    """Prediction, probabilities and log density of one part of a table."""
    import pandas as pd

    model = stored["model"]
    missing = [name for name in model.feature_names_in_ if name not in part.columns]
    if missing:
        raise ValueError(
            f"Expected the columns that the model was fitted to, got none named {missing[0]!r}; add or rename it."
        )
    X = part[list(model.feature_names_in_)]
    check_numbers(X, first_row=part.index[0] + 1)
    _check_no_gaps(X)
    X = X.astype(np.float64)
    log_proba, log_density = model.log_proba_and_density(X)
    proba = np.exp(log_proba)
    found = {f"predicted_{stored['target']}": model.decide(log_proba)}
    found |= {f"probability_{label}": proba[:, k] for k, label in enumerate(model.classes_.tolist())}
    return pd.DataFrame({**found, "log_density": log_density})


def sample(stored, label, n, seed):
    """Generated rows of one class, with the columns and dtypes of the training table."""
    import pandas as pd

    model, target = stored["model"], stored["target"]
    known = {str(value): value for value in model.classes_.tolist()}
    if label not in known:
        raise ValueError(f"Expected a --label of {list(known)}, got {label!r}; choose one of them.")
    _check_memory(n, len(stored["columns"]))
    rows = pd.DataFrame(model.sample(n, label=known[label], random_state=seed), columns=model.feature_names_in_)
    rows = rows.astype(float).round(dict.fromkeys(stored["integers"], 0))
    rows = rows.astype(dict.fromkeys(stored["integers"], np.int64))
    return rows.assign(**{target: known[label]})[stored["columns"]]


def describe(stored):
    """A description of a stored model, as names and values."""
    model = stored["model"]
    return {
        "model": type(model).__name__,
        "written by": f"scorefield {stored['version']}",
        "target": stored["target"],
        "classes": ", ".join(f"{c} ({p:.4g})" for c, p in zip(model.classes_.tolist(), model.priors_, strict=True)),
        "columns": f"{model.n_features_in_}: {', '.join(map(str, model.feature_names_in_))}",
        "members": model.n_members,
        "settings": {k: v for k, v in model.get_params().items() if k in ("label_weight", "noise", "random_state")},
    }


def advise(table, target, *, learner, minutes, seed):
    """Advice on a table; categories become columns of zeros and ones."""
    import pandas as pd

    from scorefield.evaluation.advice import advise as advise_on
    from scorefield.evaluation.remedies import learners

    known = learners(seed)
    if learner not in known:
        raise ValueError(f"Expected a --learner of {', '.join(known)}, got {learner!r}; choose one of them.")
    X = table.drop(columns=target)
    _check_no_gaps(X)
    columns = pd.get_dummies(X, dtype=float)
    return advise_on(columns.to_numpy(float), table[target].to_numpy(), known[learner],
                     minutes=minutes, random_state=seed)  # fmt: skip


def write_advice_page(path, advice, *, replace=True):
    """Write the advice as a page with a plot."""
    import matplotlib

    matplotlib.use("Agg")
    advice.write_page(path, replace=replace)


def write_quality_page(path, found, real, synthetic, *, replace=True):
    """Write the comparison of two tables as a page with pictures."""
    import matplotlib

    from scorefield.display.html import Raw, page, picture, table, tag
    from scorefield.display.planes import plain_label

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import pandas as pd

    tables = {"real": real, "generated": synthetic}
    worst = sorted(found.columns, key=lambda column: -column["distance"])[:6]
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    for ax in axes.flat[len(worst) :]:
        ax.set_visible(False)
    for ax, column in zip(axes.flat, worst, strict=False):
        name = column["column"]
        if column["kind"] == "category":
            shares = pd.concat(
                {label: t[name].astype(str).value_counts(normalize=True) for label, t in tables.items()}, axis=1
            )
            shares.fillna(0).sort_index().rename(index=plain_label).plot.bar(
                ax=ax, color=list(COLOURS.values()), legend=False
            )
        else:
            parts = {label: t[name].astype(float) for label, t in tables.items()}
            edges = np.histogram_bin_edges(np.concatenate(list(parts.values())), 40)
            for label, part in parts.items():
                ax.hist(part, bins=edges, density=True, histtype="step", color=COLOURS[label], label=label)
        ax.set(title=plain_label(f"{name}: distance {column['distance']:.2f}"), xlabel=plain_label(name))
    axes.flat[0].legend(list(COLOURS))
    columns = [[c["column"], c["kind"], f"{c['distance']:.3f}"] for c in found.columns]
    body = [
        tag("h1", "Is the generated table credible?"),
        tag("ul", *(tag("li", sentence) for sentence in found.sentences)),
        picture(figure, "The columns that differ most."),
        table("Distance of each column's distribution", ["column", "kind", "distance"], columns),
    ]
    write_whole(path, page("Quality of generated rows", [Raw(part) for part in body]), replace=replace)
