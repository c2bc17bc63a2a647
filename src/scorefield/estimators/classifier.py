"""ScoreClassifier: networks that learn rows and labels, with rules beside them; or Bayes' rule on class densities.

Eq:generative_classification_1 and the decision rules of Eq:binary_decision_theory_1 to 3.
"""

import copy
import inspect
import numbers
import os

import jax
import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.batching import map_rows
from scorefield._jax.pytrees import Method
from scorefield._jax.random import Stream, host_rng, key_from, seed_from
from scorefield._jax.storage import from_plain, stored_by_public_name
from scorefield.data.checks import check_ids
from scorefield.data.dask import partition_wise
from scorefield.data.row_space import RowSpace
from scorefield.data.row_weights import uneven
from scorefield.data.scaling import raw_rows
from scorefield.diagnose.diagnosed import DiagnosedClassifier
from scorefield.diagnose.diagnosis import USUAL_ACCEPTANCE
from scorefield.estimators._sklearn import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    fit_task,
    with_callbacks,
)
from scorefield.estimators.classifier_fitting import FitsClasses
from scorefield.estimators.density import ScoreDensity, warn_of_low_acceptance
from scorefield.estimators.table_input import TableInput
from scorefield.fields.gaussian import Whitened, fit_gaussian
from scorefield.fields.joint import ClassEnergy
from scorefield.inference.anchors import importance_anchor
from scorefield.inference.decisions import check_costs, decide, expected_costs
from scorefield.inference.functions import OfRawRows, Plus, SideBySide, Times
from scorefield.models.row_model import RowModel
from scorefield.sampling.samplers import MALA

MALA_STEP = 0.05  # in standard deviations of the class


@stored_by_public_name
class ScoreClassifier(
    FitsClasses, DiagnosedClassifier, TableInput, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """Classifier on score fields: probabilities, and a density of every class.

    By default ``predict_proba`` is the softmax of ``((1 - s) network + s rules) / T``. The network is the mean of
    ``n_members`` networks with one energy per class, which learn from two losses at once: the cross-entropy of the
    labels, and denoising score matching of the rows of each class. Training stops by held-out labels. The rules are a
    sparse model of the labels alone (RuleFit); their share s and the temperature T make held-out labels most likely.
    This is not Bayes' rule on :meth:`log_likelihood`, from which probabilities may differ a lot: labels correct what
    the densities get wrong. Bayes' rule is what ``label_weight=0`` and separate densities use, up to a calibration.

    Only the score knows the rows: :meth:`sample`, :meth:`score_samples`, missing values (:meth:`impute`), outliers and
    :meth:`grad_log_density` come from it. To probabilities it adds a little, and so do the rules.

    Parameters
    ----------
    density : "joint", density estimator or dict
        "joint" learns one energy per class on a shared trunk, from the rows and from the labels. An estimator with
        ``fit`` and ``score_samples`` (:class:`ScoreDensity`, scikit-learn's KernelDensity or GaussianMixture) is
        cloned for each class; a dict gives one per label.
    label_weight : float
        Weight of the labels' cross-entropy in the loss of the joint model; 0 is purely generative: Bayes' rule on its
        densities.
    n_members : int
        Networks of the joint model, averaged as energies.
    priors : None, "equal" or array of shape (n_classes,)
        Class probabilities; None takes the frequencies of ``y``.
    costs : None or array of shape (n_classes, n_classes)
        ``costs[true, predicted]``.
    margin : float
        Log odds by which a class must beat the first one: the paper's soft margin.
    calibration : "auto" or None
        "auto" makes held-out labels most likely. The joint model, from rows that its members never saw, divides log
        odds by a temperature and gives a share of them to a sparse model of the labels by rules, where that predicts
        them better: where few of many columns decide, or some by steps. Members of a kind that predicts them clearly
        worse than another kind are left out, of densities too. ``label_weight=0`` and separate densities are fitted
        anew without each of three folds, for a temperature and one constant per class. None leaves probabilities as
        Bayes' rule gives them.
    class_weight : None, "balanced" or dict
        Weights of classes, as in scikit-learn; ``sample_weight`` is multiplied by them.
    hidden : "auto" or sequence of int
        Layer widths of the joint model; "auto" is (128, 128), and (64, 64) for fewer than 1,000 rows of numbers.
    noise : float
        Noise of the joint model in units of the spread within classes.
    max_steps : "auto" or int
        Training steps of the joint model at most; "auto" is 500, and more for tables of over 10,000
        rows of numbers in memory.
    columns : None or dict
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.
    random_state : None, int or generator
    verbose : int
    rules : "auto" or None
        "auto" gives rules the share of the probabilities that held-out labels ask for, with ``calibration="auto"`` and
        labels that are learned; None leaves them out.
    denoising_weight : float
        Weight of denoising score matching in the loss of the joint model. With 0 it learns the labels alone: a plain
        ensemble of networks, without densities, rows or fields.

    Attributes
    ----------
    classes_ : ndarray
    priors_ : ndarray of shape (n_classes,)
    densities_ : list
        The fitted densities where they are separate; absent for the joint model.
    model_ : dict
        The joint model as plain arrays; absent where densities are separate.
    rules_share_ : float
        Share s of the rules in the logits of the joint model; 0 without rules.
    held_out_proba_ : ndarray of shape (n, classes)
        Probabilities of the rows of ``fit`` by members that did not train on them; NaN in rows that all members train
        on. The same rows stop the training and set s and T, which makes them a little too good; a single member
        instead of all makes them a little too bad. Absent where members are not calibrated or a table is read in parts.
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
        "calibration": [None, StrOptions({"auto"})],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "columns": [None, dict],
        "hidden": [StrOptions({"auto"}), "array-like"],
        "noise": [Interval(numbers.Real, 0, None, closed="neither")],
        "max_steps": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "rules": [None, StrOptions({"auto"})],
        "denoising_weight": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        density="joint",
        label_weight=1.0,
        n_members=8,
        priors=None,
        costs=None,
        margin=0.0,
        calibration="auto",
        class_weight=None,
        random_state=None,
        hidden="auto",
        noise=0.3,
        max_steps="auto",
        columns=None,
        verbose=0,
        rules="auto",
        denoising_weight=1.0,
    ):
        self.density = density
        self.label_weight = label_weight
        self.n_members = n_members
        self.priors = priors
        self.costs = costs
        self.margin = margin
        self.calibration = calibration
        self.class_weight = class_weight
        self.random_state = random_state
        self.hidden = hidden
        self.noise = noise
        self.max_steps = max_steps
        self.columns = columns
        self.verbose = verbose
        self.rules = rules
        self.denoising_weight = denoising_weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        takes_mixed = isinstance(self.density, str)
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = takes_mixed
        return tags

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Learn the class densities from rows and labels, in memory or in Parquet files.

        Parameters
        ----------
        X : array-like of shape (n, d), str or path
            Rows: an array, a pandas or polars DataFrame or a pyarrow table, of mixed types and with gaps for the joint
            model; or a Parquet file, or a folder of Parquet files, which need not fit into memory. Files of few rows
            are read whole, and the fit is that of the table in memory. Of larger ones the joint model learns from a
            buffer of rows that is renewed while it trains; rare classes are held whole. Needs pyarrow.
        y : array-like of shape (n,) or str
            Labels; or the name of their column in the files. If other columns have gaps or hold no numbers, up to
            100,000 random rows of the files are learned from, small classes whole and weighted.
        sample_weight : array-like of shape (n,), default=None
            Weights of rows: one of 2 counts as two rows, one of 0 leaves the row out. Their size matters for what
            depends on the number of rows; those with a mean of over 10 act by their ratios alone. A density whose
            ``fit`` takes no weights is fitted to rows that are drawn in proportion to them.

        Returns
        -------
        self : ScoreClassifier
        """
        if isinstance(X, str | os.PathLike):
            with fit_task(self):
                self._fit_path(X, y)
            return self
        X, y, weights = self._read_labelled(X, y, sample_weight)
        with fit_task(self, X=X, y=y):
            self._fit(X, y, weights)
        return self

    def _read_labelled(self, X, y, sample_weight):
        """Rows of positive weight, their labels, and weights of mean one; None where all are equal."""
        X, y, weights = self._read_weighted(X, y, sample_weight, ensure_min_samples=2)
        check_classification_targets(y)
        if self.class_weight is None:
            return X, y, weights
        by_class = compute_sample_weight(self.class_weight, y)
        weights = by_class if weights is None else weights * by_class
        kept = weights > 0
        return X[kept], y[kept], uneven(weights[kept])

    @property
    def log_constants_(self):
        """What is added to the joint model's energies to give log p(x | y) of standardised rows, shape (classes,).

        Found by importance sampling on first use: probabilities do not need it unless ``label_weight`` is 0.
        """
        if not hasattr(self, "anchors_"):
            key, model = jax.random.wrap_key_data(self.anchor_seed_), from_plain(self.model_)
            if self._mixed:
                self.anchors_ = self._row_model().log_constants(key)
                return self.anchors_[:, 0]
            rng = host_rng(key, Stream.JOINT_ANCHOR_NOISE)
            anchors = []
            for k, rows in enumerate(self.start_rows_):
                rows = rows if len(rows) > 1 else np.concatenate(self.start_rows_)
                noisy = rows + rng.normal(size=rows.shape) @ self.noise_color_  # what the model is the density of
                potential = Method(ClassEnergy(model, np.int32(k)), "potential")
                anchors.append(importance_anchor(key, potential, noisy, points=self._members()))
            self.anchors_ = np.array([list(anchor) for anchor in anchors])
        return self.anchors_[:, 0]

    def _units(self):
        return self.mean_, self.scale_

    def _members(self):
        """Networks that one row is sent through."""
        return len(self.model_["members"])

    def _row_model(self):
        """The model of mixed rows with its own methods."""
        space = RowSpace.from_plain(self.space_)
        return RowModel(space, from_plain(self.model_), self.noise_color_, self.start_rows_)

    def _map_rows(self, method, X):
        """A method of the joint model at each row."""
        function = Method(from_plain(self.model_), method)
        units = None if self._mixed else self._units()
        return map_rows(function, X, points=self._members(), standardize=units)

    def _class_constants(self):
        """What is added to a joint model's logits before calibration: nothing where the labels taught it."""
        return 0.0 if self.label_weight > 0 else self.log_constants_ + np.log(self.frequencies_)

    def _calibrated(self, logits):
        """Log posteriors up to a constant per row, from logits for the class frequencies of y."""
        return logits / self.temperature_ + self.intercepts_ + np.log(self.priors_ / self.frequencies_)

    def _posterior_logits(self, X, log_likelihood=None):
        """`_calibrated` logits of each row, shape (n, classes).

        A joint model's Gaussian base is left out: far from the data it is so large that single precision would
        swallow the differences between classes.
        """
        if not hasattr(self, "densities_"):
            return self._calibrated(self._map_rows("logits", X).astype(np.float64) + self._class_constants())
        logs = self._log_likelihood(X) if log_likelihood is None else log_likelihood
        with np.errstate(invalid="ignore"):
            logits = self._calibrated(logs + np.log(self.frequencies_))
        # All densities are zero: fall back to the priors.
        return np.where(np.isfinite(logits).any(axis=1, keepdims=True), logits, np.log(self.priors_))

    def _need_density(self):
        if isinstance(self.density, str) and self.denoising_weight == 0:
            raise ValueError(
                "Expected a model of the rows, got denoising_weight=0, which learns the labels alone; fit with a "
                "positive weight for densities, fields and rows."
            )

    def _log_likelihood(self, X):
        self._need_density()
        if hasattr(self, "densities_"):
            return np.column_stack([density.score_samples(X) for density in self.densities_]).astype(np.float64)
        return self._map_rows("__call__", X).astype(np.float64) + self._density_constants(X)

    def _density_constants(self, X):
        """What is added to a joint model's energies of standardised rows to give log p(x | y) of raw ones."""
        if self._mixed:
            return self.log_constants_ + RowSpace.from_plain(self.space_).log_slopes(X)[:, None]
        return self.log_constants_ - np.log(self.scale_).sum()

    def log_proba_and_density(self, X):
        """What `predict_log_proba` and `score_samples` return, in one pass over the rows."""
        X = self._read(X)
        self._need_density()
        logits, logs = self.logits_and_log_likelihood(X)
        log_density = logsumexp(logs + np.log(self.priors_), axis=1)
        return _log_probabilities(logits, X.dtype), log_density.astype(X.dtype)

    def logits_and_log_likelihood(self, X):
        """Log posteriors up to a constant per row, and log p(x | y), both (n, classes), of rows that were read."""
        if hasattr(self, "densities_"):
            logs = self._log_likelihood(X)
            return self._posterior_logits(X, logs), logs
        logits, logs = (values.astype(np.float64) for values in self._map_rows("logits_and_energies", X))
        return self._calibrated(logits + self._class_constants()), logs + self._density_constants(X)

    def log_posterior_function(self):
        """Log posteriors of all classes, up to a constant per point, as a jax function of one point of X."""
        check_is_fitted(self)
        if self._mixed:
            raise TypeError(
                "Expected a model of complete numbers, got one of a mixed table, whose posterior is not a function of "
                "points; use boundary_distance, explain or counterfactuals."
            )
        if hasattr(self, "densities_"):
            self._need_fields()
            logits = SideBySide(tuple(density.log_density_function() for density in self.densities_))
            return self._calibrated_function(logits, np.log(self.frequencies_))
        return self._joint_posterior(OfRawRows(Method(from_plain(self.model_), "logits"), self.mean_, self.scale_))

    def known_rows(self):
        """Up to 1,024 rows of each class that a model of numbers was fitted to, in the units of X."""
        if hasattr(self, "densities_"):
            self._need_fields()
            return [density.known_rows() for density in self.densities_]
        return [raw_rows(rows, self.mean_, self.scale_) for rows in self.start_rows_]

    def log_posterior_of_inputs(self):
        """`log_posterior_function` of a mixed table: of the inputs of its network, see `RowLayout.inputs`."""
        return self._joint_posterior(Method(from_plain(self.model_), "logits_at_inputs"))

    def log_posterior_of_rows(self):
        """`log_posterior_function` of a mixed table: of flat rows, as `RowSpace.rows` makes them."""
        return self._joint_posterior(Method(from_plain(self.model_), "logits"))

    def _joint_posterior(self, logits):
        return self._calibrated_function(logits, self._class_constants())

    def _calibrated_function(self, logits, constants):
        return Plus(Times(logits, 1 / self.temperature_), self._calibrated(constants))

    def _need_fields(self):
        for density in self.densities_:
            if not isinstance(density, ScoreDensity):
                raise TypeError(f"Expected ScoreDensity densities for derivatives, got {type(density).__name__}.")

    @partition_wise(lambda self: (len(self.classes_),))
    def predict_log_proba(self, X):
        """log p(y | x), shape (n, classes)."""
        X = self._read(X)
        return _log_probabilities(self._posterior_logits(X), X.dtype)

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
        return self.decide(self.predict_log_proba(X))

    def decide(self, log_proba):
        """Labels of least expected cost for log posteriors, shape (n, classes)."""
        return self.classes_[decide(log_proba, costs=self.costs, margin=self.margin)]

    @partition_wise(lambda self: (len(self.classes_),))
    def log_likelihood(self, X):
        """log p(x | y), the log density of every class at each row, shape (n, classes)."""
        X = self._read(X)
        return self._log_likelihood(X).astype(X.dtype)

    @partition_wise(lambda self: ())
    def score_samples(self, X):
        """log p(x) under the mixture of classes, shape (n,)."""
        X = self._read(X)
        return logsumexp(self._log_likelihood(X) + np.log(self.priors_), axis=1).astype(X.dtype)

    @partition_wise(lambda self: (len(self.classes_), self.n_features_in_))
    def grad_log_density(self, X):
        """The score field of every class at each row, shape (n, classes, d).

        For mixed tables d counts the columns of numbers, and the field is that of their normal scores, 0 at gaps.
        """
        X = self._read(X)
        self._need_density()
        if hasattr(self, "densities_"):
            self._need_fields()
            return np.stack([density.grad_log_density(X) for density in self.densities_], axis=1)
        if self._mixed:
            return self._row_model().scores(X)
        return (self._map_rows("scores", X) / self.scale_).astype(X.dtype)

    def sample(self, n, label, random_state=None, *, ids="new"):
        """Draw n rows of one class, as a table like the fitted one.

        With ``ids="new"`` identifiers continue the pattern of their column, with "blank" they are missing.
        """
        check_is_fitted(self)
        self._need_density()
        check_ids(ids)
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
        if self._mixed:
            return self._row_model().generated(key_from(state), n, k, ids)
        return self._like_fitted(self._sample_joint(k, n, key_from(state)).astype(self.dtype_))

    def impute(self, X, random_state=None):
        """The table with its gaps drawn from their law given the known cells, which stay as they are."""
        check_is_fitted(self)
        if not self._mixed:
            raise ValueError(
                "Expected a model that was fitted to gaps or to mixed columns, got one of complete numbers; use "
                "ScoreImputer to fill gaps."
            )
        self._need_density()
        key = key_from(self.random_state if random_state is None else random_state)
        return self._row_model().filled(key, X)

    def _sample_joint(self, k, n, key):
        drawn, frame = self._class_samples(k, n, key, 200, 0.995)
        return frame.coloured(drawn.rows) * self.scale_ + self.mean_

    def _class_samples(self, k, n, key, chain_length, discard):
        """`Samples` of class k by MALA and their frame, in which its rows have unit covariance: one step suits all."""
        model, rows = from_plain(self.model_), self.start_rows_[k]
        frame = fit_gaussian(rows, noise=self.noise) if len(rows) > 1 else model.base
        field = Whitened(ClassEnergy(model, np.int32(k)), frame)
        step = MALA_STEP
        while True:
            sampler = MALA(step, chain_length, discard)
            drawn = sampler.sample(key, field, n, frame.whitened(rows))
            if drawn.acceptance > USUAL_ACCEPTANCE or step < MALA_STEP / 1000:
                break
            step /= 4
        warn_of_low_acceptance(drawn, sampler)
        return drawn, frame


def _log_probabilities(logits, dtype):
    """Normalised log probabilities; those whose probability rounds to one in the dtype are zero."""
    logs = log_softmax(logits, axis=1).astype(dtype)
    logs[np.exp(logs) == 1] = 0
    return logs
