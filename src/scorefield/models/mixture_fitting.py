"""Mixtures of Gaussians fitted by maximum likelihood: with few rows in groups they are hard to beat."""

import warnings

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from scorefield.data.scaling import safe_deviation
from scorefield.fields.mixtures import mixture
from scorefield.fields.moments import effective_size

MAX_PARTS = 6
STARTS = 3  # of EM, for each number of parts
MAX_FITTED = 4096  # rows that EM sees: with more a network is at least as good
CLIMBS, LEAST_GAIN = 200, 1e-5  # iterations of EM with weights, and nats per row below which it ends
LEAST_VARIANCE = 0.02  # that is added to a part in every direction, in units of the columns' own


def most_parts(n, d):
    """Parts that n rows of d columns allow: at least 1.5 (d + 1) rows for each."""
    return int(min(MAX_PARTS, n / (1.5 * (d + 1))))


def fit_mixture(rng, rows, *, noise=0.0, weights=None):
    """A mixture by maximum likelihood (EM), with the number of parts that has the least BIC.

    Covariances of parts with few rows lean on the pooled one, which counts as (d + 1)^2 / n_k rows beside the n_k of
    the part; that one leans on equal variances, which count for three times as much. The variance of the noise is added
    to all; it is all that a constant column has. ``weights`` are those of rows.
    """
    table = np.asarray(rows, np.float64)
    if len(table) > MAX_FITTED:
        chosen = rng.permutation(len(table))[:MAX_FITTED]
        table, weights = table[chosen], None if weights is None else weights[chosen]
    varying, scale = np.ptp(table, axis=0) > 0, safe_deviation(table)
    seed = int(rng.integers(1 << 31))
    means, covariances, shares = _fit_varying(seed, (table / scale)[:, varying], weights)
    full = np.tile(noise**2 * np.eye(table.shape[1]), (len(shares), 1, 1))
    full[np.ix_(range(len(shares)), *[np.flatnonzero(varying)] * 2)] += covariances * np.outer(
        scale[varying], scale[varying]
    )
    centres = np.tile(table.mean(axis=0), (len(shares), 1))
    centres[:, varying] = means * scale[varying]
    return mixture(shares, centres, full)


def _fit_varying(seed, table, weights):
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
    if weights is None:
        best = min(fits, key=lambda fit: fit.bic(table))
        means, covariances, shares = best.means_, best.covariances_, best.weights_
    else:
        n = effective_size(table, weights)
        climbed = [_climb(fit, table, weights / weights.sum()) for fit in fits]
        penalties = [0.5 * np.log(n) * (k * (1 + d + d * (d + 1) / 2) - 1) for k in range(1, len(fits) + 1)]
        best = int(np.argmax([n * own[0] - penalty for own, penalty in zip(climbed, penalties, strict=True)]))
        _, means, covariances, shares = climbed[best]
    pooled = np.einsum("k,kij->ij", shares, covariances)
    pooled = _leaning(pooled, n, np.trace(pooled) / d * np.eye(d), 3.0)
    covariances = _leaning(covariances, (n * shares)[:, None, None], pooled)
    return means, covariances, shares


def _climb(start, table, row_shares):
    """EM for rows of unequal shares, which scikit-learn's does not take, from the parameters of a fit.

    Returns the mean log likelihood, means, covariances and weights.
    """
    means, covariances, shares = start.means_, start.covariances_, start.weights_
    last, value = -np.inf, -np.finfo(float).max
    for _ in range(CLIMBS):
        logs = [multivariate_normal(*own).logpdf(table) for own in zip(means, covariances, strict=True)]
        logs = np.log(shares)[:, None] + np.atleast_2d(logs)
        total = logsumexp(logs, axis=0)
        last, value = value, row_shares @ total
        if value - last < LEAST_GAIN:
            break
        parts = row_shares * np.exp(logs - total)  # (k, n)
        shares = np.maximum(parts.sum(axis=1), np.finfo(float).tiny)
        means = parts @ table / shares[:, None]
        gaps = table - means[:, None]
        covariances = np.einsum("kn,kni,knj->kij", parts, gaps, gaps) / shares[:, None, None]
        covariances = covariances + LEAST_VARIANCE * np.eye(table.shape[1])
    return value, means, covariances, shares


def _leaning(covariance, n, prior, weight=1.0):
    """The mean of a covariance of n rows and of one that counts as weight (d + 1)^2 / n rows."""
    prior_rows = weight * (len(prior) + 1) ** 2 / n
    return (n * covariance + prior_rows * prior) / (n + prior_rows)
