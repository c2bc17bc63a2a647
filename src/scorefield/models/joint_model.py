"""The joint model of a classifier: noise shaped by the classes, members with two views of the columns, their logits.

Half of the members see the columns alone; the others see them whitened too, which shows differences of correlated
columns at their own scale. In the first, third and so on of each half, inputs are scaled by how strongly each column by
itself is associated with the label: among many columns the few that matter stand out, as they do for trees.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_softmax

from scorefield._jax.batching import map_rows
from scorefield.data.association import column_gains
from scorefield.fields.gaussian import fit_gaussian, shrunk_covariance
from scorefield.fields.joint import ColumnNetwork, JointEnergies, columns_of, init_joint
from scorefield.fields.rows import fit_margins
from scorefield.models.calibration import fit_share, fit_temperature
from scorefield.models.row_choice import standing_for_table
from scorefield.models.rule_model import fit_rules
from scorefield.models.training_plan import plan_training
from scorefield.training.loop import models_per_program, train_many
from scorefield.training.losses import JointLoss, LabelledRow, LabelLoss
from scorefield.training.minibatches import Split
from scorefield.training.together import in_background, side_by_side

# Of the within-class covariance of standardised rows: a direction that is narrower by far is taken for rounding.
LEAST_VARIANCE = 1e-4
ROWS_PER_ROTATED = 20  # per column, from which a covariance needs no shrinkage: half of the members whiten by it
TRACE = 1e-6  # variance per column that is added to the base
MAX_CLASS_WEIGHT = 10.0  # of a rare class in the denoising term: beyond it single rows dominate a batch
DENOISED_SHARE = 0.25
LEARNING_RATE = 0.01
CHECK_STEPS = 50  # between looks at the held-out loss
LEAST_SHARE = 0.05  # of the rules in the logits; below it they are left out
FEW_COLUMNS = 10
KINDS = 4  # of members at most: two views of the columns, each with gains and without
ERRORS_APART = 3.0  # standard errors of the difference by which a kind of members is clearly worse
LEAST_GAP = 0.1  # of the best kind's loss: with many rows three standard errors are next to nothing
LEAST_JUDGED = 50  # rows: the standard error of fewer is not to be trusted


class Frame(NamedTuple):
    """The shape of the classes in standardised rows: noise is z color, whitened rows are x whiten."""

    color: np.ndarray  # (d, d), scaled by the noise level
    whiten: np.ndarray  # (d, d)


def class_frame(rows, labels, noise, known=None):
    """Noise of a level in units of the classes' own spread, by the pooled within-class covariance.

    With a mask of the known numbers, every variance and covariance is that of the rows that have both.
    """
    known = np.ones(rows.shape, bool) if known is None else known
    centred = np.where(known, rows, 0.0).astype(np.float64)
    for label in np.unique(labels):
        own = labels == label
        centred[own] -= centred[own].sum(axis=0) / np.maximum(known[own].sum(axis=0), 1)
    centred *= known
    covariance = np.zeros((rows.shape[1],) * 2)
    varying = np.flatnonzero((centred**2).sum(axis=0) / np.maximum(known.sum(axis=0), 1) > LEAST_VARIANCE)
    if len(varying):
        own = centred[:, varying]
        covariance[np.ix_(varying, varying)] = (
            shrunk_covariance(own) if known.all() else _pairwise_covariance(own, known[:, varying])
        )
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, LEAST_VARIANCE)
    return Frame((noise * np.sqrt(values)[:, None] * vectors.T).astype(np.float32), vectors / np.sqrt(values))


def _pairwise_covariance(centred, known):
    """Covariances over the rows that have both numbers, with correlations shrunk by the number of such rows."""
    pairs = known.T.astype(float) @ known
    covariance = centred.T @ centred / np.maximum(pairs, 1)
    shrunk = covariance * pairs / (pairs + len(covariance) + 1)
    np.fill_diagonal(shrunk, np.diag(covariance))
    return shrunk


def joint_base(rows, frame, layout=None):
    """What the energies of flat rows start from: a Gaussian, or independent columns where there is a layout."""
    covariance = frame.color.T.astype(np.float64) @ frame.color
    if layout is not None:
        return fit_margins(rows, layout, np.diag(covariance))
    # The trace keeps the condition number below a million, for copies of columns too.
    d = rows.shape[1]
    return fit_gaussian(rows, noise=covariance + TRACE * d * np.eye(d))


class TrainedJoint(NamedTuple):
    """A trained joint model with what its calibration needs."""

    model: JointEnergies
    fits: list  # the members' training records
    table: LabelledRow  # by weights that stand for the table which the rows were chosen from
    splits: list[Split]
    rules: tuple[ColumnNetwork, np.ndarray] | None  # of `fit_rules`


def train_joint(
    key, table, splits, frame, base, *, frequencies, label_weight, hidden, max_steps, callback, layout=None,
    two_views=True, labels_of_hidden=True, with_rules=False, denoising_weight=1.0,
):  # fmt: skip
    """A `TrainedJoint` whose members were each trained on its split.

    `table` is a `LabelledRow` of arrays, `base` that of `joint_base`; `layout` is that of mixed rows. `hidden` and
    `max_steps` may be "auto". Without `two_views` all members see whitened columns where there are enough rows, which
    compiles one program less. Without `labels_of_hidden` copies of rows with hidden cells do not teach the labels.
    """
    rows, n_classes = table.x, len(frequencies)
    numbers = rows if layout is None else rows[:, : layout.n_numbers]
    views = (_views(numbers, frame) if two_views else _views(numbers, frame)[-1:])[: len(splits)]
    by_labels = label_weight > 0
    plan = plan_training(
        table, splits, n_classes, hidden=hidden, max_steps=max_steps, numbers=layout is None,
        by_labels=by_labels,
    )  # fmt: skip
    weights = float(label_weight), float(denoising_weight)
    objective = _objective(frame.color, frequencies, plan, weights, labels_of_hidden)
    standing = standing_for_table(table)
    keys = [jax.random.fold_in(key, m) for m in range(len(splits))]
    gains = _gains_of_members(table, layout) if by_labels and n_classes > 1 else lambda *member: None
    # A start at the class shares made no measurable difference but with offsets, which it cancels.
    priors = frequencies if plan.offsets.any() else None
    groups = _groups(len(splits), len(views), models_per_program())

    def train_some(number, callback):
        """Members of one view, which have one shape."""
        own = groups[number]
        view = views[own[0] % len(views)]
        starts = [
            init_joint(
                keys[m], base, view, n_classes, hidden=plan.widths, gains=gains(view, splits[m], m // len(views)),
                priors=priors,
            )
            for m in own
        ]  # fmt: skip
        return train_many(
            jnp.stack([keys[m] for m in own]), starts, [plan.table], objective, splits=[plan.splits[m] for m in own],
            batch_size=plan.batch_size, learning_rate=LEARNING_RATE, max_steps=plan.max_steps,
            chunk_steps=CHECK_STEPS, patience=plan.patience, callback=callback,
            held_out_objective=LabelLoss(plan.offsets) if label_weight else objective,
            held_out_points=plan.held_out_points,
        )  # fmt: skip

    def grow():
        return fit_rules(standing, splits, layout, n_classes, shared=standing is not table) if with_rules else None

    with in_background(grow) as rules:
        trained = side_by_side(train_some, len(groups), callback)
        by_member = {
            m: fit for own, fits in zip(groups, trained, strict=True) for m, fit in zip(own, fits, strict=True)
        }
        fits = [by_member[m] for m in range(len(splits))]
        members = tuple(fit.model.members[0].without_gains() for fit in fits)
        return TrainedJoint(JointEnergies(members, base), fits, standing, splits, rules())


def _groups(n_members, n_views, size):
    """Numbers of the members of one view that train in one program, up to `size` of them."""
    of_views = [range(view, n_members, n_views) for view in range(n_views)]
    groups = [own[start : start + size] for own in of_views for start in range(0, len(own), size)]
    return sorted(groups, key=lambda own: own[0])


def _objective(color, frequencies, plan, terms, labels_of_hidden):
    """The loss that members train by; `terms` are the weights of the labels and of denoising.

    Classes that are drawn more often weigh as much as they would otherwise.
    """
    weights = np.minimum(1 / (len(frequencies) * frequencies), MAX_CLASS_WEIGHT)
    weights = (weights / plan.factors * (frequencies @ plan.factors) * plan.rates).astype(np.float32)
    label_weight, denoising_weight = terms
    share = DENOISED_SHARE if label_weight else 1.0
    return JointLoss(color, label_weight, weights, plan.offsets, share, labels_of_hidden, denoising_weight)


def _views(numbers, frame):
    """The columns alone and, where there are enough rows, with whitened ones beside them."""
    n, d = numbers.shape
    if d <= 1 or n < ROWS_PER_ROTATED * d:
        return [columns_of(numbers)]
    # Few columns alone have zeros beside them: one shape needs one program, and compiling takes longer than training.
    none = np.zeros((d, d)) if d <= FEW_COLUMNS else None
    return [columns_of(numbers, none), columns_of(numbers, frame.whiten)]


def _gains_of_members(table, layout):
    """A function of a member's view, split and place in the view: gains of its inputs, ones at every second place.

    They are measured on the rows that the member trains on.
    """
    rows = table.x
    indicators = np.zeros((len(rows), 0)) if layout is None else layout.indicators(np.asarray(rows))

    def gains(view, split, place):
        if place % 2:
            return np.ones(view.n_inputs + indicators.shape[1])
        weights = None if table.weight is None else table.weight[split.kept]
        seen = np.hstack([view.values[split.kept], indicators[split.kept]])
        return column_gains(seen, table.label[split.kept], weights)

    return gains


class Calibrated(NamedTuple):
    """A joint model with its temperature, and the rows that members judged without having trained on them."""

    model: JointEnergies
    temperature: float
    held: np.ndarray  # numbers of rows, once for each member that judged them
    logits: np.ndarray  # (len(held), classes), calibrated


def calibrated(joint):
    """A `TrainedJoint` with rules in its posterior where they help, and a temperature, by held-out labels.

    A row is judged by members that did not see it. Members of a kind that predicts clearly worse are left out, with the
    rows that only they judged. Rules are the mean over the splits of all members.
    """
    model, table, splits = joint.model, joint.table, joint.splits
    every = [map_rows(network, table.x[split.held]) for network, split in zip(model.members, splits, strict=True)]
    kept = _members_to_keep(every, table, splits)
    model = dataclasses.replace(model, members=tuple(model.members[m] for m in kept))
    logits = np.concatenate([every[m] for m in kept]).astype(np.float64)
    held = np.concatenate([splits[m].held for m in kept])
    weights = None if table.weight is None else table.weight[held].astype(np.float64)
    if joint.rules is not None:
        rules, others = joint.rules
        others = np.split(others, np.cumsum([len(split.held) for split in splits])[:-1])
        others = np.concatenate([others[m] for m in kept]).astype(np.float64)
        share, temperature = fit_share(logits, others, table.label[held], weights)
        if share >= LEAST_SHARE:
            model = dataclasses.replace(model, rules=rules, share=np.float32(share))
            return Calibrated(model, temperature, held, ((1 - share) * logits + share * others) / temperature)
    temperature = fit_temperature(logits, table.label[held], weights)[0]
    return Calibrated(model, temperature, held, logits / temperature)


def _members_to_keep(logits, table, splits):
    """Numbers of the members whose kind predicts held-out labels about as well as the best kind.

    Where few of many columns matter, members without gains add little but noise. Kinds with few rows to judge are kept.
    """
    kinds = np.arange(len(splits)) % KINDS
    means, errors = np.empty((2, min(KINDS, len(splits))))
    for kind in range(len(means)):
        own = np.flatnonzero(kinds == kind)
        held = np.concatenate([splits[m].held for m in own])
        logs = log_softmax(np.concatenate([logits[m] for m in own]).astype(np.float64), axis=1)
        losses = -logs[np.arange(len(held)), table.label[held]]
        weights = np.ones(len(held)) if table.weight is None else table.weight[held]
        if np.count_nonzero(weights) < LEAST_JUDGED or not np.isfinite(losses).all():
            return np.arange(len(splits))
        means[kind] = np.average(losses, weights=weights)
        errors[kind] = np.sqrt(np.sum((weights * (losses - means[kind])) ** 2)) / weights.sum()
    best = np.argmin(means)
    margin = np.maximum(ERRORS_APART * np.hypot(errors, errors[best]), LEAST_GAP * means[best])
    return np.flatnonzero((means - means[best] <= margin)[kinds])
