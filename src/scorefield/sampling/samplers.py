"""Samplers of a score field: Langevin, annealed Langevin, MALA, HMC and reverse diffusion.

Eq:Langevin_dynamics of the paper, with its step size epsilon, chain length l, discard rate gamma and start rule.
"""

import dataclasses
import inspect
from typing import Any, ClassVar

import jax
import numpy as np

from scorefield._jax.batching import as_rows, map_rows
from scorefield._jax.errors import DivergedError
from scorefield._jax.pytrees import Method, leaf
from scorefield._jax.random import Stream, host_rng
from scorefield._jax.storage import stored_by_public_name
from scorefield.fields.base import Field, Tempered
from scorefield.fields.diffusion import DiffusionField
from scorefield.fields.networks import in_half
from scorefield.sampling.kernels import AdjustedKernel, AnnealedKernel, LangevinKernel, ReverseKernel, run_chains

ESCAPE = 10.0  # a chain has diverged when it is this many times further from the mean than the furthest row
RARE = 0.01  # share of diverged chains up to which only those are replaced; above it the step is too large for all
MAX_RETRIES = 12  # each with a quarter of the step: 4^-12 spans seven orders of magnitude
# Samplers without a step redraw diverged chains. With a larger share in each of several runs, the remaining rows would
# not follow the density.
COMMON = 0.1
COMMON_RUNS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Samples:
    """Generated rows with diagnostics; those of mixing are computed on access."""

    rows: np.ndarray  # (n, d)
    parents: np.ndarray  # (n,) index of the row that each chain started from, -1 for noise
    n_diverged: int  # number of chains that diverged and were dropped
    step_size: float | None  # final step size, reduced after divergence
    acceptance: float | None  # mean acceptance probability of adjusted samplers
    chains: np.ndarray | None = None  # (chains, states, d)

    def _mixing(self, name: str) -> np.ndarray | None:
        # R-hat is defined for chains split into halves of at least four draws.
        if self.chains is None or self.chains.shape[0] < 2 or self.chains.shape[1] < 8:
            return None
        from blackjax import diagnostics  # late, since it starts JAX's backend

        return np.asarray(jax.jit(getattr(diagnostics, name))(self.chains))  # jitted to avoid eager dispatch

    @property
    def ess(self) -> np.ndarray | None:
        """(d,) bulk effective sample size, or None if chains are too few or too short."""
        return self._mixing("ess_bulk")

    @property
    def r_hat(self) -> np.ndarray | None:
        """(d,) rank-normalised split R-hat, or None if chains are too few or too short."""
        return self._mixing("rhat")


class _Parameters:
    """`get_params` and `set_params` as in scikit-learn, so that a grid search can tune samplers."""

    @classmethod
    def _names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> "_Parameters":
        for name, value in params.items():
            if name not in self._names():
                raise ValueError(f"Expected a parameter of {self._names()}, got {name!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.get_params().items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_params() == other.get_params()

    __hash__ = None  # type: ignore[assignment]


class Sampler(_Parameters):
    """Base class: runs chains in one compiled loop and replaces diverged ones."""

    step_size: float | None = None
    needs: ClassVar[str] = "score"

    def _kernel(self, field: Any, step_size: Any) -> Any:
        raise NotImplementedError

    def _schedule(self) -> tuple[int, int]:
        """Number of steps, and number of discarded steps."""
        raise NotImplementedError

    def _starts(self, rng, field, rows, n_chains) -> tuple[np.ndarray, np.ndarray]:
        """Start rows and their indices: all rows equally often, with the remaining chains at random rows."""
        n = len(rows)
        order = rng.permutation(n) if n_chains > n and n_chains % n else np.arange(n)
        parents = rng.permutation(np.resize(order, max(n_chains, n)))[:n_chains]
        return rows[parents], parents

    def _check(self, field: Any) -> None:
        if self.step_size is not None and not self.step_size > 0:
            raise ValueError(f"Expected step_size > 0, got {self.step_size}.")
        if self.needs == "potential" and not field.conservative:
            raise ValueError(
                f"{type(self).__name__} needs a field with a potential, got {type(field).__name__}; "
                "use model='energy', 'kernel', 'mixture' or 'gaussian', or sample with Langevin."
            )
        if self.needs == "levels" and not isinstance(field, DiffusionField):
            raise ValueError(
                f"{type(self).__name__} needs a noise-conditional field, got {type(field).__name__}; "
                "use model='diffusion', or sample with Langevin."
            )

    def sample(self, key: jax.Array, field: Field, n: int, rows: Any) -> Samples:
        """Draw `n` rows from the density of `field`, with chains that start from the data `rows`.

        Chains diverge when they become non-finite or leave the data by ten times its spread. They are replaced by
        chains with a quarter of the step size; if more than 1 % diverge, all chains are. Samplers without a step size
        redraw them with new noise. If chains keep diverging, DivergedError is raised.
        """
        self._check(field)
        if n < 1:
            raise ValueError(f"Expected n >= 1 rows to generate, got {n}.")
        table = as_rows(rows, minimum=1)
        centre, limit = _escape_box(table, field)
        n_steps, n_discard = self._schedule()
        n_keep = n_steps - n_discard
        missing, n_diverged, n_common, step = -(-n // n_keep), 0, 0, self.step_size
        kept, parents, acceptance = [], [], []
        for attempt in range(MAX_RETRIES + 1):
            run_key = jax.random.fold_in(key, attempt)
            starts, parent = self._starts(host_rng(key, Stream.CHAIN_STARTS, attempt), field, table, missing)
            # A float32 array: a retry with another step needs no compilation.
            kernel = self._kernel(field, None if step is None else leaf(step))
            chains, ok, rate = run_chains(run_key, kernel, starts, centre, limit, n_steps, n_discard)
            n_diverged += int((~ok).sum())
            n_common = n_common + 1 if (~ok).mean() > COMMON else 0
            if step is not None and attempt < MAX_RETRIES and (~ok).mean() > RARE:
                ok[:] = False
            kept.append(chains[ok])
            parents.append(parent[ok])
            acceptance.append(rate[ok])
            missing -= int(ok.sum())
            if missing == 0:
                break
            if step is not None:
                step /= 4
            elif n_common == COMMON_RUNS:
                break
        if missing:
            tried = f"in {attempt + 1} runs" if step is None else f"even with a step size of {step}"
            raise DivergedError(
                f"Expected finite chains, got {n_diverged} diverged ones {tried}; the field is not finite or does not "
                "point back to the data: refit it with more noise or more rows."
            )
        return _collect(np.concatenate(kept), np.concatenate(parents), n, n_diverged, step,
                        float(np.concatenate(acceptance).mean()) if self.needs == "potential" else None)  # fmt: skip


def _escape_box(table: np.ndarray, field: Field) -> tuple[np.ndarray, float]:
    """Centre of the rows, and the distance from it beyond which a chain has diverged."""
    centre = table.mean(axis=0)
    # Rows without spread, such as a single one, get the scale of their values, or one.
    spread = np.abs(table - centre).max() or max(np.abs(centre).max(), 1.0)
    return centre, ESCAPE * float(spread + getattr(field, "sigma_max", 0.0))


def _collect(chains, parents, n, n_diverged, step, acceptance) -> Samples:
    """Flatten chains state by state, so that the first rows come from different chains."""
    _, n_keep, d = chains.shape
    rows = chains.swapaxes(0, 1).reshape(-1, d)[:n]
    return Samples(rows, np.tile(parents, n_keep)[:n], n_diverged, step, acceptance, chains)


@stored_by_public_name
class Langevin(Sampler):
    """Unadjusted Langevin dynamics, as the paper defines it.

    Parameters
    ----------
    step_size : float, default=0.01
        The paper's epsilon: x <- x + epsilon/2 s(x) + sqrt(epsilon) z.
    chain_length : int, default=100
        The paper's l: number of steps per chain.
    discard : float in [0, 1), default=0.2
        The paper's gamma: the first floor(gamma l) states of a chain are dropped and all others are returned.
    start : {"data", "inverse-score"}, default="data"
        Start rows: all equally often, or with probability proportional to ``1 / |s|``.
    precision : {"auto", "single", "half"}, default="auto"
        Precision of the field's networks. "half" is bfloat16; states and noise stay in single precision. "auto" is
        "half" on an accelerator for energies, which standardize their inputs, and "single" otherwise.
    temperature : float, default=1.0
        Chains follow p^(1/temperature): below 1 they stay near the modes, above 1 they spread. 1 is the density itself.

    Examples
    --------
    >>> import jax
    >>> from scorefield import Langevin
    >>> from scorefield.fields.gaussian import standard_gaussian
    >>> sampler = Langevin(step_size=0.1, chain_length=50)
    >>> sampler.sample(jax.random.key(0), standard_gaussian(2), 100, [[0.0, 0.0]]).rows.shape
    (100, 2)
    """

    def __init__(
        self, step_size=0.01, chain_length=100, discard=0.2, start="data", precision="auto", temperature=1.0
    ):  # fmt: skip
        self.step_size = step_size
        self.chain_length = chain_length
        self.discard = discard
        self.start = start
        self.precision = precision
        self.temperature = temperature

    def _kernel(self, field, step_size):
        if self.precision not in ("auto", "single", "half"):
            raise ValueError(f"Expected precision 'auto', 'single' or 'half', got {self.precision!r}.")
        fit_for_half = field.unit_inputs and jax.default_backend() != "cpu"
        half = self.precision == "half" or (self.precision == "auto" and fit_for_half)
        return LangevinKernel(self._tempered(in_half(field) if half else field), step_size)

    def _tempered(self, field):
        if not 0 < self.temperature < np.inf:
            raise ValueError(f"Expected temperature > 0, got {self.temperature}.")
        return field if self.temperature == 1 else Tempered(field, leaf(self.temperature))

    def _schedule(self):
        if int(self.chain_length) != self.chain_length or self.chain_length < 1:
            raise ValueError(f"Expected chain_length to be an integer >= 1, got {self.chain_length}.")
        if not 0 <= self.discard < 1:
            raise ValueError(f"Expected discard in [0, 1), got {self.discard}.")
        # The small constant corrects products such as 0.29 * 100 = 28.999...
        return int(self.chain_length), int(self.discard * self.chain_length + 1e-9)

    def _starts(self, rng, field, rows, n_chains):
        if self.start == "data":
            return super()._starts(rng, field, rows, n_chains)
        if self.start != "inverse-score":
            raise ValueError(f"Expected start 'data' or 'inverse-score', got {self.start!r}.")
        norms = np.linalg.norm(map_rows(Method(field, "__call__"), rows), axis=1)
        weights = 1 / np.maximum(norms, np.finfo(np.float32).tiny)
        if not np.isfinite(weights).all():
            raise ValueError(
                "Expected finite scores at the rows, got NaN or infinity; refit the field with more noise."
            )
        weights = weights.astype(np.float64)
        parents = rng.choice(len(rows), n_chains, p=weights / weights.sum())
        return rows[parents], parents


@stored_by_public_name
class MALA(Langevin):
    """Metropolis-adjusted Langevin on a potential (blackjax), exact for any step size.

    Parameters are those of :class:`Langevin` but for the precision, with the same epsilon.

    Examples
    --------
    >>> import jax
    >>> from scorefield import MALA
    >>> from scorefield.fields.gaussian import standard_gaussian
    >>> drawn = MALA(step_size=0.5).sample(jax.random.key(0), standard_gaussian(2), 100, [[0.0, 0.0]])
    >>> 0.5 < drawn.acceptance <= 1.0
    True
    """

    needs = "potential"

    def __init__(self, step_size=0.1, chain_length=200, discard=0.5, start="data", temperature=1.0):
        super().__init__(step_size, chain_length, discard, start, temperature=temperature)

    def _kernel(self, field, step_size):
        return AdjustedKernel(self._tempered(field), step_size)


@stored_by_public_name
class HMC(Langevin):
    """Hamiltonian Monte Carlo on a potential (blackjax).

    Parameters
    ----------
    step_size : float, default=0.2
        Leapfrog step.
    n_leapfrog : int, default=10
        Leapfrog steps per proposal.
    chain_length, discard, start
        As in :class:`Langevin`.

    Examples
    --------
    >>> import jax
    >>> from scorefield import HMC
    >>> from scorefield.fields.gaussian import standard_gaussian
    >>> HMC(chain_length=20).sample(jax.random.key(0), standard_gaussian(3), 10, [[0.0, 0.0, 0.0]]).rows.shape
    (10, 3)
    """

    needs = "potential"

    def __init__(self, step_size=0.2, n_leapfrog=10, chain_length=100, discard=0.5, start="data"):
        super().__init__(step_size, chain_length, discard, start)
        self.n_leapfrog = n_leapfrog

    def _kernel(self, field, step_size):
        if self.n_leapfrog < 1:
            raise ValueError(f"Expected n_leapfrog >= 1, got {self.n_leapfrog}.")
        return AdjustedKernel(field, step_size, int(self.n_leapfrog))


class _FromNoise(Sampler):
    """Chains that start from the largest noise level instead of a row, with one kept row per chain."""

    needs = "levels"

    def _starts(self, rng, field, rows, n_chains):
        mean, axes, variances, sigma = (
            np.asarray(a) for a in (field.mean, field.axes, field.variances, field.sigma_max)
        )
        noise = rng.normal(size=(n_chains, rows.shape[1])) * np.sqrt(variances + sigma**2)
        return (mean + noise @ axes.T).astype(np.float32), np.full(n_chains, -1)


@stored_by_public_name
class AnnealedLangevin(_FromNoise):
    """Langevin over decreasing noise levels of a `diffusion` model, which mixes between distant modes.

    Parameters
    ----------
    step_size : float, default=0.3
        Step size at noise sigma, in units of sigma^2.
    n_levels : int, default=30
        Number of noise levels, geometric from the largest to the smallest.
    steps_per_level : int, default=40
        Langevin steps per level. Chains equilibrate at each level if steps_per_level * step_size is well above one.

    Examples
    --------
    >>> from scorefield import AnnealedLangevin
    >>> AnnealedLangevin(n_levels=5)
    AnnealedLangevin(step_size=0.3, n_levels=5, steps_per_level=40)
    """

    def __init__(self, step_size=0.3, n_levels=30, steps_per_level=40):
        self.step_size = step_size
        self.n_levels = n_levels
        self.steps_per_level = steps_per_level

    def _kernel(self, field, step_size):
        return AnnealedKernel(field, step_size, int(self.n_levels), int(self.steps_per_level))

    def _schedule(self):
        if self.n_levels < 1 or self.steps_per_level < 1:
            raise ValueError(
                f"Expected n_levels and steps_per_level >= 1, got {self.n_levels}, {self.steps_per_level}."
            )
        n_steps = int(self.n_levels * self.steps_per_level)
        return n_steps, n_steps - 1


@stored_by_public_name
class ReverseDiffusion(_FromNoise):
    """Independent rows by integrating the probability-flow equation of a `diffusion` model from noise to data.

    Parameters
    ----------
    n_levels : int, default=40
        Heun steps from the largest to the smallest noise level.

    Examples
    --------
    >>> from scorefield import ReverseDiffusion
    >>> ReverseDiffusion().get_params()
    {'n_levels': 40}
    """

    def __init__(self, n_levels=40):
        self.n_levels = n_levels

    def _kernel(self, field, step_size):
        return ReverseKernel(field, int(self.n_levels))

    def _schedule(self):
        if self.n_levels < 1:
            raise ValueError(f"Expected n_levels >= 1, got {self.n_levels}.")
        return int(self.n_levels), int(self.n_levels) - 1
