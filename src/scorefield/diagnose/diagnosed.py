"""`diagnose` of the estimators: the rows, fields, chains and probabilities that `diagnosis` checks."""

import dataclasses
from functools import partial

import jax
import numpy as np
from sklearn.utils.validation import check_consistent_length

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from
from scorefield.data.checks import plain
from scorefield.data.containers import Table
from scorefield.data.row_space import split_rows
from scorefield.diagnose.diagnosis import (
    CHAIN_STEPS,
    DISCARD,
    LABEL_NAMES,
    MAX_FIELD_ROWS,
    N_CHAINS,
    Diagnosis,
    JudgedRows,
    cell_check,
    chain_checks,
    field_checks,
    label_checks,
    limited,
    nats_check,
    not_measured,
    rules_check,
)
from scorefield.fields.rows import CANDIDATES
from scorefield.models.field_density import FieldDensity
from scorefield.models.proposals import chains_of_class
from scorefield.models.row_model import RowModel
from scorefield.sampling.samplers import Langevin
from scorefield.training.losses import default_noise

MAX_CLASSES = 4  # the rarest ones, whose densities or chains are judged
MIXED_CHAINS, MIXED_STATES = 256, 8  # chains are padded to 256; R-hat is defined from 8 states on
CELL_DRAWS = 4  # random cells per row


def _origin(n, held_out):
    if held_out:
        return f"{n} held-out rows"
    return f"{n} training rows, which is optimistic: pass X_held_out for rows that the model has not seen"


def _of_class(label, checks):
    """The checks under the name of a class."""
    label = plain(label)
    return [dataclasses.replace(c, key=f"{c.key}_{label}", name=f"class {label!r}: {c.name}") for c in checks]


def _stacked(parts):
    """Rows of all classes, and their class indices."""
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def judged_flat_rows(model, rows, labels):
    """Flat rows of a `RowModel` with the fields of their classes."""
    numbers, known, codes = split_rows(rows, model.space.layout)
    p = numbers.shape[1]

    def scores(moved, places):
        flat = np.hstack([moved, rows[places][:, p:]]).astype(np.float32)
        return model.scores(flat)[np.arange(len(places)), labels[places]]

    return JudgedRows(numbers, known, np.column_stack([codes, labels]), labels, scores, model.color)


def _row_model_checks(key, model, rows, labels):
    """Checks of the energy of mixed rows, without its chains."""
    rows = rows.astype(np.float32)
    starts, start_labels = _stacked(model.start_rows)
    fields = field_checks(key, judged_flat_rows(model, rows, labels), judged_flat_rows(model, starts, start_labels))
    at = limited(host_rng(key, Stream.DIAGNOSIS, 3), len(rows), MAX_FIELD_ROWS)
    losses, shuffled = [], []
    for draw in range(CELL_DRAWS):
        own_key = jax.random.fold_in(key, draw)
        mixed_up = model.space.shuffled(host_rng(own_key, Stream.DIAGNOSIS, 4), rows[at])
        losses.append(model.cell_losses(own_key, rows[at], labels[at]))
        shuffled.append(model.cell_losses(own_key, mixed_up, labels[at]))
    losses, shuffled = (np.concatenate(part) for part in (losses, shuffled))
    known = [part[~np.isnan(part)] for part in (losses, shuffled)]
    return [*fields, cell_check(*known, np.log(CANDIDATES))]


def diagnose_density(key, model, rows=None, sampler=None):
    """The `Diagnosis` of a density, a `FieldDensity` or a `RowDensity`: by held-out rows, or by those that it keeps.

    `sampler` is that of its chains, None for the usual one.
    """
    if model.row_model is None:
        judged = model.start_rows if rows is None else model.standardized(rows)
        checks = _field_checks(key, model, judged)
        draw = partial(_long_chains, key, model, sampler)
    else:
        row_model = model.row_model
        judged = row_model.start_rows[0] if rows is None else rows
        checks = _row_model_checks(key, row_model, judged, np.zeros(len(judged), int))
        draw = partial(row_model.long_chains, key, 0, MIXED_CHAINS, MIXED_STATES)
    constants = [
        nats_check("path_gap", "difference of two paths", model.path_gap),
        nats_check("anchor_error", "error of the constant", model.normalized()[2]),
    ]
    return Diagnosis([*checks, *constants, *chain_checks(draw)], _origin(len(judged), rows is not None))


def _field_checks(key, model, rows):
    """Checks of a `FieldDensity` at standardised rows."""
    return field_checks(key, _judged(model, rows), _judged(model, model.start_rows))


def _judged(model, rows):
    field = model.smoothed(model.field)

    def scores(numbers, places):
        return map_rows(Method(field, "__call__"), numbers.astype(np.float32), points=field.points)

    n, d = rows.shape
    noise = model.noise or default_noise(len(model.start_rows), d)
    labels = np.zeros(n, int)
    return JudgedRows(rows, np.ones((n, d), bool), labels[:, None], labels, scores, noise * np.eye(d))


def _long_chains(key, model, sampler):
    """`Samples` of long chains with the step of the given or usual sampler, or why there are none."""
    field = model.field
    sampler = sampler or model.usual_sampler(field)
    if sampler is None:
        return "rows are drawn from the model itself"
    n = N_CHAINS
    if isinstance(sampler, Langevin):
        longer = {**sampler.get_params(), "chain_length": CHAIN_STEPS, "discard": DISCARD}
        sampler, n = type(sampler)(**longer), N_CHAINS * round(CHAIN_STEPS * (1 - DISCARD))
    return sampler.sample(key, model.smoothed(field), n, model.start_rows)


def diagnose_classes(key, model, classes, rows=None, labels=None, log_proba=None):
    """The `Diagnosis` of a model of classes: by held-out rows of its space, or by the rows that it keeps."""
    if rows is None:
        why = "needs X_held_out and y_held_out"
        checks = [not_measured(name, LABEL_NAMES[name], why) for name in LABEL_NAMES]
    else:
        checks = label_checks(key, log_proba, labels, model.frequencies)
    if hasattr(model, "densities"):
        fields, n = _separate_checks(key, model, classes, rows, labels)
    else:
        fields, n = _joint_checks(key, model, classes, rows, labels)
        checks.append(rules_check(model.rules_share))
    return Diagnosis([*checks, *fields], _origin(n, rows is not None))


def _separate_checks(key, model, classes, rows, labels):
    """Checks of separate densities, and the number of rows."""
    checks, n = [], 0
    for k in np.argsort(model.frequencies, kind="stable")[:MAX_CLASSES]:
        density, label = model.densities[k], classes[k]
        if not isinstance(getattr(density, "model_", None), FieldDensity):
            why = f"{type(density).__name__} has no score field"
            checks += _of_class(label, [not_measured("score_gain", "score-matching gain", why)])
            continue
        of_class = None if rows is None else rows[labels == k]
        diagnosis = diagnose_density(jax.random.fold_in(key, k), density.model_, of_class, density.sampler)
        checks += _of_class(label, diagnosis.checks)
        n += len(density.model_.start_rows if rows is None else of_class)
    return checks, n


def _joint_checks(key, model, classes, rows, labels):
    """Checks of a joint model, and the number of rows."""
    starts, start_labels = _stacked(model.start_rows)
    rows, labels = (starts, start_labels) if rows is None else (model.space.model_rows(rows), labels)
    rarest = int(np.argmin(model.frequencies))
    if isinstance(model, RowModel):
        checks = _row_model_checks(key, model, rows, labels)
        chains = chain_checks(lambda: model.long_chains(key, rarest, MIXED_CHAINS, MIXED_STATES))
    else:
        checks = field_checks(key, judged_numbers(model, rows, labels), judged_numbers(model, starts, start_labels))
        n = N_CHAINS * round(CHAIN_STEPS * (1 - DISCARD))
        chains = chain_checks(lambda: model.class_samples(key, n, rarest, CHAIN_STEPS, DISCARD)[0])
    return [*checks, *_of_class(classes[rarest], chains)], len(rows)


def judged_numbers(model, rows, labels):
    """Standardised rows of a `NumberModel` with the fields of their classes."""
    function = Method(model.joint, "scores")

    def scores(numbers, places):
        fields = map_rows(function, numbers.astype(np.float32), points=model.n_members)
        return fields[np.arange(len(places)), labels[places]]

    return JudgedRows(rows, np.ones(rows.shape, bool), labels[:, None], labels, scores, model.color)


def diagnose_new_rows(over, state, X=None, y=None):
    """The `Diagnosis` of what a `ScoreOverSampler` drew its rows from; `state` seeds the checks."""
    row_model, densities = getattr(over, "row_model_", None), over.densities_
    if row_model is None and not densities:
        if hasattr(over, "teacher_"):
            return _teacher_diagnosis(over.teacher_, state, X, y)
        return Diagnosis([not_measured("score_gain", "score-matching gain", "no class was enlarged")], "no rows")
    key = key_from(state)
    checks, n = (_checks_of_densities if row_model is None else _checks_of_energy)(key, over, X, y)
    return Diagnosis(checks, _origin(n, X is not None))


def _teacher_diagnosis(teacher, state, X, y):
    """That of the teacher, whose energy and probabilities the rows come from."""
    teacher = getattr(teacher, "estimator", teacher)  # behind a FrozenEstimator
    if not hasattr(teacher, "diagnose"):
        raise TypeError(
            f"Expected a ScoreClassifier as teacher for diagnose, got {type(teacher).__name__}; judge it by its own "
            "means."
        )
    return teacher.diagnose(X, y, random_state=state)


def _rarest(over, labels):
    """The rarest of the enlarged classes."""
    return sorted(labels, key=lambda label: over.priors_before_[plain(label)])[:MAX_CLASSES]


def _checks_of_densities(key, over, X, y):
    """Checks of the density of each class, and the number of rows."""
    checks, n = [], 0
    numbers = None if X is None else _numbers(over, X)
    for k, label in enumerate(_rarest(over, over.densities_)):
        density = over.densities_[label]
        rows, own_key = density.model_.start_rows, jax.random.fold_in(key, k)
        if numbers is not None:
            rows = density.model_.standardized(numbers[np.asarray(y) == label][:, over.varying_columns_[label]])
        draw = partial(_long_chains, own_key, density.model_, chains_of_class(density, over.sampler)[0])
        checks += _of_class(label, [*_field_checks(own_key, density.model_, rows), *chain_checks(draw)])
        n += len(rows)
    return checks, n


def _checks_of_energy(key, over, X, y):
    """Checks of the energy of all classes, with the chains of each class, and the number of rows."""
    model, classes = over.row_model_, np.array(list(over.priors_before_))
    enlarged = [label for label, n in over.sampling_strategy_.items() if n]
    if X is None:
        rows, labels = _stacked(model.start_rows)
    else:
        rows, labels = model.space.rows(X), class_indices(classes, y)
    judged = np.isin(classes[labels], enlarged)
    checks = _row_model_checks(key, model, rows[judged], labels[judged])
    for label in _rarest(over, enlarged):
        k = int(np.flatnonzero(classes == label)[0])
        chains = chain_checks(lambda k=k: model.long_chains(key, k, MIXED_CHAINS, MIXED_STATES))
        checks += _of_class(label, chains)
    return checks, int(judged.sum())


def check_both(X, y):
    """Refuse rows without labels, labels without rows, and other numbers of them."""
    if (X is None) != (y is None):
        raise ValueError("Expected both X_held_out and y_held_out or neither, got one of them; pass both.")
    if X is not None:
        check_consistent_length(X, y)


def class_indices(classes, y):
    """Indices of labels among sorted classes."""
    y = np.asarray(y)
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise ValueError(f"Expected labels of {classes.tolist()} in y_held_out, got {plain(y[unknown][0])!r}.")
    return np.searchsorted(classes, y)


def _numbers(estimator, X):
    """The columns of a table of numbers as an array (n, d), as many as the estimator was fitted to."""
    table = Table(X)
    if len(table.names) != estimator.n_features_in_:
        raise ValueError(
            f"Expected {estimator.n_features_in_} columns in X_held_out, got {len(table.names)}; pass the same columns."
        )
    return np.column_stack([table.cells(name).values for name in table.names]).astype(np.float64)
