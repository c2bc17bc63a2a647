"""ScoreClassifier: networks that learn rows and labels, with rules beside them; or Bayes' rule on class densities.

Eq:generative_classification_1 and the decision rules of Eq:binary_decision_theory_1 to 3.
"""

import numbers

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from scorefield._jax.errors import warn_caller
from scorefield._jax.random import key_from, seed_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.checks import check_ids
from scorefield.data.dask import partition_wise
from scorefield.data.row_weights import uneven
from scorefield.data.spaces import refuse_mixed
from scorefield.diagnose.diagnosed import check_both, class_indices, diagnose_classes
from scorefield.estimators._sklearn import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    fit_task,
    num_samples,
    with_callbacks,
)
from scorefield.estimators.table_input import in_parts, read, read_grouped, read_new, table_in_parts
from scorefield.inference.decisions import check_costs, decide, expected_costs
from scorefield.models import fitting
from scorefield.models.constrained_filling import filled_within
from scorefield.models.fitting import JointSettings, SeparateSettings
from scorefield.models.progress import ProgressReport
from scorefield.models.requests import ModelRequests, check_constraints, check_n_rows, joined_constraints
from scorefield.models.settings import changed_settings

JOINT_SETTINGS = ("label_weight", "n_members", "rules", "hidden", "noise", "max_steps")


@stored_by_public_name
class ScoreClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
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
    density : "joint", density estimator or dict, default="joint"
        "joint" learns one energy per class on a shared trunk, from the rows and from the labels. An estimator with
        ``fit`` and ``score_samples`` (:class:`ScoreDensity`, scikit-learn's KernelDensity or GaussianMixture) is
        cloned for each class; a dict gives one per label.
    label_weight : float, default=1.0
        Weight of the labels' cross-entropy in the loss of the joint model; 0 is purely generative: Bayes' rule on its
        densities.
    n_members : int, default=8
        Networks of the joint model, averaged as energies.
    priors : None, "equal" or array of shape (n_classes,), default=None
        Class probabilities; None takes the frequencies of ``y``.
    costs : None or array of shape (n_classes, n_classes), default=None
        ``costs[true, predicted]``.
    margin : float, default=0.0
        Log odds by which a class must beat the first one: the paper's soft margin.
    calibration : "auto" or None, default="auto"
        "auto" makes held-out labels most likely. The joint model, from rows that its members never saw, divides log
        odds by a temperature and gives a share of them to a sparse model of the labels by rules, where that predicts
        them better: where few of many columns decide, or some by steps. Members of a kind that predicts them clearly
        worse than another kind are left out, of densities too. ``label_weight=0`` and separate densities are fitted
        anew without each of three folds, for a temperature and one constant per class. None leaves probabilities as
        Bayes' rule gives them.
    class_weight : None, "balanced" or dict, default=None
        Weights of classes, as in scikit-learn; ``sample_weight`` is multiplied by them.
    hidden : "auto" or sequence of int, default="auto"
        Layer widths of the joint model; "auto" is (128, 128), and (64, 64) for fewer than 1,000 rows of numbers.
    noise : float, default=0.3
        Noise of the joint model in units of the spread within classes.
    max_steps : "auto" or int, default="auto"
        Training steps of the joint model at most; "auto" is 500, and more for tables of over 10,000
        rows of numbers in memory.
    columns : None or dict, default=None
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.
    random_state : None, int or generator, default=None
        Seeds all random numbers; the same integer gives the same results, and None others in each run.
    verbose : int, default=0
    rules : "auto" or None, default="auto"
        "auto" gives rules the share of the probabilities that held-out labels ask for, with ``calibration="auto"`` and
        labels that are learned; None leaves them out.
    common_per_rare : int or None, default=5
        Large tables: about how many rows of a class labels are learned from, per row of all rarer classes together.
        Classes of up to 20,000 rows are learned whole, and so are the rarest. Half of the rows are drawn evenly, and
        half by how much their labels would surprise a first quick model. Of mixed tables, and with fewer than 1,000
        rarer rows, all are drawn evenly and 50,000 stay whole. Probabilities are those of the whole table, since the
        chances of the rows are known. Of more than 524,288 rows (100,000 of mixed tables) in all, an even draw is made
        first. None learns from all rows of a table in memory.
    denoising_weight : float, default=1.0
        Weight of denoising score matching in the loss of the joint model. With 0 it learns the labels alone: a plain
        ensemble of networks, without densities, rows or fields.
    constraints : None, str or list, default=None
        Relations between columns that :meth:`sample` keeps in every row, such as ``"start <= end"``, ``"total == a +
        b"`` or ``("start", "<=", "end")``: sums of columns and numbers, compared by <=, <, ==, > or >=. Names with
        spaces or signs are quoted. A missing cell keeps a relation; fitted rows that violate one are refused.

    Attributes
    ----------
    classes_ : ndarray
    priors_ : ndarray of shape (n_classes,)
    model_ : TableModel
        What was learned: one energy of all classes, or a density for each.
    densities_ : list
        The fitted densities where they are separate; absent for the joint model.
    n_rows_learned_ : int
        Rows that the joint model was learned from, see ``common_per_rare``.
    rules_share_ : float
        Share s of the rules in the logits of the joint model; 0 without rules.
    held_out_proba_ : ndarray of shape (n, classes)
        Probabilities of the rows of ``fit`` by members that did not train on them; NaN in rows that all members train
        on and in those of weight zero. The same rows stop the training and set s and T, which makes them a little too
        good; a single member instead of all makes them a little too bad. Absent where members are not calibrated or a
        table is read in parts.
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
        "constraints": [None, str, list, tuple],
        "hidden": [StrOptions({"auto"}), "array-like"],
        "noise": [Interval(numbers.Real, 0, None, closed="neither")],
        "max_steps": [StrOptions({"auto"}), Interval(numbers.Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "rules": [None, StrOptions({"auto"})],
        "common_per_rare": [None, Interval(numbers.Integral, 1, None, closed="left")],
        "denoising_weight": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        density="joint",
        *,
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
        common_per_rare=5,
        denoising_weight=1.0,
        constraints=None,
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
        self.common_per_rare = common_per_rare
        self.denoising_weight = denoising_weight
        self.constraints = constraints

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        takes_mixed = isinstance(self.density, str)
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = takes_mixed
        return tags

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, groups=None):
        """Learn the class densities from rows and labels, in memory, in Parquet files or in a dask dataframe.

        Parameters
        ----------
        X : array-like of shape (n, d), dask dataframe, str or path
            Rows: an array, a pandas or polars DataFrame or a pyarrow table, of mixed types, with missing values,
            for the joint model. Or a dask dataframe, a Parquet file or a folder of Parquet files (needs pyarrow), which
            need not fit into memory: the joint model learns from up to half a million of their rows, rare classes whole
            and the others drawn evenly, and has the odds of the whole table. These are the rows that it learns from in
            memory.
        y : array-like of shape (n,), dask Series or str
            Labels; or the name of their column in the files or the dask dataframe. If other columns have missing
            values or no numbers, 100,000 rows are the most, and what columns are is told by these rows.
        sample_weight : array-like of shape (n,), default=None
            Weights of rows: one of 2 counts as two rows, one of 0 leaves the row out. Their size matters for what
            depends on the number of rows; those with a mean of over 10 act by their ratios alone. A density whose
            ``fit`` takes no weights is fitted to rows that are drawn in proportion to them.
        groups : array-like of shape (n,), default=None
            Groups of rows that are related, such as those of one customer. The joint model keeps them together where
            it holds rows out to stop the training and to calibrate; without them only equal rows are.

        Returns
        -------
        self : ScoreClassifier
        """
        self._check_groups(X, groups)
        if in_parts(X):
            with fit_task(self):
                self._fit_in_parts(table_in_parts(X, y, sample_weight))
            return self
        rows, y, space, weights, groups, places = self._read_labelled(X, y, sample_weight, groups)
        check_constraints(space, X, self.constraints)
        with fit_task(self, X=rows, y=y):
            self._fit(space, rows, y, weights, groups)
        if hasattr(self, "held_out_proba_"):
            proba = np.full((num_samples(X), len(self.classes_)), np.nan, self.held_out_proba_.dtype)
            proba[places], self.held_out_proba_ = self.held_out_proba_, proba
        return self

    def _check_groups(self, X, groups):
        """Refuse groups where rows are split without them."""
        if groups is None:
            return
        if in_parts(X):
            raise ValueError("Expected a table in memory with groups, got one in parts; read it first.")
        if not isinstance(self.density, str):
            raise ValueError(
                f'Expected density="joint" with groups, got {type(self.density).__name__}, which splits its rows '
                "itself; leave groups out, or learn with the joint model."
            )

    def _fit(self, space, rows, y, weights=None, groups=None):
        self._check_terms()
        classes, labels = np.unique(y, return_inverse=True)
        self._set_classes(classes, np.bincount(labels, weights))
        if not isinstance(self.density, str) and space.layout is not None:
            refuse_mixed(space, 'density="joint"', type(self.density).__name__)
        seed = seed_from(self.random_state)
        model, judged = fitting.fit(seed, space, rows, labels, self._settings(), weights, groups)
        self._keep(model)
        if judged is not None:
            self.held_out_proba_ = judged.mean_probabilities(len(rows), self.prior_shift_)

    def _check_terms(self):
        """Refuse weights of a loss without terms, and settings of the joint model beside separate densities."""
        if isinstance(self.density, str):
            if self.label_weight == self.denoising_weight == 0:
                raise ValueError(
                    "Expected label_weight or denoising_weight above 0, got 0 for both; the model would learn nothing."
                )
            return
        changed = changed_settings(self)
        if "denoising_weight" in changed:
            raise ValueError(
                f'Expected density="joint" with denoising_weight={self.denoising_weight:g}, got '
                f"{type(self.density).__name__}; leave it at 1."
            )
        unused = [f"{name}={changed[name]!r}" for name in JOINT_SETTINGS if name in changed]
        if unused:
            warn_caller(
                f"{', '.join(unused)} do not act beside densities of their own: they are settings of "
                'density="joint"; leave them out, or set them in the density.'
            )

    def _keep(self, model):
        """Keep a fitted model, and end the bar of a joint one."""
        self.model_ = model
        vars(self).pop("held_out_proba_", None)  # of an earlier fit
        if model.history:
            steps = [fit["best_step"] for fit in model.history]
            ProgressReport(self, "joint", self.verbose).close(f"joint: weights of steps {steps}")

    def _settings(self):
        calibrates = self.calibration == "auto"
        if isinstance(self.density, str):
            report = ProgressReport(self, "joint", self.verbose)
            return JointSettings(
                self.label_weight, self.denoising_weight, self.n_members, self.hidden, self.noise, self.max_steps,
                calibrates, self.rules is not None, self.common_per_rare, report,
            )  # fmt: skip
        labels = self.classes_.tolist()
        if isinstance(self.density, dict) and set(self.density) != set(labels):
            raise ValueError(f"Expected one density for each of {labels}, got {list(self.density)}.")
        chosen = self.density if isinstance(self.density, dict) else dict.fromkeys(labels, self.density)
        return SeparateSettings([chosen[label] for label in labels], labels, calibrates)

    def _fit_in_parts(self, table):
        """Learn from the rows of a table in parts that are worth learning from, with the odds of the whole table."""
        if not isinstance(self.density, str):
            raise ValueError(
                f'Expected density="joint" with a table in parts, got {self.density!r}; read the table into memory for '
                "it."
            )
        self._check_terms()
        factors = self._class_factors(table.classes, table.counts)
        self._set_classes(table.classes, table.counts * factors)
        seed = seed_from(self.random_state)
        per_rare = self.common_per_rare if self.label_weight > 0 else None
        ranks = fitting.ranks_to_learn(seed, table.counts, per_rare, table.is_mixed)
        X, codes = table.rows_of(ranks)
        rows, _, space = read_new(self, X, table.classes[codes], mixed=table.is_mixed, ensure_min_samples=2)
        check_constraints(space, X, self.constraints)
        weights, shares = uneven(factors[codes]), None if all(own is None for own in ranks) else self.frequencies_
        model, _ = fitting.fit(seed, space, rows, codes, self._settings(), weights, shares=shares)
        self._keep(model)
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, dtype=object)

    def _class_factors(self, classes, counts):
        """Weights of the classes of a table in parts."""
        if self.class_weight is None:
            return np.ones(len(classes))
        if isinstance(self.class_weight, str):  # "balanced"
            return counts.sum() / (len(counts) * counts)
        return np.array([self.class_weight.get(label, 1.0) for label in classes.tolist()])

    def _set_classes(self, classes, counts):
        """What follows from the labels alone."""
        self.classes_ = classes
        if len(classes) < 2:
            raise ValueError(f"Expected at least two classes in y, got 1 class: {classes.tolist()[0]!r}.")
        self.frequencies_ = counts / counts.sum()
        self.priors_ = self._resolve_priors()
        if self.costs is not None:
            check_costs(self.costs, len(classes))

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

    def _read_labelled(self, X, y, sample_weight, groups):
        """What `read_grouped` gives, with weights of mean one by class too."""
        read_rows = read_grouped(self, X, y, sample_weight, groups, ensure_min_samples=2)
        rows, y, space, weights, groups, places = read_rows
        check_classification_targets(y)
        if self.class_weight is None:
            return read_rows
        by_class = compute_sample_weight(self.class_weight, y)
        weights = by_class if weights is None else weights * by_class
        kept = weights > 0
        groups = None if groups is None else groups[kept]
        return rows[kept], y[kept], space, uneven(weights[kept]), groups, places[kept]

    @property
    def densities_(self):
        """The fitted densities where they are separate."""
        return self.model_.densities

    @property
    def history_(self):
        """Losses and steps of each network of the joint model."""
        return self.model_.history

    @property
    def n_rows_learned_(self):
        """Rows that the joint model was learned from."""
        return self.model_.n_rows

    @property
    def rules_share_(self):
        """Share of the rules in the logits of the joint model."""
        return self.model_.rules_share

    @property
    def prior_shift_(self):
        """What the priors add to log posteriors for the class shares of the fitted rows."""
        return np.log(self.priors_ / self.frequencies_)

    def _need_density(self):
        if isinstance(self.density, str) and self.denoising_weight == 0:
            raise ValueError(
                "Expected a model of the rows, got denoising_weight=0, which learns the labels alone; fit with a "
                "positive weight for densities, fields and rows."
            )

    def _log_density(self, rows):
        self._need_density()
        return self.model_.log_density(rows)

    def log_proba_and_density(self, X):
        """What `predict_log_proba` and `score_samples` return, in one pass over the rows."""
        X = self._read(X)
        self._need_density()
        logits, logs = self.logits_and_log_likelihood(X)
        log_density = logsumexp(logs + np.log(self.priors_), axis=1)
        return _log_probabilities(logits, X.dtype), log_density.astype(X.dtype)

    def logits_and_log_likelihood(self, rows):
        """Log posteriors up to a constant per row, and log p(x | y), both (n, classes), of rows of `model_.space`."""
        logits, logs = self.model_.logits_and_log_density(rows)
        return logits + self.prior_shift_, logs

    def log_posterior_function(self):
        """Log posteriors of all classes, up to a constant per point, as a jax function of one point of X."""
        check_is_fitted(self)
        if self.model_.space.layout is not None:
            raise TypeError(
                "Expected a model of complete numbers, got one of a mixed table, whose posterior is not a function of "
                "points; use boundary_distance, explain or counterfactuals."
            )
        return self.model_.posterior(self.prior_shift_)

    def _read(self, X):
        check_is_fitted(self)
        return read(self, X, self.model_.space)

    @partition_wise(lambda self: (len(self.classes_),))
    def predict_log_proba(self, X):
        """log p(y | x), shape (n, classes)."""
        X = self._read(X)
        return _log_probabilities(self.model_.logits(X) + self.prior_shift_, X.dtype)

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
        return self._log_density(X).astype(X.dtype)

    @partition_wise(lambda self: ())
    def score_samples(self, X):
        """log p(x) under the mixture of classes, shape (n,)."""
        X = self._read(X)
        return logsumexp(self._log_density(X) + np.log(self.priors_), axis=1).astype(X.dtype)

    @partition_wise(lambda self: (len(self.classes_), self.n_features_in_))
    def grad_log_density(self, X):
        """The score field of every class at each row, shape (n, classes, d).

        For mixed tables d counts the columns of numbers, and the field is that of their normal scores, 0 where missing.
        """
        X = self._read(X)
        self._need_density()
        return self.model_.scores(X)

    def sample(self, n=1, label=None, random_state=None, *, given=None, constraints=None, ids="new"):
        """Draw n rows, as a table like the fitted one; ``random_state=None`` uses the estimator's own.

        Parameters
        ----------
        n : int
        label : one of ``classes_``, default=None
            The class of all rows. None draws labels by ``priors_``, given the conditions, and returns them too.
        random_state : None, int or generator
        given : None or dict
            What rows are asked for: ``{"age": 40, "income": (20_000, 50_000), "city": ["A", "B"]}``. A tuple bounds a
            column, both bounds included and None leaving it open; a list names the values that it may have. Columns of
            arrays are named by position. Rows follow the law of the model given the conditions.
        constraints : None, str or list
            Relations between columns beside those of the estimator.
        ids : {"new", "blank"}
            Identifiers continue the pattern of their column, or are missing.

        Returns
        -------
        X : table of n rows
        y : ndarray of shape (n,)
            Labels, without ``label`` only.
        """
        check_is_fitted(self)
        self._need_density()
        check_ids(ids)
        check_n_rows(n)
        every, k = joined_constraints(self.constraints, constraints), None
        if label is not None:
            where = np.flatnonzero(self.classes_ == label)
            if len(where) == 0:
                raise ValueError(f"Expected a label of {self.classes_.tolist()}, got {label!r}.")
            k = int(where[0])
        seed = seed_from(self._state(random_state))
        if k is not None and not given and not every:
            return self.model_.generated(seed, n, k, ids)
        rows, drawn = ModelRequests(self.model_, self.prior_shift_).sample(seed, n, given, every, k, ids)
        return rows if k is not None else (rows, self.classes_[drawn])

    def impute(self, X, random_state=None):
        """The table with its missing cells drawn from their law given the known ones, which stay as they are.

        Rows keep the ``constraints`` of the estimator.
        """
        check_is_fitted(self)
        if self.model_.space.layout is None:
            raise ValueError(
                "Expected a model that was fitted to gaps or to mixed columns, got one of complete numbers; use "
                "ScoreImputer to fill gaps."
            )
        self._need_density()
        return filled_within(key_from(self._state(random_state)), self.model_, X, self.constraints)

    def _state(self, random_state):
        return self.random_state if random_state is None else random_state

    def diagnose(self, X_held_out=None, y_held_out=None, *, random_state=None):
        """Judge the fitted classifier: its probabilities, its fields and its chains.

        Parameters
        ----------
        X_held_out, y_held_out : None, or a table like the fitted one and its labels
            Rows that the classifier was not fitted to. None takes up to 1,024 training rows of each class, which is
            optimistic, and leaves the probabilities unjudged.
        random_state : None, int or generator
            None uses the estimator's own.

        Returns
        -------
        Diagnosis
            As of :meth:`ScoreDensity.diagnose`, with ``log_loss`` and ``calibration_error`` of the probabilities, and
            for a joint model ``rules_share``, the share of the rules in them.
            Separate densities have checks of their own, ``score_gain_<label>`` and so on; of many classes the four
            rarest are judged, and of a joint model the chains of the rarest.
        """
        check_is_fitted(self)
        self._need_density()
        key = key_from(self._state(random_state))
        check_both(X_held_out, y_held_out)
        if X_held_out is None:
            return diagnose_classes(key, self.model_, self.classes_)
        rows, labels = self._read(X_held_out), class_indices(self.classes_, y_held_out)
        return diagnose_classes(key, self.model_, self.classes_, rows, labels, self.predict_log_proba(X_held_out))


def _log_probabilities(logits, dtype):
    """Normalised log probabilities; those whose probability rounds to one in the dtype are zero."""
    logs = log_softmax(logits, axis=1).astype(dtype)
    logs[np.exp(logs) == 1] = 0
    return logs
