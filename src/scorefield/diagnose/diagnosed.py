"""`diagnose` of the estimators: the rows, fields, chains and probabilities that `diagnosis` checks."""

import dataclasses

import jax
import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from
from scorefield._jax.storage import from_plain
from scorefield.data.checks import plain
from scorefield.data.containers import Table
from scorefield.data.row_space import split_rows
from scorefield.diagnose.diagnosis import (
    CHAIN_STEPS,
    DISCARD,
    LABEL_NAMES,
    MAX_ROWS,
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
    at = limited(host_rng(key, Stream.DIAGNOSIS, 3), len(rows), MAX_ROWS)
    losses, shuffled = [], []
    for draw in range(CELL_DRAWS):
        own_key = jax.random.fold_in(key, draw)
        mixed_up = model.space.shuffled(host_rng(own_key, Stream.DIAGNOSIS, 4), rows[at])
        losses.append(model.cell_losses(own_key, rows[at], labels[at]))
        shuffled.append(model.cell_losses(own_key, mixed_up, labels[at]))
    losses, shuffled = (np.concatenate(part) for part in (losses, shuffled))
    known = [part[~np.isnan(part)] for part in (losses, shuffled)]
    return [*fields, cell_check(*known, np.log(CANDIDATES))]


class DiagnosedDensity:
    """Mixin of `ScoreDensity`: `diagnose`."""

    def diagnose(self, X_held_out=None, *, random_state=None):
        """Judge the fitted density: its field, its constant and its chains.

        Parameters
        ----------
        X_held_out : None or table like the fitted one
            Rows that the density was not fitted to. None takes up to 1,024 training rows, which is optimistic.
        random_state : None, int or generator
            None uses the estimator's own.

        Returns
        -------
        Diagnosis
            Prints as a table. Values are attributes: ``score_gain`` (gain in the denoising score-matching loss over no
            field, in units of a Gaussian's gain), ``stein_p_value`` (kernel Stein test; with few rows it finds gross
            errors only), ``cell_gain`` (mixed tables: nats by which cells are better told from draws of their column
            than by independent columns), ``path_gap``, ``anchor_error``, ``acceptance``, ``r_hat``,
            ``effective_draws`` and ``diverged``.
        """
        check_is_fitted(self)
        key = key_from(self.random_state if random_state is None else random_state)
        rows = self._training_rows() if X_held_out is None else self._in_model_units(self._read(X_held_out))
        return Diagnosis(self._checks(key, rows), _origin(len(rows), X_held_out is not None))

    def _training_rows(self):
        return self._row_model().start_rows[0] if self._mixed else self.start_rows_

    def _in_model_units(self, X):
        return X if self._mixed else self._standardized(X)

    def _checks(self, key, rows, sampler=None):
        """All checks, with rows in the model's units; without those of log densities for chains of another sampler."""
        constants = [
            nats_check("path_gap", "difference of two paths", self.path_gap_),
            nats_check("anchor_error", "error of the constant", self.anchor_error_),
        ]
        constants = constants if sampler is None else []
        chains = chain_checks(lambda: self._judged_chains(key, sampler))
        return [*self._field_checks(key, rows), *constants, *chains]

    def _field_checks(self, key, rows):
        """Checks of the field at rows in the model's units."""
        if self._mixed:
            return _row_model_checks(key, self._row_model(), rows, np.zeros(len(rows), int))
        return field_checks(key, self._judged(rows), self._judged(self.start_rows_))

    def _judged(self, rows):
        field = self._smoothed(from_plain(self.model_))

        def scores(numbers, places):
            return map_rows(Method(field, "__call__"), numbers.astype(np.float32), points=field.points)

        n, d = rows.shape
        noise = self.noise_ or default_noise(len(self.start_rows_), d)
        labels = np.zeros(n, int)
        return JudgedRows(rows, np.ones((n, d), bool), labels[:, None], labels, scores, noise * np.eye(d))

    def _judged_chains(self, key, sampler):
        """`Samples` of long chains with the step of the given or usual sampler, or why there are none."""
        if self._mixed:
            return self._row_model().long_chains(key, 0, MIXED_CHAINS, MIXED_STATES)
        field = from_plain(self.model_)
        sampler = sampler or self._usual_sampler(field)
        if sampler is None:
            return "rows are drawn from the model itself"
        n = N_CHAINS
        if isinstance(sampler, Langevin):
            longer = {**sampler.get_params(), "chain_length": CHAIN_STEPS, "discard": DISCARD}
            sampler, n = type(sampler)(**longer), N_CHAINS * round(CHAIN_STEPS * (1 - DISCARD))
        return sampler.sample(key, self._smoothed(field), n, self.start_rows_)


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
        if not isinstance(density, DiagnosedDensity):
            why = f"{type(density).__name__} has no score field"
            checks += _of_class(label, [not_measured("score_gain", "score-matching gain", why)])
            continue
        own = density.start_rows_ if rows is None else density._standardized(rows[labels == k])
        checks += _of_class(label, density._checks(jax.random.fold_in(key, k), own))
        n += len(own)
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
        found = map_rows(function, numbers.astype(np.float32), points=model.n_members)
        return found[np.arange(len(places)), labels[places]]

    return JudgedRows(rows, np.ones(rows.shape, bool), labels[:, None], labels, scores, model.color)


class DiagnosedOverSampler:
    """Mixin of `ScoreOverSampler`: `diagnose`."""

    def diagnose(self, X_held_out=None, y_held_out=None, *, random_state=None):
        """Judge the fields and chains that the generated rows come from, after :meth:`fit_resample`.

        Parameters
        ----------
        X_held_out, y_held_out : None, or a table like the resampled one and its labels
            Rows that were not resampled. None takes up to 1,024 training rows of each class, which is optimistic.
        random_state : None, int or generator
            None uses the over-sampler's own.

        Returns
        -------
        Diagnosis
            As of :meth:`ScoreDensity.diagnose`, for each of the up to four rarest classes that were enlarged:
            ``score_gain_<label>`` and so on. Classes of mixed tables share one energy, whose field is judged once. Of
            "clear" rows the long chains are judged; the short ones stay near real rows by design. Where a teacher's
            energy drew the rows it is the teacher's diagnosis.
        """
        check_is_fitted(self, "densities_")
        check_both(X_held_out, y_held_out)
        if hasattr(self, "teacher_") and not self.densities_ and not hasattr(self, "row_model_"):
            return self._teacher_diagnosis(X_held_out, y_held_out, random_state)
        key = key_from(self.random_state if random_state is None else random_state)
        if not self.densities_ and not hasattr(self, "row_model_"):
            return Diagnosis([not_measured("score_gain", "score-matching gain", "no class was enlarged")], "no rows")
        judge = self._mixed_checks if hasattr(self, "row_model_") else self._density_checks
        checks, n = judge(key, X_held_out, y_held_out)
        return Diagnosis(checks, _origin(n, X_held_out is not None))

    def _teacher_diagnosis(self, X, y, random_state):
        """That of the teacher, whose energy and probabilities the rows come from."""
        teacher = getattr(self.teacher_, "estimator", self.teacher_)  # behind a FrozenEstimator
        if not hasattr(teacher, "diagnose"):
            raise TypeError(
                f"Expected a ScoreClassifier as teacher for diagnose, got {type(teacher).__name__}; judge it by its "
                "own means."
            )
        state = self.random_state if random_state is None else random_state
        return teacher.diagnose(X, y, random_state=state)

    def _rarest(self, labels):
        """The rarest of the enlarged classes."""
        return sorted(labels, key=lambda label: self.priors_before_[plain(label)])[:MAX_CLASSES]

    def _density_checks(self, key, X, y):
        checks, n = [], 0
        numbers = None if X is None else _numbers(self, X)
        for k, label in enumerate(self._rarest(self.densities_)):
            density = self.densities_[label]
            rows = density.start_rows_
            if numbers is not None:
                rows = density._standardized(numbers[np.asarray(y) == label][:, self.varying_columns_[label]])
            found = density._checks(jax.random.fold_in(key, k), rows, self._samplers_of(label)[0])
            checks += _of_class(label, found)
            n += len(rows)
        return checks, n

    def _mixed_checks(self, key, X, y):
        model, classes = self.row_model_, np.array(list(self.priors_before_))
        enlarged = [label for label, n in self.sampling_strategy_.items() if n]
        if X is None:
            rows, labels = _stacked(model.start_rows)
        else:
            rows, labels = model.space.rows(X), class_indices(classes, y)
        own = np.isin(classes[labels], enlarged)
        checks = _row_model_checks(key, model, rows[own], labels[own])
        for label in self._rarest(enlarged):
            k = int(np.flatnonzero(classes == label)[0])
            chains = chain_checks(lambda k=k: model.long_chains(key, k, MIXED_CHAINS, MIXED_STATES))
            checks += _of_class(label, chains)
        return checks, int(own.sum())


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
