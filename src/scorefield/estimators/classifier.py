"""ScoreClassifier: Bayes' rule on learned class densities.

Eq:generative_classification_1 and the decision rules of Eq:binary_decision_theory_1 to 3.
"""

import copy
import inspect
import numbers
import os

import jax
import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.batching import in_units, map_rows
from scorefield._jax.errors import warn_caller
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from, seed_from
from scorefield._jax.storage import from_plain, stored_by_public_name, to_plain
from scorefield.data.buffer import RowBuffer, fits_in_memory
from scorefield.data.dask import partition_wise
from scorefield.data.parquet import ParquetTable
from scorefield.estimators._sklearn import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    fit_task,
    validate_data,
    with_callbacks,
)
from scorefield.estimators.class_densities import fit_class_densities
from scorefield.estimators.density import MAX_START_ROWS, ScoreDensity
from scorefield.estimators.ensemble import JointInUnits, SeparateInUnits, count_folds, member_parts, parts_of_folds
from scorefield.estimators.progress import ProgressReport
from scorefield.fields.gaussian import fit_gaussian, gaussian_from_covariance
from scorefield.fields.joint import ClassEnergy, JointEnergies, columns_of, init_joint
from scorefield.inference.anchors import importance_anchor
from scorefield.inference.decisions import check_costs, decide, expected_costs
from scorefield.sampling.samplers import MALA
from scorefield.training.loop import train_many
from scorefield.training.losses import JointLoss, LabelLoss

MAX_CLASS_WEIGHT = 10.0  # of a rare class in the denoising term: beyond it single rows dominate a batch
HELD_OUT = 0.2
JOINT_PATIENCE = 5  # chunks: the labels' held-out loss turns early and does not come back


@stored_by_public_name
class ScoreClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Generative classifier on score fields.

    Parameters
    ----------
    density : "joint", density estimator or dict
        "joint" learns one energy per class on a shared trunk, from the rows and from the labels. An estimator with
        ``fit`` and ``score_samples`` (:class:`ScoreDensity`, scikit-learn's KernelDensity or GaussianMixture) is
        cloned for each class; a dict gives one per label.
    label_weight : float
        Weight of the labels' cross-entropy beside denoising score matching in the joint model; 0 is purely generative.
    n_members : int
        Networks of the joint model, trained in one program and averaged as energies.
    priors : None, "equal" or array of shape (n_classes,)
        Class probabilities; None takes the frequencies of ``y``.
    costs : None or array of shape (n_classes, n_classes)
        ``costs[true, predicted]``.
    margin : float
        Log odds by which a class must beat the first one: the paper's soft margin.
    calibration : None or "intercept"
        "intercept" fits one constant per class to the labels of a held-out part.
    hidden, noise, max_steps
        Layer widths, noise on standardised rows and training steps of the joint model.
    random_state : None, int or generator
    verbose : int

    Attributes
    ----------
    classes_ : ndarray
    priors_ : ndarray of shape (n_classes,)
    densities_ : list
        The fitted densities where they are separate; absent for the joint model.
    model_ : dict
        The joint model as plain arrays; absent where densities are separate.
    n_features_in_ : int

    Notes
    -----
    The methods that give one result for each row also take dask arrays and dataframes; they then return dask arrays.
    The networks of separate densities train in one program where their shapes agree. Within ``joblib.parallel_config``
    with more than one job (processes, a dask cluster) every class is a task instead.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreClassifier, ScoreDensity
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-2, 1, (100, 2)), rng.normal(2, 1, (100, 2))])
    >>> y = np.repeat(["left", "right"], 100)
    >>> model = ScoreClassifier(ScoreDensity(model="gaussian")).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.grad_log_density(X[:4]).shape
    (True, (4, 2, 2))
    """

    _parameter_constraints = {
        "density": [StrOptions({"joint"}), HasMethods(["fit", "score_samples"]), dict],
        "label_weight": [Interval(numbers.Real, 0, None, closed="left")],
        "n_members": [Interval(numbers.Integral, 1, None, closed="left")],
        "priors": [None, StrOptions({"equal"}), "array-like"],
        "costs": [None, "array-like"],
        "margin": [Interval(numbers.Real, 0, None, closed="left")],
        "calibration": [None, StrOptions({"intercept"})],
        "hidden": ["array-like"],
        "noise": [Interval(numbers.Real, 0, None, closed="neither")],
        "max_steps": [Interval(numbers.Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        density="joint",
        label_weight=1.0,
        n_members=8,
        priors=None,
        costs=None,
        margin=0.0,
        calibration=None,
        random_state=None,
        hidden=(128, 128),
        noise=0.3,
        max_steps=2000,
        verbose=0,
    ):
        self.density = density
        self.label_weight = label_weight
        self.n_members = n_members
        self.priors = priors
        self.costs = costs
        self.margin = margin
        self.calibration = calibration
        self.random_state = random_state
        self.hidden = hidden
        self.noise = noise
        self.max_steps = max_steps
        self.verbose = verbose

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y):
        """Learn the class densities from rows and labels, in memory or in Parquet files.

        Parameters
        ----------
        X : array-like of shape (n, d), str or path
            Rows; or a Parquet file, or a folder of Parquet files, which need not fit into memory. Files of few rows
            are read whole, and the fit is that of the table in memory. Of larger ones the joint model learns from a
            buffer of rows that is renewed while it trains; rare classes are held whole. Needs pyarrow.
        y : array-like of shape (n,) or str
            Labels; or the name of their column in the files. All other columns must hold numbers.

        Returns
        -------
        self : ScoreClassifier
        """
        if isinstance(X, str | os.PathLike):
            with fit_task(self):
                self._fit_path(X, y)
            return self
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        with fit_task(self, X=X, y=y):
            self._fit(X, y)
        return self

    def _fit_path(self, path, target):
        """Learn from Parquet files; those that fit into the buffer are read whole."""
        if not isinstance(target, str):
            raise ValueError(f"Expected the name of the label column beside a path, got {type(target).__name__}.")
        if not isinstance(self.density, str) or self.calibration is not None:
            raise ValueError(
                'Expected density="joint" and calibration=None with a path, got '
                f"density={self.density!r} and calibration={self.calibration!r}; read the table into memory for them."
            )
        table = ParquetTable(path, target)
        if fits_in_memory(table):
            self._fit(*table.read())
        else:
            self._set_classes(table.classes, table.counts)
            self._fit_streamed(key_from(self.random_state), table)
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)

    def _fit(self, X, y):
        classes, labels = np.unique(y, return_inverse=True)
        self._set_classes(classes, np.bincount(labels))
        key = key_from(self.random_state)
        if self.calibration == "intercept":
            self.intercepts_ = self._fit_intercepts(X, labels)
        if isinstance(self.density, str):
            self._fit_joint(key, X, labels)
        else:
            self._fit_separate(key, X, labels)

    def _set_classes(self, classes, counts):
        """Forget an earlier fit, then set what follows from the labels alone."""
        for name in ("densities_", "model_", "offsets_", "mean_", "scale_", "start_rows_", "history_"):
            vars(self).pop(name, None)  # which of them exist tells a joint model from separate densities
        self.classes_ = classes
        if len(classes) < 2:
            raise ValueError(f"Expected at least two classes in y, got 1 class: {classes.tolist()[0]!r}.")
        self.frequencies_ = counts / counts.sum()
        self.priors_ = self._resolve_priors()
        if self.costs is not None:
            check_costs(self.costs, len(classes))
        self.intercepts_ = np.zeros(len(classes))

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

    def _fit_joint(self, key, X, labels):
        scaler = ScoreDensity()  # the same column units as a density's
        scaler._set_scale(X)
        self.mean_, self.scale_ = scaler.mean_, scaler.scale_
        rows = in_units(X, *self._units())
        table = (rows, labels.astype(np.int32))
        parts = member_parts(host_rng(key, Stream.MEMBER_FOLDS), labels, self.n_members)
        model = self._train_joint(key, table, parts, fit_gaussian(rows, noise=self.noise))
        self._set_start_rows(key, rows, labels)
        self.offsets_ = self._joint_offsets(key, model, rows, labels)

    def _fit_streamed(self, key, source):
        """The joint model of a table larger than the buffer."""
        buffer = RowBuffer(key, source, count_folds(self.n_members))
        self.mean_, self.scale_ = buffer.mean, buffer.scale
        d = len(buffer.mean)
        # As `fit_gaussian` has it, which does not shrink the covariance of so many rows.
        base = gaussian_from_covariance(np.zeros(d), buffer.covariance + self.noise**2 * np.eye(d))
        table, folds = buffer.draw()

        def refill():
            fresh, folds = buffer.refill()
            return [fresh], parts_of_folds(folds, self.n_members)

        model = self._train_joint(key, table, parts_of_folds(folds, self.n_members), base, refill)
        pooled = buffer.pooled()
        self._set_start_rows(key, *pooled)
        # A constant for each class needs rows of the rarest ones; a common one, the shares of the file.
        self.offsets_ = self._joint_offsets(key, model, *(table if self.label_weight > 0 else pooled))

    def _train_joint(self, key, table, parts, base, refill=None):
        n_classes = len(self.classes_)
        keys = [jax.random.fold_in(key, m) for m in range(self.n_members)]
        columns = columns_of(table[0])
        members = [init_joint(k, base, columns, n_classes, hidden=tuple(self.hidden)) for k in keys]
        weights = np.minimum(1 / (n_classes * self.frequencies_), MAX_CLASS_WEIGHT).astype(np.float32)
        objective = JointLoss(self.noise, float(self.label_weight), weights)
        report = ProgressReport(self, "joint", self.verbose)
        fits = train_many(
            key, members, [table], objective, parts=parts, max_steps=self.max_steps, patience=JOINT_PATIENCE,
            held_out_objective=LabelLoss() if self.label_weight > 0 else objective, callback=report, refill=refill,
        )  # fmt: skip
        report.close(f"joint: weights of steps {[fit.best_step for fit in fits]}")
        self.history_ = [{"loss": f.loss, "held_out_loss": f.held_out_loss, "steps": f.steps} for f in fits]
        model = JointEnergies(tuple(fit.model.members[0] for fit in fits), base)
        self.model_ = to_plain(model)
        return model

    def _set_start_rows(self, key, rows, labels):
        order = host_rng(key, Stream.JOINT_START_ROWS).permutation(
            len(rows)
        )  # a sorted table must not start all chains at one end
        self.start_rows_ = [rows[order[labels[order] == k]][:MAX_START_ROWS] for k in range(len(self.classes_))]

    def _joint_offsets(self, key, model, rows, labels):
        """What turns energies into log p(x, y): one constant where labels taught the class constants, else one each."""
        rows = rows + self.noise * host_rng(key, Stream.JOINT_ANCHOR_NOISE).normal(
            size=rows.shape
        )  # what the model is the density of
        if self.label_weight > 0:
            return np.full(len(self.classes_), importance_anchor(key, Method(model, "total"), rows).offset)
        offsets = []
        for k in range(len(self.classes_)):
            own = rows[labels == k]
            potential = Method(ClassEnergy(model, np.int32(k)), "potential")
            offsets.append(importance_anchor(key, potential, own if len(own) > 1 else rows).offset)
        return np.array(offsets) + np.log(self.frequencies_)

    def _fit_separate(self, key, X, labels):
        if isinstance(self.density, dict):
            if set(self.density) != set(self.classes_.tolist()):
                raise ValueError(
                    f"Expected one density for each of {self.classes_.tolist()}, got {list(self.density)}."
                )
            chosen = [self.density[label] for label in self.classes_.tolist()]
        else:
            chosen = [self.density] * len(self.classes_)
        tables = [X[labels == k] for k in range(len(chosen))]
        seeds = [int(host_rng(key, Stream.CLASS_SEEDS, k).integers(1 << 31)) for k in range(len(chosen))]
        self.densities_ = fit_class_densities(chosen, tables, self.classes_.tolist(), seeds)

    def _fit_intercepts(self, X, labels):
        """Constants that make held-out labels most likely, after Bayes' rule with the empirical frequencies."""
        if np.bincount(labels).min() < 5:
            warn_caller("calibration='intercept' needs five rows of each class; left out.")
            return np.zeros(len(self.classes_))
        seed = seed_from(self.random_state) % (1 << 31)
        split = StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
        kept, held = next(split.split(X, labels))
        inner = clone(self).set_params(calibration=None, priors=None, random_state=seed)
        if isinstance(self.density, dict):
            inner.set_params(density={k: self.density[label] for k, label in enumerate(self.classes_.tolist())})
        inner.fit(X[kept], labels[kept])
        logs = inner._joint_log_likelihood(X[held])

        def loss(free):
            shifted = logs + np.concatenate([[0.0], free])
            chosen = shifted[np.arange(len(held)), labels[held]]
            # One pseudo-observation's worth of pull to zero: separable held-out rows must not send it to infinity.
            return np.sum(logsumexp(shifted, axis=1) - chosen) + 0.5 * np.sum(free**2) / 9

        return np.concatenate([[0.0], minimize(loss, np.zeros(len(self.classes_) - 1), method="L-BFGS-B").x])

    def _units(self):
        return self.mean_, self.scale_

    def _members(self):
        """Networks that one row is sent through."""
        return len(self.model_["members"])

    def _check(self, X):
        check_is_fitted(self)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def _shifts(self):
        """What is added to the joint model's energies to give log p(x, y): anchor, priors, calibration."""
        return self.offsets_ + np.log(self.priors_ / self.frequencies_) + self.intercepts_

    def _log_likelihood(self, X):
        """log p(x | y), shape (n, classes); the intercepts are part of it."""
        if hasattr(self, "densities_"):
            logs = np.column_stack([density.score_samples(X) for density in self.densities_]).astype(np.float64)
            return logs + self.intercepts_
        logs = map_rows(from_plain(self.model_), X, points=self._members(), units=self._units()).astype(np.float64)
        return logs - np.log(self.scale_).sum() + self._shifts() - np.log(self.priors_)

    def _joint_log_likelihood(self, X):
        """log p(x, y) up to a term that all classes share, shape (n, classes).

        A joint model's Gaussian base is left out: far from the data it is so large that single precision would
        swallow the differences between classes.
        """
        if not hasattr(self, "densities_"):
            logits = map_rows(Method(from_plain(self.model_), "logits"), X, points=self._members(), units=self._units())
            return logits.astype(np.float64) + self._shifts()
        joint = self._log_likelihood(X) + np.log(self.priors_)
        lost = ~np.isfinite(joint).any(axis=1)  # no density claims the row: only the priors speak
        joint[lost] = np.log(self.priors_)
        return joint

    def log_joint_function(self):
        """log p(x, y) of all classes as a jax function of one point, in the units of X."""
        check_is_fitted(self)
        if not hasattr(self, "densities_"):
            return JointInUnits(from_plain(self.model_), self.mean_, self.scale_, self._shifts())
        self._need_fields()
        shifts = np.log(self.priors_) + self.intercepts_
        return SeparateInUnits(tuple(d.log_density_function() for d in self.densities_), shifts)

    def _need_fields(self):
        for density in self.densities_:
            if not isinstance(density, ScoreDensity):
                raise TypeError(f"Expected ScoreDensity densities for derivatives, got {type(density).__name__}.")

    @partition_wise(lambda self: (len(self.classes_),))
    def predict_log_proba(self, X):
        """log p(y | x), shape (n, classes)."""
        X = self._check(X)
        joint = self._joint_log_likelihood(X)
        return (joint - logsumexp(joint, axis=1, keepdims=True)).astype(X.dtype)

    @partition_wise(lambda self: (len(self.classes_),))
    def predict_proba(self, X):
        """p(y | x), shape (n, classes)."""
        return np.exp(self.predict_log_proba(X))

    @partition_wise(lambda self: (len(self.classes_),) if len(self.classes_) > 2 else ())
    def decision_function(self, X):
        """Log odds of the second class less margin and costs, shape (n,).

        For more classes log p(y | x), or minus the expected cost of each prediction where costs or a margin are set.
        """
        logs = self.predict_log_proba(X)
        if len(self.classes_) > 2:
            if self.costs is None and self.margin == 0:
                return logs
            return -expected_costs(logs, costs=self.costs, margin=self.margin).astype(logs.dtype)
        threshold = self.margin
        if self.costs is not None:
            costs = check_costs(self.costs, 2)
            gains = np.array([costs[0, 1] - costs[0, 0], costs[1, 0] - costs[1, 1]])
            if not gains.any():
                return np.zeros(len(logs), logs.dtype)  # every decision costs the same
            with np.errstate(divide="ignore"):
                threshold += np.log(gains[0]) - np.log(gains[1])
        return logs[:, 1] - logs[:, 0] - np.asarray(threshold, logs.dtype)

    @partition_wise(lambda self: (), dtype=lambda self: self.classes_.dtype)
    def predict(self, X):
        """Labels of least expected cost."""
        check_is_fitted(self)
        return self.classes_[decide(self.predict_log_proba(X), costs=self.costs, margin=self.margin)]

    @partition_wise(lambda self: ())
    def score_samples(self, X):
        """log p(x) under the mixture of classes, shape (n,)."""
        X = self._check(X)
        return logsumexp(self._log_likelihood(X) + np.log(self.priors_), axis=1).astype(X.dtype)

    @partition_wise(lambda self: (len(self.classes_), self.n_features_in_))
    def grad_log_density(self, X):
        """The score field of every class at each row, shape (n, classes, d)."""
        X = self._check(X)
        if hasattr(self, "densities_"):
            self._need_fields()
            return np.stack([density.grad_log_density(X) for density in self.densities_], axis=1)
        scores = map_rows(Method(from_plain(self.model_), "scores"), X, points=self._members(), units=self._units())
        return (scores / self.scale_).astype(X.dtype)

    def sample(self, n, label, random_state=None):
        """Draw n rows of one class, shape (n, d)."""
        check_is_fitted(self)
        where = np.flatnonzero(self.classes_ == label)
        if len(where) == 0:
            raise ValueError(f"Expected a label of {self.classes_.tolist()}, got {label!r}.")
        k = int(where[0])
        state = self.random_state if random_state is None else random_state
        if hasattr(self, "densities_"):
            density, seed = self.densities_[k], seed_from(state) % (1 << 31)
            if "random_state" in inspect.signature(density.sample).parameters:
                return density.sample(n, random_state=seed)
            drawn = copy.copy(density).set_params(random_state=seed).sample(n)  # scikit-learn's mixtures
            return drawn[0] if isinstance(drawn, tuple) else drawn
        field = ClassEnergy(from_plain(self.model_), np.int32(k))
        drawn = MALA(0.05, 200, 0.995).sample(key_from(state), field, n, self.start_rows_[k])
        return drawn.rows * self.scale_ + self.mean_
