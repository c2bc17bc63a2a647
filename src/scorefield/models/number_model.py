"""The joint energy of rows of numbers: its constants by importance sampling, its rows by MALA."""

import numpy as np

from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.fields.gaussian import Whitened, fit_gaussian
from scorefield.fields.joint import ClassEnergy
from scorefield.inference.anchors import importance_anchor
from scorefield.models.joint import JointModel
from scorefield.sampling.acceptance import USUAL_ACCEPTANCE, warn_of_low_acceptance
from scorefield.sampling.samplers import MALA

MALA_STEP = 0.05  # in standard deviations of the class


@stored_by_public_name
class NumberModel(JointModel):
    """A joint energy of standardised rows of numbers."""

    def __init__(self, *args, noise, **options):
        super().__init__(*args, **options)
        self.noise = noise  # in units of the spread within classes

    def _anchors(self, key):
        """Constants of the class densities, with their effective sizes and errors, (classes, 3)."""
        rng, anchors = host_rng(key, Stream.JOINT_ANCHOR_NOISE), []
        for k, rows in enumerate(self.start_rows):
            rows = rows if len(rows) > 1 else np.concatenate(self.start_rows)
            noisy = rows + rng.normal(size=rows.shape) @ self.color  # what the model is the density of
            potential = Method(ClassEnergy(self.joint, np.int32(k)), "potential")
            anchors.append(list(importance_anchor(key, potential, noisy, points=self.n_members)))
        return np.array(anchors)

    def scores(self, rows):
        """The score field of every class, in the units of the table (n, classes, d)."""
        return (self.map("scores", rows) / self.space.scale).astype(rows.dtype)

    def known_rows(self):
        """Up to 1,024 fitted rows of each class, in the units of the table."""
        return [self.space.raw_rows(rows) for rows in self.start_rows]

    def generated(self, seed, n, label, ids="new"):
        """A table of n rows of a class, which has no identifiers."""
        drawn, frame = self.class_samples(key_from(seed), n, label, 200, 0.995)
        return self.space.table(frame.coloured(drawn.rows) * self.space.scale + self.space.mean)

    def class_samples(self, key, n, label, chain_length, discard):
        """`Samples` of a class by MALA and their frame, in which its rows have unit covariance: one step suits all."""
        rows = self.start_rows[label]
        frame = fit_gaussian(rows, noise=self.noise) if len(rows) > 1 else self.joint.base
        field = Whitened(ClassEnergy(self.joint, np.int32(label)), frame)
        step = MALA_STEP
        while True:
            sampler = MALA(step, chain_length, discard)
            drawn = sampler.sample(key, field, n, frame.whitened(rows))
            if drawn.acceptance > USUAL_ACCEPTANCE or step < MALA_STEP / 1000:
                break
            step /= 4
        warn_of_low_acceptance(drawn, sampler)
        return drawn, frame

    def to_plain(self):
        """A dictionary of plain values and arrays."""
        return {**super().to_plain(), "noise": self.noise}
