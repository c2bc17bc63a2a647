"""Contributions of single inputs to the value of a function, by line integrals of its gradient.

The line integral that recovers log densities from a score field (Eq:reconstruct_pdf_from_scores) recovers log odds from
the field of a posterior, and each coordinate's part of it says what that coordinate contributes (Sundararajan, Taly &
Yan 2017).
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import pytree
from scorefield.inference.line_integrals import quadrature

NODES = 8  # on each segment of a line; segments that do not sum up are halved
HALVINGS = 8  # at most: steps of the function that are steeper than a segment in 256 stay unresolved
TOLERANCE = (
    1e-2  # nats by which contributions may miss the difference that they explain: they are shown with two digits
)
BLOCK_LINES = 1 << 12  # lines whose segments are refined together


@pytree
class SegmentContributions:
    """(start, end) -> what each coordinate adds to the function from start to end, and by how much the sum misses."""

    function: Any
    nodes: Any
    weights: Any

    def __call__(self, ends: jax.Array) -> tuple[jax.Array, jax.Array]:
        start, end = ends
        points = start + self.nodes[:, None] * (end - start)
        parts = (end - start) * (self.weights @ jax.vmap(jax.grad(self.function))(points))
        return parts, parts.sum() - (self.function(end) - self.function(start))


def contributions(
    summands: Sequence[Any], rows: np.ndarray, baselines: np.ndarray, advance: Callable[[int], Any] | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Contributions (n, d) to a sum of scalar pytree functions, its values (n,), and its mean value at the baselines.

    Averaged over lines from all baselines. They add up to the difference of the values up to TOLERANCE where HALVINGS
    suffice. Each summand has its own segments: a smooth one that is expensive needs few. `advance` is called with
    numbers of rows that are done.
    """
    values, start = (np.sum([map_rows(f, of).astype(np.float64) for f in summands], axis=0) for of in (rows, baselines))
    start = float(start.mean())
    allowed = TOLERANCE / len(summands)
    nodes, weights = (part.astype(rows.dtype) for part in quadrature("gauss-legendre", NODES))
    found, block = np.zeros(rows.shape), max(BLOCK_LINES // len(baselines), 1)
    for begin in range(0, len(rows), block):
        some = slice(begin, begin + block)
        for function in summands:
            path = SegmentContributions(function, nodes, weights)
            found[some] += _along_lines(path, rows[some], baselines, allowed)
        if advance is not None:
            advance(len(rows[some]))
    return found, values, start


def _along_lines(path: Any, rows: np.ndarray, baselines: np.ndarray, allowed: float) -> np.ndarray:
    """Mean contributions (n, d) along the lines from all baselines to each row.

    Thresholds make a function steep in few places. Errors of segments have either sign, so that their squares add up
    over the lines of a row; where the sum is more than allowed, segments above the average of it are halved.
    """
    owners = np.repeat(np.arange(len(rows)), len(baselines))
    ends = np.stack([np.tile(baselines, (len(rows), 1)), rows[owners]], axis=1)
    found, settled = np.zeros(rows.shape), np.zeros(len(rows))  # and the squared errors of segments that are kept
    for halving in range(HALVINGS + 1):
        parts, errors = map_rows(path, ends, points=3 * NODES)
        squares = (errors.astype(np.float64) / len(baselines)) ** 2
        total = settled + np.bincount(owners, squares, len(rows))
        left = np.maximum(allowed**2 - settled, 0.0) / np.maximum(np.bincount(owners, minlength=len(rows)), 1)
        poor = (total > allowed**2)[owners] & (squares > left[owners]) & (halving < HALVINGS)
        np.add.at(found, owners[~poor], parts[~poor] / len(baselines))
        settled += np.bincount(owners[~poor], squares[~poor], len(rows))
        if not poor.any():
            break
        halves = ends[poor]
        middle = halves.mean(axis=1, keepdims=True)
        pairs = (halves[:, :1], middle), (middle, halves[:, 1:])
        ends = np.concatenate([np.concatenate(pair, axis=1) for pair in pairs])
        owners = np.tile(owners[poor], 2)
    return found
