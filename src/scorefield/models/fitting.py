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
from scorefield.models.ensemble import member_splits
from scorefield.models.joint_model import Calibrated, calibrated, class_frame, joint_base, train_joint
from scorefield.models.number_model import NumberModel
from scorefield.models.row_choice import choose_ranks, choose_rows, even_part, standing_for_table
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


def fit(seed, space, rows, labels, settings, weights=None, groups=None, shares=None):
    """A `TableModel` of the rows of a space and their classes, by number, and how members `Judged` rows, or None.

    Rows of one of the `groups` (n,), where they are given, are on one side of every split.

    Calibrated by the rows that each member has not seen where labels taught it, and otherwise by models of the other
    folds. `shares` are those of the classes in the table that `ranks_to_learn` chose the rows from; None
    where the rows are the table.
    """
    part = None
    if shares is None and isinstance(settings, JointSettings) and settings.common_per_rare is not None:
        per_rare = settings.common_per_rare if settings.label_weight > 0 else None
        part = even_part(_choice_rng(seed), labels, per_rare, space.layout is not None)
    if part is None:
        return _fit_rows(seed, space, rows, labels, settings, weights, groups, shares)
    own, shares = None if weights is None else uneven(weights[part]), _shares(labels, weights)
    groups = None if groups is None else groups[part]
    model, judged = _fit_rows(seed, space, rows[part], labels[part], settings, own, groups, shares)
    return model, judged and judged._replace(held=part[judged.held])


def _fit_rows(seed, space, rows, labels, settings, weights, groups, shares):
    """`fit` of the rows as they are, with other shares of the classes where these are given."""
    separate = isinstance(settings, SeparateSettings)
    frequencies = _shares(labels, weights)
    if separate:
        model, judged = _fit_separate(seed, space, rows, labels, frequencies, settings, weights)
    else:
        model, judged = _fit_chosen(key_from(seed), space, rows, labels, frequencies, settings, weights, groups)
    if settings.calibrates and not model.by_labels:
        alone = settings._replace(calibrates=False) if separate else settings._replace(calibrates=False, callback=None)
        _calibrate(model, seed % (1 << 31), space, rows, labels, alone, weights, groups)
    if shares is not None:
        shift = np.log(shares / frequencies)
        model.take_shares(shift)
        judged = judged and judged._replace(logits=judged.logits + shift)
    return model, judged


def ranks_to_learn(seed, counts, common_per_rare, mixed):
    """For each class which rows of a table in parts `fit` needs; the same as of the table in memory."""
    return choose_ranks(_choice_rng(seed), counts, common_per_rare, mixed)


def _choice_rng(seed):
    return host_rng(key_from(seed), Stream.CHOSEN_ROWS)


def _fit_chosen(key, space, rows, labels, frequencies, settings, weights, groups):
    """`fit_joint` of the rows of a large table that are worth learning from."""
    choice = None
    if settings.label_weight > 0 and space.layout is None:
        rng = host_rng(key, Stream.CHOSEN_ROWS, 1)
        choice = choose_rows(rng, rows, labels, settings.common_per_rare, groups)
    if choice is None:
        return fit_joint(key, space, rows, labels, frequencies, settings, weights, groups)
    places, log_chances = choice
    own, groups = None if weights is None else uneven(weights[places]), None if groups is None else groups[places]
    drawn = _shares(labels[places], own)
    model, judged = fit_joint(
        key, space, rows[places], labels[places], drawn, settings, own, groups, log_chances, law=(rows, labels)
    )
    model.frequencies = frequencies
    return model, judged and judged._replace(held=places[judged.held])


def fit_joint(
    key, space, rows, labels, frequencies, settings, weights=None, groups=None, log_chances=None, law=None
):  # fmt: skip
    """A `JointModel` of the rows of a space, and how members `Judged` rows, or None.

    `log_chances` are those of a `Choice`, where the rows are chosen ones, and `law` the rows and labels that they were
    chosen from, which tell units, noise and the base.
    """
    whole, whole_labels = (rows, labels) if law is None else law
    space = space.in_units_of(whole)
    rows = space.model_rows(rows)
    whole = rows if law is None else space.model_rows(whole)
    groups = None if groups is None else np.unique(groups, return_inverse=True)[1]
    splits = member_splits(
        host_rng(key, Stream.MEMBER_FOLDS), rows, labels, settings.n_members, layout=space.layout, groups=groups
    )
    copies = space.hidden_copies(host_rng(key, Stream.HIDDEN_CELLS), rows)
    weights = None if weights is None else weights.astype(np.float32)
    table = LabelledRow(rows, labels.astype(np.int32), weights, copies, log_chances)
    return _trained(key, space, table, splits, frequencies, settings, (whole, whole_labels))


def _trained(key, space, table, splits, frequencies, settings, law):
    """Train the members, calibrate them by held-out labels, and keep rows that chains start from."""
    rows, labels = table.x, table.label
    numbers, known = space.numbers(law[0])
    frame = class_frame(numbers, law[1], settings.noise, known)
    by_labels = settings.label_weight > 0
    joint = train_joint(
        key, table, splits, frame, joint_base(law[0], frame, space.layout), frequencies=frequencies,
        label_weight=settings.label_weight,
        hidden=settings.hidden, max_steps=settings.max_steps, callback=settings.callback, layout=space.layout,
        two_views=by_labels or space.layout is None,
        labels_of_hidden=not gaps_tell_labels(space.n_gaps(table.x), table.label),
        with_rules=settings.calibrates and by_labels and settings.rules, denoising_weight=settings.denoising_weight,
    )  # fmt: skip
    found = calibrated(joint) if settings.calibrates and by_labels else Calibrated(joint.model, 1.0, None, None)
    # Permuted first: a sorted table must not start all chains at one end.
    rng = host_rng(key, Stream.JOINT_START_ROWS)
    if table.log_chances is None:
        order = rng.permutation(len(rows))
    else:  # drawn as from the table (Efraimidis & Spirakis 2006)
        order = np.argsort(rng.exponential(size=len(rows)) / standing_for_table(table).weight, kind="stable")
    starts = [rows[order[labels[order] == k]][:MAX_START_ROWS] for k in range(len(frequencies))]
    options = {
        "frequencies": frequencies, "by_labels": by_labels, "temperature": found.temperature,
        "anchor_seed": np.asarray(jax.random.key_data(key)), "history": [history_of(each) for each in joint.fits],
        "n_rows": len(rows),
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
