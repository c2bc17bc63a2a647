"""Whether exact score matching was fooled: a rough field has a low loss at the rows and a high one beside them.

The loss of Eq:score_matching_2b has no lower bound: steep falls of the field at single rows lower it without end.
"""

from typing import NamedTuple

import jax
import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import chi2

from scorefield._jax.batching import as_rows
from scorefield.fields.base import Field
from scorefield.fields.gaussian import fit_gaussian
from scorefield.training.losses import Exact, default_noise, mean_loss

MAX_JUDGED = 1024  # rows whose loss is compared with that of moved copies
N_DRAWS = 8  # moved copies of a row


class Roughness(NamedTuple):
    """Losses of a field at the rows and beside them, and those of a Gaussian."""

    loss: float
    moved: float
    gaussian: float
    gaussian_moved: float

    @property
    def fooled(self) -> bool:
        """True if the field's gain over the Gaussian is large, and more than a third of it is lost beside the rows.

        The true score of narrow modes loses a tenth in one column and a quarter in ten.
        """
        gain, gain_moved = self.gaussian - self.loss, self.gaussian_moved - self.moved
        return bool(gain > 0.5 * abs(self.gaussian) and gain_moved < 2 / 3 * gain)


def roughness(key: jax.Array, field: Field, rows: object) -> Roughness:
    """Exact losses at rows, and at rows moved by noise.

    The noise is a quarter of Scott's bandwidth for the spread of the nearest tenth of the rows, so that narrow modes
    are not taken for rough fields.
    """
    table = as_rows(rows)[:MAX_JUDGED]
    n, d = table.shape
    near = cKDTree(table).query(table, [max(2, n // 10)])[0]  # (n, 1)
    # A tenth of a standard Gaussian lies within the square root of chi-squared's first decile.
    spread = np.minimum(near / np.sqrt(chi2.ppf(0.1, d)), table.std(axis=0))
    noise = np.random.default_rng(0).normal(size=(N_DRAWS, n, d))
    moved = (table + default_noise(n, d) * spread * noise).reshape(-1, d).astype(np.float32)
    gaussian = fit_gaussian(table, noise=1e-3 * float(table.std()))
    losses = [mean_loss(key, model, Exact(), points) for model in (field, gaussian) for points in (table, moved)]
    return Roughness(*losses)
