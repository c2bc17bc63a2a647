"""From the rows of a table to a `TableModel`: choose what members see, train, calibrate."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import softmax
from scipy.stats import kruskal

from scorefield._jax.errors import warn_caller
from scorefield._jax.random import Stream, host_rng, key_from
from scorefield.data.row_weights import as_shares, uneven
from scorefield.data.splits import same_rows, stratified_folds
from scorefield.models.calibration import fit_temperature
from scorefield.models.class_densities import class_rng, fit_class_densities
from scorefield.models.density_fitting import MAX_START_ROWS, history_of
from scorefield.models.ensemble import count_folds, member_splits, splits_of_folds
from scorefield.models.joint_model import Calibrated, calibrated, class_frame, train_joint
from scorefield.models.number_model import NumberModel
from scorefield.models.row_choice import choose_rows
from scorefield.models.row_model import RowModel
from scorefield.models.separate import SeparateModel
from scorefield.training.losses import LabelledRow

CALIBRATION_FOLDS = 3
NOISE, GENERATOR_MEMBERS, GENERATOR_STEPS = 0.15, 2, 1000  # `benchmarks/credible_rows.py`
# p-value below which, and share of the variance of ranks above which, gaps are taken to tell the label.
GAPS_BY_CHANCE, LEAST_TOLD = 0.001, 0.005


class JointSettings(NamedTuple):
    """How one energy of all classes is learned; `hidden` and `max_steps` may be "auto"."""

    label_weight: float
    denoising_weight: float
    n_members: int
    hidden: Any
    noise: float
    max_steps: Any
    calibrates: bool = False  # by labels that models have not seen
    rules: bool = True  # beside the networks, where held-out labels decide about their share
    common_per_rare: int | None = None  # rows of a class that labels are learned from, see `choose_rows`
    callback: Callable | None = None


class SeparateSettings(NamedTuple):
    """Densities to be cloned, one for each class, and the names of the classes."""

    densities: list
    labels: list
    calibrates: bool = False


class Judged(NamedTuple):
    """Rows that members judged without having trained on them."""

    held: np.ndarray  # numbers of rows, once for each member that judged them
    logits: np.ndarray  # (len(held), classes), calibrated

    def mean_probabilities(self, n, shift):
        """Of n rows, with a shift of the logits (n, classes); NaN for rows that all members trained on."""
        total, times = np.zeros((n, self.logits.shape[1])), np.bincount(self.held, minlength=n)
        np.add.at(total, self.held, softmax(self.logits + shift, axis=1))
        return np.where(times[:, None] > 0, total / np.maximum(times, 1)[:, None], np.nan).astype(np.float32)


def fit(seed, space, rows, labels, settings, weights=None, groups=None):
    """A `TableModel` of the rows of a space and their classes, by number, and how members `Judged` rows, or None.

    Rows of one of the `groups` (n,), where they are given, are on one side of every split.

    Calibrated by the rows that each member has not seen where labels taught it, and otherwise by models of the other
    folds.
    """
    separate = isinstance(settings, SeparateSettings)
    frequencies = _shares(labels, weights)
    if separate:
        model, judged = _fit_separate(seed, space, rows, labels, frequencies, settings, weights)
    else:
        model, judged = _fit_chosen(key_from(seed), space, rows, labels, frequencies, settings, weights, groups)
    if settings.calibrates and not model.by_labels:
        alone = settings._replace(calibrates=False) if separate else settings._replace(calibrates=False, callback=None)
        _calibrate(model, seed % (1 << 31), space, rows, labels, alone, weights, groups)
    return model, judged


def _fit_chosen(key, space, rows, labels, frequencies, settings, weights, groups):
    """`fit_joint` of the rows of a large table that are worth learning from, with the odds of the whole table."""
    choice = None
    if settings.label_weight > 0:
        choice = choose_rows(host_rng(key, Stream.CHOSEN_ROWS), labels, weights, settings.common_per_rare)
    if choice is None:
        return fit_joint(key, space, rows, labels, frequencies, settings, weights, groups)
    places, shift = choice
    own, groups = (None if part is None else part[places] for part in (weights, groups))
    shares = frequencies / np.exp(shift)
    model, judged = fit_joint(key, space, rows[places], labels[places], shares, settings, own, groups)
    model.frequencies, model.intercepts = frequencies, model.intercepts + shift
    return model, judged and Judged(places[judged.held], judged.logits + shift)


def fit_joint(key, space, rows, labels, frequencies, settings, weights=None, groups=None):
    """A `JointModel` of the rows of a space, and how members `Judged` rows, or None."""
    space = space.in_units_of(rows)
    rows = space.model_rows(rows)
    groups = None if groups is None else np.unique(groups, return_inverse=True)[1]
    splits = member_splits(
        host_rng(key, Stream.MEMBER_FOLDS), rows, labels, settings.n_members, layout=space.layout, groups=groups
    )
    copies = space.hidden_copies(host_rng(key, Stream.HIDDEN_CELLS), rows)
    weights = None if weights is None else weights.astype(np.float32)
    table = LabelledRow(rows, labels.astype(np.int32), weights, copies)
    return _trained(key, space, table, splits, frequencies, settings, rows, labels)


def fit_streamed(key, space, buffer, frequencies, settings):
    """A `NumberModel` of a table larger than the buffer that its rows are read through."""
    table, folds = buffer.draw()

    def refill():
        fresh, folds = buffer.refill()
        return [LabelledRow(*fresh)], splits_of_folds(folds, settings.n_members)

    splits = splits_of_folds(folds, settings.n_members)
    return _trained(key, space, LabelledRow(*table), splits, frequencies, settings, None, None, refill, buffer.pooled)[
        0
    ]


def count_buffer_folds(settings):
    """Folds of the rows in a buffer, of which each member is stopped by one."""
    return count_folds(settings.n_members)


def _trained(key, space, table, splits, frequencies, settings, rows, labels, refill=None, pooled=None):
    """Train the members, calibrate them by held-out labels, and keep rows that chains start from."""
    numbers, known = space.numbers(table.x)
    frame = class_frame(numbers, table.label, settings.noise, known)
    by_labels = settings.label_weight > 0
    joint = train_joint(
        key, table, splits, frame, frequencies=frequencies, label_weight=settings.label_weight,
        hidden=settings.hidden, max_steps=settings.max_steps, callback=settings.callback, layout=space.layout,
        refill=refill, two_views=by_labels or space.layout is None,
        labels_of_hidden=not gaps_tell_labels(space.n_gaps(table.x), table.label),
        with_rules=settings.calibrates and by_labels and settings.rules, denoising_weight=settings.denoising_weight,
    )  # fmt: skip
    found = calibrated(joint) if settings.calibrates and by_labels else Calibrated(joint.model, 1.0, None, None)
    rows, labels = pooled() if pooled else (rows, labels)
    # Permuted first: a sorted table must not start all chains at one end.
    order = host_rng(key, Stream.JOINT_START_ROWS).permutation(len(rows))
    starts = [rows[order[labels[order] == k]][:MAX_START_ROWS] for k in range(len(frequencies))]
    options = {
        "frequencies": frequencies, "by_labels": by_labels, "temperature": found.temperature,
        "anchor_seed": np.asarray(jax.random.key_data(key)), "history": [history_of(each) for each in joint.fits],
        "n_rows": len(rows) if refill is None else None,
    }  # fmt: skip
    judged = None if found.held is None else Judged(found.held, found.logits)
    if space.layout is None:
        return NumberModel(space, found.model, frame.color, starts, noise=settings.noise, **options), judged
    return RowModel(space, found.model, frame.color, starts, **options), judged


def fit_generator(key, space, rows, labels, *, hidden, weights=None, noise=None, max_steps=None, callback=None):
    """A `RowModel` for generating rows and filling gaps, whose labels are given and not learned."""
    settings = JointSettings(
        label_weight=0.0, denoising_weight=1.0, n_members=GENERATOR_MEMBERS, hidden=hidden,
        noise=NOISE if noise is None else noise, callback=callback,
        max_steps=GENERATOR_STEPS if max_steps is None else max_steps,
    )  # fmt: skip
    return fit_joint(key, space, rows, labels, _shares(labels, weights), settings, weights)[0]


def _shares(labels, weights=None):
    counts = np.bincount(labels, weights)
    return counts / counts.sum()


def gaps_tell_labels(n_gaps, labels):
    """Whether rows of some class have clearly more gaps than others: hidden cells would teach that they do not."""
    if np.ptp(n_gaps) == 0 or np.ptp(labels) == 0:
        return False
    found = kruskal(*(n_gaps[labels == k] for k in np.unique(labels)))
    return found.pvalue < GAPS_BY_CHANCE and found.statistic / (len(labels) - 1) > LEAST_TOLD


def _fit_separate(seed, space, rows, labels, frequencies, settings, weights):
    classes = range(len(settings.densities))
    tables, rngs = [rows[labels == k] for k in classes], [class_rng(seed, k) for k in classes]
    if weights is not None:
        weights = [as_shares(weights[labels == k]) for k in classes]
    densities = fit_class_densities(settings.densities, tables, settings.labels, rngs, weights=weights)
    return SeparateModel(space, densities, frequencies), None


def _calibrate(model, seed, space, rows, labels, settings, weights, groups):
    """Set temperature and intercepts by labels that models of the other folds predict."""
    splits = _calibration_splits(seed, same_rows(rows) if groups is None else groups, labels)
    if splits is None:
        warn_caller("calibration needs more distinct rows of each class; probabilities are not calibrated.")
        return
    logits = np.empty((len(labels), len(model.frequencies)))
    for kept, held in splits:
        inner = None if weights is None else uneven(weights[kept])
        own = None if groups is None else groups[kept]
        logits[held] = fit(seed, space, rows[kept], labels[kept], settings, inner, own)[0].logits(rows[held])
    model.temperature, model.intercepts = fit_temperature(logits, labels, weights, intercepts=True)


def _calibration_splits(seed, groups, labels):
    """Folds without which every class still has the two rows that a density needs; None where there are too few."""
    n_classes = labels.max() + 1
    if min(len(np.unique(groups[labels == k])) for k in range(n_classes)) < CALIBRATION_FOLDS:
        return None
    splits = stratified_folds(labels, groups, CALIBRATION_FOLDS, seed)
    fewest = min(np.bincount(labels[kept], minlength=n_classes).min() for kept, _ in splits)
    return splits if fewest > 1 else None
