"""Rows of numbers on request: exact chains on the numbers that are not held, from real rows shifted to the request."""

import dataclasses
import itertools

import jax
import numpy as np
from scipy.special import logsumexp

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import leaf
from scorefield._jax.random import Stream, host_rng
from scorefield.data.scaling import covariance_of_columns
from scorefield.models.requested_rows import JUST_BELOW_HALF, MAX_CASES
from scorefield.sampling.number_chains import Moves, NumberRegion, walk_numbers

N_STEPS = 150
FIRST_STEP = 1.2  # times d^(-1/3), in units of the free numbers' spread: MALA's optimal scaling, with a margin
LEAST_ACCEPTED, SMALLER, FEWEST_STEP = 0.4, 3.0, 0.003
SHARE_NEAR, FEWEST_NEAR = 0.1, 50  # of the real rows, that starts are taken from
N_PROPOSALS, WIDER = 2048, 1.3  # of importance sampling: a proposal is wider than the Gaussian that it follows
NARROW = 1e-6  # variance, in units of the columns, that directions have at least


@dataclasses.dataclass
class NumberRequest:
    """A request in standardised coordinates."""

    region: NumberRegion
    held: np.ndarray  # (d,)
    bounded: np.ndarray  # (d,)
    cases: np.ndarray  # (cases, held numbers)


def number_request(request, mean, scale):
    """A `NumberRequest` for rows (x - mean) / scale."""
    names = list(request.columns)
    low, high = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    held, bounded = np.zeros(len(names), bool), np.zeros(len(names), bool)
    listed = {}
    for condition in request.conditions:
        j, column = names.index(condition.name), condition.column
        if column.kind == "constant":
            continue
        if condition.values is not None:
            held[j], listed[j] = True, (condition.values.astype(float) - mean[j]) / scale[j]
            continue
        bounded[j] = True
        decimals = 0 if column.form == "whole" else column.decimals
        reach = 0.0 if decimals is None else JUST_BELOW_HALF * 10.0**-decimals
        ends = [
            sign * np.inf if end is None else end + sign * reach
            for end, sign in zip(condition.bounds, (-1, 1), strict=True)
        ]
        low[j], high[j] = ((end - mean[j]) / scale[j] for end in ends)
    cases = list(itertools.product(*(listed[j] for j in sorted(listed))))
    if len(cases) > MAX_CASES:
        raise ValueError(
            f"Expected at most {MAX_CASES} combinations of numbers, got {len(cases)}; give bounds instead."
        )
    relations = [relation for relation in request.relations if relation.operator != "=="]
    slopes, offsets = np.zeros((len(relations), len(names))), np.zeros(len(relations))
    for i, relation in enumerate(relations):
        for sign, name in relation.terms:
            j = names.index(name)
            slopes[i, j] = sign * scale[j]
            offsets[i] += sign * mean[j]
        size = np.abs(slopes[i]).max()
        slopes[i], offsets[i] = slopes[i] / size, (offsets[i] + relation.constant) / size
    region = NumberRegion(leaf(low), leaf(high), leaf(slopes), leaf(offsets))
    return NumberRequest(region, held, bounded, np.array(cases, float).reshape(len(cases), held.sum()))


class ConditionalGaussian:
    """Regression of the free numbers on those of a request, over some rows: proposals, starts and steps follow it."""

    def __init__(self, rows, asked):
        self.asked, self.free = asked, ~asked
        self.mean = rows.mean(axis=0, dtype=float)
        covariance = covariance_of_columns(rows)
        self.spread = np.sqrt(np.maximum(np.diag(covariance), NARROW))
        covariance += NARROW * np.diag(self.spread**2) + np.diag(np.diag(covariance) == 0) * NARROW
        across = covariance[np.ix_(self.free, asked)]
        self.given_inverse = np.linalg.inv(covariance[np.ix_(asked, asked)])
        self.slopes = across @ self.given_inverse
        self.root = np.linalg.cholesky(covariance[np.ix_(self.free, self.free)] - self.slopes @ across.T)

    def shifted(self, rows, wanted):
        """Rows with other requested numbers (n, k), which the free ones follow; and how far that is."""
        change = wanted - rows[:, self.asked]
        moved = rows.astype(float)
        moved[:, self.asked] = wanted
        moved[:, self.free] += change @ self.slopes.T
        return moved, np.einsum("ni,ij,nj->n", change, self.given_inverse, change)

    def proposals(self, rng, wanted):
        """Rows with free numbers drawn wider than their Gaussian law given the requested ones, and log densities."""
        z, root = rng.normal(size=(len(wanted), len(self.root))), WIDER * self.root
        rows = np.zeros((len(wanted), len(self.asked)))
        rows[:, self.asked] = wanted
        rows[:, self.free] = self.mean[self.free] + (wanted - self.mean[self.asked]) @ self.slopes.T + z @ root.T
        log_density = -0.5 * (z**2).sum(axis=1) - 0.5 * z.shape[1] * np.log(2 * np.pi) - np.log(np.diag(root)).sum()
        return rows, log_density

    def moves(self, bounded, low, high):
        """`Moves` of chains: steps of a bounded number are about as wide as it may vary."""
        spread = np.zeros((len(self.asked),) * 2)
        spread[np.ix_(self.free, self.free)] = self.root
        along = []
        for k, j in enumerate(np.flatnonzero(self.asked)):
            if bounded[j]:
                direction = np.zeros(len(self.asked))
                direction[j], direction[self.free] = 1.0, self.slopes[:, k]
                along.append(direction * min(self.spread[j], high[j] - low[j]))
        return Moves(leaf(spread), leaf(np.array(along).reshape(-1, len(self.asked)).T))


class NumberEnergy:
    """An energy of standardised numbers, with rows to start from; what requests need of any model of numbers."""

    def __init__(self, potential, mean, scale, start_rows, points=1, log_constant=0.0):
        self.potential, self.mean, self.scale, self.points = potential, mean, scale, points
        self.log_constant = log_constant  # that makes it a log density of standardised rows
        self.start_rows = np.asarray(start_rows, float)

    def _gaussian(self, wanted):
        return ConditionalGaussian(self.start_rows, wanted.held | wanted.bounded)

    def _ends(self, wanted):
        """Finite bounds of the bounded numbers: beyond those of the real rows there is next to nothing."""
        low, high = (np.asarray(end, float) for end in (wanted.region.low, wanted.region.high))
        reach = np.ptp(self.start_rows, axis=0)
        return (
            np.maximum(low, np.minimum(self.start_rows.min(axis=0) - reach, high - reach)),
            np.minimum(high, np.maximum(self.start_rows.max(axis=0) + reach, low + reach)),
        )

    def log_mass(self, key, wanted, case):
        """Log of the integral of exp(potential) over the rows that meet a request, by importance sampling."""
        rng, gaussian, (low, high) = host_rng(key, Stream.IMPORTANCE_DRAWS), self._gaussian(wanted), self._ends(wanted)
        cells = np.zeros((N_PROPOSALS, len(wanted.held)))
        cells[:, wanted.held] = case
        own = wanted.bounded
        cells[:, own] = rng.uniform(low[own], high[own], (N_PROPOSALS, own.sum()))
        rows, log_q = gaussian.proposals(rng, cells[:, gaussian.asked])
        log_q -= np.log(high[own] - low[own]).sum()
        rows = leaf(rows)
        inside = _inside(wanted.region, rows)
        logs = map_rows(self.potential, rows, points=self.points).astype(float) - log_q
        log_mean = logsumexp(np.where(inside, logs, -np.inf)) - np.log(N_PROPOSALS)
        return float(log_mean - np.log(self.scale[wanted.held]).sum())  # in the units of the table

    def draw(self, key, wanted, cases):
        """Standardised rows that meet a request, one for each of the cases (n, held numbers)."""
        rng, gaussian, (low, high) = host_rng(key, Stream.CHAIN_STARTS), self._gaussian(wanted), self._ends(wanted)
        starts = self._starts(rng, gaussian, wanted, cases, low, high)
        moves = gaussian.moves(wanted.bounded, low, high)
        step = FIRST_STEP / max(1, gaussian.free.sum()) ** (1 / 3)
        while True:
            ends, accepted = walk_numbers(
                key, self.potential, wanted.region, moves, leaf(starts), step=step, n_steps=N_STEPS, points=self.points
            )
            if accepted > LEAST_ACCEPTED or step < FEWEST_STEP or not gaussian.free.any():
                return ends
            step /= SMALLER

    def _starts(self, rng, gaussian, wanted, cases, low, high):
        """Real rows near the request, shifted to it."""
        if not gaussian.asked.any():
            return self.start_rows[rng.choice(len(self.start_rows), len(cases))]
        starts = np.empty((len(cases), len(wanted.held)))
        for case in np.unique(cases, axis=0):
            own = np.flatnonzero((cases == case).all(axis=1))
            cells = np.where(wanted.bounded, self.start_rows.clip(low, high), self.start_rows)
            clipped = wanted.bounded & (cells != self.start_rows)
            # Not at the bound itself, where a first step would be refused half of the time.
            cells = np.where(clipped, rng.uniform(low, high, cells.shape), cells) if clipped.any() else cells
            cells[:, wanted.held] = case
            shifted, distance = gaussian.shifted(self.start_rows, cells[:, gaussian.asked])
            n_near = min(len(shifted), max(FEWEST_NEAR, int(SHARE_NEAR * len(shifted))))
            near = np.argpartition(distance, n_near - 1)[:n_near]
            starts[own] = shifted[rng.choice(near, len(own))]
        return starts


def _inside(region, rows):
    low, high = np.asarray(region.low), np.asarray(region.high)
    within = ((rows >= low) & (rows <= high)).all(axis=1)
    return within & (rows @ np.asarray(region.slopes).T + np.asarray(region.offsets) <= 0).all(axis=1)


def requested_numbers(key, models, log_weights, request, n):
    """n rows that meet a request up to rounding and to equalities, in the units of the table, and their models.

    The models (`NumberEnergy`) and the listed values take turns in proportion to their probability given the request;
    `log_weights` are those of the models without one.
    """
    wanted = [number_request(request, model.mean, model.scale) for model in models]
    pairs = [(m, c) for m in range(len(models)) for c in range(len(wanted[m].cases))]
    logs = np.zeros(len(pairs))
    if len(pairs) > 1:
        logs = np.array([
            log_weights[m] + models[m].log_mass(jax.random.fold_in(key, m), wanted[m], wanted[m].cases[c])
            for m, c in pairs
        ])  # fmt: skip
    shares = np.exp(logs - logs.max())
    chosen = host_rng(key, Stream.EXACT_DRAWS).choice(len(pairs), n, p=shares / shares.sum())
    rows, owners = np.empty((n, len(request.columns))), np.array([m for m, _ in pairs])[chosen]
    for m, model in enumerate(models):
        own = np.flatnonzero(owners == m)
        if len(own):
            cases = np.array([wanted[m].cases[pairs[i][1]] for i in chosen[own]]).reshape(len(own), -1)
            drawn = model.draw(jax.random.fold_in(key, len(models) + m), wanted[m], cases)
            rows[own] = drawn * model.scale + model.mean
    return rows, owners
