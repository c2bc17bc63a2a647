"""Quality of generated rows: distances of columns, correlations, a two-sample test and copied rows."""

import dataclasses

import numpy as np
from scipy.stats import ks_2samp, rankdata
from scipy.stats import t as student
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import OrdinalEncoder

from scorefield.data.scaling import safe_deviation

MAX_ROWS = 5000  # rows per table in the two-sample test and the search for neighbours
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


def _encoded(real, synthetic):
    """Both tables as numbers in units of the real table's deviations; categories become their codes."""
    import pandas as pd

    text = [name for name in real.columns if not pd.api.types.is_numeric_dtype(real[name].dtype)]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(real[text].astype(str))
    parts = []
    for table in (real, synthetic):
        numbers = table.drop(columns=text).to_numpy(dtype=float)
        parts.append(np.hstack([numbers, encoder.transform(table[text].astype(str))]))
    scale = safe_deviation(parts[0])
    return [part / scale for part in parts], text


def _column_distance(name, a, b, is_text):
    """Kolmogorov-Smirnov distance of numbers, or total variation distance of categories."""
    if not is_text:
        return {"column": name, "kind": "number", "distance": float(ks_2samp(a, b, method="asymp").statistic)}
    shares = [part.astype(str).value_counts(normalize=True) for part in (a, b)]
    gap = shares[0].subtract(shares[1], fill_value=0).abs().sum() / 2
    return {"column": name, "kind": "category", "distance": float(gap)}


def auc_interval(values, labels):
    """AUC with ties counted half, and DeLong's 95 % interval, for values of a rule that did not see these rows."""
    ones, zeros = values[labels == 1], values[labels == 0]
    ranks = rankdata(np.concatenate([ones, zeros]))
    above = (ranks[: len(ones)] - rankdata(ones)) / len(zeros)  # share of zeros below each of the ones
    below = (ranks[len(ones) :] - rankdata(zeros)) / len(ones)
    auc = float(above.mean())
    error = np.sqrt(above.var(ddof=1) / len(ones) + below.var(ddof=1) / len(zeros))
    reach = student.ppf(0.975, min(len(ones), len(zeros)) - 1) * error
    return auc, (float(max(0, auc - reach)), float(min(1, auc + reach)))


def _two_sample_auc(rows, labels, seed):
    """AUC of a forest that separates real from generated rows, trained on one half and measured on the other.

    Cross-validation would use more rows, but its predictions depend on each other: at 100 rows a table the AUC of equal
    laws has a standard deviation of .056, where the formulas for independent predictions say .041.
    """
    train, test = train_test_split(np.arange(len(rows)), test_size=0.5, stratify=labels, random_state=seed)
    forest = RandomForestClassifier(N_TREES, min_samples_leaf=5, random_state=seed, n_jobs=-1).fit(
        rows[train], labels[train]
    )
    return auc_interval(forest.predict_proba(rows[test])[:, 1], labels[test])


def _copies_and_repeats(real, synthetic):
    """Share of generated rows that equal a real row, and share of real rows that equal another real row."""
    import pandas as pd

    kinds = {name: float if pd.api.types.is_numeric_dtype(real[name].dtype) else str for name in real.columns}
    hashes = [pd.util.hash_pandas_object(table.astype(kinds), index=False) for table in (real, synthetic)]
    return float(hashes[1].isin(set(hashes[0])).mean()), float(hashes[0].duplicated(keep=False).mean())


def _share_closer(a, b, rng):
    """Probability that a generated row lies closer to a real row than a real row to another one; ties count half."""
    neighbours = NearestNeighbors(n_neighbors=2).fit(a)
    some = rng.permutation(len(a))[:MAX_ROWS]
    usual = neighbours.kneighbors(a[some])[0][:, 1]  # the nearest neighbour is the row itself
    found = neighbours.kneighbors(b[rng.permutation(len(b))[:MAX_ROWS]], n_neighbors=1)[0][:, 0]
    return auc_interval(-np.concatenate([found, usual]), np.repeat([1, 0], [len(found), len(usual)]))[0]


def compare_tables(real, synthetic, *, random_state=0):
    """Compare a generated table with a real one.

    Parameters
    ----------
    real, synthetic : DataFrame
        Tables with the same columns in the same order.
    random_state : int

    Returns
    -------
    Quality
        ``columns`` (one distance per column), ``correlation_gap`` (largest difference between two correlations),
        ``auc`` and ``auc_range`` (of a forest that separates real from generated rows; .5 is chance), ``copies`` (share
        of generated rows that equal a real row), ``repeats`` (share of real rows that equal another one), ``closer``
        (probability that a generated row lies closer to a real row than a real row to another one, ties counting half;
        .5 is usual) and ``sentences``, the first of which names copies if there are more than repeats.

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
    if list(real.columns) != list(synthetic.columns):
        odd = sorted(set(map(str, real.columns)) ^ set(map(str, synthetic.columns)))
        raise ValueError(
            f"Expected the same columns in the same order, got a difference in {odd or 'the order'}; select columns."
        )
    if min(len(real), len(synthetic)) < 20:
        raise ValueError(f"Expected at least 20 rows in each table, got {len(real)} and {len(synthetic)}; add rows.")
    for name, table in (("real", real), ("generated", synthetic)):
        if table.isna().to_numpy().any():
            raise ValueError(f"Expected no missing values, got some in the {name} table; drop or fill them.")
    rng = np.random.default_rng(random_state)
    (all_real, all_synthetic), text = _encoded(real, synthetic)
    copies, repeats = _copies_and_repeats(real, synthetic)
    closer = _share_closer(all_real, all_synthetic, rng)
    columns = [_column_distance(name, real[name], synthetic[name], name in text) for name in real.columns]
    varying = (np.ptp(all_real, axis=0) > 0) & (np.ptp(all_synthetic, axis=0) > 0)
    gap = None
    if varying.sum() > 1:
        correlations = [np.corrcoef(part[:, varying].T) for part in (all_real, all_synthetic)]
        gap = float(np.abs(correlations[0] - correlations[1]).max())
    a, b = (part[rng.permutation(len(part))[:MAX_ROWS]] for part in (all_real, all_synthetic))
    auc, auc_range = _two_sample_auc(np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)]), random_state)
    noise = 1.36 * np.sqrt(1 / len(real) + 1 / len(synthetic))  # exceeded by 5 % of equal distributions (Kolmogorov)
    found = Quality(columns, gap, auc, auc_range, copies, repeats, closer, [])
    pooled = (copies * len(synthetic) + repeats * len(real)) / (len(synthetic) + len(real))
    error = np.sqrt(pooled * (1 - pooled) * (1 / len(real) + 1 / len(synthetic)))
    copied = copies > repeats + 3 * error  # rows of discrete laws repeat without being copied
    return dataclasses.replace(found, sentences=_sentences(found, max(DRIFT, noise), copied))


def _sentences(found, drift, copied):
    worst = max(found.columns, key=lambda column: column["distance"])
    off = sum(column["distance"] > drift for column in found.columns)
    said = []
    if copied:
        said.append(
            f"Copies: {found.copies:.1%} of the generated rows equal a real row, where {found.repeats:.1%} of the real "
            "rows equal another one; agreement in what follows is no merit of copied rows."
        )
    said.append(
        f"{off} of {len(found.columns)} columns differ by more than {drift:.2f} in distribution; the largest "
        f"distance is {worst['distance']:.2f}, of {worst['column']!r}."
    )
    if found.correlation_gap is not None:
        said.append(f"The largest difference between two correlations is {found.correlation_gap:.2f}.")
    low, high = found.auc_range
    if copied or high < 0.5:
        told = "cannot judge generated rows that are copies of real ones, or nearly so"
    elif low <= 0.5:
        told = "cannot tell generated from real rows"
    else:
        told = "tells some generated from real rows" if found.auc < 0.75 else "tells generated from real rows easily"
    said.append(f"A forest {told}: AUC {found.auc:.2f} [{low:.2f}, {high:.2f}], where .5 is chance.")
    near = "suspiciously close" if found.closer > 0.7 else "not suspiciously close"
    said.append(
        f"{found.copies:.1%} of the generated rows are copies of real ones; generated rows lie {near} to real ones "
        f"(nearer than real rows to each other with probability {found.closer:.2f}, where .5 is usual)."
    )
    return said
