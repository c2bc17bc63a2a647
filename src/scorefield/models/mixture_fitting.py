"""Mixtures of Gaussians fitted by maximum likelihood: with few rows in groups they are hard to beat."""

import warnings

import numpy as np

from scorefield.data.scaling import safe_deviation
from scorefield.fields.mixtures import mixture

MAX_PARTS = 6
STARTS = 3  # of EM, for each number of parts
MAX_ROWS = 4096  # that EM sees: with more a network is at least as good
LEAST_VARIANCE = 0.02  # that is added to a part in every direction, in units of the columns' own


def most_parts(n, d):
    """Parts that n rows of d columns allow: at least 1.5 (d + 1) rows for each."""
    return int(min(MAX_PARTS, n / (1.5 * (d + 1))))


def fit_mixture(rng, rows, *, noise=0.0):
    """A mixture by maximum likelihood (EM), with the number of parts that has the least BIC.

    Covariances of parts with few rows lean on the pooled one, which counts as (d + 1)^2 / n_k rows beside the n_k of
    the part; that one leans on equal variances, which count for three times as much. The variance of the noise is added
    to all; it is all that a constant column has.
    """
    table = np.asarray(rows, np.float64)
    if len(table) > MAX_ROWS:
        table = table[rng.permutation(len(table))[:MAX_ROWS]]
    varying, scale = np.ptp(table, axis=0) > 0, safe_deviation(table)
    means, covariances, weights = _fit_varying(int(rng.integers(1 << 31)), (table / scale)[:, varying])
    full = np.tile(noise**2 * np.eye(table.shape[1]), (len(weights), 1, 1))
    full[np.ix_(range(len(weights)), *[np.flatnonzero(varying)] * 2)] += covariances * np.outer(
        scale[varying], scale[varying]
    )
    centres = np.tile(table.mean(axis=0), (len(weights), 1))
    centres[:, varying] = means * scale[varying]
    return mixture(weights, centres, full)


def _fit_varying(seed, table):
    """Means, covariances and weights of the parts of a table whose columns have unit variance."""
    n, d = table.shape
    if d == 0:
        return np.zeros((1, 0)), np.zeros((1, 0, 0)), np.ones(1)
    from sklearn.mixture import GaussianMixture as ByEM  # takes a quarter of a second, which not every import needs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of slow convergence, which BIC and held-out rows judge
        fits = [
            ByEM(k, reg_covar=LEAST_VARIANCE, n_init=STARTS, random_state=seed).fit(table)
            for k in range(1, max(most_parts(n, d), 1) + 1)
        ]
    best = min(fits, key=lambda fit: fit.bic(table))
    pooled = np.einsum("k,kij->ij", best.weights_, best.covariances_)
    pooled = _leaning(pooled, n, np.trace(pooled) / d * np.eye(d), 3.0)
    covariances = _leaning(best.covariances_, (n * best.weights_)[:, None, None], pooled)
    return best.means_, covariances, best.weights_


def _leaning(covariance, n, prior, weight=1.0):
    """The mean of a covariance of n rows and of one that counts as weight (d + 1)^2 / n rows."""
    prior_rows = weight * (len(prior) + 1) ** 2 / n
    return (n * covariance + prior_rows * prior) / (n + prior_rows)
