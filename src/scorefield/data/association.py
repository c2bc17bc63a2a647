"""How strongly single columns go with the label, and how much a network should see of each at the start."""

import numpy as np
from scipy.stats import chi2

BINS = 8
ENOUGH_ROWS = 4096  # enough to tell columns apart
LEAST_GAIN = 0.03  # of a column that tells nothing by itself; with others it may


def column_gains(columns, labels, weights=None):
    """Factors (d,) between LEAST_GAIN and 1 for the columns of an array (n, d), by what each tells of the label alone.

    Among d columns without any relation to the label the strongest association is about the largest of d chi-squared
    numbers, c; a column with association r gets the factor sqrt(1 - c / r). Few rows with many columns have their few
    strong columns singled out, as trees do; with many rows next to all columns that matter keep their size.
    """
    d = columns.shape[1]
    kept = some_of_each(labels)
    weights = np.ones(len(kept)) if weights is None else weights[kept]
    weights = weights * (len(kept) / max(weights.sum(), 1e-9))
    shares = np.eye(labels.max() + 1)[labels[kept]] * weights[:, None]
    shares = shares[:, shares.sum(axis=0) > 0]
    degrees = shares.shape[1] - 1
    if degrees < 1:
        return np.ones(d)
    found = np.maximum(_of_means(columns[kept], shares), [_of_bins(column, shares) for column in columns[kept].T])
    by_chance = chi2.isf(1 / d, degrees) / degrees
    return np.sqrt(np.clip(1 - by_chance / np.maximum(found, 1e-9), LEAST_GAIN**2, 1.0))


def some_of_each(labels, most=ENOUGH_ROWS):
    """Indices of all rows, or of about `most` of a larger table; small classes are kept whole."""
    if len(labels) <= most:
        return np.arange(len(labels))
    rng, classes = np.random.default_rng(0), np.unique(labels)
    each = [np.flatnonzero(labels == k) for k in classes]
    return np.concatenate([own if len(own) * len(classes) <= most
                           else rng.choice(own, max(most // len(classes), 1), replace=False)
                           for own in each])  # fmt: skip


def _of_means(columns, shares):
    """F statistics of the class means, from rows' weights in each class (n, classes); 0 for constant columns."""
    sizes = shares.sum(axis=0)
    centred = columns - shares.sum(axis=1) @ columns / sizes.sum()
    means = shares.T @ centred / sizes[:, None]
    between = sizes @ means**2
    within = shares.sum(axis=1) @ centred**2 - between
    spread = np.maximum(within, 1e-9 * between) / max(len(columns) - len(sizes), 1)
    return np.divide(between / (len(sizes) - 1), spread, out=np.zeros(len(between)), where=spread > 0)


def _of_bins(column, shares):
    """Pearson's chi-squared, per degree of freedom, of the labels in bins between quantiles of the column."""
    edges = np.unique(np.quantile(column, np.arange(1, BINS) / BINS))
    bins = np.searchsorted(edges, column)
    counts = np.stack([np.bincount(bins, own, len(edges) + 1) for own in shares.T], axis=1)
    counts = counts[counts.sum(axis=1) > 0]
    if len(counts) < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return np.sum((counts - expected) ** 2 / expected) / (len(counts) - 1) / (shares.shape[1] - 1)
