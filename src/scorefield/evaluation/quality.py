"""Is generated data credible? Distances of columns, correlations, a two-sample test and a look for copied rows."""

import dataclasses

import numpy as np
from scipy.stats import ks_2samp
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import OrdinalEncoder

MAX_ROWS = 5000  # of either table in the two-sample test, and rows whose neighbours are looked for
DRIFT = 0.1  # a distance between distributions that a reader should look at


@dataclasses.dataclass(frozen=True)
class Quality:
    """What `compare_tables` found: a row per column, numbers of the whole tables, and a sentence for each."""

    columns: list
    correlation_gap: float | None
    auc: float
    auc_range: tuple
    copies: float
    closer: float
    expected: float
    sentences: list


def _encoded(real, synthetic):
    """Both tables as numbers: categories by their order, other columns in units of the real table's spread."""
    import pandas as pd

    text = [name for name in real.columns if not pd.api.types.is_numeric_dtype(real[name].dtype)]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(real[text].astype(str))
    parts = []
    for table in (real, synthetic):
        numbers = table.drop(columns=text).to_numpy(dtype=float)
        parts.append(np.hstack([numbers, encoder.transform(table[text].astype(str))]))
    spread = parts[0].std(axis=0)
    return [part / np.where(spread > 0, spread, 1.0) for part in parts], text


def _column_distance(name, a, b, is_text):
    """Largest difference of the distribution functions, or half the difference of the category shares."""
    if not is_text:
        return {"column": name, "kind": "number", "distance": float(ks_2samp(a, b, method="asymp").statistic)}
    shares = [part.astype(str).value_counts(normalize=True) for part in (a, b)]
    gap = shares[0].subtract(shares[1], fill_value=0).abs().sum() / 2
    return {"column": name, "kind": "category", "distance": float(gap)}


def _two_sample_auc(rows, labels, seed):
    """AUC of a forest that tells real from generated, with a 95 % range by Hanley and McNeil's standard error."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=seed, n_jobs=-1)
    auc = roc_auc_score(labels, cross_val_predict(forest, rows, labels, cv=folds, method="predict_proba")[:, 1])
    n1, n0 = labels.sum(), (1 - labels).sum()
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    error = np.sqrt((auc * (1 - auc) + (n1 - 1) * (q1 - auc**2) + (n0 - 1) * (q2 - auc**2)) / (n0 * n1))
    return float(auc), (float(max(0, auc - 1.96 * error)), float(min(1, auc + 1.96 * error)))


def _share_of_copies(real, synthetic):
    """Share of generated rows that are rows of the real table, to the last digit."""
    import pandas as pd

    kinds = {name: float if pd.api.types.is_numeric_dtype(real[name].dtype) else str for name in real.columns}
    hashes = [pd.util.hash_pandas_object(table.astype(kinds), index=False) for table in (real, synthetic)]
    return float(hashes[1].isin(set(hashes[0])).mean())


def _share_closer(a, b, rng):
    """Shares of generated rows, and of real ones, that are nearer to another real row than the median real row is."""
    neighbours = NearestNeighbors(n_neighbors=2).fit(a)
    some = rng.permutation(len(a))[:MAX_ROWS]
    usual = neighbours.kneighbors(a[some])[0][:, 1]  # the nearest is the row itself
    found = neighbours.kneighbors(b[rng.permutation(len(b))[:MAX_ROWS]], n_neighbors=1)[0][:, 0]
    return tuple(float(np.mean(part < np.median(usual))) for part in (found, usual))


def compare_tables(real, synthetic, *, random_state=0):
    """Compare a generated table with a real one.

    Parameters
    ----------
    real, synthetic : DataFrame
        Tables of the same columns.
    random_state : int

    Returns
    -------
    Quality
        ``columns`` (a distance each), ``correlation_gap`` (largest difference of two correlations), ``auc`` and
        ``auc_range`` (a forest that tells real from generated; .5 is chance), ``copies`` (share of generated rows that
        are real rows), ``closer`` (share of generated rows that lie nearer to a real row than the median
        real row does to another) with ``expected`` (the same share of real rows, about .5), and ``sentences``.

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
            f"Expected tables of the same columns in the same order, got a difference: {odd or 'the order'}."
        )
    if min(len(real), len(synthetic)) < 20:
        raise ValueError(f"Expected at least 20 rows in each table, got {len(real)} and {len(synthetic)}.")
    for name, table in (("real", real), ("generated", synthetic)):
        if table.isna().to_numpy().any():
            raise ValueError(f"Expected no missing values, got some in the {name} table; drop or fill them.")
    rng = np.random.default_rng(random_state)
    (all_real, all_synthetic), text = _encoded(real, synthetic)
    copies = _share_of_copies(real, synthetic)
    closer, expected = _share_closer(all_real, all_synthetic, rng)
    columns = [_column_distance(name, real[name], synthetic[name], name in text) for name in real.columns]
    varying = (np.ptp(all_real, axis=0) > 0) & (np.ptp(all_synthetic, axis=0) > 0)
    gap = None
    if varying.sum() > 1:
        correlations = [np.corrcoef(part[:, varying].T) for part in (all_real, all_synthetic)]
        gap = float(np.abs(correlations[0] - correlations[1]).max())
    a, b = (part[rng.permutation(len(part))[:MAX_ROWS]] for part in (all_real, all_synthetic))
    auc, auc_range = _two_sample_auc(np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)]), random_state)
    noise = 1.36 * np.sqrt(1 / len(real) + 1 / len(synthetic))  # 95 % of equal distributions stay below, Kolmogorov
    found = Quality(columns, gap, auc, auc_range, copies, closer, expected, [])
    return dataclasses.replace(found, sentences=_sentences(found, max(DRIFT, noise)))


def _sentences(found, drift):
    worst = max(found.columns, key=lambda column: column["distance"])
    off = sum(column["distance"] > drift for column in found.columns)
    said = [
        f"{off} of {len(found.columns)} columns differ by more than {drift:.2f} in distribution; the largest is "
        f"{worst['column']!r} with {worst['distance']:.2f}."
    ]
    if found.correlation_gap is not None:
        said.append(f"The largest difference between two correlations is {found.correlation_gap:.2f}.")
    low, high = found.auc_range
    if low <= 0.5:
        told = "cannot tell generated from real rows"
    else:
        told = "tells some generated from real rows" if found.auc < 0.75 else "tells generated from real rows easily"
    said.append(f"A forest {told}: AUC {found.auc:.2f} [{low:.2f}, {high:.2f}], where .5 is chance.")
    near = "suspiciously close" if found.closer > found.expected + 0.2 else "not suspiciously close"
    said.append(
        f"{found.copies:.1%} of the generated rows are copies of real ones; generated rows lie {near} to real ones "
        f"({found.closer:.0%} are nearer to one than usual, where real rows themselves have {found.expected:.0%})."
    )
    return said
