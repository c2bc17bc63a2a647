"""One energy of all classes of a table, its calibration and its constants: what rows of numbers and mixed rows share.

`NumberModel` and `RowModel` say how rows are drawn from it.
"""

import jax
import numpy as np

from scorefield._jax.batching import FURTHEST, map_rows, standardized
from scorefield._jax.pytrees import Method
from scorefield._jax.storage import from_plain, to_plain
from scorefield.data.spaces import space_from_plain
from scorefield.fields.plain_logits import PlainLogits
from scorefield.inference.functions import OfRawRows, Plus, Times

# Rows up to which logits are computed in numpy. On one core numpy takes a tenth of the time of a compiled call or less
# for one row, and 1.0 to 1.4 times its time for 2,048, where a first call compiles for a third of a second as well.
# Fewer than the pieces of partitions (`data.dask`): these have the rounding of large tables.
FEW_ROWS = 1024
STATE = (
    "color",
    "start_rows",
    "frequencies",
    "by_labels",
    "anchor_seed",
    "temperature",
    "intercepts",
    "history",
    "n_rows",
)


class JointModel:
    """An energy of rows and labels, with rows to start chains from.

    Parameters
    ----------
    space : NumberSpace or RowSpace
    joint : JointEnergies
    color : array (p, p)
        The noise of the rows that it was learned from is z color.
    start_rows : list of arrays
        For each class, as `joint` sees them.
    frequencies : array (classes,)
        Shares of the classes in the fitted rows.
    by_labels : bool
        True if labels taught the logits; otherwise they follow from the densities by Bayes' rule.
    anchor_seed : array of uint32
        Key data of the draws that the constants of densities are found by, on first use.
    n_rows : int or None
        Rows that it was learned from; None for models of earlier versions that read them in parts.
    """

    def __init__(
        self, space, joint, color, start_rows, *, frequencies=(1.0,), by_labels=False, anchor_seed=None,
        temperature=1.0, intercepts=None, history=(), anchors=None, n_rows=None,
    ):  # fmt: skip
        self.space, self.joint, self.color, self.start_rows = space, joint, color, start_rows
        self.frequencies, self.by_labels, self.anchor_seed = np.asarray(frequencies), by_labels, anchor_seed
        self.temperature, self.history = temperature, list(history)
        self.intercepts = np.zeros(len(self.frequencies)) if intercepts is None else intercepts
        self.anchors, self.n_rows = anchors, n_rows
        self._made = {}

    @property
    def n_members(self):
        """Networks that one row is sent through."""
        return len(self.joint.members)

    @property
    def rules_share(self):
        """Share of the rules in the logits; 0 without rules."""
        return 0.0 if self.joint.rules is None else float(self.joint.share)

    def _made_by(self, make):
        """`make(joint)`, made once for the present energies."""
        joint, made = self._made.get(make, (None, None))
        if joint is not self.joint:
            joint, made = self._made[make] = self.joint, make(self.joint)
        return made

    def map(self, method, rows):
        """A method of the energies at each row."""
        joint = self._made_by(jax.device_put)
        return map_rows(Method(joint, method), rows, points=self.n_members, standardize=self.space.units)

    def _joint_logits(self, rows):
        """Logits of the energies; those of few rows do not depend, to the last bit, on the rows beside them."""
        if len(rows) > FEW_ROWS:
            return self.map("logits", rows)
        units = self.space.units
        seen = rows.astype(np.float32) if units is None else standardized(rows, *units, furthest=FURTHEST)
        return self._made_by(PlainLogits)(seen)

    @property
    def log_constants(self):
        """What is added to the energies to give log p(x | y) of a model's rows, (classes,).

        Found by sampling on first use: probabilities do not need it where labels taught them.
        """
        if self.anchors is None:
            self.anchors = self._anchors(jax.random.wrap_key_data(self.anchor_seed))
        return self.anchors[:, 0]

    def class_constants(self):
        """What is added to logits before calibration: nothing where the labels taught them."""
        return 0.0 if self.by_labels else self.log_constants + np.log(self.frequencies)

    def take_shares(self, shift):
        """Take the class shares of the table that the fitted rows were chosen from, by the log ratios (classes,).

        Where logits follow from densities, the shares are among what the temperature divides already.
        """
        self.frequencies = self.frequencies * np.exp(shift)
        self.intercepts = self.intercepts + shift * (1.0 if self.by_labels else 1 - 1 / self.temperature)

    def _calibrated(self, logits):
        return logits / self.temperature + self.intercepts

    def _density_constants(self, rows):
        return self.log_constants + self.space.log_volume(rows)

    def logits(self, rows):
        """Calibrated log posteriors for the class shares of the fitted rows, up to a constant per row (n, classes).

        The Gaussian base is left out: far from the data it is so large that single precision would swallow the
        differences between classes.
        """
        return self._calibrated(self._joint_logits(rows).astype(np.float64) + self.class_constants())

    def log_density(self, rows):
        """log p(row | class), in the units of the table (n, classes)."""
        return self.map("__call__", rows).astype(np.float64) + self._density_constants(rows)

    def logits_and_log_density(self, rows):
        """Both; of many rows in one pass."""
        if len(rows) <= FEW_ROWS:  # whose logits have bits of their own
            return self.logits(rows), self.log_density(rows)
        logits, energies = (values.astype(np.float64) for values in self.map("logits_and_energies", rows))
        return self._calibrated(logits + self.class_constants()), energies + self._density_constants(rows)

    def posterior(self, shift, method="logits"):
        """`logits` plus a shift (classes,), as a jax function of one point: of the inputs of the networks by `method`
        "logits_at_inputs"."""
        function = Method(self.joint, method)
        if self.space.units is not None:
            function = OfRawRows(function, *self.space.units)
        return Plus(Times(function, 1 / self.temperature), self._calibrated(self.class_constants()) + shift)

    def to_plain(self):
        """A dictionary of plain values and arrays."""
        parts = {name: getattr(self, name) for name in STATE}
        return {**parts, "anchors": self.anchors, "space": self.space.to_plain(), "joint": to_plain(self.joint)}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`."""
        options = {**plain, "space": space_from_plain(plain["space"]), "joint": from_plain(plain["joint"])}
        return cls(**options)

    def __getstate__(self):
        return self.to_plain()

    def __setstate__(self, plain):
        vars(self).update(vars(type(self).from_plain(plain)))
