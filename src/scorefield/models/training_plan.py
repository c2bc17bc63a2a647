"""How the members of a joint model train: widths, batches, steps and patience by the size of the table.

Large tables train longer, and rows of rare classes are drawn more often: a batch of 128 rows of a table with one fraud
in 600 would have one at every fifth step. The offsets of `LabelLoss` keep the energies those of the table itself.
"""

from typing import NamedTuple

import numpy as np

from scorefield._jax.batching import bucket
from scorefield.training.losses import LabelledRow
from scorefield.training.minibatches import HELD_OUT_POINTS, Split

MAX_STEPS = 500
WIDE, NARROW = (128, 128), (64, 64)  # layers
BATCH, SMALL_BATCH = 128, 64
SMALL_TABLE = 1000  # rows, below which narrow networks and half the batch do as well, in half the time
LARGE_TABLE = 10_000  # rows, beyond which steps and patience grow as the square root of their number
CHOSEN = 1.5  # times as many steps for rows that were chosen by their surprise, of which each tells more
PATIENCE = 2  # looks: the labels' held-out loss turns early and does not come back
MORE_PATIENCE = 4  # for few rows, whose loss varies, for densities, and for mixed rows, which many chains are run on
FEW_ROWS = 20  # of the smallest class
RARE_SHARE = 0.02  # of a batch that each of two classes of a large table has at least; K classes have 2 / K of it
MOST_OFTEN = 50  # times as often as it occurs: beyond it single rows would be learned by heart


class Plan(NamedTuple):
    """Settings of `train_many` that follow from a table, and the table and its splits as they are drawn from."""

    widths: tuple[int, ...]
    batch_size: int
    max_steps: int
    patience: int
    held_out_points: int
    table: LabelledRow
    splits: list[Split]
    factors: np.ndarray  # (classes,): how many times as often as in the table a class counts

    @property
    def rates(self):
        """Mean chance (classes,) of a row of each class to be chosen; 1 where the rows are the table."""
        found = np.ones(len(self.factors))
        if self.table.log_chances is not None:
            for k in np.unique(self.table.label):
                found[k] = 1 / np.exp(-self.table.log_chances[self.table.label == k, k]).mean(dtype=float)
        return found

    @property
    def offsets(self):
        """Of the logits (classes,), see `LabelLoss`."""
        return np.log(self.factors).astype(np.float32)


def plan_training(table, splits, n_classes, *, hidden, max_steps, numbers, by_labels):
    """The plan for a `LabelledRow` of arrays; `hidden` and `max_steps` may be "auto".

    `numbers` is false for mixed rows, and `by_labels` is true for members that learn from labels too.
    """
    n, counts = len(table.x), np.bincount(table.label, minlength=n_classes)
    small = numbers and by_labels and n < SMALL_TABLE
    large = numbers and by_labels and n > LARGE_TABLE
    longer = np.sqrt(n / LARGE_TABLE) if large else 1.0
    if table.log_chances is not None:
        longer *= CHOSEN
    patience = PATIENCE if numbers and by_labels and counts.min() >= FEW_ROWS else MORE_PATIENCE
    factors = np.ones(n_classes, int)
    if large:
        least = RARE_SHARE * 2 / n_classes
        factors = np.clip(np.ceil(least * n / np.maximum(counts, 1)), 1, MOST_OFTEN).astype(int)
        splits = [Split(*(np.repeat(rows, factors[table.label[rows]]) for rows in split)) for split in splits]
    if table.weight is not None and (factors > 1).any():  # weights of the rows make up for it, no offset is needed
        mean = counts @ factors / n
        table, factors = table._replace(weight=table.weight * (mean / factors)[table.label]), np.ones(n_classes, int)
    held_out_points = HELD_OUT_POINTS
    if by_labels:  # the loss of labels has no noise, which more points than rows would average out
        held_out_points = min(bucket(max(len(split.held) for split in splits)), HELD_OUT_POINTS)
    return Plan(
        widths=(NARROW if small else WIDE) if isinstance(hidden, str) else tuple(hidden),
        batch_size=SMALL_BATCH if small else BATCH,
        max_steps=round(MAX_STEPS * longer) if isinstance(max_steps, str) else max_steps,
        patience=round(patience * longer),
        held_out_points=held_out_points,
        table=table,
        splits=splits,
        factors=factors,
    )
