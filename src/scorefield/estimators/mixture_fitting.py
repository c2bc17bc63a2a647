"""Mixtures of Gaussians fitted by maximum likelihood, for rows too few for a network."""

import warnings

import numpy as np

from scorefield.fields.mixtures import mixture

MAX_PARTS = 6
STARTS = 3  # of EM, for each number of parts
MAX_ROWS = 4096  # that EM sees: with more a network is at least as good
LEAST_VARIANCE = 0.02  # of a part in any direction, in units of the rows' own


def most_parts(n, d):
    """Parts that n rows of d columns allow: at least 1.5 (d + 1) rows for each."""
    return int(min(MAX_PARTS, n / (1.5 * (d + 1))))


def fit_mixture(rng, rows, *, noise=0.0):
    """A mixture by maximum likelihood (EM), with the number of parts that has the least BIC.

    Covariances of parts with few rows lean on the pooled one, which counts as (d + 1)^2 / n_k rows beside the n_k of
    the part; it leans on equal variances in the same way. The variance of the noise is added to all.
    """
    from sklearn.mixture import GaussianMixture as ByEM  # takes a quarter of a second, which not every import needs

    table = np.asarray(rows, np.float64)
    if len(table) > MAX_ROWS:
        table = table[rng.permutation(len(table))[:MAX_ROWS]]
    n, d = table.shape
    floor = LEAST_VARIANCE * float(table.var(axis=0).mean()) or 1.0
    seed = int(rng.integers(1 << 31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of slow convergence, which BIC and held-out rows judge
        fits = [
            ByEM(k, reg_covar=floor, n_init=STARTS, random_state=seed).fit(table)
            for k in range(1, max(most_parts(n, d), 1) + 1)
        ]
    best = min(fits, key=lambda fit: fit.bic(table))
    pooled = np.einsum("k,kij->ij", best.weights_, best.covariances_)
    pooled = _leaning(pooled, n, np.trace(pooled) / d * np.eye(d), 3.0)
    covariances = _leaning(best.covariances_, (n * best.weights_)[:, None, None], pooled)
    return mixture(best.weights_, best.means_, covariances + noise**2 * np.eye(d))


def _leaning(covariance, n, prior, weight=1.0):
    """The mean of a covariance of n rows and of one that counts as weight (d + 1)^2 / n rows."""
    prior_rows = weight * (len(prior) + 1) ** 2 / n
    return (n * covariance + prior_rows * prior) / (n + prior_rows)
