"""Advice on imbalance: compares remedies on a table by nested cross-validation, with intervals.

The paper compares over-samplers with each other only; here they also meet doing nothing, class weights and a tuned
threshold.
"""

import dataclasses
import functools
import time
from collections import defaultdict
from typing import Any

import numpy as np
from imblearn.over_sampling import RandomOverSampler
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import type_of_target

from scorefield._jax.errors import warn_caller
from scorefield.data.checks import check_labels
from scorefield.data.containers import Table, take_rows
from scorefield.data.leaks import leaks
from scorefield.data.spaces import is_mixed
from scorefield.data.splits import same_rows, stratified_folds
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.distilled import DistilledClassifier
from scorefield.estimators.mixed_encoder import MixedEncoder
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.estimators.table_input import group_numbers
from scorefield.evaluation.advice_report import MEASURES, N_FOLDS, Advice
from scorefield.evaluation.metrics import scores
from scorefield.evaluation.preparation import PLAIN, chain, interpolate, prepare
from scorefield.evaluation.recipes import (
    INTERPOLATED,
    NOISE,
    OUR_CLASSIFIER,
    OURS,
    OURS_TUNED,
    TEACHING,
    code_for,
    ratios_for,
)
from scorefield.evaluation.remedies import (
    INNER_FOLDS,
    NOTHING,
    THRESHOLD,
    WEIGHTS,
    TunedThreshold,
    smote_neighbors,
    weighted,
)
from scorefield.evaluation.statistics import measured_f1
from scorefield.evaluation.verdicts import METRICS, decide, gain_over_nothing

MAX_REPETITIONS = 100
TUNING_MINUTES = 10.0  # enough time to tune the ratio by an inner cross-validation
# Larger tables are thinned, by the minutes given and not by those taken: rows at least, and more for each minute.
ROWS, MIXED_ROWS = (2000, 500), (1000, 250)
MIXED_MINUTES = 2.0  # for one repetition of our models on a mixed table; with less time they are left out
MIN_RARE = 10 * N_FOLDS  # thinning keeps ten rare rows for each test part


def _remedies(estimator, y, inner, n_rare, seed, ratios, teacher, preparation=PLAIN):
    """Remedy to model, for training labels `y`, their inner folds and at least `n_rare` rare rows.

    `teacher()` is a ScoreClassifier that is fitted to the training rows when the first remedy asks for it; remedies
    that use it are functions that return their model.
    """
    ready = chain(*preparation.learner, estimator)
    remedies: dict[str, Any] = {NOTHING: ready}
    heavier = weighted(estimator, y)
    if heavier is not None:
        remedies[WEIGHTS] = chain(*preparation.learner, heavier)
    remedies[THRESHOLD] = TunedThreshold(clone(ready), scoring="f1", cv=inner)
    if not isinstance(estimator, ScoreClassifier):
        remedies[OUR_CLASSIFIER] = teacher
        remedies[TEACHING] = lambda: DistilledClassifier(ready, teacher(), random_state=seed)
    noise = RandomOverSampler(shrinkage=0.3, random_state=seed)
    remedies[NOISE] = chain(*preparation.noise, noise, estimator)
    smote = interpolate(preparation, smote_neighbors(n_rare), seed)
    remedies[INTERPOLATED] = chain(*preparation.smote, smote, *preparation.after_smote, estimator)
    ours = ScoreOverSampler(columns=preparation.columns, random_state=seed)
    remedies[OURS] = lambda: chain(clone(ours).set_params(teacher=teacher()), *preparation.learner, estimator)
    if ratios:  # the inner parts need teachers of their own
        grid = {"scoreoversampler__sampling_strategy": ratios}
        tuned = chain(ours, *preparation.learner, estimator)
        remedies[OURS_TUNED] = GridSearchCV(tuned, grid, scoring="average_precision", cv=inner)
    return remedies


@dataclasses.dataclass
class _Outcome:
    """Decisions and probabilities of a remedy for each row in each repetition, and its measures on each test part."""

    called: list = dataclasses.field(default_factory=list)
    probability: list = dataclasses.field(default_factory=list)
    measures: list = dataclasses.field(default_factory=list)

    def begin(self, n):
        """Begin another repetition."""
        self.called.append(np.zeros(n))
        self.probability.append(np.zeros(n))

    def add(self, model, X, y, kept, held):
        """Add one test part."""
        model.fit(take_rows(X, kept), y[kept])
        test = take_rows(X, held)
        self.called[-1][held] = predicted = model.predict(test)
        self.probability[-1][held] = probability = model.predict_proba(test)[:, 1]
        found = scores(y[held], probability, predicted)
        self.measures.append([found[name] for name in MEASURES])


def _thinned(y, n, rng):
    """Indices of at most n rows with the class shares of all, but of MIN_RARE rare rows if there are as many."""
    if n >= len(y):
        return np.arange(len(y))
    rare, common = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_rare = min(len(rare), max(round(n * len(rare) / len(y)), MIN_RARE))
    kept = [rng.permutation(rare)[:n_rare], rng.permutation(common)[: max(n - n_rare, n_rare)]]
    return np.sort(np.concatenate(kept))


def _check(X, y, mixed, columns, positive, groups):
    """X, labels with 1 for the rare class, original labels (common or None, rare), and a number for each group.

    Without groups, equal rows are one.
    """
    check_labels(y)
    if mixed:
        X = Table(X).native
        _, y = check_X_y(np.zeros((len(X), 1)), y)
    else:
        X, y = check_X_y(X, y)
    given = group_numbers(groups, X)
    groups = same_rows(MixedEncoder(columns=columns).fit_transform(X) if mixed else X) if given is None else given
    if type_of_target(y) not in ("binary", "multiclass"):
        raise ValueError(f"Expected classes in y, got {type_of_target(y)} values; advise is about classifiers.")
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"Expected two or more classes in y, got only {values.tolist()}; add rows of another class.")
    if positive is None:
        positive = values[np.argsort(-counts, kind="stable")[-1]]
    elif positive not in values.tolist():
        raise ValueError(f"Expected positive to be one of {values.tolist()}, got {positive!r}.")
    rare = y == positive
    distinct = min(len(np.unique(groups[rows])) for rows in (rare, ~rare))
    if distinct < N_FOLDS:
        what = "distinct rows" if given is None else "groups with rows"
        raise ValueError(f"Expected at least {N_FOLDS} {what} of each class, got {distinct}; collect more.")
    common = values[values != positive][0] if len(values) == 2 else None
    return X, rare.astype(int), (common, positive), groups


def _splits(y, groups, seed, n_folds):
    """Folds that keep groups together, shuffled again until every fold has both classes."""
    for attempt in range(20):
        splits = stratified_folds(y, groups, n_folds, seed + 1000 * attempt)
        if all(0 < y[held].sum() < len(held) for _, held in splits):
            return splits
    raise ValueError(
        "Expected rare rows in every fold, got too many in equal rows or few groups; collect more distinct rows."
    )


def advise(
    X, y, estimator=None, *, metric="f1", positive=None, minutes=2.0, columns=None, random_state=0, progress=None,
    groups=None,
):  # fmt: skip
    """Compare remedies for imbalance on a table and say whether over-sampling is worth it.

    Stratified five-fold cross-validation is repeated until the time is over; equal rows share a fold. Thresholds and
    ratios are tuned by an inner cross-validation of the training part. The remedies are nothing, class weights, a tuned
    threshold, :class:`ScoreClassifier` instead of the estimator, the estimator taught by it
    (:class:`DistilledClassifier`), random over-sampling with noise, SMOTE and :class:`ScoreOverSampler`; with ten
    minutes or more also the last with a tuned ratio. Remedies are compared row by row of the test parts, with intervals
    that are widened for the number of remedies. An over-sampler is advised only if its gain over the best other remedy
    has an interval above zero. The verdict begins with "Undecided" while a gain of .05 (for a loss, of a tenth of it)
    can be neither shown nor ruled out, and a remedy that finds no rare row is never advised.

    Parameters
    ----------
    X : array, DataFrame or pyarrow table of shape (n, d)
        Columns of mixed types, with missing values. An estimator that does not take them is given numbers by
        :class:`MixedEncoder`, and SMOTE is then the variant for categories.
    y : array-like of shape (n,)
        Labels of two or more classes.
    estimator : None or classifier with ``predict_proba``
        The classifier to use each remedy with; None is a random forest.
    metric : {"f1", "average_precision", "brier", "log_loss"}
        What remedies are compared by. F1 is about decisions: the share of rare rows that are found and the share of
        alarms that are right, in one number. Average precision is about ranking: how well rare rows come first, at
        all thresholds. Brier score and log loss are about probabilities; over-sampling makes them worse, and a tuned
        threshold does not change them.
    positive : None or label
        The class to find, against all others; None is the rarest.
    minutes : float or None, default=2.0
        Time to spend; None is one repetition, whatever it takes. The first repetition is always finished. To keep to
        the time, a table of more than 2,000 rows and 500 for each minute is thinned (a mixed one of more than 1,000 and
        250). The remedies that train a ScoreClassifier are left out with 0 minutes, and of mixed tables with less than
        two.
    columns : None or dict
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.
    random_state : int
        The same seed gives the same repetitions in the same order; time decides only how many of them are run.
    progress : None or callable
        Called with the numbers of models that are fitted and of those that will probably be.
    groups : None or array-like of shape (n,)
        Groups of rows that are related, such as those of one customer: they share a fold, in the inner
        cross-validations too, and count as one in the intervals. None takes equal rows as groups.

    Returns
    -------
    Advice
        ``verdict``, ``table`` (measures, and the gain over doing nothing with its interval), ``winner``, ``code``
        (ready to run), ``metric``, ``n_repetitions``, ``n_splits`` and ``n_rows``. ``winner`` is the remedy of the
        verdict, of the marked row and of the code. It is None, and the code empty, where no remedy beats treating all
        rows alike and doing nothing finds no rare row. ``plot()`` draws the measures, ``write_page(path)`` writes a
        page.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import advise
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (170, 2)), rng.normal(1.5, 1, (30, 2))])
    >>> advice = advise(X, np.repeat([0, 1], [170, 30]), LogisticRegression(), minutes=None)
    >>> advice.n_repetitions, advice.n_splits, len(advice.table)
    (1, 5, 8)
    """
    if metric not in METRICS:
        raise ValueError(f"Expected metric to be one of {sorted(METRICS)}, got {metric!r}.")
    mixed = is_mixed(X, columns)
    grouped = groups is not None
    X, y, labels, groups = _check(X, y, mixed, columns, positive, groups)
    for sentence in leaks(Table(X), y, columns):
        warn_caller(sentence)
    estimator = RandomForestClassifier(random_state=random_state) if estimator is None else estimator
    share, n_given = y.mean(), len(y)
    least, per_minute = MIXED_ROWS if mixed else ROWS
    left_out, why = _left_out(mixed, minutes)
    minutes = minutes or 0.0
    index = _thinned(y, least + int(per_minute * minutes), np.random.default_rng(random_state))
    X, y, groups, begin = take_rows(X, index), y[index], groups[index], time.monotonic()
    tuned = minutes >= TUNING_MINUTES
    preparation = prepare(estimator, X, columns, fixed=True) if mixed else PLAIN
    outcomes: dict[str, _Outcome] = defaultdict(_Outcome)
    seconds = None  # of a repetition
    for repetition in range(MAX_REPETITIONS):
        if repetition:
            seconds = (time.monotonic() - begin) / repetition
            if seconds * (repetition + 1) > 60 * minutes:
                break  # another one would exceed the time
        n_repetitions = repetition + 1
        parts = _Parts(X, y, groups, random_state + repetition, grouped)
        ratios = ratios_for(y) if tuned else []
        for done, of_all in parts.run(outcomes, estimator, ratios, preparation, left_out):
            if progress:
                each = seconds or (time.monotonic() - begin) / done * of_all
                expected = max(n_repetitions, min(int(60 * minutes / each) if each else 1, MAX_REPETITIONS))
                progress(repetition * of_all + done, expected * of_all)
    chosen = METRICS[metric]
    measured = {name: chosen.measure(y, np.array(own.called), np.array(own.probability))
                for name, own in outcomes.items()}  # fmt: skip
    winner, verdict = decide(chosen, y, measured, groups)
    if labels[0] is None:
        verdict = f"Class {labels[1]} against all others. {verdict}"
    if len(y) < n_given:
        verdict += (
            f" (Based on {len(y)} of {n_given} rows, to keep to the time; {y.mean():.1%} of them are rare, of all "
            f"rows {share:.1%}.)"
        )
    verdict += why
    printed = prepare(estimator, X, columns, fixed=False) if mixed else PLAIN
    code = code_for(winner, estimator, y, labels, parts.n_rare, printed, grouped) if winner else ""
    table = _table(chosen, y, outcomes, measured, groups)
    return Advice(verdict, table, winner, code, metric, n_repetitions, len(y))


def _left_out(mixed, minutes):
    """Remedies that there is no time for, and a sentence that says so."""
    if minutes is None or minutes >= MIXED_MINUTES or (minutes > 0 and not mixed):
        return (), ""
    names = (OUR_CLASSIFIER, TEACHING, OURS)
    needed = f"{MIXED_MINUTES:g} minutes on a mixed table" if mixed else "more than 0 minutes"
    return names, f" ({', '.join(names[:-1])} and {names[-1]} need {needed} and were left out.)"


class _Parts:
    """The splits of one repetition; all parts get the same remedies, which are compared row by row."""

    def __init__(self, X, y, groups, seed, grouped=False):
        self.X, self.y, self.groups, self.seed, self.grouped = X, y, groups, seed, grouped
        self.splits = _splits(y, groups, seed, N_FOLDS)
        self.n_rare = min(int(y[kept].sum()) for kept, _ in self.splits)  # the least of a training part

    def run(self, outcomes, estimator, ratios, preparation, left_out):
        """Add the repetition to the outcomes; yields the number of models that are fitted, and of all to fit."""
        y, done = self.y, 0
        for kept, held in self.splits:
            inner = _splits(y[kept], self.groups[kept], self.seed, INNER_FOLDS)
            teacher = functools.cache(functools.partial(self._teacher, kept, preparation.columns))
            models = _remedies(estimator, y[kept], inner, self.n_rare, self.seed, ratios, teacher, preparation)
            models = {name: model for name, model in models.items() if name not in left_out}
            for name, model in models.items():
                if done < len(models):
                    outcomes[name].begin(len(y))
                outcomes[name].add(model if hasattr(model, "fit") else model(), self.X, y, kept, held)
                done += 1
                yield done, len(models) * len(self.splits)

    def _teacher(self, kept, columns):
        """ScoreClassifier, fitted to the rows of a training part."""
        model = ScoreClassifier(columns=columns, random_state=self.seed)
        groups = {"groups": self.groups[kept]} if self.grouped else {}
        return FrozenEstimator(model.fit(take_rows(self.X, kept), self.y[kept], **groups))


def _table(metric, y, outcomes, measured, groups):
    """Measures of each remedy; F1, recall and precision are those of all test parts together."""
    table = []
    for name, own in outcomes.items():
        values, called = np.array(own.measures), np.mean(own.called, axis=0)
        hits = float(np.sum(y * called))
        row = dict(zip(MEASURES, values.mean(axis=0).tolist(), strict=True)) | {
            "f1": measured_f1(y, called).value,
            "recall": hits / float(y.sum()),
            "precision": hits / max(float(called.sum()), 1e-12),
        }
        gap = gain_over_nothing(metric, y, measured, groups, name)
        row |= {"gain": gap.mean, "low": gap.low, "high": gap.high}
        table.append({"remedy": name, **row, "values": dict(zip(MEASURES, values.T.tolist(), strict=True))})
    return table
