"""ScoreRegressionOverSampler: generate rows with rare values of a continuous target.

The target is one more number of the row: rows of a rare range are drawn from the learned law of that range, target
included.
"""

import dataclasses
from numbers import Real

import numpy as np
from imblearn.utils import check_sampling_strategy
from scipy.interpolate import PchipInterpolator
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_array, check_consistent_length

from scorefield._jax.storage import stored_by_public_name
from scorefield.data.checks import check_all_given
from scorefield.data.containers import Table, append_column, append_rows, split_column, take_rows
from scorefield.data.spaces import is_mixed
from scorefield.estimators._sklearn import HasMethods, Interval, StrOptions, fit_context
from scorefield.estimators.density import ScoreDensity
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.estimators.table_input import checked_table
from scorefield.models.oversampling import Task, over_sample
from scorefield.models.selection import WHERE

WHISKER = 1.5  # of the interquartile range beyond the quartiles, as in a box plot
DRAWS = 1.5  # rows drawn for each row wanted: some have a target outside of their range
TARGET = "target"
LOW, COMMON, HIGH = "low", "common", "high"


def box_plot_relevance(y):
    """How rare values of y are, as a function to [0, 1]: 0 at the median, 1 from the ends of a box plot's whiskers on.

    A side without values beyond its whisker has no rare range: its relevance is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield.estimators.regression_oversampling import box_plot_relevance
    >>> relevance = box_plot_relevance(np.concatenate([np.arange(100.0), [500.0]]))
    >>> relevance(np.array([0.0, 50.0, 500.0])).round(3).tolist()
    [0.0, 0.0, 1.0]
    """
    first, median, third = np.quantile(y, [0.25, 0.5, 0.75])
    reach = WHISKER * (third - first)
    low, high = y[y >= first - reach].min(), y[y <= third + reach].max()
    sides = []
    if y.min() < low < median:
        sides.append(PchipInterpolator([low, median], [1.0, 0.0]))
    if y.max() > high > median:
        sides.append(PchipInterpolator([median, high], [0.0, 1.0]))

    def relevance(values):
        values = np.asarray(values, float)
        found = [side(values.clip(*side.x[[0, -1]])) for side in sides]
        return np.max(found, axis=0).clip(0, 1) if found else np.zeros(values.shape)

    return relevance


@stored_by_public_name
class ScoreRegressionOverSampler(BaseEstimator):
    """Over-sample the rare ranges of a continuous target.

    Values are rare where their relevance is at least ``threshold``; those below and those above the median make two
    ranges. Rows of a rare range are drawn, with their targets, from one score field of that range.

    Parameters
    ----------
    relevance : "auto" or callable, default="auto"
        Maps targets (n,) to numbers in [0, 1]. "auto" is 0 at the median and 1 from the ends of a box plot's whiskers
        on, with a monotone cubic curve between them.
    threshold : float in (0, 1], default=0.8
    sampling_strategy : "auto" or float, default="auto"
        "auto" gives every rare range as many rows as half of the common ones where there are two ranges, and as all of
        them where there is one. A float is the number of rows of a rare range for each common row.
    density, sampler, bounds, columns, where, random_state
        As in :class:`ScoreOverSampler` with ``purpose="sharing"``: a teacher of classes has no say over a number, so
        that rows follow the learned law of their range.

    Attributes
    ----------
    relevance_ : ndarray of shape (n,)
        Relevance of the targets.
    is_synthetic_ : ndarray of bool
        Per row of the result.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, ScoreRegressionOverSampler
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.exp(X[:, 0])
    >>> over = ScoreRegressionOverSampler(density=ScoreDensity(model="gaussian"), random_state=0)
    >>> X_more, y_more = over.fit_resample(X, y)
    >>> bool(np.mean(y_more > 3) > 2 * np.mean(y > 3)), len(X_more) == len(y_more)
    (True, True)
    """

    _parameter_constraints = {
        "relevance": [str, callable],
        "threshold": [Interval(Real, 0, 1, closed="right")],
        "sampling_strategy": [str, Interval(Real, 0, None, closed="neither")],
        "density": [None, ScoreDensity],
        "sampler": [None, HasMethods(["sample"])],
        "columns": [None, dict],
        "bounds": [None, StrOptions({"observed"}), "array-like"],
        "where": [StrOptions(set(WHERE))],
    }

    def __init__(
        self,
        *,
        relevance="auto",
        threshold=0.8,
        sampling_strategy="auto",
        density=None,
        sampler=None,
        random_state=None,
        bounds="observed",
        columns=None,
        where="everywhere",
    ):
        self.relevance = relevance
        self.threshold = threshold
        self.sampling_strategy = sampling_strategy
        self.density = density
        self.sampler = sampler
        self.random_state = random_state
        self.bounds = bounds
        self.columns = columns
        self.where = where

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit_resample(self, X, y):
        """Return X and y with generated rows of the rare ranges appended.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
            Mixed types and missing values are allowed.
        y : array-like of shape (n,)
            Numbers.

        Returns
        -------
        X_resampled : like X
        y_resampled : ndarray or Series
        """
        check_all_given(y)
        values = check_array(column_or_1d(y, warn=True).reshape(-1, 1), dtype=np.float64, input_name="y")[:, 0]
        X = Table(checked_table(self, X)).native
        check_consistent_length(X, values)
        ranges = self._ranges(values)
        wanted = self._wanted(ranges)
        name = _free_name(Table(X).names)
        task = Task(append_column(X, name, values), ranges, self._to_draw(ranges, wanted))
        made = over_sample(task, self._settings(self._kinds(X, name)))
        whole, drawn_ranges = task.X, np.concatenate([ranges, made.labels])
        if len(made.labels):
            whole = append_rows(whole, made.table)
        X_drawn, target = split_column(whole, name)
        kept = np.concatenate([np.arange(len(values)), *(
            self._within(np.flatnonzero(drawn_ranges == each), target, values[ranges == each], n)
            for each, n in wanted.items()
        )])  # fmt: skip
        X_more = take_rows(X_drawn, kept)
        X_more = X_more.astype(X.dtype) if isinstance(X, np.ndarray) else X_more
        X_more = X_more.reset_index(drop=True) if hasattr(X_more, "iloc") else X_more
        self.is_synthetic_ = np.arange(len(kept)) >= len(values)
        y_more = np.concatenate([values, target[kept[len(values) :]]])
        if hasattr(y, "iloc"):
            return X_more, type(y)(y_more, name=y.name)
        return X_more, y_more

    @staticmethod
    def _within(places, target, own, n):
        """The first new rows whose target is in the range, n with the rows of it; others, cut off, where they lack."""
        new, low, high = places[len(own) :], own.min(), own.max()
        inside = (target[new] >= low) & (target[new] <= high)
        chosen = np.concatenate([new[inside], new[~inside]])[: n - len(own)]
        target[chosen] = target[chosen].clip(low, high)
        return np.sort(chosen)

    def _ranges(self, values):
        """For each row "low", "common" or "high"."""
        if isinstance(self.relevance, str) and self.relevance != "auto":
            raise ValueError(f"Expected relevance 'auto' or a function, got {self.relevance!r}.")
        relevance = box_plot_relevance(values) if self.relevance == "auto" else self.relevance
        self.relevance_ = np.asarray(relevance(values), float)
        if self.relevance_.shape != values.shape or not ((self.relevance_ >= 0) & (self.relevance_ <= 1)).all():
            raise ValueError("Expected a relevance in [0, 1] for every target, got other values or another shape.")
        rare = self.relevance_ >= self.threshold
        if not rare.any():
            raise ValueError(
                "Expected rare targets, got none whose relevance reaches the threshold; lower `threshold`, or give a "
                "`relevance` that says which values are rare."
            )
        if rare.all():
            raise ValueError("Expected some common targets, got only rare ones; raise `threshold`.")
        return np.where(~rare, COMMON, np.where(values < np.median(values), LOW, HIGH))

    def _wanted(self, ranges):
        """Numbers of rows of the rare ranges in the result."""
        names, counts = np.unique(ranges, return_counts=True)
        counts = dict(zip(names.tolist(), counts.tolist(), strict=True))
        common = counts.pop(COMMON)
        if isinstance(self.sampling_strategy, str):
            if self.sampling_strategy != "auto":
                raise ValueError(f"Expected sampling_strategy 'auto' or a number, got {self.sampling_strategy!r}.")
            each = common / len(counts)
        else:
            each = self.sampling_strategy * common
        return {name: max(count, round(each)) for name, count in counts.items()}

    def _to_draw(self, ranges, wanted):
        """The numbers of rows to draw of each range: more than are wanted, as some have a target outside of it."""
        strategy = {each: round(DRAWS * n) for each, n in wanted.items()}
        return check_sampling_strategy(strategy, ranges, "over-sampling")

    def _settings(self, columns):
        """As of ScoreOverSampler; the target, the last column, stays as it is drawn: what cells may be would break its
        relation to the others."""
        over = ScoreOverSampler(
            purpose="sharing", density=self.density, sampler=self.sampler, random_state=self.random_state,
            bounds=self.bounds, columns=columns, where=self.where,
        )  # fmt: skip
        over.check_settings()
        return dataclasses.replace(over.settings(), last_is_free=True)

    def _kinds(self, X, name):
        """Kinds of columns that were asked for; the target is a number, and whole numbers of an array stay whole."""
        whole = isinstance(X, np.ndarray) and X.dtype.kind in "iu"
        kinds = {**(dict.fromkeys(range(X.shape[1]), "whole number") if whole else {}), **(self.columns or {})}
        return {**kinds, name: "number"} if kinds or is_mixed(X) else None


def _free_name(names):
    """A name for the target that no column has; the last position for an array."""
    if all(isinstance(name, int) for name in names):
        return len(names)
    name = TARGET
    while name in names:
        name += "_"
    return name
