"""Checks of a fitted model, each with what was expected and a verdict in words.

A verdict is "good", "look at it", "bad" or "not measured"; the thresholds are the constants of this module.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scorefield._jax.errors import DivergedError
from scorefield._jax.random import Stream, host_rng
from scorefield.inference.score_gain import denoising_gains, fit_gaussian_scores
from scorefield.inference.stein import stein_kernel, stein_test
from scorefield.models.calibration import calibration_error, usual_calibration_error
from scorefield.sampling.acceptance import LOW_ACCEPTANCE, USUAL_ACCEPTANCE

GOOD, LOOK, BAD, NOT_MEASURED = "good", "look at it", "bad", "not measured"
BETTER = "better than a Gaussian"
MAX_STEIN_ROWS = 500  # the kernel is a matrix of them
MAX_FIELD_ROWS = 1000  # for the other checks of the field: the error of a gain is then a few hundredths
MAX_LABELLED = 5000  # rows on which probabilities are judged
FEWEST_ROWS = 20  # below which nothing is told from chance
FEW_FOR_STEIN = 100  # rows below which the Stein test misses a mean that is off by a quarter of the deviation
P_LOOK, P_BAD = 0.05, 0.005  # a true field is called bad once in 200 times
SUSPECT, ERRORS = 2.0, 3.0  # standard errors that chance exceeds once in 22 times, and once in 370 times
LEAST_GAIN = 0.02  # of a Gaussian's: two Gaussians of a thousand rows differ by as much, with a small error
NATS_LOOK, NATS_BAD = 0.2, 1.0  # a density that is off by a fifth, and by a factor of e
FEWEST_NATS = 0.01  # per cell: the odds of the right value are one in a hundred better than by the margins
R_HAT = 1.1  # Gelman & Rubin (1992); Vehtari et al. (2021) ask for 1.01 of chains much longer than these
FEWEST_DRAWS = 100.0  # effective ones: means of the chains are known to a tenth of a deviation
DIVERGED_BAD = 0.01  # the share from which the samplers reduce the step of all chains
MISCALIBRATED = 0.1  # error beyond chance: ten points of probability change decisions
ROUNDING = 1e-9  # of probabilities that are those of the class frequencies
# Chains start from rows, so that they need no burn-in. A step of .05 forgets the start in about 40 steps, and a half
# of a chain must be 20 times as long for an R-hat of 1.05.
N_CHAINS, CHAIN_STEPS, DISCARD = 32, 2000, 0.1


@dataclasses.dataclass(frozen=True)
class Check:
    """One line of a `Diagnosis`."""

    key: str
    name: str
    value: float | None
    expected: str
    verdict: str
    note: str = ""

    def cells(self):
        """The line as texts."""
        value = "" if self.value is None else f"{self.value:.3g}"
        return [self.name, value, self.expected, self.verdict + (f": {self.note}" if self.note else "")]


def not_measured(key, name, why):
    """A check that says why there is no value."""
    return Check(key, name, None, "", NOT_MEASURED, why)


def rules_check(share):
    """The share of the rules in the probabilities of a joint model; any share is good."""
    note = "probabilities rest on rules more than on the networks" if share > 0.5 else ""
    return Check("rules_share", "share of the rules", share, "0 to 1", GOOD, note)


class Diagnosis:
    """Checks of a fitted model, printed as a table with a line for each.

    Values are attributes by the ``key`` of a check (``diagnosis.score_gain``), and ``diagnosis["score_gain"]`` is the
    check itself.

    Attributes
    ----------
    checks : list of Check
        With ``key``, ``name``, ``value``, ``expected``, ``verdict`` and ``note``.
    rows : str
        The rows that the model was judged on.
    verdict : str
        The worst verdict of all checks that were measured.
    """

    def __init__(self, checks, rows):
        self.checks, self.rows = list(checks), rows

    @property
    def verdict(self):
        found = {check.verdict for check in self.checks}
        return next((verdict for verdict in (BAD, LOOK, GOOD) if verdict in found), NOT_MEASURED)

    def __getitem__(self, key):
        for check in self.checks:
            if check.key == key:
                return check
        raise KeyError(f"Expected a key of {[check.key for check in self.checks]}, got {key!r}.")

    def __getattr__(self, key):
        if key != "checks" and any(check.key == key for check in self.checks):
            return self[key].value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}")

    def __dir__(self):
        return sorted({*super().__dir__(), *(check.key for check in self.checks)})

    def to_dict(self):
        """Keys of the checks to dictionaries with name, value, expected, verdict and note."""
        lines = [dataclasses.asdict(check) for check in self.checks]
        return {line.pop("key"): line for line in lines}

    def __repr__(self):
        lines = [["check", "value", "expected", "verdict"], *(check.cells() for check in self.checks)]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        table = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([f"Judged on {self.rows}.", *(line.rstrip() for line in table)])


class JudgedRows(NamedTuple):
    """Rows in the units of a field, with the field as a function of their numbers."""

    numbers: np.ndarray  # (n, p)
    known: np.ndarray  # (n, p)
    codes: np.ndarray  # (n, q), the label among them
    labels: np.ndarray  # (n,) class indices
    scores: Callable  # numbers (m, p) and the places of their rows (m,) to scores (m, p)
    color: np.ndarray  # (p, p): the field is that of rows with noise z color


def limited(rng, n, most):
    """Sorted indices of n rows, or of `most` of them at random."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def graded(value, look, bad):
    """The verdict on a value of which less is better."""
    return GOOD if value <= look else LOOK if value <= bad else BAD


def field_checks(key, judged, reference):
    """Checks of a field at rows; `reference` are training rows, to which a Gaussian is fitted."""
    gain, stein = ("score_gain", "score-matching gain"), ("stein_p_value", "kernel Stein test, p-value")
    n, p = judged.numbers.shape
    why = "the table has no numbers" if p == 0 else f"{n} rows, fewer than {FEWEST_ROWS}" if n < FEWEST_ROWS else None
    if why:
        return [not_measured(*gain, why), not_measured(*stein, why)]
    gained = _gain_check(gain, key, judged, reference)
    return [gained, _stein_check(stein, key, judged, n_learned=len(reference.numbers), better=gained.note == BETTER)]


def _gaussians(rng, judged, at, reference):
    """Scores of two Gaussians: of the training rows, and of the judged rows, each half with that of the other half.

    The second knows relations that the training rows do not have; the first is better where judged rows are few.
    """
    noise = judged.color.T.astype(float) @ judged.color
    n_classes = int(max(reference.labels.max(), judged.labels.max())) + 1
    half = rng.permutation(len(at)) % 2
    rows = [at[half == 1], at[half == 0]]
    parts = [(judged.numbers[own], judged.known[own], judged.labels[own]) for own in rows]
    of_half = [fit_gaussian_scores(*part, n_classes, noise) for part in parts]

    def crossed(numbers, known, labels):
        scores = [field(numbers, known, labels) for field in of_half]
        return np.where((half == 0)[:, None], *scores)

    return [fit_gaussian_scores(*reference[:2], reference.labels, n_classes, noise), crossed]


def _gain_check(named, key, judged, reference):
    """The gain in denoising loss over no field, in units of that of a Gaussian."""
    rng = host_rng(key, Stream.DIAGNOSIS, 0)
    at = limited(rng, len(judged.numbers), MAX_FIELD_ROWS)
    known, labels = judged.known[at], judged.labels[at]
    fields = [
        lambda numbers: judged.scores(numbers, at),
        *(
            lambda numbers, field=field: field(numbers, known, labels)
            for field in _gaussians(rng, judged, at, reference)
        ),
    ]
    gains = denoising_gains(rng, fields, judged.numbers[at], known, judged.color)
    own, *others = gains.mean(axis=0)
    unit, best = max(others), 1 + int(np.argmax(others))
    expected = "1 for a Gaussian, 0 without a field"
    if not unit > 0:  # rows of another law
        told = (GOOD, "and a Gaussian is not better than no field") if own > 0 else (BAD, "no better than no field")
        return Check(*named, None, expected, *told)
    error = np.std(gains[:, 0] - gains[:, best], ddof=1) / np.sqrt(len(at)) / unit
    value = float(own / unit)
    if not value > 0:
        return Check(*named, value, expected, BAD, "no better than no field")
    if value < 1 - max(SUSPECT * error, LEAST_GAIN):
        verdict = BAD if value < 1 - ERRORS * error else LOOK
        return Check(*named, value, expected, verdict, "worse than a Gaussian")
    return Check(*named, value, expected, GOOD, BETTER if value > 1 + max(ERRORS * error, LEAST_GAIN) else "")


def _stein_check(named, key, judged, *, n_learned, better):
    """The kernel Stein test of rows with the field's own noise.

    With many rows it finds errors that matter little: a field that is better than a Gaussian is not called bad.
    """
    rng = host_rng(key, Stream.DIAGNOSIS, 1)
    at = limited(rng, len(judged.numbers), MAX_STEIN_ROWS)
    known = judged.known[at]
    noisy = judged.numbers[at] + known * (rng.normal(size=known.shape) @ judged.color)
    kernel = stein_kernel(noisy, judged.scores(noisy, at), known=known, codes=judged.codes[at])
    p_value, expected = stein_test(rng, kernel, n_learned=n_learned).p_value, f"above {P_LOOK:g}"
    if p_value >= P_LOOK:
        note = "few rows, so it finds gross errors only" if len(at) < FEW_FOR_STEIN else ""
        return Check(*named, p_value, expected, GOOD, note)
    verdict = BAD if p_value < P_BAD and not better else LOOK
    return Check(*named, p_value, expected, verdict, "the rows do not follow the field" + " exactly" * better)


def cell_check(losses, shuffled, independent):
    """How well cells are told from draws of their columns: losses of the rows and of rows with shuffled columns.

    The baseline is the lesser loss of independent columns: those of the margins, or of the model on shuffled columns,
    where it may know the shape of a column better. A model that ignores relations has no gain over the second one.
    """
    named = ("cell_gain", "cells predicted by the rest of the row")
    error = np.sqrt(np.var(losses) / len(losses) + np.var(shuffled) / len(shuffled))
    gain = min(independent, shuffled.mean()) - losses.mean()
    note, verdict = "", GOOD
    if gain < max(ERRORS * error, FEWEST_NATS):
        verdict = BAD if gain < -ERRORS * error else LOOK
        note = "no better than independent columns"
    return Check(*named, float(gain), "above 0, nats a cell", verdict, note)


def nats_check(key, name, value):
    """A value in nats by which log densities may be off."""
    return Check(key, name, float(value), f"below {NATS_LOOK:g} nats", graded(value, NATS_LOOK, NATS_BAD))


CHAIN_NAMES = {
    "acceptance": "acceptance of chains",
    "r_hat": "R-hat of chains",
    "effective_draws": "effective draws of chains",
    "diverged": "share of diverged chains",
}


def chain_checks(draw):
    """Checks of chains; `draw` gives their `Samples`, or a text that says why there are no chains."""
    try:
        drawn = draw()
    except DivergedError as error:
        lost = Check("diverged", CHAIN_NAMES["diverged"], 1.0, "0", BAD, str(error))
        return [*(not_measured(k, CHAIN_NAMES[k], "chains diverged") for k in list(CHAIN_NAMES)[:3]), lost]
    if isinstance(drawn, str):
        return [not_measured(k, name, drawn) for k, name in CHAIN_NAMES.items()]
    n_chains = len(drawn.rows) if drawn.chains is None else len(drawn.chains)
    share = drawn.n_diverged / (drawn.n_diverged + n_chains)
    diverged = Check("diverged", CHAIN_NAMES["diverged"], share, "0", graded(share, 0.0, DIVERGED_BAD))
    return [_acceptance_check(drawn.acceptance), *_mixing_checks(drawn), diverged]


def _acceptance_check(rate):
    named = ("acceptance", CHAIN_NAMES["acceptance"])
    if rate is None:
        return not_measured(*named, "every step of these chains is accepted")
    verdict = GOOD if rate >= USUAL_ACCEPTANCE else LOOK if rate >= LOW_ACCEPTANCE else BAD
    return Check(*named, float(rate), f"above {USUAL_ACCEPTANCE:g}", verdict)


def _mixing_checks(drawn):
    """R-hat and effective sample size: of slow chains generated rows resemble the rows that they start from."""
    r_hat, ess = drawn.r_hat, drawn.ess
    names = [(key, CHAIN_NAMES[key]) for key in ("r_hat", "effective_draws")]
    if r_hat is None or not np.isfinite(r_hat).any():
        return [not_measured(*named, "every row has a chain of its own") for named in names]
    worst, fewest = float(np.nanmax(r_hat)), float(np.nanmin(ess))
    slow = "chains forget their start slowly"
    mixed, enough = worst <= R_HAT, fewest >= FEWEST_DRAWS
    return [
        Check(*names[0], worst, f"below {R_HAT:g}", GOOD if mixed else LOOK, "" if mixed else slow),
        Check(*names[1], fewest, f"above {FEWEST_DRAWS:g}", GOOD if enough else LOOK, "" if enough else slow),
    ]


LABEL_NAMES = {"log_loss": "log loss", "calibration_error": "expected calibration error"}


def label_checks(key, log_proba, labels, frequencies):
    """Checks of probabilities on held-out rows; `labels` are class indices."""
    rng = host_rng(key, Stream.DIAGNOSIS, 2)
    at = limited(rng, len(labels), MAX_LABELLED)
    logs, labels = np.maximum(log_proba[at].astype(np.float64), np.log(1e-15)), labels[at]
    losses, usual = -logs[np.arange(len(at)), labels], -np.log(frequencies)[labels]
    error = np.std(usual - losses, ddof=1) / np.sqrt(len(at))
    gain = float(np.mean(usual - losses))
    verdict = GOOD if gain > ERRORS * error else LOOK if gain > -max(ERRORS * error, ROUNDING) else BAD
    note = "" if verdict == GOOD else "no better than the class frequencies"
    loss = Check("log_loss", LABEL_NAMES["log_loss"], float(losses.mean()),
                 f"below {usual.mean():.3g}, that of the class frequencies", verdict, note)  # fmt: skip
    proba = np.exp(logs)
    found, chance = float(calibration_error(proba, labels)), usual_calibration_error(rng, proba)
    verdict = graded(found, chance, chance + MISCALIBRATED)
    return [loss, Check("calibration_error", LABEL_NAMES["calibration_error"], found,
                        f"below {chance:.3g}, which chance explains", verdict)]  # fmt: skip
