"""How `ScoreClassifier` fits tables: one joint model of all classes, or a density for each, and their calibration."""

import jax
import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

from scorefield._jax.batching import standardized
from scorefield._jax.errors import warn_caller
from scorefield._jax.random import Stream, host_rng, key_from, seed_from
from scorefield._jax.storage import to_plain
from scorefield.data.buffer import RowBuffer, fits_in_memory
from scorefield.data.parquet import ParquetTable
from scorefield.data.row_space import RowSpace
from scorefield.data.row_weights import as_shares
from scorefield.data.scaling import column_units
from scorefield.data.splits import same_rows, stratified_folds
from scorefield.estimators.table_input import refuse_mixed
from scorefield.inference.decisions import check_costs
from scorefield.models.calibration import fit_temperature
from scorefield.models.class_densities import class_rng, fit_class_densities
from scorefield.models.density_fitting import MAX_START_ROWS
from scorefield.models.ensemble import count_folds, member_splits, splits_of_folds
from scorefield.models.joint_model import calibrated, class_frame, train_joint
from scorefield.models.progress import ProgressReport
from scorefield.models.row_model import fit_row_model
from scorefield.training.losses import LabelledRow

CALIBRATION_FOLDS = 3
JUDGED = ("rules_share_", "held_out_proba_")
MIXED_ROWS = 100_000  # of mixed Parquet files that are learned from


class FitsClasses:
    """Mixin of `ScoreClassifier`: its fit of tables in memory and in parts."""

    def _fit_path(self, path, target):
        """Learn from Parquet files; those that fit into the buffer are read whole."""
        if not isinstance(target, str):
            raise ValueError(f"Expected the name of the label column beside a path, got {type(target).__name__}.")
        if not isinstance(self.density, str):
            raise ValueError(
                f'Expected density="joint" with a path, got {self.density!r}; read the table into memory for it.'
            )
        for name in ("space_", "encoder_"):
            vars(self).pop(name, None)  # of an earlier table
        table = ParquetTable(path, target)
        if table.is_mixed:
            self._fit_sample(table)
            return
        self.dtype_ = table.dtype.str
        if fits_in_memory(table):
            self._fit(*table.read())
        else:
            self._set_classes(table.classes, table.counts)
            self._fit_streamed(key_from(self.random_state), table)
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)

    def _fit_sample(self, table):
        """Learn from random rows of Parquet files with gaps or columns that are not numbers."""
        rng = host_rng(key_from(self.random_state), Stream.BUFFER_DRAWS)
        X, y, weights = table.sample(rng, MIXED_ROWS)
        if len(X) < table.n_rows:
            warn_caller(
                f"{table.path} has gaps or columns that are not numbers, so {len(X)} of its {table.n_rows} rows are "
                "learned from, weighted so that classes keep their shares."
            )
        X, y = self._read_new(X, y, ensure_min_samples=2)
        if self.class_weight is not None:
            factors = self.class_weight
            if isinstance(factors, str):  # "balanced", by the rows of the files
                factors = dict(zip(table.classes.tolist(), table.n_rows / table.counts, strict=True))
            weights = compute_sample_weight(factors, y) * (1.0 if weights is None else weights)
        self._fit(X, y, None if weights is None else weights / weights.mean())

    def _check_terms(self):
        """Refuse weights of a loss that has no terms, or that separate densities do not have."""
        if isinstance(self.density, str):
            if self.label_weight == self.denoising_weight == 0:
                raise ValueError(
                    "Expected label_weight or denoising_weight above 0, got 0 for both; the model would learn nothing."
                )
        elif self.denoising_weight != 1:
            raise ValueError(
                f'Expected density="joint" with denoising_weight={self.denoising_weight:g}, got '
                f"{type(self.density).__name__}; leave it at 1."
            )

    def _fit(self, X, y, weights=None):
        self._check_terms()
        classes, labels = np.unique(y, return_inverse=True)
        self._set_classes(classes, np.bincount(labels, weights))
        seed = seed_from(self.random_state)
        if self._mixed:
            self._fit_mixed(key_from(seed), X, labels, weights)
        elif isinstance(self.density, str):
            self._fit_joint(key_from(seed), X, labels, weights)
        else:
            self._fit_separate(seed, X, labels, weights)
        if self.calibration == "auto" and not self._learns_labels():
            self._calibrate(seed, X, labels, weights)

    def _learns_labels(self):
        """True for a joint model that learns from labels."""
        return isinstance(self.density, str) and self.label_weight > 0

    def _calibrates_by_members(self):
        """True if a joint model is calibrated by the rows that each member never saw."""
        return self.calibration == "auto" and self._learns_labels()

    def _learns_rules(self):
        """True if rules stand beside the networks: held-out labels decide about their share."""
        return self.rules is not None and self._calibrates_by_members()

    def _set_classes(self, classes, counts):
        """Forget an earlier fit, then set what follows from the labels alone."""
        for name in ("densities_", "model_", "anchors_", "mean_", "scale_", "start_rows_", "history_", *JUDGED):
            vars(self).pop(name, None)  # which of them exist tells a joint model from separate densities
        self.classes_ = classes
        if len(classes) < 2:
            raise ValueError(f"Expected at least two classes in y, got 1 class: {classes.tolist()[0]!r}.")
        self.frequencies_ = counts / counts.sum()
        self.priors_ = self._resolve_priors()
        if self.costs is not None:
            check_costs(self.costs, len(classes))
        self.intercepts_, self.temperature_ = np.zeros(len(classes)), 1.0

    def _resolve_priors(self):
        n = len(self.classes_)
        if self.priors is None:
            return self.frequencies_
        if isinstance(self.priors, str):
            return np.full(n, 1 / n)
        priors = np.asarray(self.priors, dtype=float)
        if priors.shape != (n,) or not (priors > 0).all() or not np.isclose(priors.sum(), 1):
            raise ValueError(f"Expected {n} positive priors that sum to 1, got {self.priors}.")
        return priors

    def _fit_mixed(self, key, rows, labels, weights):
        """The joint model of mixed rows."""
        space = RowSpace.from_plain(self.space_)
        if not isinstance(self.density, str):
            refuse_mixed(space, 'density="joint"', type(self.density).__name__)
        report = ProgressReport(self, "joint", self.verbose)
        model, joint = fit_row_model(
            key, space, rows, labels, self.frequencies_, weights=weights,
            label_weight=self.label_weight, n_members=self.n_members, hidden=self.hidden, noise=self.noise,
            max_steps=self.max_steps, callback=report, with_rules=self._learns_rules(),
            denoising_weight=self.denoising_weight,
        )  # fmt: skip
        self.start_rows_ = model.start_rows
        self._keep_joint(key, joint, model.color, report)

    def _fit_joint(self, key, X, labels, weights):
        self.mean_, self.scale_ = column_units(X)
        rows = standardized(X, *self._units())
        weights = None if weights is None else weights.astype(np.float32)
        table = LabelledRow(rows, labels.astype(np.int32), weights)
        splits = member_splits(host_rng(key, Stream.MEMBER_FOLDS), rows, labels, self.n_members)
        self._train_joint(key, table, splits)
        self._set_start_rows(key, rows, labels)

    def _fit_streamed(self, key, source):
        """The joint model of a table larger than the buffer."""
        buffer = RowBuffer(key, source, count_folds(self.n_members))
        self.mean_, self.scale_ = buffer.mean, buffer.scale
        table, folds = buffer.draw()

        def refill():
            fresh, folds = buffer.refill()
            return [LabelledRow(*fresh)], splits_of_folds(folds, self.n_members)

        self._train_joint(key, LabelledRow(*table), splits_of_folds(folds, self.n_members), refill)
        self._set_start_rows(key, *buffer.pooled())

    def _train_joint(self, key, table, splits, refill=None):
        report = ProgressReport(self, "joint", self.verbose)
        frame = class_frame(table.x, table.label, self.noise)
        joint = train_joint(
            key, table, splits, frame, frequencies=self.frequencies_, label_weight=self.label_weight,
            hidden=self.hidden, max_steps=self.max_steps, callback=report, refill=refill,
            with_rules=self._learns_rules(), denoising_weight=self.denoising_weight,
        )  # fmt: skip
        self._keep_joint(key, joint, frame.color, report, in_memory=refill is None)

    def _keep_joint(self, key, joint, color, report, in_memory=True):
        """What prediction and sampling need of a trained joint model."""
        report.close(f"joint: weights of steps {[fit.best_step for fit in joint.fits]}")
        self.history_ = [{"loss": f.loss, "held_out_loss": f.held_out_loss, "steps": f.steps} for f in joint.fits]
        model = joint.model
        if self._calibrates_by_members():
            found = calibrated(joint)
            model, self.temperature_ = found.model, found.temperature
            if in_memory:
                self.held_out_proba_ = self._held_out_proba(len(joint.table.label), found.held, found.logits)
        self.rules_share_ = 0.0 if model.rules is None else float(model.share)
        self.model_, self.noise_color_ = to_plain(model), color
        self.anchor_seed_ = np.asarray(jax.random.key_data(key))

    def _held_out_proba(self, n, held, logits):
        """Mean probabilities (n, classes) of the rows that members judged without having trained on them."""
        logits = logits + np.log(self.priors_ / self.frequencies_)
        total, times = np.zeros((n, len(self.classes_))), np.bincount(held, minlength=n)
        np.add.at(total, held, softmax(logits, axis=1))
        return np.where(times[:, None] > 0, total / np.maximum(times, 1)[:, None], np.nan).astype(np.float32)

    def _set_start_rows(self, key, rows, labels):
        # Permuted first: a sorted table must not start all chains at one end.
        order = host_rng(key, Stream.JOINT_START_ROWS).permutation(len(rows))
        self.start_rows_ = [rows[order[labels[order] == k]][:MAX_START_ROWS] for k in range(len(self.classes_))]

    def _fit_separate(self, seed, X, labels, weights):
        if isinstance(self.density, dict):
            if set(self.density) != set(self.classes_.tolist()):
                raise ValueError(
                    f"Expected one density for each of {self.classes_.tolist()}, got {list(self.density)}."
                )
            chosen = [self.density[label] for label in self.classes_.tolist()]
        else:
            chosen = [self.density] * len(self.classes_)
        tables = [X[labels == k] for k in range(len(chosen))]
        rngs = [class_rng(seed, k) for k in range(len(chosen))]
        if weights is not None:
            weights = [as_shares(weights[labels == k]) for k in range(len(chosen))]
        self.densities_ = fit_class_densities(chosen, tables, self.classes_.tolist(), rngs, weights=weights)

    def _calibrate(self, seed, X, labels, weights):
        """Temperature and intercepts from labels that models of the other folds predict."""
        seed %= 1 << 31
        splits = _calibration_splits(seed, X, labels)
        if splits is None:
            warn_caller("calibration needs more distinct rows of each class; probabilities are not calibrated.")
            return
        inner = clone(self).set_params(calibration=None, priors=None, class_weight=None, random_state=seed)
        if isinstance(self.density, dict):
            inner.set_params(density={k: self.density[label] for k, label in enumerate(self.classes_.tolist())})
        logits = np.empty((len(labels), len(self.classes_)))
        for kept, held in splits:
            own = None if weights is None else as_shares(weights[kept])
            logits[held] = clone(inner).fit(X[kept], labels[kept], sample_weight=own)._posterior_logits(X[held])
        self.temperature_, self.intercepts_ = fit_temperature(logits, labels, weights, intercepts=True)


def _calibration_splits(seed, X, labels):
    """Folds without which every class still has the two rows that a density needs; None where there are too few."""
    groups, n_classes = same_rows(X), labels.max() + 1
    if min(len(np.unique(groups[labels == k])) for k in range(n_classes)) < CALIBRATION_FOLDS:
        return None
    splits = stratified_folds(labels, groups, CALIBRATION_FOLDS, seed)
    fewest = min(np.bincount(labels[kept], minlength=n_classes).min() for kept, _ in splits)
    return splits if fewest > 1 else None
