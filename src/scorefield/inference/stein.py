"""Kernel Stein discrepancy: a test of rows against a score field, which needs no normalising constant.

Liu, Lee & Jordan (2016) and Chwialkowski, Strathmann & Gretton (2016), with the inverse multi-quadric kernel of Gorham
& Mackey (2017). Categories enter through a kernel of their own, and numbers that are not known are left out.
"""

from typing import NamedTuple

import numpy as np

N_BOOTSTRAP = 2000  # p-values are multiples of 1 / 2001


class SteinTest(NamedTuple):
    """The squared discrepancy (a U-statistic, about zero for a true field) and its p-value."""

    statistic: float
    p_value: float


def overlap_kernel(codes: np.ndarray) -> np.ndarray:
    """exp(-(number of differing codes) / (its median between rows)), shape (n, n), for codes (n, q)."""
    differing = sum((np.not_equal.outer(column, column) for column in codes.T), np.zeros((len(codes),) * 2))
    return np.exp(-differing / max(1.0, float(np.median(differing))))


def stein_kernel(
    numbers: np.ndarray, scores: np.ndarray, *, known: np.ndarray | None = None, codes: np.ndarray | None = None
) -> np.ndarray:
    """Stein kernel (n, n) of rows of numbers (n, p) and of the field at them.

    ``known`` (n, p) is True where a row has a number and ``codes`` (n, q) are categories, given which the numbers have
    the field ``scores``. The Stein operator acts on the known numbers. Its base kernel is (1 + |x - y|^2 / h^2)^(-1/2)
    with zero for unknown numbers and the median distance for h, times `overlap_kernel`.
    """
    mask = np.ones(numbers.shape) if known is None else known.astype(float)
    x, s = np.where(mask > 0, numbers, 0.0).astype(np.float64), np.where(mask > 0, scores, 0.0).astype(np.float64)
    squares = np.sum(x**2, axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * x @ x.T, 0.0)
    scale = float(np.median(distances[~np.eye(len(x), dtype=bool)])) or 1.0
    base = (1 + distances / scale) ** -0.5
    # Sums over the numbers that both rows have; they are all of them where nothing is unknown.
    both = mask @ mask.T
    shared_distances = (x**2) @ mask.T + mask @ (x**2).T - 2 * x @ x.T
    slopes = (s * x) @ mask.T - s @ x.T  # s(x)' (x - y)
    stein = (s @ s.T) * base + (slopes + slopes.T + both) / scale * base**3 - 3 * shared_distances / scale**2 * base**5
    return stein if codes is None or codes.shape[1] == 0 else stein * overlap_kernel(codes)


def stein_test(
    rng: np.random.Generator, kernel: np.ndarray, *, n_learned: float = np.inf, n_bootstrap: int = N_BOOTSTRAP
) -> SteinTest:
    """Test that the mean of a Stein kernel between independent rows is zero, by the wild bootstrap.

    A field that was learned from `n_learned` rows is off by their sampling error. The mean feature of n rows then has
    1 + n / n_learned times its variance, at most, and so have the draws that the squared mean is compared with.
    """
    signs = rng.choice([-1.0, 1.0], size=(n_bootstrap, len(kernel)))
    drawn = np.einsum("bi,bi->b", signs @ kernel, signs) * (1 + len(kernel) / n_learned)
    p_value = (1 + int(np.sum(drawn >= kernel.sum()))) / (1 + n_bootstrap)
    between = float(kernel.sum() - np.trace(kernel))
    return SteinTest(between / (len(kernel) * (len(kernel) - 1)), p_value)
