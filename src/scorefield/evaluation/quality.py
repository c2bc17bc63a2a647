"""Quality of generated rows: distances of columns, correlations, a two-sample test, copied rows, and privacy."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from scorefield.data.cells import positions
from scorefield.data.coding import MAX_LEVELS, is_category
from scorefield.data.containers import Table
from scorefield.data.encoding import TableEncoder
from scorefield.data.kinds import SET_ASIDE, refuse, tally
from scorefield.data.likeness import like_fitted
from scorefield.data.scaling import NormalScores, safe_deviation
from scorefield.data.splits import same_rows, stratified_folds
from scorefield.estimators._sklearn import boostable
from scorefield.evaluation.privacy import MAX_COMPARED, Privacy, measure_privacy
from scorefield.evaluation.statistics import auc_interval

N_TREES = 200
DRIFT = 0.1  # smaller distances between distributions are not reported


@dataclasses.dataclass(frozen=True)
class Quality:
    """Result of `compare_tables`: a distance per column, numbers for the whole tables, and sentences about them."""

    columns: list
    correlation_gap: float | None
    auc: float
    auc_range: tuple
    copies: float
    repeats: float
    closer: float
    sentences: list
    left_out: list
    privacy: Privacy


class ComparedColumn(NamedTuple):
    """One column of both tables: numbers, or positions of levels from the commonest real one on; NaN at gaps."""

    name: Any
    kind: str  # as `describe_columns` has it
    is_category: bool
    real: np.ndarray
    generated: np.ndarray
    held_out: np.ndarray | None
    spikes: list  # of the real column, in its numbers
    levels: list  # of a category, in the order of their positions

    @property
    def parts(self):
        """Cells of the real, the generated and, if there are any, the held-out rows."""
        return [part for part in (self.real, self.generated, self.held_out) if part is not None]


def compared_columns(real, synthetic, columns=None, held_out=None):
    """Columns that can be compared, and the names of identifiers and free text, which cannot."""
    tables = [Table(table) for table in (real, synthetic, held_out) if table is not None]
    names = tables[0].names
    for table in tables[1:]:
        if table.names != names:
            odd = sorted(set(map(str, names)) ^ set(map(str, table.names)))
            raise ValueError(
                f"Expected the same columns in the same order, got a difference in {odd or 'the order'}; "
                "select columns."
            )
    found, left_out, problems = [], [], []
    for column in TableEncoder(columns).fit(real).columns_:
        if column.kind in SET_ASIDE:
            left_out.append(column.name)
            continue
        read = [like_fitted(table.cells(column.name), column) for table in tables]
        problems += [f"column {column.name!r}: {problem}" for _, problem in read if problem is not None]
        if all(problem is None for _, problem in read):
            found.append(_compared(column, *(cells for cells, _ in read)))
    refuse(problems)
    if not found:
        raise ValueError("Expected a column that is not an identifier or free text, got none; add one to compare.")
    return found, left_out


def _compared(column, *parts):
    if not is_category(column.kind, column.form) and all(cells.form != "object" for cells in parts):
        values = [np.where(cells.known, cells.values.astype(float), np.nan) for cells in parts]
        return _column(column, False, values, [float(spike) for spike in column.spikes])
    levels = [level for cells in parts if cells.known.any() for level in tally(cells)[0].tolist()]
    codes = [positions(cells.values, cells.known, levels) for cells in parts]
    counts = np.bincount(codes[0][codes[0] >= 0], minlength=len(levels) + 1)
    ranks = np.argsort(np.argsort(-counts, kind="stable")).astype(float)
    ranks[-1] = np.nan  # a gap has the position -1
    ordered = [levels[i] for i in np.argsort(ranks[:-1], kind="stable")]
    return _column(column, True, [ranks[code] for code in codes], levels=ordered)


def _column(column, is_category, parts, spikes=(), levels=()):
    parts = [*parts, *[None] * (3 - len(parts))]
    return ComparedColumn(column.name, column.kind, is_category, *parts, list(spikes), list(levels))


def column_distance(column):
    """Kolmogorov-Smirnov distance of known numbers, or total variation distance of levels and of shares of spikes."""
    parts = [part[~np.isnan(part)] for part in (column.real, column.generated)]
    gaps = [float(np.isnan(part).mean()) for part in (column.real, column.generated)]
    distance, more = 0.0, {}
    if min(map(len, parts)) == 0:
        distance = float(max(map(len, parts)) > 0)
    elif column.is_category:
        distance = _total_variation(parts)
    else:
        distance = float(ks_2samp(*parts, method="asymp").statistic)
        if column.spikes:
            shares = [positions(part, np.ones(len(part), bool), column.spikes) + 1 for part in parts]
            more = {"spikes": _total_variation(shares)}
            distance = max(distance, more["spikes"])
    return {"column": column.name, "kind": column.kind, "distance": distance, "gaps": gaps[1] - gaps[0], **more}


def _total_variation(parts):
    n_levels = int(max(part.max() for part in parts)) + 1
    shares = [np.bincount(part.astype(int), minlength=n_levels) / len(part) for part in parts]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _halves(rows, labels, seed):
    """Two halves of the rows of both tables; equal rows of one table are in one half.

    Equal rows of a real and a generated table may be apart: they are what is to be found out.
    """
    groups = same_rows(np.column_stack([rows, labels]))
    if groups.max() + 1 < len(rows):
        halves = stratified_folds(labels, groups, 2, seed)[0]
        if all(len(np.unique(labels[half])) == 2 for half in halves):
            return halves
    return train_test_split(np.arange(len(rows)), test_size=0.5, stratify=labels, random_state=seed)


def _two_sample_auc(rows, labels, seed, categories=None):
    """AUC of a classifier that separates real from generated rows, trained on one half and measured on the other.

    It is a forest for numbers without gaps (`categories` is None), and gradient boosting for mixed rows.
    Cross-validation would use more rows, but its predictions depend on each other: at 100 rows a table the AUC of equal
    laws has a standard deviation of .056, where the formulas for independent predictions say .041.
    """
    train, test = _halves(rows, labels, seed)
    rows = boostable(rows, train)
    if categories is None:
        judge = RandomForestClassifier(N_TREES, min_samples_leaf=5, random_state=seed, n_jobs=-1)
    else:
        judge = HistGradientBoostingClassifier(
            min_samples_leaf=5, categorical_features=categories, early_stopping=False, random_state=seed
        )
    judge.fit(rows[train], labels[train])
    return auc_interval(judge.predict_proba(rows[test])[:, 1], labels[test])


def _copies_and_repeats(real, generated):
    """Share of generated rows that equal a real row, and share of real rows that equal another real row."""
    groups = same_rows(np.concatenate([real, generated]))
    counts = np.bincount(groups[: len(real)], minlength=groups.max() + 1)
    return float((counts[groups[len(real) :]] > 0).mean()), float((counts[groups[: len(real)]] > 1).mean())


def _places(columns):
    """All tables as points: differing levels, and a gap where the other has none, are at a distance of one."""
    parts = [[] for _ in columns[0].parts]
    for column in columns:
        cells = column.parts
        if column.is_category:
            codes = [np.where(np.isnan(part), MAX_LEVELS, np.minimum(part, MAX_LEVELS - 1)) for part in cells]
            levels = np.unique(np.concatenate(codes))
            found = [(code[:, None] == levels) / np.sqrt(2) for code in codes]
        else:
            scores = NormalScores.fit(cells[0][:, None])
            found = [
                np.column_stack([np.nan_to_num(scores.transform(part[:, None])), np.isnan(part)]) for part in cells
            ]
        for part, own in zip(parts, found, strict=True):
            part.append(own)
    return [np.hstack(part) for part in parts]


def correlations(rows):
    """Correlations of columns over the rows in which both are known; 0 where one does not vary there."""
    known = ~np.isnan(rows)
    n = np.maximum(known.sum(axis=0), 1)
    rows = np.where(known, rows - np.where(known, rows, 0.0).sum(axis=0) / n, 0.0)
    known = known.astype(float)
    n_both = np.maximum(known.T @ known, 1.0)
    mean = (rows.T @ known) / n_both  # of the first column, where the second is known
    variance = (rows**2).T @ known / n_both - mean**2
    scale = np.sqrt(np.maximum(variance * variance.T, 0.0))
    return np.divide(rows.T @ rows / n_both - mean * mean.T, scale, out=np.zeros_like(scale), where=scale > 0)


def _share_closer(a, b, rng):
    """Probability that a generated row lies closer to a real row than a real row to another one; ties count half."""
    neighbours = NearestNeighbors(n_neighbors=2).fit(a)
    some = rng.permutation(len(a))[:MAX_COMPARED]
    usual = neighbours.kneighbors(a[some])[0][:, 1]  # the nearest neighbour is the row itself
    found = neighbours.kneighbors(b[rng.permutation(len(b))[:MAX_COMPARED]], n_neighbors=1)[0][:, 0]
    return auc_interval(-np.concatenate([found, usual]), np.repeat([1, 0], [len(found), len(usual)]))[0]


def compare_tables(real, synthetic, held_out=None, *, columns=None, random_state=0):
    """Compare a generated table with a real one.

    Columns are what :func:`describe_columns` takes those of the real table for. Identifiers and free text are left out.

    Parameters
    ----------
    real, synthetic : array, DataFrame or pyarrow table
        Tables with the same columns in the same order, of mixed types, with missing values.
    held_out : None or table like the real one
        Rows that the generator has not seen, from the same source as the real ones; they show what it remembers.
    columns : None or dict
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.
    random_state : int

    Returns
    -------
    Quality
        ``columns`` (per column its ``kind`` in the words of :func:`describe_columns`, the distance of its known cells,
        ``gaps``, the share of missing values less that of the real table, and ``spikes``, the distance of the shares of
        values that the real column repeats often),
        ``correlation_gap`` (largest difference between two correlations; of normal scores in mixed tables), ``auc`` and
        ``auc_range`` (of a forest, or of gradient boosting for mixed tables, that separates real from generated rows;
        .5 is chance), ``copies`` (share of generated rows that equal a real row), ``repeats`` (share of real rows that
        equal another one), ``closer`` (probability that a generated row lies closer to a real row than a real row to
        another one, ties counting half; .5 is usual), ``privacy`` (see the notes), ``left_out`` (names of columns that
        are not compared) and ``sentences``, the first of which names copies if there are more than repeats.

    Notes
    -----
    ``privacy`` has ``near_copies`` and ``near_repeats`` (shares of generated and of real rows that nearly equal a real
    row), ``combinations`` (those of two or three categories that one real row has), ``combinations_found`` (of these,
    among the generated rows), ``combinations_expected`` (if columns were independent) and ``sentences``. With
    ``held_out``: ``closer_to_training`` (share of generated rows nearer to a training than to a held-out row; .5 is no
    memory), ``distance_ratio`` (of their median distances), ``membership_auc`` and ``membership_range`` (telling
    training from held-out rows by their distance to the nearest generated row; .5 is no memory) and
    ``combinations_held_out``. Good numbers do not promise privacy.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from scorefield import compare_tables
    >>> rng = np.random.default_rng(0)
    >>> real, other = (pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"]) for _ in range(2))
    >>> found = compare_tables(real, other)
    >>> bool(found.auc < 0.65), found.copies
    (True, 0.0)
    """
    compared, left_out = compared_columns(real, synthetic, columns, held_out)
    cells = [np.column_stack(part) for part in zip(*(column.parts for column in compared), strict=True)]
    if min(map(len, cells)) < 20:
        sizes = " and ".join(str(len(part)) for part in cells)
        raise ValueError(f"Expected at least 20 rows in each table, got {sizes}; add rows.")
    rng = np.random.default_rng(random_state)
    categories = np.array([column.is_category for column in compared])
    mixed = categories.any() or np.isnan(np.concatenate(cells)).any()
    if mixed:
        places, rows = (
            _places(compared),
            [np.where(categories, np.minimum(part, MAX_LEVELS - 1), part) for part in cells],
        )
    else:
        places = rows = [part / safe_deviation(cells[0]) for part in cells]
    copies, repeats = _copies_and_repeats(*cells[:2])
    closer = _share_closer(*places[:2], rng)
    distances = [column_distance(column) for column in compared]
    gap = _correlation_gap([part[:, ~categories] for part in rows[:2]], mixed)
    a, b = (part[rng.permutation(len(part))[:MAX_COMPARED]] for part in rows[:2])
    auc, auc_range = _two_sample_auc(
        np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)]), random_state, categories if mixed else None
    )
    privacy = measure_privacy(places, [part[:, categories] for part in cells], rng)
    n, m = map(len, cells[:2])
    noise = 1.36 * np.sqrt(1 / n + 1 / m)  # exceeded by 5 % of equal distributions (Kolmogorov)
    found = Quality(distances, gap, auc, auc_range, copies, repeats, closer, [], left_out, privacy)
    pooled = (copies * m + repeats * n) / (m + n)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    copied = copies > repeats + 3 * error  # rows of discrete laws repeat without being copied
    judge = "Gradient boosting" if mixed else "A forest"
    return dataclasses.replace(found, sentences=_sentences(found, max(DRIFT, noise), copied, judge))


def _varies(rows):
    """True per column with two known values that differ."""
    known = ~np.isnan(rows)
    return np.where(known, rows, -np.inf).max(axis=0) > np.where(known, rows, np.inf).min(axis=0)


def _correlation_gap(parts, mixed):
    """Largest difference between two correlations of numbers, None where fewer than two vary; of ranks if mixed."""
    if mixed:
        scores = NormalScores.fit(parts[0])
        parts = [scores.transform(part) for part in parts]
    varying = np.all([_varies(part) for part in parts], axis=0)
    if varying.sum() < 2:
        return None
    first, second = (correlations(part[:, varying]) for part in parts)
    return float(np.abs(first - second).max())


def _sentences(found, drift, copied, judge):
    worst = max(found.columns, key=lambda column: column["distance"])
    off = sum(column["distance"] > drift for column in found.columns)
    said = []
    if copied:
        said.append(
            f"Copies: {found.copies:.1%} of the generated rows equal a real row, where {found.repeats:.1%} of the real "
            "rows equal another one; copied rows agree with the real ones anyway, so do not count that as quality."
        )
    said.append(
        f"{off} of {len(found.columns)} columns differ by more than {drift:.2f} in distribution; the largest "
        f"distance is {worst['distance']:.2f}, of {worst['column']!r}."
    )
    widest = max(found.columns, key=lambda column: abs(column["gaps"]))
    if widest["gaps"]:
        said.append(
            f"The largest difference in the share of missing values is {widest['gaps']:+.2f}, of {widest['column']!r}."
        )
    if found.left_out:
        names = ", ".join(map(repr, found.left_out))
        said.append(f"Left out, as identifiers or free text: {names}.")
    if found.correlation_gap is not None:
        said.append(f"The largest difference between two correlations is {found.correlation_gap:.2f}.")
    low, high = found.auc_range
    if copied or high < 0.5:
        told = "cannot judge generated rows that are copies of real ones, or nearly so"
    elif low <= 0.5:
        told = "cannot tell generated from real rows"
    else:
        told = "tells some generated from real rows" if found.auc < 0.75 else "tells generated from real rows easily"
    said.append(f"{judge} {told}: AUC {found.auc:.2f} [{low:.2f}, {high:.2f}], where .5 is chance.")
    near = "suspiciously close" if found.closer > 0.7 else "not suspiciously close"
    said.append(
        f"{found.copies:.1%} of the generated rows are copies of real ones; generated rows lie {near} to real ones "
        f"(nearer than real rows to each other with probability {found.closer:.2f}, where .5 is usual)."
    )
    return said
