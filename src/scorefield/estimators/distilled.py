"""DistilledClassifier: any classifier, taught by ScoreClassifier on new rows with its probabilities as labels.

New rows come from short Langevin chains of the teacher's class scores (the paper's Eq:langevin) or from redrawn cells.
"""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from scorefield._jax.random import seed_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.checks import check_labels
from scorefield.data.containers import Table, append_rows, is_frame, take_rows
from scorefield.data.dask import is_lazy
from scorefield.data.row_weights import counted, in_fixed_order, uneven
from scorefield.data.spaces import is_mixed
from scorefield.estimators._sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    check_sample_weight,
    fit_context,
    sklearn_validate_data,
    validate_data,
)
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.table_input import table_in_parts
from scorefield.models.fitting import ranks_to_learn
from scorefield.models.new_rows import NewRows
from scorefield.models.students import (
    give_own_splits,
    held_out_rows,
    is_linear,
    last_step,
    weight_argument,
    weight_of_new,
)
from scorefield.models.teachers import fitted_teacher, probabilities, seeded_clone_of
from scorefield.models.teaching import SOFT_STEPS, parents_by_class, repeated, soft_lesson

ROWS_PER_ROW = 4  # new rows for each real one
MANY_ROWS = 100_000  # new rows from which half as many as real ones are enough
MAX_TAUGHT = 1_000_000  # rows that a learner is fitted to, each new one once per class


def _student_has(method):
    def check(self):
        student = self.estimator_ if hasattr(self, "estimator_") else self.estimator
        return hasattr(student, method)

    return check


@stored_by_public_name
class DistilledClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Teach any classifier what a better one knows: it learns from real rows and from new ones with soft labels.

    A teacher is fitted to the rows. Then new rows are made by small steps from real ones, and the learner is fitted to
    the real rows with their labels and to every new row once per class, weighted by the teacher's probability of the
    class. No class is made more frequent by that, so that probabilities stay those of the table.

    Parameters
    ----------
    estimator : classifier or pipeline
        The learner. Where it, or the last step of the pipeline, takes no ``sample_weight``, rows are repeated and
        labels drawn instead.
    teacher : None or classifier with ``predict_proba``, default=None
        None is ``ScoreClassifier()``. From one with an energy of numbers new rows come by short chains; for others a
        fifth of the cells of real rows is redrawn from the columns. A fitted one is kept as it is within scikit-learn's
        ``FrozenEstimator``.
    n_new_rows : "auto" or int, default="auto"
        "auto" is four for each row; half a row for each from 200,000 rows on; a quarter where the learner takes no
        weights and is not linear, such as nearest neighbours.
    balance : bool, default=False
        Whether all classes weigh the same, for decisions at one half; probabilities are then those of balanced classes.
    random_state : None, int or generator, default=None
        Also sets each ``random_state`` of the learner and the teacher that is None.
    verbose : int, default=0
        Progress of the default teacher.

    Attributes
    ----------
    estimator_ : fitted learner
    teacher_ : fitted teacher
    n_new_rows_ : int
    agreement_ : float
        Share of the new rows for which learner and teacher predict the same class.
    classes_ : ndarray
    frequencies_ : ndarray of shape (classes,)
        Share of each class in the real rows, by their weights.
    n_features_in_ : int

    Notes
    -----
    New rows start half from rare and half from common classes' rows. For linear learners, which otherwise fit where few
    rows are, they start from all rows in proportion, and weigh no more in all than the real rows; for learners that
    take no weights they start in proportion too. HistGradientBoostingClassifier stops early by real rows, if it would
    without a teacher; searches, calibration and tuned thresholds are given splits whose test parts are real rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from scorefield import DistilledClassifier, ScoreClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), (rng.random(200) < 0.2).astype(int)
    >>> teacher = ScoreClassifier(n_members=1, max_steps=50)
    >>> model = DistilledClassifier(DecisionTreeClassifier(), teacher, random_state=0).fit(X + y[:, None], y)
    >>> model.n_new_rows_, model.predict_proba(X).shape
    (800, (200, 2))
    """

    _parameter_constraints = {
        "estimator": [HasMethods(["fit"])],
        "teacher": [None, HasMethods(["fit", "predict_proba"])],
        "n_new_rows": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "balance": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(self, estimator, teacher=None, *, n_new_rows="auto", balance=False, random_state=None, verbose=0):
        self.estimator = estimator
        self.teacher = teacher
        self.n_new_rows = n_new_rows
        self.balance = balance
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Fit the teacher, make new rows, and fit the learner to them and to the real ones.

        Parameters
        ----------
        X : array-like of shape (n, d) or dask dataframe
            Whatever the teacher and the learner take: mixed types and missing values too. Of a dask dataframe up to
            half a million rows are learned from, small classes whole, with weights that keep the shares of classes.
        y : array-like of shape (n,), dask Series or str
            Labels; or the name of their column in a dask dataframe.
        sample_weight : array-like of shape (n,), default=None
            Weights of the real rows, for the teacher and for the learner; new rows start from rows in proportion. A
            weight of 2 counts as two rows.

        Returns
        -------
        self : DistilledClassifier
        """
        self._check_student()
        if is_lazy(X):
            return self._fit_in_parts(X, y, table_in_parts(X, y, sample_weight))
        check_labels(y)
        X, y = self._read_new(X, y)
        check_classification_targets(y)
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, X, ensure_non_negative=True).astype(np.float64)
            index, weights = counted(weights)
            X, y = take_rows(X, index), y[index]
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._check_classes()
        order = None if self._takes_tables else in_fixed_order(X, codes, weights)
        if order is not None:  # new rows start from the same rows, however the repeated ones came
            X, y, codes = X[order], y[order], codes[order]
            weights = None if weights is None else weights[order]
        counts = np.bincount(codes, weights)
        self.frequencies_ = counts / counts.sum()
        rng = np.random.default_rng(seed_from(self.random_state))
        self.teacher_ = fitted_teacher(rng, self._own_teacher(), X, y, weights)
        self._teach(rng, X, codes, weights)
        return self

    def _fit_in_parts(self, X, y, table):
        """Learn from part of the rows, by weight; a ScoreClassifier as teacher chooses rows of its own."""
        self.classes_ = table.classes
        self._check_classes()
        self.frequencies_ = table.counts / table.counts.sum()
        seed = seed_from(self.random_state)
        rng = np.random.default_rng(seed)
        rows, codes = table.rows_of(ranks_to_learn(seed, table.counts, None, table.is_mixed))
        rows, labels = self._read_new(rows, table.classes[codes])
        weights = uneven((table.counts / np.bincount(codes))[codes])
        teacher = self._own_teacher()
        if isinstance(teacher, ScoreClassifier):
            self.teacher_ = seeded_clone_of(rng, teacher).fit(X, y)
        else:
            self.teacher_ = fitted_teacher(rng, teacher, rows, labels, weights)
        self._teach(rng, rows, codes, weights)
        return self

    def _own_teacher(self):
        return ScoreClassifier(verbose=self.verbose) if self.teacher is None else self.teacher

    def _check_classes(self):
        if len(self.classes_) < 2:
            raise ValueError(f"Expected at least two classes in y, got 1 class: {self.classes_.tolist()}.")

    def _check_student(self):
        student = last_step(self.estimator)
        if isinstance(student, FrozenEstimator):
            raise ValueError("Expected a learner to be fitted, got a FrozenEstimator; pass the estimator within it.")
        if not is_classifier(self.estimator):
            raise ValueError(f"Expected a classifier as estimator, got {type(self.estimator).__name__}.")

    def _columns(self):
        """Kinds of columns that the teacher was told."""
        return getattr(self.teacher, "columns", None)

    def _read_new(self, X, y):
        """A table and labels: mixed tables and frames as they are, arrays of numbers after scikit-learn's checks."""
        self._takes_tables = is_frame(X) or is_mixed(X, self._columns())
        if not self._takes_tables:
            return validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        y = np.asarray(sklearn_validate_data(self, y=y))
        check_consistent_length(X, y)
        sklearn_validate_data(self, X, skip_check_array=True)
        return Table(X).native, y

    def _read(self, X):
        check_is_fitted(self)
        if self._takes_tables or is_frame(X):
            sklearn_validate_data(self, X, skip_check_array=True, reset=False)
            return Table(X).native
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def _teach(self, rng, X, codes, weights):
        """Fit the learner to real rows and to new ones."""
        student, seed = seeded_clone_of(rng, self.estimator), int(rng.integers(1 << 31))
        held = held_out_rows(student, codes, seed)
        real = np.setdiff1d(np.arange(len(codes)), held)
        own = np.ones(len(real)) if weights is None else weights[real]
        parents = real[
            parents_by_class(
                rng, codes[real], self._amount(len(real)), None if weights is None else own,
                in_proportion=is_linear(student) or weight_argument(student) is None,
            )
        ]  # fmt: skip
        new = NewRows(X, self.teacher_, columns=self._columns()).drawn(rng, parents, codes[parents], SOFT_STEPS, real)
        proba = probabilities(self.teacher_, self.classes_, new)
        lesson = soft_lesson(proba, MAX_TAUGHT)
        self.n_new_rows_ = int(lesson.rows[-1]) + 1
        table = append_rows(take_rows(X, real), take_rows(new, lesson.rows))
        classes = np.concatenate([codes[real], lesson.classes])
        taught = np.concatenate([own, own.mean() * weight_of_new(student, len(real), lesson) * lesson.weights])
        if self.balance:
            taught = taught / np.bincount(codes[real], own)[classes]
            taught = taught * (len(real) / taught[: len(real)].sum())
        relatives = np.concatenate([real, parents[lesson.rows]])
        name, argument, n_real = weight_argument(student), {}, len(real)
        if name is None:
            places = repeated(rng, taught)  # in order: real rows stay first
            table, classes, relatives = take_rows(table, places), classes[places], relatives[places]
            n_real = int(np.sum(places < len(real)))
        else:
            argument = {name: taught}
        if len(held):
            argument |= {"X_val": take_rows(X, held), "y_val": self.classes_[codes[held]]}
            if weights is not None:
                argument["sample_weight_val"] = weights[held]
        give_own_splits(student, self.classes_[codes], relatives, n_real, seed)
        self.estimator_ = student.fit(table, self.classes_[classes], **argument)
        whole = take_rows(new, np.arange(self.n_new_rows_))
        told = self.classes_[proba[: self.n_new_rows_].argmax(axis=1)]
        self.agreement_ = float(np.mean(np.asarray(student.predict(whole)) == told))

    def _amount(self, n):
        if not isinstance(self.n_new_rows, str):
            return self.n_new_rows
        if weight_argument(self.estimator) is None and not is_linear(self.estimator):
            return -(-n // 4)
        return min(ROWS_PER_ROW * n, max(MANY_ROWS, n // 2))

    def predict(self, X):
        """The learner's predictions."""
        rows = self._read(X)
        return self.estimator_.predict(rows)

    @available_if(_student_has("predict_proba"))
    def predict_proba(self, X):
        """The learner's probabilities, shape (n, classes)."""
        rows = self._read(X)
        return self.estimator_.predict_proba(rows)

    @available_if(_student_has("predict_log_proba"))
    def predict_log_proba(self, X):
        """The learner's log probabilities, shape (n, classes)."""
        rows = self._read(X)
        return self.estimator_.predict_log_proba(rows)

    @available_if(_student_has("decision_function"))
    def decision_function(self, X):
        """The learner's decision function."""
        rows = self._read(X)
        return self.estimator_.decision_function(rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            own = inner()
            tags.input_tags, tags.classifier_tags = own.input_tags, own.classifier_tags or tags.classifier_tags
        tags.input_tags.sparse = False
        tags.classifier_tags.multi_label = False
        return tags
