"""ScoreOverSampler: generate rows of minority classes by Langevin dynamics on their score fields.

The paper's score-assisted imbalanced learning (its section 3), as an imbalanced-learn sampler.
"""

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_sampling_strategy, check_target_type
from sklearn.preprocessing import label_binarize
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from scorefield._jax.storage import stored_by_public_name
from scorefield.data.checks import IDS, check_labels
from scorefield.data.containers import Table, append_rows
from scorefield.data.row_space import RowSpace
from scorefield.data.spaces import is_mixed
from scorefield.diagnose.diagnosed import check_both, diagnose_new_rows
from scorefield.estimators._imblearn import ArraysTransformer
from scorefield.estimators._sklearn import HasMethods, StrOptions
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import ScoreDensity, take_tables_like
from scorefield.estimators.table_input import checked_table
from scorefield.models.oversampling import Settings, Task, over_sample
from scorefield.models.selection import WHERE
from scorefield.models.settings import MODELS_OF_MIXED, refuse_model_of_mixed

PURPOSES = ("learning", "sharing")


@stored_by_public_name
class ScoreOverSampler(BaseOverSampler):
    """Over-sample classes with new rows: by default rows for a learner, else rows that follow the class's distribution.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        As in imbalanced-learn. Balance shifts a learner's probabilities; a part of the shortfall, such as 0.5, shifts
        them less.
    purpose : {"learning", "sharing"}, default="learning"
        "learning" keeps rows that a teacher is sure of: six times as many candidates as are needed come by short
        Langevin chains of the teacher's energy, half of them from rows of the class and half from rows of any class in
        proportion to the class's probability, and rows are kept in proportion to its fourth power. They are meant for
        a learner, which :func:`advise` can try, and follow another law than the class: for that their
        ``sample_weight_`` corrects. "sharing" draws rows from the learned law of the class, for tables that people
        look at or share, and for what relies on that law, such as :class:`PriorCorrectedClassifier`.
    density : None or ScoreDensity, default=None
        Cloned for each class that is enlarged. For "sharing" None is ``ScoreDensity()``; for "learning" a given density
        or sampler draws the candidates.
    sampler : None or sampler, default=None
        None is Langevin dynamics from the rows. Each chain gives one new row, so that as many rows as possible are
        parents. For "clear" rows of numbers half of the chains are short, so that their rows stay near their parents.
    teacher : None or classifier with ``predict_proba``, default=None
        For "learning"; None is ``ScoreClassifier()``. A fitted one is kept as it is within ``FrozenEstimator``.
    random_state : None, int or generator, default=None
        Seeds all random numbers; the same integer gives the same results, and None others in each run.
    where : {"everywhere", "clear", "core", "boundary", "diverse"}, default="everywhere"
        For "sharing". "everywhere" keeps every drawn row, so that generated rows follow the learned law of their class.
        The others keep half of the drawn rows, which follow another law and bias probabilities: "clear" those with the
        greatest log odds of their class, "core" the most probable of the class, "boundary" those with the least
        absolute log odds, "diverse" those that are farthest from each other and from the class's rows. Log odds are
        those of a :class:`ScoreClassifier` that is fitted for it; "clear" rows of mixed tables take those of the
        energies that the rows are drawn from.
    columns : None or dict, default=None
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else, such as
        ``{"zip": "category"}``; columns of arrays are named by position.
    ids : {"new", "blank"}, default="new"
        Identifiers of generated rows: "new" ones continue the pattern of their column after its largest value, where
        it has one (whole numbers, numbered texts, codes such as 7590-VHVEG, UUIDs); "blank" ones are missing.
    bounds : None, "observed" or pair of arrays, default="observed"
        Limits of the numeric columns for generated rows: those of the whole table, given ones (low, high), or none.
        Rows beyond a limit are reflected at it, so that they do not pile up there.

    Attributes
    ----------
    teacher_ : fitted teacher
        For "learning".
    soft_labels_ : ndarray of shape (n, classes)
        For "learning": the teacher's probabilities of the generated rows, in the order of the sorted labels, and ones
        and zeros for the rows of X.
    sample_weight_ : ndarray of shape (n,)
        For "learning": 1 for the rows of X, and for generated rows weights that undo their selection. Weighted by
        them, the rows of a class follow the law that its candidates were drawn from; they sum to their number.
    densities_ : dict
        Label to fitted density, for the classes that were enlarged by one; empty for mixed tables, whose classes share
        one energy, and where the teacher's energy drew the candidates.
    varying_columns_ : dict
        Label to the indices of the columns that vary within the class, which its density is over.
    row_model_ : TableModel
        The energy that rows of a mixed table were drawn from; absent where no density drew them.
    is_synthetic_ : ndarray of bool
        Per row of the result.
    parent_indices_ : ndarray of int
        Per row of the result, the row of X that a generated row's chain started from, for "learning" perhaps one of
        another class; -1 for the rows of X and for rows that started from noise.
    priors_before_, priors_after_ : dict
        Label to frequency in y, and in the result.
    sampling_strategy_ : dict
    n_features_in_ : int

    Notes
    -----
    Cells of generated rows are possible ones. A DataFrame with flags, levels or spikes is learned as a mixed table. In
    an array, whose columns are all numbers to the model, whole numbers stay whole, and a column of at most 20 values,
    or with a value that a tenth of the rows share, has these values in drawn rows as often as in the rows of the class.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreClassifier, ScoreOverSampler
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(110, 3)), np.array([0] * 100 + [1] * 10)
    >>> over = ScoreOverSampler(teacher=ScoreClassifier(n_members=1, max_steps=50), random_state=0)
    >>> X_more, y_more = over.fit_resample(X, y)
    >>> X_more.shape, np.bincount(y_more).tolist(), over.soft_labels_.shape
    ((200, 3), [100, 100], (200, 2))
    """

    _parameter_constraints = {
        **BaseOverSampler._parameter_constraints,
        "random_state": ["random_state", np.random.Generator],
        "density": [None, ScoreDensity],
        "sampler": [None, HasMethods(["sample"])],
        "bounds": [None, StrOptions({"observed"}), "array-like"],
        "purpose": [StrOptions(set(PURPOSES))],
        "teacher": [None, HasMethods(["fit", "predict_proba"])],
        "where": [StrOptions(set(WHERE))],
        "columns": [None, dict],
        "ids": [StrOptions(set(IDS))],
    }

    def __init__(
        self,
        *,
        sampling_strategy="auto",
        purpose="learning",
        density=None,
        sampler=None,
        teacher=None,
        random_state=None,
        bounds="observed",
        columns=None,
        where="everywhere",
        ids="new",
    ):
        super().__init__(sampling_strategy=sampling_strategy)
        self.purpose = purpose
        self.density = density
        self.sampler = sampler
        self.teacher = teacher
        self.random_state = random_state
        self.bounds = bounds
        self.columns = columns
        self.where = where
        self.ids = ids

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return take_tables_like(tags, self.density)

    def fit(self, X, y, **params):
        """Check a table and its labels, and what ``sampling_strategy`` asks for; no row is generated.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
        y : array-like of shape (n,)

        Returns
        -------
        self : ScoreOverSampler
        """
        return super().fit(X, y, **params)

    def _check_X_y(self, X, y, accept_sparse=None):
        y, binarize_y = check_target_type(y, indicate_one_vs_all=True)
        y = np.asarray(y)
        if hasattr(X, "columns") and 0 in X.shape:
            raise ValueError(
                f"Found array with {X.shape[1]} feature(s) (shape={X.shape}) while a minimum of 1 is required."
            )
        X = Table(checked_table(self, X)).native
        check_consistent_length(X, y)
        if len(np.unique(y)) < 2:
            raise ValueError(f"Expected at least two classes in y, got 1 class: {y.tolist()[0]!r}.")
        if self.density is not None and self.density.model not in MODELS_OF_MIXED and is_mixed(X, self.columns):
            refuse_model_of_mixed(RowSpace.fit(X, self.columns), self.density)
        return X, y, binarize_y

    def fit_resample(self, X, y, **params):
        """Return X and y with generated rows appended; containers, columns and dtypes are kept.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
        y : array-like of shape (n,)

        Returns
        -------
        X_resampled : like X, with a fresh index
        y_resampled : like y
        """
        given = [name for name, value in params.items() if value is not None]
        if given:
            raise ValueError(
                f"Expected no {', '.join(given)} in fit_resample, which draws rows of equal weight; fit a teacher with "
                "it and give teacher=FrozenEstimator(ScoreClassifier().fit(X, y, ...))."
            )
        self._validate_params()
        self.check_settings()
        check_labels(y)
        check_classification_targets(y)
        writer = ArraysTransformer(X if isinstance(X, list) else None, y)
        X, labels, binarize = self._check_X_y(X, y)
        self.sampling_strategy_ = check_sampling_strategy(self.sampling_strategy, labels, self._sampling_type)
        more, y_more = self._fit_resample(X, labels)
        y_more = label_binarize(y_more, classes=np.unique(labels)) if binarize else y_more
        return writer.transform(more, y_more)

    def _fit_resample(self, X, y):
        """Append the rows that ``sampling_strategy_`` asks for."""
        made = over_sample(Task(X, y, self.sampling_strategy_), self.settings())
        y_more = np.concatenate([y, made.labels])
        self._keep(made)
        self.is_synthetic_ = np.arange(len(y_more)) >= len(y)
        self.parent_indices_ = np.concatenate([np.full(len(y), -1), made.parents]).astype(np.intp)
        self.priors_before_, self.priors_after_ = (
            dict(zip(values.tolist(), (counts / counts.sum()).tolist(), strict=True))
            for values, counts in (np.unique(part, return_counts=True) for part in (y, y_more))
        )
        return append_rows(X, made.table) if len(made.labels) else X, y_more

    def _keep(self, made):
        """Keep what the new rows were made by."""
        learned = {
            "densities_": made.source.densities if made.source else {},
            "varying_columns_": made.source.varying if made.source else {},
            "row_model_": made.source.row_model if made.source else None,
            "teacher_": made.teacher, "soft_labels_": made.soft_labels, "sample_weight_": made.weights,
        }  # fmt: skip
        for name, part in learned.items():
            vars(self).pop(name, None)  # of an earlier table
            if part is not None:
                setattr(self, name, part)

    def settings(self):
        """How new rows are made."""
        return Settings(
            self.purpose, self.where, self.density, self.sampler, self.teacher, self.bounds, self.columns, self.ids,
            self.random_state, ScoreClassifier, ScoreDensity, owner=self,
        )  # fmt: skip

    def check_settings(self):
        """Refuse settings that would not act."""
        if self.purpose == "learning" and self.where != "everywhere":
            raise ValueError(
                f"Expected where='everywhere' with purpose='learning', which keeps rows by a teacher's probabilities, "
                f"got {self.where!r}; set purpose='sharing' for it."
            )
        if self.purpose == "sharing" and self.teacher is not None:
            raise ValueError(
                f"Expected no teacher with purpose='sharing', got {type(self.teacher).__name__}; leave it out, or set "
                "purpose='learning'."
            )
        if self.density is not None and self.density.columns is not None:
            raise ValueError(
                "Expected columns as a parameter of the over-sampler, got columns of its density; move them."
            )

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
        state = self.random_state if random_state is None else random_state
        return diagnose_new_rows(self, state, X_held_out, y_held_out)
