"""Statistics of drift: permutation tests of many means together, and class shares by EM."""

import numpy as np

PERMUTATIONS = 999
BOOTSTRAP = 200
EM_STEPS = 200
CLOSE = 1e-6  # change of class shares at which EM has arrived


def max_t_test(rng, reference, new):
    """Absolute t statistics of the means of all columns, and p-values that hold for all columns together.

    The p-value of a column is the share of permutations whose greatest statistic of any column reaches its own
    (Westfall & Young 1993). Missing cells (NaN) take the mean of the known ones.
    """
    values = np.concatenate([reference, new])
    known = ~np.isnan(values)
    mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, values - mean, 0.0)
    scale = centred.std(axis=0)
    centred = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 1e-12)
    n, m = len(reference), len(new)
    observed = np.abs(centred[n:].mean(axis=0)) * np.sqrt(m * (n + m) / n)
    order = np.argsort(rng.uniform(size=(PERMUTATIONS, n + m)), axis=1)[:, :m]
    chosen = np.zeros((PERMUTATIONS, n + m), np.float32)
    np.put_along_axis(chosen, order, 1.0, axis=1)
    greatest = (np.abs(chosen @ centred) / m * np.sqrt(m * (n + m) / n)).max(axis=1, initial=0.0)
    return observed, (1 + (greatest[:, None] >= observed - 1e-9).sum(axis=0)) / (1 + PERMUTATIONS)


def em_shares(log_posteriors, frequencies):
    """Class shares under which the rows are most likely, from log posteriors for other shares (Saerens et al. 2002)."""
    posteriors = np.exp(log_posteriors)
    shares = np.asarray(frequencies, float)
    for _ in range(EM_STEPS):
        weighted = posteriors * (shares / frequencies)
        new = (weighted / weighted.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(new - shares).max() < CLOSE:
            return new
        shares = new
    return shares
