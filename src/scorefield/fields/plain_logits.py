"""Logits of joint energies at rows of a table, in numpy: what few rows need takes less time than a compiled call.

Networks of one shape are stacked. A row's logits do not depend on the rows beside it: matrix products are those of
blocks of one size, since libraries add in another order for another size.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from scorefield.fields.joint import ColumnNetwork, JointEnergies, draw_in, view

BLOCK_ROWS = 4  # of a matrix product: a tile of the kernels of OpenBLAS, which treat its rows alike
CACHED_NUMBERS = 1 << 18  # inputs of networks that are held at a time: a megabyte, which stays in a processor's cache
FEWEST_ROWS = 64  # at a time, which share the reading of wide networks


class PlainLogits:
    """`JointEnergies.logits` of rows as an energy sees them, (n, d) in single precision -> (n, classes)."""

    def __init__(self, joint: JointEnergies) -> None:
        share = 0.0 if joint.rules is None else float(joint.share)
        groups: dict[tuple, list[ColumnNetwork]] = {}
        for member in joint.members:
            sizes = tuple(weights.shape for weights in member.network.weights)
            groups.setdefault((member.columns, np.asarray(member.rotation).tobytes(), sizes), []).append(member)
        factor = (1 - share) / len(joint.members)
        self.layout = joint.members[0].layout
        self.parts: list[Any] = [StackedNetworks(members, factor) for members in groups.values()]
        if joint.rules is not None:
            self.parts.append(SparseNetwork(joint.rules, share))
        self.n_classes = joint.members[0].network.biases[-1].size
        self.rows_at_once = max(CACHED_NUMBERS // max(part.n_inputs for part in self.parts), FEWEST_ROWS)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        logits = np.empty((len(rows), self.n_classes), np.float32)
        with np.errstate(over="ignore"):  # far from the data exp(-u) is infinite, and silu(u) is 0
            for start in range(0, len(rows), self.rows_at_once):
                block = slice(start, start + self.rows_at_once)
                inputs = rows[block] if self.layout is None else self.layout.inputs(rows[block])
                logits[block] = sum(part(inputs) for part in self.parts)
        return logits


class StackedNetworks:
    """The sum of networks of one shape on the same columns, times a factor."""

    def __init__(self, members: Sequence[ColumnNetwork], factor: float) -> None:
        members = [member.without_gains() for member in members]
        self.rotation, self.columns = np.asarray(members[0].rotation), np.array(members[0].columns, int)
        self.thresholds, self.slopes = (
            np.stack([np.asarray(values) for values in each])[:, None]
            for each in zip(*((member.thresholds, member.slopes) for member in members), strict=True)
        )  # (members, 1, columns, thresholds)
        networks = [member.network for member in members]
        *weights, last = zip(*(network.weights for network in networks), strict=True)
        *biases, constants = zip(*(network.biases for network in networks), strict=True)
        self.weights = [np.stack(each)[:, None] for each in weights]  # (members, 1, inputs, units)
        self.biases = [np.stack(each)[:, None, None] for each in biases]
        # One product with the last layers of all members, below one another, adds them up.
        self.last = (factor * np.concatenate(last)).astype(np.float32)
        self.constants = (factor * np.sum(constants, axis=0)).astype(np.float32)
        self.n_inputs = len(members) * len(members[0].network.weights[0])

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        n, d = len(inputs), len(self.rotation)
        k, size = d + self.rotation.shape[1], -(-n // BLOCK_ROWS) * BLOCK_ROWS
        x = view(in_blocks(inputs[:, :d]), self.rotation).reshape(size, k)
        steps = np.tanh(self.slopes * (x[:n, self.columns, None] - self.thresholds))
        m, beyond = len(steps), k + self.thresholds[0].size
        seen = np.zeros((m, size, self.n_inputs // m), np.float32)
        seen[:, :n, :k], seen[:, :n, beyond:] = x[:n], inputs[:, d:]
        seen[:, :n, k:beyond] = steps.reshape(m, n, beyond - k)
        u: Any = seen.reshape(m, size // BLOCK_ROWS, BLOCK_ROWS, self.n_inputs // m)
        for weights, biases in zip(self.weights, self.biases, strict=True):
            u = silu(u @ weights + biases)
        units = np.moveaxis(u, 0, 2).reshape(size // BLOCK_ROWS, BLOCK_ROWS, len(self.last))
        return (units @ self.last + self.constants).reshape(size, len(self.constants))[:n]


class SparseNetwork:
    """A network with one hidden layer, nearly all weights of which are zero, times a factor; rows are columns here."""

    def __init__(self, rules: ColumnNetwork, factor: float) -> None:
        (first, last), (bias, constants) = rules.network.weights, rules.network.biases
        units = np.flatnonzero(np.abs(last).sum(axis=1))
        first = first[:, units]
        d, k = rules.rotation.shape
        n_steps = rules.thresholds.size
        used = np.flatnonzero(np.abs(first).sum(axis=1))
        self.n_numbers = d
        columns = used[used < d + k]
        steps = used[(used >= d + k) & (used < d + k + n_steps)] - d - k
        shown = used[used >= d + k + n_steps]
        self.shown = shown - d - k - n_steps
        width = max(rules.thresholds.shape[1], 1)
        sources = np.concatenate([columns, np.array(rules.columns, int)[steps // width]])
        self.views = csr_array(np.hstack([np.eye(d, dtype=np.float32), rules.rotation])[:, sources].T)
        self.n_columns = len(columns)
        self.thresholds = rules.thresholds.ravel()[steps, None]
        self.slopes = rules.slopes.ravel()[steps, None]
        self.first, self.bias = csr_array(first[used].T), np.asarray(bias)[units, None]
        self.last = csr_array((factor * last[units]).astype(np.float32).T)
        self.constants = (factor * constants).astype(np.float32)
        self.n_inputs = len(used)

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        seen = draw_in(self.views @ inputs[:, : self.n_numbers].T)
        steps = seen[self.n_columns :]
        steps[:] = np.tanh(self.slopes * (steps - self.thresholds))
        shown = inputs[:, self.n_numbers + self.shown].T
        units = silu(self.first @ np.concatenate([seen, shown]) + self.bias)
        return (self.last @ units).T + self.constants


def silu(u: np.ndarray) -> np.ndarray:
    return u / (1 + np.exp(-u))


def in_blocks(rows: np.ndarray) -> np.ndarray:
    """Rows (n, d) as blocks (m, BLOCK_ROWS, d), the last one filled up with zeros."""
    n_blocks = -(-len(rows) // BLOCK_ROWS)
    padded = np.zeros((n_blocks * BLOCK_ROWS, rows.shape[1]), np.float32)
    padded[: len(rows)] = rows
    return padded.reshape(n_blocks, BLOCK_ROWS, rows.shape[1])
