"""The density of a table of numbers by its score field: the constant, log densities, chains.

Algorithm 1 of the paper: field, anchor, integral. Rows within are standardised; results are in the units of the table.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np

from scorefield._jax.batching import map_rows, standardized
from scorefield._jax.errors import warn_caller
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from
from scorefield._jax.storage import from_plain, stored_by_public_name, to_plain
from scorefield.data.scaling import raw_rows
from scorefield.data.spaces import NumberSpace
from scorefield.fields.flow import FlowLogDensity
from scorefield.fields.gaussian import Gaussian
from scorefield.fields.mixtures import GaussianMixture
from scorefield.fields.moments import weighted_mean
from scorefield.fields.student import base_degrees
from scorefield.inference.anchors import counting_anchor, gaussian_anchor, importance_constant, importance_proposal
from scorefield.inference.functions import OfRawRows, Plus
from scorefield.inference.line_integrals import N_NODES, line_integral, path_gap, smooth
from scorefield.models.requested_numbers import NumberEnergy, requested_numbers
from scorefield.models.requests import key_seed, request_for, rows_on_request
from scorefield.sampling.acceptance import warn_of_low_acceptance
from scorefield.sampling.samplers import MALA, Langevin, ReverseDiffusion, Samples

LARGE_ERROR = 0.2  # nats of a normaliser that are worth a warning
N_LANGEVIN = 4096  # samples that the Langevin anchor counts
STEP, CHAIN, DISCARD = 0.05, 200, 0.995  # of the usual chains: one row each
EXACT = ("gaussian", "mixture", "diffusion")  # whose log densities need no constant
STATE = (
    "mean", "scale", "mix", "unmix", "plain_field", "name", "candidates", "history", "noise", "start_rows",
    "least_variance", "anchor", "anchor_seed", "proposal", "origin", "path_gap",
)  # fmt: skip


class Inference(NamedTuple):
    """How a field is integrated and anchored: parameters of `ScoreDensity`."""

    anchor: str
    integrator: str
    smoothing: float | None
    smoothing_kernel: str
    n_nodes: int | None
    anchor_radius: float | None


@stored_by_public_name
class FieldDensity:
    """A field of standardised rows of numbers, and what its log density and its chains need.

    Parameters
    ----------
    space : NumberSpace
    inference : Inference
    mean, scale, mix, unmix : arrays
        Standardised rows are (x - mean) / scale @ mix; `mix` and its inverse may be None.
    plain_field : dict
        The field as plain arrays.
    name : str
        Of the model that was used.
    candidates, history : list of dict, dict
    noise : float
        Deviation of the noise of the standardised rows whose field it is.
    start_rows : array
        Standardised rows that chains start from.
    least_variance : float
        Along the narrowest direction of standardised rows.
    anchor : list or None
        Constant, effective size and error; None until it is asked for, which takes importance sampling from a
        `proposal` by the key data `anchor_seed`.
    """

    row_model = None

    def __init__(
        self, space, inference, *, mean, scale, mix, unmix, plain_field, name, candidates, history, noise, start_rows,
        least_variance, anchor=None, anchor_seed=None, proposal=None, origin=None, path_gap=0.0,
    ):  # fmt: skip
        self.space, self.inference = space, Inference(*inference)
        self.mean, self.scale, self.mix, self.unmix = mean, scale, mix, unmix
        self.plain_field, self.name, self.candidates, self.history = plain_field, name, candidates, history
        self.noise, self.start_rows, self.least_variance = noise, start_rows, least_variance
        self.anchor, self.anchor_seed, self.proposal = anchor, anchor_seed, proposal
        self.origin, self.path_gap = origin, path_gap

    @property
    def field(self):
        """The field of standardised rows, before it is smoothed."""
        return from_plain(self.plain_field)

    @property
    def units(self):
        """Mean, scale and mixing of the columns."""
        return self.mean, self.scale, self.mix

    def standardized(self, X):
        """Rows in the units of the field."""
        return standardized(X, *self.units)

    def unmixed(self, rows):
        """Standardised rows with the correlations of their columns."""
        return rows if self.mix is None else rows @ self.unmix

    def log_volume(self):
        """Log of the volume that standardising multiplies by."""
        mixed = 0.0 if self.mix is None else np.linalg.slogdet(self.mix)[1]
        return mixed - np.log(self.scale).sum()

    def safe_step(self, wanted):
        """A Langevin step that is stable on this field: at most the data's variance along its narrowest direction."""
        return min(wanted, self.least_variance) or wanted

    def set_anchor(self, key, table, noise):
        """Prepare the constant of the log density, and measure how far it depends on the path of integration.

        `table` are the standardised rows with their weights, `noise` that of the rows whose field it is.
        """
        rows, weights = table
        field, chosen = self.field, self.inference
        self.origin = rows.mean(axis=0) if weights is None else weighted_mean(rows, weights).astype(rows.dtype)
        if not self._has_potential(field):
            near = rows[:: max(1, len(rows) // 64)]
            self.path_gap = float(path_gap(self.smoothed(field), self.origin, near).mean())
        if self.name in EXACT and chosen.anchor == "auto" and chosen.smoothing is None:
            self.anchor = [0.0, float(len(rows)), 0.0]
            return
        # The field is that of rows with noise, so the anchor is taken on such rows; without noise it is the paper's.
        rows = rows + noise * host_rng(key, Stream.ANCHOR_NOISE).normal(size=rows.shape)
        if chosen.anchor == "gaussian":
            self.anchor = list(map(float, gaussian_anchor(self.unnormalised(field), rows, weights=weights)))
        elif chosen.anchor in ("counting", "langevin"):
            samples = self._langevin_rows(key, field) if chosen.anchor == "langevin" else None
            anchor = counting_anchor(
                self.unnormalised(field), rows, radius=chosen.anchor_radius, samples=samples, weights=weights
            )
            self.anchor = list(map(float, anchor))
        else:
            self.proposal = to_plain(importance_proposal(rows, degrees=base_degrees(field)))
            self.anchor_seed = np.asarray(jax.random.key_data(key))

    def _langevin_rows(self, key, field):
        """Ends of Langevin chains on the (smoothed) field, in standardised units."""
        chain = Langevin(self.safe_step(STEP), CHAIN, DISCARD)
        return chain.sample(key, self.smoothed(field), N_LANGEVIN, self.start_rows).rows

    def normalized(self):
        """The anchor's constant, effective size and error. Importance sampling waits for the first use of them."""
        if self.anchor is None:
            field, key = self.field, jax.random.wrap_key_data(self.anchor_seed)
            proposal, points = from_plain(self.proposal), self._points(field)
            anchor = importance_constant(key, self.unnormalised(field), proposal, points=points)
            self.anchor = list(map(float, anchor))
            if self.anchor[2] > LARGE_ERROR:
                warn_caller(
                    f"The normalising constant of the log density has a standard error of {self.anchor[2]:.2f} nats, "
                    "which all log densities share; use model='diffusion', which needs no constant, or fewer columns."
                )
        return self.anchor

    def _has_potential(self, field):
        chosen = self.inference
        flow = self.name == "diffusion" and chosen.anchor == "auto" and chosen.smoothing is None
        return field.conservative or flow

    def smoothed(self, field):
        """The field that is integrated and sampled."""
        radius, kernel = self.inference.smoothing, self.inference.smoothing_kernel
        return field if radius is None else smooth(jax.random.key(0), field, len(self.mean), radius, kernel=kernel)

    def unnormalised(self, field):
        """Log density of standardised rows up to the anchor's constant, as a pytree function of one point."""
        if self._has_potential(field):
            return FlowLogDensity(field) if self.name == "diffusion" else Method(self.smoothed(field), "potential")
        chosen = self.inference  # the key serves the Monte-Carlo rule only
        return line_integral(
            self.smoothed(field), self.origin, rule=chosen.integrator, n_nodes=chosen.n_nodes, key=jax.random.key(0)
        )

    def _points(self, field):
        """Points at which the log density of one row evaluates the field."""
        nodes = 1 if self._has_potential(field) else self.inference.n_nodes or N_NODES
        return self.smoothed(field).points * nodes

    def _log_density(self, field):
        """The log density of standardised rows as a jax function of one point."""
        return Plus(self.unnormalised(field), self.normalized()[0])

    def log_density_function(self):
        """The log density as a jax function of one point in the units of the table."""
        return Plus(OfRawRows(self._log_density(self.field), *self.units), self.log_volume())

    def log_density(self, X):
        """Log density of each row (n,)."""
        field = self.field
        values = map_rows(self._log_density(field), X, points=self._points(field), standardize=self.units)
        return (values + self.log_volume()).astype(X.dtype)

    def scores(self, X):
        """The score field at each row (n, d)."""
        field = self.smoothed(self.field)
        scores = map_rows(Method(field, "__call__"), X, points=field.points, standardize=self.units)
        scores = scores if self.mix is None else scores @ self.mix  # which is symmetric
        return (scores / self.scale).astype(X.dtype)

    def generated(self, state, n, ids, sampler):
        """A table of n rows, which has no identifiers."""
        return self.space.table(self.draw(n, state, sampler=sampler).rows)

    def requested(self, seed, n, given, constraints, ids, sampler):
        """A table of n rows that meet conditions and relations."""
        request, energy = request_for(self.space, [self.known_rows()], given, constraints), self.number_energy()

        def plain(key, m):
            return self.generated(key_seed(key), m, ids, sampler), None

        def guided(key, m):
            return self.space.table(requested_numbers(key, [energy], [0.0], request, m)[0]), None

        return rows_on_request(key_from(seed), n, request, plain, None if energy is None else guided)[0]

    def number_energy(self):
        """The energy of columns of numbers that rows on request follow; None for a field without a potential."""
        field = self.field
        if not field.conservative or self.inference.smoothing is not None or self.name == "diffusion":
            return None
        potential = OfRawRows(Method(field, "potential"), np.float32(0), np.float32(1), self.mix)
        constant = self.normalized()[0] + self.log_volume() + np.log(self.scale).sum()
        rows = self.unmixed(self.start_rows)
        return NumberEnergy(potential, self.mean, self.scale, rows, field.points, constant)

    def draw(self, n, state=None, *, sampler=None, X_start=None):
        """`Samples` of rows in the units of the table; chains start from given rows, or from those of the fit."""
        key, field = key_from(state), self.field
        sampler = sampler or self.usual_sampler(field)
        if sampler is None:
            if n < 1:
                raise ValueError(f"Expected n >= 1 rows to generate, got {n}.")
            exact = field.exact_rows(host_rng(key, Stream.EXACT_DRAWS), n)
            drawn = Samples(np.asarray(exact, np.float32), np.full(n, -1), 0, None, None)
        else:
            starts = self.start_rows if X_start is None else self.standardized(X_start)
            drawn = sampler.sample(key, self.smoothed(field), n, starts)
            warn_of_low_acceptance(drawn, sampler)
        return dataclasses.replace(drawn, rows=self.unmixed(drawn.rows) * self.scale + self.mean)

    def usual_sampler(self, field):
        """The sampler where none is given; None where rows are drawn from Gaussians themselves."""
        if self.inference.smoothing is None and isinstance(field, Gaussian | GaussianMixture):
            return None
        if self.inference.smoothing is None and self.name == "diffusion":
            return ReverseDiffusion()
        chain = MALA if self._has_potential(field) and field.conservative else Langevin
        return chain(self.safe_step(STEP), CHAIN, DISCARD)

    def known_rows(self):
        """Up to 1,024 rows of the fit, in the units of the table."""
        return raw_rows(self.unmixed(self.start_rows), self.mean, self.scale)

    def to_plain(self):
        """A dictionary of plain values and arrays."""
        parts: dict[str, Any] = {name: getattr(self, name) for name in STATE}
        return {**parts, "space": self.space.to_plain(), "inference": list(self.inference)}

    @classmethod
    def from_plain(cls, plain):
        """Inverse of `to_plain`."""
        return cls(**{**plain, "space": NumberSpace.from_plain(plain["space"])})

    def __getstate__(self):
        return self.to_plain()

    def __setstate__(self, plain):
        vars(self).update(vars(self.from_plain(plain)))
