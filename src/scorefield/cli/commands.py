"""What the commands do with tables and models, apart from the command line itself."""

import dataclasses
import os
import warnings

import numpy as np

from scorefield.data.checks import check_numbers
from scorefield.data.conditions import read_condition
from scorefield.data.files import write_whole
from scorefield.data.formats.delimited import Delimited
from scorefield.data.parquet import ParquetTable
from scorefield.data.tables import MARK, forms_of, read_parts
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import ScoreDensity
from scorefield.estimators.imputation import ScoreImputer
from scorefield.estimators.outliers import ScoreOutlierDetector
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.explanations import counterfactuals as near
from scorefield.files.stored_learner import StoredLearner
from scorefield.sampling.samplers import Langevin

NEAR = {"step_size": 0.02, "chain_length": 50}  # the over-sampler's default chain
UNKNOWN_MEMORY = 1 << 40  # bytes assumed where the system does not tell its memory


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


def resample(
    table, target, *, strategy="auto", purpose="learning", model=None, where="everywhere", chain=None, columns=None,
    seed=0, mark=False, ids="new", verbose=0,
):  # fmt: skip
    """The table with generated rows, and the counts of each label before and after."""
    if mark and MARK in table:
        raise ValueError(f"Expected no column {MARK} in the table with --mark, got one; rename it.")
    X, y = table.drop(columns=[target]), table[target]
    sampler = _near(**{**NEAR, **chain}) if chain else None
    if isinstance(strategy, dict):
        _check_memory(sum(strategy.values()), table.shape[1])
    columns = _without(columns, target)
    needs_density = purpose == "sharing" or model is not None
    over = ScoreOverSampler(
        sampling_strategy=strategy, purpose=purpose, where=where, sampler=sampler, random_state=seed, columns=columns,
        ids=ids,
        density=ScoreDensity(model=model or "auto", verbose=verbose) if needs_density else None,
        teacher=ScoreClassifier(columns=columns, verbose=verbose) if purpose == "learning" else None,
    )  # fmt: skip
    X_more, y_more = over.fit_resample(X, y)
    result = X_more.copy()  # not fragmented: inserting a column into many blocks is slow
    result.insert(table.columns.get_loc(target), target, y_more.astype(y.dtype))
    if mark:
        result[MARK] = over.is_synthetic_
    before, after = (part.value_counts().to_dict() for part in (y, y_more))
    return result, before, after


def blank_columns(table, rows):
    """Names of columns with known cells in a table and none in its generated rows."""
    return [str(name) for name in table.columns if len(rows) and rows[name].isna().all() and table[name].notna().any()]


def _near(step_size, chain_length, discard=None):
    """Langevin chains; without a share to discard they give one row each."""
    return Langevin(step_size, chain_length, 1 - 1 / max(chain_length, 1) if discard is None else discard)


def _without(columns, *names):
    """The kinds of the other columns; None without any."""
    return {name: kind for name, kind in (columns or {}).items() if name not in names} or None


def impute(table, *, n_draws=1, columns=None, seed=0, verbose=0):
    """The table with its gaps filled, and the columns that are not filled: their names and why."""
    imputer = ScoreImputer(n_draws=n_draws, columns=columns or None, random_state=seed, verbose=verbose).fit(table)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Missing cells are left alone")  # the command says so in its own words
        return imputer.transform(table), imputer.left_alone_in(table)


def outliers(table, *, contamination=None, model="auto", columns=None, seed=0, verbose=0):
    """Scores of the rows, greater for odder ones and above 0 for outliers, and flags."""
    import pandas as pd

    density = ScoreDensity(model=model, columns=columns or None, verbose=verbose)
    level = "auto" if contamination is None else contamination
    found = ScoreOutlierDetector(density, contamination=level, random_state=seed).fit(table).decision_function(table)
    return pd.DataFrame({"outlier_score": -found.astype(float), "is_outlier": found < 0})


def fit(table, target, *, reading, file=None, groups=None, seed=0, verbose=0):
    """A `ScoreClassifier` of a table, with what `predict` and `sample` need of the table and of its `file`."""
    table, together = _grouped(table, groups)
    X, y = table.drop(columns=[target]), table[target]
    kinds = _without(reading.columns, target, groups)
    model = ScoreClassifier(columns=kinds, random_state=seed, verbose=verbose).fit(X, y.to_numpy(), **together)
    return _stored(model, table, target, reading, file)


def distill(table, target, *, estimator, reading, file=None, seed=0, verbose=0):
    """A learner that `ScoreClassifier` has taught, with what `predict` needs of the table and of its `file`."""
    X, y = table.drop(columns=[target]), table[target]
    learner = StoredLearner(estimator, _without(reading.columns, target), seed, verbose).fit(X, y.to_numpy())
    return _stored(learner, table, target, reading, file)


def _stored(model, table, target, reading, file):
    """A fitted model with what later commands need of its table and of its `file`."""
    X = table.drop(columns=[target])
    return {
        "model": model,
        "target": target,
        "columns": list(table.columns),
        "integers": [name for name in X.columns if X[name].dtype.kind in "iu"],
        "reading": {"forms": forms_of(X), "na": list(reading.na)} | _written(file),
    }


def judged(model, table, target, seed, groups=None):
    """How good a fitted model is on held-out rows, as text below a line; empty where it was not judged."""
    from scorefield.evaluation.held_out import HEAD, NOTE, judge_held_out

    table, together = _grouped(table, groups)
    lines = judge_held_out(model, table.drop(columns=[target]), table[target].to_numpy(), seed, **together)
    if not lines:
        return ""
    cells = [HEAD, *((name, *(f"{value:.3f}" for value in values)) for name, *values in lines)]
    rows = [f"{name:<18}" + "".join(f"{cell:>{len(head) + 2}}" for cell, head in zip(row, HEAD[1:], strict=True))
            for name, *row in cells]  # fmt: skip
    return "\n".join(["", *rows, NOTE])


def check_has_energy(stored, what):
    """Refuse a taught learner where the energy of a `ScoreClassifier` is needed."""
    model = stored["model"]
    if isinstance(model, StoredLearner):
        raise ValueError(
            f"Expected a model written by `scorefield fit` to {what}, got taught {model.kind}, which has no energy of "
            "rows; fit one to the same table."
        )
    return stored


def _written(file):
    """How a text file is written, as a part of a stored model; nothing for other files."""
    return {"file": file.to_plain()} if isinstance(file, Delimited) else {}


def file_like_fitted(stored):
    """The text file that a model was fitted to, for others that are written like it; None if it was not one."""
    plain = stored["reading"].get("file")
    return None if plain is None else Delimited.from_plain(plain)


def spelling_labels(stored, output, name):
    """An output file that spells the labels in its column `name` as the fitted file does."""
    fitted = file_like_fitted(stored)
    if fitted is None or not isinstance(output, Delimited):
        return output
    return dataclasses.replace(output, spellings={**output.spellings, name: fitted.spellings.get(stored["target"])})


def reading_for(stored, reading):
    """How a table to score is read: as the one that the model was fitted to."""
    fitted = stored["reading"]
    return dataclasses.replace(reading, na=(*fitted["na"], *reading.na), forms=fitted["forms"])


def features(stored):
    """Names of the columns that the model was fitted to."""
    return stored["model"].feature_names_in_.tolist()


def _check_no_gaps(X):
    if X.isna().to_numpy().any():
        empty = X.columns[X.isna().any()][0]
        raise ValueError(f"Expected no missing values, got some in column {empty!r}; fill or drop them.")


def fit_parquet(path, target, *, seed=0, verbose=0):
    """Like `fit`, from Parquet files that need not fit into memory; returns the number of rows too."""
    table = ParquetTable(path, target)
    model = ScoreClassifier(random_state=seed, verbose=verbose).fit(path, target)
    stored = {"model": model, "target": target, "columns": list(table.columns), "integers": table.integers}
    return stored | {"reading": {"forms": table.forms, "na": []}}, table.n_rows


def _checked(stored, part):
    """The columns that a model was fitted to; numbers without gaps where it was fitted to those."""
    X = part[features(stored)]
    if isinstance(stored["model"], StoredLearner) or stored["model"].model_.space.layout is not None:
        return X
    check_numbers(X, first_row=part.index[0] + 1)
    _check_no_gaps(X)
    return X.astype(np.float64)


def scores(stored, part):
    """Prediction, probabilities and, of a model with an energy, log density of one part of a table."""
    import pandas as pd

    model, rows = stored["model"], _checked(stored, part)
    if isinstance(model, StoredLearner):
        proba, density = model.predict_proba(rows), {}
        predicted = model.classes_[proba.argmax(axis=1)]
    else:
        log_proba, log_density = model.log_proba_and_density(rows)
        proba, predicted, density = np.exp(log_proba), model.decide(log_proba), {"log_density": log_density}
    found = {f"predicted_{stored['target']}": predicted}
    found |= {f"probability_{label}": proba[:, k] for k, label in enumerate(model.classes_.tolist())}
    return pd.DataFrame(found | density)


def rows_for(stored, data, reading):
    """The rows of a small file, with the columns that a model was fitted to."""
    import pandas as pd

    reading = reading_for(stored, reading)
    parts = [part.frame for part in read_parts(data, reading, features(stored))]
    return _checked(stored, pd.concat(parts))


def known_label(stored, text, option):
    """The label of a stored model that an option names; None where it names none."""
    if text is None:
        return None
    known = {str(value): value for value in stored["model"].classes_.tolist()}
    if text not in known:
        raise ValueError(f"Expected a {option} of {list(known)}, got {text!r}; choose one of them.")
    return known[text]


def contributions(explained):
    """A table of contributions, log odds and the class that they are those of."""
    import pandas as pd

    table = pd.DataFrame(explained.contributions, columns=explained.columns)
    return table.assign(log_odds=explained.log_odds, baseline=explained.baseline_log_odds, label=explained.labels)


def explained(found, near):
    """An explanation and its counterfactuals as one dictionary of plain values."""
    result = {"contributions": contributions(found).to_dict("records")}
    if near is not None:
        rows = zip(near.index, near.cost, near.probability, near.log_density, near.changes, strict=True)
        names = ("row", "cost", "probability", "log_density", "changes")
        result["near_rows"] = [dict(zip(names, row, strict=True)) for row in rows]
    return result


def counterfactuals(stored, rows, target, fixed, n, seed):
    """The nearest credible rows of another class, for the rows that are not put into it."""
    model = stored["model"]
    places = np.flatnonzero(model.predict(rows) != target)
    if len(places) == 0:
        raise ValueError(f"Expected rows that are not predicted as {target!r} yet, got none; choose another --target.")
    found = near.counterfactuals(model, rows.iloc[places], target, fixed, n, random_state=seed)
    return dataclasses.replace(found, index=places[found.index])


def sample(stored, label, n, seed, ids="new", *, given=None, constraints=None):
    """Generated rows, of one class or of all, with the columns and dtypes of the training table."""
    import pandas as pd

    model, target = stored["model"], stored["target"]
    label = known_label(stored, label, "--label")
    conditions = _conditions(given or [], target)
    _check_memory(n, len(stored["columns"]))
    rows = model.sample(n, label, seed, given=conditions, constraints=constraints, ids=ids)
    rows, label = (rows, label) if label is not None else rows
    if hasattr(rows, "to_pandas"):  # of a model that was fitted to mixed Parquet files
        rows = rows.to_pandas()
    if not isinstance(rows, pd.DataFrame):  # of one that was fitted to files of numbers
        rows = pd.DataFrame(rows, columns=model.feature_names_in_).astype(float)
        rows = rows.round(dict.fromkeys(stored["integers"], 0)).astype(dict.fromkeys(stored["integers"], np.int64))
    return rows.assign(**{target: label})[stored["columns"]]


def _conditions(texts, target):
    """What rows are asked for, from options --given."""
    conditions = {}
    for text in texts:
        name, wanted = read_condition(text)
        if name == target:
            raise ValueError(f"Expected conditions on other columns than the target, got {text!r}; use --label.")
        if name in conditions:
            raise ValueError(f"Expected one --given for {name!r}, got several; join them, as in {name}=A,B.")
        conditions[name] = wanted
    return conditions


def describe(stored):
    """A description of a stored model, as names and values."""
    model = stored["model"]
    described = {
        "model": "DistilledClassifier" if isinstance(model, StoredLearner) else type(model).__name__,
        "written by": f"scorefield {stored['version']}",
        "target": stored["target"],
        "classes": ", ".join(f"{c} ({p:.4g})" for c, p in zip(model.classes_.tolist(), model.priors_, strict=True)),
        "columns": f"{model.n_features_in_}: {', '.join(map(str, model.feature_names_in_))}",
    }
    if isinstance(model, StoredLearner):
        return described | {
            "learner": model.kind,
            "taught by": f"ScoreClassifier, with {model.n_new_rows_} new rows; both predict the same class for "
            f"{model.agreement_:.1%} of them",
        }
    settings = {k: v for k, v in model.get_params().items() if k in ("label_weight", "noise", "random_state")}
    return described | {"members": model.n_members, "settings": settings}


def _grouped(table, groups):
    """A table without its column of groups, and the groups as an argument; none without a name."""
    return (table, {}) if groups is None else (table.drop(columns=groups), {"groups": table[groups].to_numpy()})


def advise(table, target, *, learner, positive=None, columns=None, groups=None, seed=0, **options):
    """Advice on a table; `positive` is the text of a label."""
    from scorefield.evaluation.advice import advise as advise_on
    from scorefield.evaluation.remedies import learners

    known = learners(seed)
    if learner not in known:
        raise ValueError(f"Expected xgboost for --learner {learner}, but it is not installed; pip install xgboost.")
    X, y = table.drop(columns=target), table[target].to_numpy()
    if positive is not None:  # labels of numbers are written as text on the command line
        positive = {str(label): label for label in np.unique(y).tolist()}[positive]
    X, together = _grouped(X, groups)
    columns = _without(columns, target, groups)
    return advise_on(
        X, y, known[learner], positive=positive, columns=columns, random_state=seed, **together, **options
    )  # fmt: skip


def write_advice_page(path, advice, *, replace=True):
    """Write the advice as a page with a plot."""
    import matplotlib

    matplotlib.use("Agg")
    advice.write_page(path, replace=replace)


def write_quality_page(path, found, real, synthetic, *, columns=None, replace=True):
    """Write the comparison of two tables as a page with pictures."""
    import matplotlib

    from scorefield.display.html import Raw, page, picture, table, tag
    from scorefield.evaluation.credibility_display import CredibilityDisplay

    matplotlib.use("Agg")
    figure = CredibilityDisplay.from_tables(real, synthetic, columns).figure_
    rows = [[c["column"], c["kind"], f"{c['distance']:.3f}", f"{c['gaps']:+.3f}"] for c in found.columns]
    body = [
        tag("h1", "Is the generated table credible?"),
        tag("ul", *(tag("li", sentence) for sentence in found.sentences)),
        picture(figure, "The columns that differ most, and correlations of numbers."),
        table(
            "Distance of each column's distribution, and of its share of missing values from the real one",
            ["column", "kind", "distance", "missing"],
            rows,
        ),
        tag("h2", "What does it give away?"),
        tag("ul", *(tag("li", sentence) for sentence in found.privacy.sentences)),
    ]
    write_whole(path, page("Quality of generated rows", [Raw(part) for part in body]), replace=replace)
