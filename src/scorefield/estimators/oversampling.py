"""ScoreOverSampler: generate rows of minority classes by Langevin dynamics on their score fields.

The paper's score-assisted imbalanced learning (its section 3), as an imbalanced-learn sampler.
"""

import functools

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_target_type
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from scorefield._jax.errors import warn_caller
from scorefield._jax.random import seed_from
from scorefield._jax.storage import stored_by_public_name
from scorefield.data.checks import IDS, cast_numbers, check_labels, plain
from scorefield.data.containers import Table, append_rows, is_frame
from scorefield.data.encoding import TableEncoder
from scorefield.data.possible_cells import PossibleCells
from scorefield.data.row_space import RowSpace
from scorefield.data.scaling import column_spread
from scorefield.data.spaces import is_mixed, numbers_as_table
from scorefield.diagnose.diagnosed import DiagnosedOverSampler
from scorefield.estimators._sklearn import (
    HasMethods,
    StrOptions,
    check_feature_names,
    sklearn_validate_data,
)
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import MODELS_OF_MIXED, ScoreDensity, refuse_model_of_mixed
from scorefield.estimators.learning_oversampling import OverSamplesForLearning
from scorefield.estimators.mixed_oversampling import (
    BATCH_ROWS,
    FEW_ROWS,
    MAX_LEARNED,
    OverSamplesMixedTables,
    learned_places,
)
from scorefield.models.class_densities import class_rng, fit_class_densities
from scorefield.models.selection import (
    MAX_RIVALS,
    WHERE,
    draws_for,
    even_shares,
    greatest,
    log_odds,
    most_diverse,
    one_row_warning,
    some_places,
)
from scorefield.sampling.samplers import Langevin
from scorefield.training.losses import default_noise

PURPOSES = ("learning", "sharing")
STEP, CHAIN = 0.02, 50  # of Langevin chains from rows to new ones
SHORT_CHAIN = 4  # steps of those that stay near their row


def varying_columns(rows):
    """Indices of the columns that are not constant."""
    return np.flatnonzero(np.ptp(rows, axis=0) > 0)


@stored_by_public_name
class ScoreOverSampler(OverSamplesForLearning, OverSamplesMixedTables, DiagnosedOverSampler, BaseOverSampler):
    """Over-sample classes with new rows: by default rows for a learner, else those of the class's own law.

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
        None is Langevin dynamics from the rows, one new row a chain, so that as many rows as possible are parents. For
        "clear" rows of numbers half of the chains are short, so that their rows stay near their parents.
    teacher : None or classifier with ``predict_proba``, default=None
        For "learning"; None is ``ScoreClassifier()``. A fitted one is kept as it is within ``FrozenEstimator``.
    categorical_features : "auto", None or array-like, default="auto"
        Columns of categories by name, index or mask, beside those that are recognised; "auto" and None name none.
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
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.
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
        "categorical_features": [None, StrOptions({"auto"}), "array-like"],
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
        categorical_features="auto",
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
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.bounds = bounds
        self.columns = columns
        self.where = where
        self.ids = ids

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = self._takes_mixed()
        return tags

    def _takes_mixed(self):
        """Whether the density, if one is given, has a model of mixed rows."""
        return self.density is None or self.density.model in MODELS_OF_MIXED

    def _check_X_y(self, X, y, accept_sparse=None):
        y, binarize_y = check_target_type(y, indicate_one_vs_all=True)
        y = np.asarray(y)
        if is_mixed(X, self._kinds(X)):
            return self._check_mixed(X, y), self._several_classes(y), binarize_y
        declared = not (isinstance(self.categorical_features, str) or self.categorical_features is None)
        if not is_frame(X):
            dtype = None if declared else "numeric"
            X = check_array(X, dtype=dtype, accept_sparse=False, estimator=self, ensure_all_finite=not declared)
        elif X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError(
                f"Found array with {X.shape[1]} feature(s) (shape={X.shape}) while a minimum of 1 is required."
            )
        elif not X.columns.is_unique:
            raise ValueError("Expected unique column names, got duplicates; rename them.")
        check_consistent_length(X, y)
        check_feature_names(self, X, reset=True)
        self.n_features_in_ = X.shape[1]
        return X, self._several_classes(y), binarize_y

    def _check_mixed(self, X, y):
        check_consistent_length(X, y)
        return sklearn_validate_data(self, X, skip_check_array=True)

    @staticmethod
    def _several_classes(y):
        if len(np.unique(y)) < 2:
            raise ValueError(f"Expected at least two classes in y, got 1 class: {y.tolist()[0]!r}.")
        return y

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
        kinds = self._kinds(X)
        if not self._takes_mixed() and is_mixed(X, kinds):
            refuse_model_of_mixed(RowSpace.fit(X, kinds), self.density)
        return super().fit(X, y, **params)

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
        self._validate_params()
        self._check_purpose()
        check_labels(y)
        columns = self._kinds(X)
        for name in ("row_model_", "teacher_", "soft_labels_", "sample_weight_"):
            vars(self).pop(name, None)  # of an earlier table
        from_teacher = self.purpose == "learning" and not self._proposes()
        if is_mixed(X, columns) or (from_teacher and is_frame(X) and not hasattr(X, "iloc")):
            return self._resample_mixed(X, y, columns)
        if not is_frame(X) or hasattr(X, "iloc"):
            return super().fit_resample(X, y, **params)
        numbers = np.column_stack([Table(X).cells(name).values for name in Table(X).names])  # polars and pyarrow
        more, y_more = super().fit_resample(numbers.astype(np.float64), y, from_frame=True, **params)
        new = numbers_as_table(TableEncoder(columns).fit(X), more[len(numbers) :], X)
        return append_rows(X, new), y_more

    def _check_purpose(self):
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

    def _seed(self):
        return seed_from(self.random_state) % (1 << 31)

    def _kinds(self, X):
        """Kinds of columns that were asked for, by `columns` or by `categorical_features`."""
        if self.density is not None and self.density.columns is not None:
            raise ValueError(
                "Expected columns as a parameter of the over-sampler, got columns of its density; move them."
            )
        if isinstance(self.categorical_features, str) or self.categorical_features is None:
            return self.columns
        chosen = np.asarray(self.categorical_features)
        names = Table(X).names
        if chosen.dtype == bool:
            if chosen.shape != (len(names),):
                raise ValueError(
                    f"Expected a mask of {len(names)} columns for categorical_features, got shape {chosen.shape}."
                )
            chosen = np.flatnonzero(chosen)
        listed = [names[item] if isinstance(item, int) and -len(names) <= item < len(names) else item
                  for item in np.atleast_1d(chosen).tolist()]  # fmt: skip
        unknown = [item for item in listed if item not in names]
        if unknown:
            raise ValueError(
                f"Expected categorical_features to be names, indices below {len(names)} or a mask, got {unknown[0]!r}."
            )
        return {**dict.fromkeys(listed, "category"), **(self.columns or {})} or None

    def _fitted_odds(self, X, y, seed, columns=None):
        """Log odds of a class, by its number, as a function of a table: those of a classifier fitted to X and y."""
        model = ScoreClassifier(columns=columns, random_state=seed).fit(X, y)
        return lambda table, k: log_odds(model.predict_log_proba(table).astype(np.float64), k)

    def _note_rows(self, y, y_more, parents):
        """Set what is known of each row of the result."""
        n_new = len(y_more) - len(y)
        self.is_synthetic_ = np.concatenate([np.zeros(len(y), bool), np.ones(n_new, bool)])
        self.parent_indices_ = np.concatenate([np.full(len(y), -1), *parents]).astype(np.intp)
        self.priors_before_, self.priors_after_ = (
            dict(zip(values.tolist(), (counts / counts.sum()).tolist(), strict=True))
            for values, counts in (np.unique(part, return_counts=True) for part in (y, y_more))
        )

    def _fit_resample(self, X, y, from_frame=False):
        """Append the rows that ``sampling_strategy_`` asks for.

        ``from_frame`` says that an array holds the columns of a frame, whose kinds are known: it repeats no values.
        """
        self.densities_ = {}
        rows, more, parents = self._new_rows(X, y, from_frame=from_frame)
        y_more = np.concatenate([y, more])
        self._note_rows(y, y_more, parents)
        return append_rows(X, rows) if len(more) else X, y_more

    def _new_rows(self, X, y, spread=None, ranges=None, rivals=None, weights=None, from_frame=False):
        """New rows of a table of numbers as a table like X, their labels, and the indices of their parents.

        Where X is part of a larger table, ``spread()`` gives the deviations of that table's numeric columns,
        ``ranges()`` their least and greatest values, ``rivals(label, rng)`` the numbers of up to MAX_RIVALS rows of
        the other classes, as `some_places` has them, and ``weights`` those of the rows that stand for it.
        """
        if not any(self.sampling_strategy_.values()):
            return None, y[:0], []
        numbers = np.asarray(X, dtype=np.float64)
        limits = self._limits(numbers.shape[1])
        if limits is None and self.bounds is not None:
            limits = ranges() if ranges else (numbers.min(axis=0), numbers.max(axis=0))
        if is_frame(X) or from_frame:
            dtypes = list(X.dtypes) if is_frame(X) else [X.dtype] * X.shape[1]
            possible = PossibleCells(limits, np.array([getattr(dtype, "kind", "O") in "iu" for dtype in dtypes]))
        else:
            possible = PossibleCells.of_array(numbers, limits)
        seed = self._seed()
        learning = self.purpose == "learning"
        columns = self._kinds(X) if is_frame(X) else None
        if learning and not self._proposes():
            return self._rows_for_learning(X, y, seed, columns, possible, weights=weights)
        draws = self._draws_of_numbers(numbers, y, seed, possible, spread)
        if learning:
            draws = {
                label: functools.partial(_like, X, numbers, draw, self.columns) for label, (draw, _) in draws.items()
            }
            return self._rows_for_learning(X, y, seed, columns, draws=draws, weights=weights)
        drawn, parents, labels = [], [], [y[:0]]
        for position, (label, n_new) in enumerate(self.sampling_strategy_.items()):
            if not n_new:
                continue
            keep = self._keeper(label, numbers, y, seed, np.random.default_rng([seed, position, 1]), rivals)
            made, starts = self._select(*draws[label], n_new, keep)
            drawn.append(made)
            parents.append(starts)
            labels.append(np.full(n_new, label, dtype=y.dtype))
        rows = _numbers_like(X, numbers, np.concatenate(drawn), self.columns)
        return rows, np.concatenate(labels), parents

    def _draws_of_numbers(self, numbers, y, seed, possible, spread):
        """For each enlarged class a function of n and a sampler that draws rows with possible cells, and the samplers.

        The functions return numbers (n, d) and the indices of the parents, -1 for rows from noise.
        """
        wanted = {label: position for position, (label, n) in enumerate(self.sampling_strategy_.items()) if n}
        rngs = {label: class_rng(seed, position) for label, position in wanted.items()}
        owns = {label: np.flatnonzero(y == label) for label in wanted}
        self.densities_ = self._fitted_densities({label: numbers[own] for label, own in owns.items()}, rngs)
        draws = {}
        for label, position in wanted.items():
            own, rows = owns[label], numbers[owns[label]]
            drawer = self._drawer(label, numbers, own, rngs[label], spread)
            samplers = self._samplers_of(label, near=not possible.repeats_most(rows))
            rng = np.random.default_rng([seed, position, 2])

            def draw(n, sampler=samplers[0], own=own, drawer=drawer, rows=rows, rng=rng):
                drawn, starts = drawer(possible.rows_to_draw(n), sampler)
                drawn = self._with_possible_cells(possible, drawn, rows, rng)[:n]
                return drawn, np.where(starts[:n] >= 0, own[starts[:n]], -1)

            draws[label] = draw, samplers
        return draws

    def _keeper(self, label, numbers, y, seed, rng, rivals):
        """A function of drawn rows and n that gives the indices of the n rows to keep; None keeps all."""
        where, own = self.where, numbers[y == label]
        if where == "clear":
            if rivals is None:
                places = np.flatnonzero(y != label)
                others = numbers[places[some_places(rng, len(places), MAX_RIVALS)]]
            else:
                others = rivals(label, rng)
            own = own[some_places(rng, len(own), MAX_LEARNED)]
            odds = self._fitted_odds(np.concatenate([others, own]), np.repeat([0, 1], [len(others), len(own)]), seed)
            return lambda drawn, n: greatest(odds(drawn, 1), n)
        if where == "core" and label in self.densities_:
            density, varying = self.densities_[label], varying_columns(own)
            return lambda drawn, n: greatest(density.score_samples(drawn[:, varying]), n)
        if where == "boundary":
            if rivals is not None:
                raise ValueError("Expected a table in memory for where='boundary', got a larger one; choose another.")
            classes, codes = np.unique(y, return_inverse=True)
            learned = learned_places(rng, codes, classes, self.sampling_strategy_)
            odds, k = self._fitted_odds(numbers[learned], y[learned], seed), int(np.searchsorted(classes, label))
            return lambda drawn, n: greatest(-np.abs(odds(drawn, k)), n)
        if where == "diverse":
            scale = column_spread(own)
            scale = np.where(scale > 0, scale, 1.0)
            return lambda drawn, n: most_diverse(drawn / scale, own / scale, n)
        return None

    def _select(self, draw, samplers, n_new, keep):
        """Draw rows by each sampler, batch by batch to bound memory, and keep n_new of them with their parents."""
        batches = []
        for sampler, share in zip(samplers, even_shares(n_new, len(samplers)), strict=True):
            for begin in range(0, share, BATCH_ROWS):
                n = min(BATCH_ROWS, share - begin)
                drawn, parents = draw(round(draws_for(self.where) * n), sampler)
                if len(drawn) > n:
                    kept = keep(drawn, n)
                    drawn, parents = drawn[kept], parents[kept]
                batches.append((drawn, parents))
        return tuple(np.concatenate(part) for part in zip(*batches, strict=True))

    def _drawer(self, label, numbers, own, rng, spread):
        """A function that draws n numeric rows of a class by a sampler, with places in `own` of their start rows."""
        rows = numbers[own]
        varying = varying_columns(rows)

        def copies(n):
            return rows[rng.integers(0, len(rows), n)]

        if len(varying) == 0:  # one row, or copies of it: only the whole table tells a scale
            how = "a tenth of each column's spread over all classes"
            warn_caller(one_row_warning(plain(label), len(rows), how))
            noise = 0.1 * (spread() if spread else column_spread(numbers))
            return lambda n, _: (copies(n) + noise * rng.normal(size=(n, len(noise))), rng.integers(0, len(rows), n))
        density = self.densities_[label]

        def draw(n, sampler):
            drawn = copies(n)  # columns that are constant within the class stay so
            result = density.draw(n, int(rng.integers(1 << 31)), sampler=sampler, X_start=rows[:, varying])
            if result.n_diverged:
                warn_caller(
                    f"Class {plain(label)!r}: {result.n_diverged} chains diverged and were replaced with a step size "
                    f"of {result.step_size:.3g}; choose a smaller step_size than "
                    f"{sampler.get_params().get('step_size')}."
                )
            drawn[:, varying] = result.rows
            return drawn, result.parents

        return draw

    def _samplers_of(self, label, near=True):
        """Samplers that share the rows of a class: where clear ones are kept, half of the chains stay near their row.

        Not in columns of few values, where such rows would mostly be copies.
        """
        density = self.densities_.get(label)
        if self.sampler or density is None or density.sampler:
            return [self.sampler or getattr(density, "sampler", None)]
        lengths = (CHAIN, SHORT_CHAIN) if self.where == "clear" and near else (CHAIN,)
        return [Langevin(density.safe_step(STEP), chain_length=n, discard=1 - 1 / n) for n in lengths]

    def _fitted_densities(self, tables, rngs):
        """Densities of the classes, each over the columns that vary within it; all are trained together."""
        places = {label: varying_columns(rows) for label, rows in tables.items()}
        self.varying_columns_ = {label: own for label, own in places.items() if len(own)}
        varying = {label: tables[label][:, own] for label, own in self.varying_columns_.items()}
        densities = []
        for label, rows in varying.items():
            density = ScoreDensity() if self.density is None else self.density
            if len(rows) < FEW_ROWS:
                warn_caller(
                    f"Class {plain(label)!r} has only {len(rows)} rows; a Gaussian with shrunk correlations is its "
                    "field."
                )
                density = ScoreDensity(model="gaussian", noise=default_noise(*rows.shape))
            densities.append(density)
        fitted = fit_class_densities(
            densities,
            list(varying.values()),
            [plain(label) for label in varying],
            [rngs[label] for label in varying],
            normalize=False,
        )
        return dict(zip(varying, fitted, strict=True))

    def _limits(self, d):
        """Given bounds as two arrays (d,), or None for no bounds and for those of the table."""
        if self.bounds is None or isinstance(self.bounds, str):
            return None
        if len(self.bounds) != 2:
            raise ValueError(f"Expected bounds to be 'observed' or a pair (low, high), got {len(self.bounds)} items.")
        try:
            low, high = (np.broadcast_to(np.asarray(b, float), (d,)) for b in self.bounds)
        except ValueError as error:
            raise ValueError(
                f"Expected bounds of one number or one for each of {d} numeric columns: {error}"
            ) from error
        if not (low <= high).all():  # false for NaN too
            raise ValueError("Expected bounds with low <= high and no NaN, got others in some column.")
        return low, high

    def _with_possible_cells(self, possible, drawn, own, rng):
        """Drawn rows of a class with cells that are possible."""
        return possible.applied_to(drawn, own, rng)


def _numbers_like(X, numbers, new, columns):
    """New rows of numbers as a table like X, whose numbers are given too."""
    if not is_frame(X):
        return cast_numbers(new, X.dtype)
    rows = numbers_as_table(TableEncoder(columns).fit(X), new, X)
    for i in np.flatnonzero((np.ptp(numbers, axis=0) == 0) & (np.ptp(new, axis=0) > 0)):
        rows.isetitem(i, cast_numbers(new[:, i], X.dtypes.iloc[i]))  # constant in a part of a larger table
    return rows


def _like(X, numbers, draw, columns, n):
    """Rows of a draw as a table like X, and their parents."""
    made, parents = draw(n)
    return _numbers_like(X, numbers, made, columns), parents
