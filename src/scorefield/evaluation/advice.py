"""Advice on imbalance: compares remedies on a table by nested cross-validation, with intervals.

The paper compares over-samplers with each other only; here they also meet doing nothing, class weights and a tuned
threshold.
"""

import dataclasses
import time

import numpy as np
from imblearn.over_sampling import RandomOverSampler
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import type_of_target

from scorefield.data.containers import Table, take_rows
from scorefield.data.splits import same_rows, stratified_folds
from scorefield.display.displays import COLOURS
from scorefield.estimators.mixed_encoder import MixedEncoder
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.estimators.table_input import is_mixed
from scorefield.evaluation.metrics import LOWER_IS_BETTER, NAMES, scores
from scorefield.evaluation.preparation import PLAIN, chain, interpolate, prepare
from scorefield.evaluation.ranks import EQUIVALENT
from scorefield.evaluation.recipes import (
    INTERPOLATED,
    NOISE,
    OURS,
    OURS_TUNED,
    OVER_SAMPLERS,
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
from scorefield.evaluation.statistics import f1_gain, f1_of

N_FOLDS = 5
TUNING_MINUTES = 10.0  # enough time to tune the ratio by an inner cross-validation
UNDECIDED = 0.05  # a smaller gain in F1 counts as none; advice is undecided while a larger one cannot be ruled out
MIN_ROWS, ROWS_PER_MINUTE = 2000, 4000  # larger tables are thinned: by the minutes given, not by those taken
MIN_RARE = 10 * N_FOLDS  # thinning keeps ten rare rows for each test part
MEASURES = ("f1", "recall", "precision", "average_precision", "brier")


def _words(mean, low, high, *_):
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def _gain(row):
    return _words(row["gain"], row["low"], row["high"])


@dataclasses.dataclass(frozen=True)
class Advice:
    """Result of `advise`: a verdict in words, the mean measures of each remedy, the remedy to use and code for it."""

    verdict: str
    table: list
    winner: str | None
    code: str
    n_repetitions: int
    n_rows: int

    @property
    def n_splits(self):
        """Train-test splits behind the table."""
        return N_FOLDS * self.n_repetitions

    def _basis(self):
        times = "repetition" if self.n_repetitions == 1 else "repetitions"
        return f"{self.n_repetitions} {times} of {N_FOLDS} train-test splits of {self.n_rows} rows"

    def __str__(self):
        labels = {name: NAMES[name] for name in MEASURES} | {"average_precision": "AP"}
        widths = {name: max(len(label) + 2, 7) for name, label in labels.items()}
        head = "".join(f"{label:>{widths[name]}}" for name, label in labels.items())
        lines = [f"{'':<29}{head}{'F1 less nothing':>25}"]
        for row in self.table:
            cells = "".join(f"{row[name]:>{width}.3f}" for name, width in widths.items())
            mark = "> " if row["remedy"] == self.winner else "  "
            lines.append(f"{mark + row['remedy']:<29}{cells}{_gain(row):>25}")
        return "\n".join([self.verdict, *lines, f"(>: advised. {self._basis()})"])

    def plot(self, axes=None):
        """Draw F1, average precision and Brier score of every remedy, and return the figure."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(1, 3, figsize=(11, 0.6 + 0.45 * len(self.table)), sharey=True, layout="constrained")
        names = [row["remedy"] for row in self.table]
        for ax, measure in zip(axes, ("f1", "average_precision", "brier"), strict=True):
            for place, row in enumerate(self.table):
                colour = COLOURS[row["remedy"] == self.winner]
                ax.plot(row["values"][measure], np.full(self.n_splits, place), "|", color=colour, alpha=0.5)
                ax.plot(row[measure], place, "o", color=colour)
            title = NAMES[measure] + " (less is better)" * (measure in LOWER_IS_BETTER)
            ax.set(title=title, yticks=range(len(names)), yticklabels=names)
        axes[0].invert_yaxis()
        return axes[0].figure

    def write_page(self, path, *, replace=True):
        """Write a self-contained HTML page with the verdict, the table, the plot and the code."""
        from scorefield.data.files import write_whole
        from scorefield.display.html import page, picture, table, tag

        names = [row["remedy"] + " (advised)" * (row["remedy"] == self.winner) for row in self.table]
        cells = [
            [name, *(f"{row[m]:.3f}" for m in MEASURES), _gain(row)]
            for name, row in zip(names, self.table, strict=True)
        ]
        body = [
            tag("h1", "Is over-sampling worth it here?"),
            tag("p", tag("b", self.verdict)),
            table("F1, recall and precision of all test parts together, means over them of the others, and the gain in "
                  "F1 over doing nothing with its interval.",
                  ["remedy", *(NAMES[m] for m in MEASURES), "gain"], cells),
            picture(self.plot(), "Ticks: test parts. Dots: the table's numbers. The advised remedy is orange."),
            tag("p", f"{self._basis()}. " + (f"Code for {self.winner}:" if self.winner else "No remedy is advised.")),
            tag("pre", self.code),
        ]  # fmt: skip
        write_whole(path, page("Is over-sampling worth it here?", body), replace=replace)


def _remedies(estimator, y, inner, n_rare, seed, ratios, preparation=PLAIN):
    """Remedy to model, for training labels `y`, their inner folds and at least `n_rare` rare rows."""
    ready = chain(*preparation.learner, estimator)
    remedies = {NOTHING: ready}
    heavier = weighted(estimator, y)
    if heavier is not None:
        remedies[WEIGHTS] = chain(*preparation.learner, heavier)
    remedies[THRESHOLD] = TunedThreshold(clone(ready), scoring="f1", cv=inner)
    noise = RandomOverSampler(shrinkage=0.3, random_state=seed)
    remedies[NOISE] = chain(*preparation.noise, noise, estimator)
    smote = interpolate(preparation, smote_neighbors(n_rare), seed)
    remedies[INTERPOLATED] = chain(*preparation.smote, smote, *preparation.after_smote, estimator)
    ours = ScoreOverSampler(columns=preparation.columns, random_state=seed)
    remedies[OURS] = chain(ours, *preparation.learner, estimator)
    if ratios:
        grid = {"scoreoversampler__sampling_strategy": ratios}
        remedies[OURS_TUNED] = GridSearchCV(clone(remedies[OURS]), grid, scoring="average_precision", cv=inner)
    return remedies


@dataclasses.dataclass
class _Outcome:
    """How often a remedy called each row rare, over all repetitions, and its measures on each test part."""

    called: np.ndarray
    measures: list = dataclasses.field(default_factory=list)

    def add(self, model, X, y, kept, held):
        model.fit(take_rows(X, kept), y[kept])
        test = take_rows(X, held)
        predicted = model.predict(test)
        self.called[held] += predicted
        found = scores(y[held], model.predict_proba(test)[:, 1], predicted)
        self.measures.append([found[name] for name in MEASURES])


def _verdict(y, called, groups, brier):
    """The remedy to use, and a sentence about it, from the share of repetitions in which each row was called rare.

    An over-sampler is advised if its gain over the best other remedy has an interval above zero, and that remedy if its
    gain over doing nothing has one. The best are chosen on the same rows, so the intervals are widened.
    """
    f1 = {name: f1_of(y, own) for name, own in called.items()}
    simple = max((name for name in f1 if name not in OVER_SAMPLERS), key=f1.__getitem__)
    over = max((name for name in f1 if name in OVER_SAMPLERS), key=f1.__getitem__)
    best, everything = max(f1, key=f1.__getitem__), np.ones(len(y))
    usable = NOTHING if f1[NOTHING] > 0 else None

    skill = f1_gain(y, called[best], everything, groups, confidence=_confidence(best, f1))
    if not skill.low > 0:
        advised = "do nothing" if usable else "none is advised, and doing nothing finds no rare row"
        return usable, (
            f"Undecided: {advised}. No remedy reliably beats predicting the rare class for every row (F1 "
            f"{f1_of(y, everything):.3f}); the best, {best}, changes it by {_words(*skill)}."
        )
    gap = f1_gain(y, called[over], called[simple], groups, confidence=_confidence(over, f1))
    if gap.low > 0 and gap.mean > EQUIVALENT:
        return over, f"Over-sample with {over}: it raises F1 by {_words(*gap)} over {simple}."
    found = f"{over}, the best over-sampler, changes F1 by {_words(*gap)} against {simple}"
    gains = {name: _gain_over_nothing(y, called, groups, name) for name in called if name != NOTHING}
    if simple != NOTHING and gains[simple].low > 0 and gains[simple].mean > EQUIVALENT:
        lower = " and has the lower Brier score" if brier[simple] < brier[over] else ""
        return simple, (
            f"Do not over-sample, use {simple}: it raises F1 by {_words(*gains[simple])} over doing nothing{lower} "
            f"({brier[simple]:.3f}, with {over} {brier[over]:.3f}); {found}."
        )
    hopeful = max(gains, key=lambda name: gains[name].high)
    if usable and gains[hopeful].high <= UNDECIDED:
        told = f"No difference: do nothing. No remedy raises its F1 of {f1[NOTHING]:.3f} by more than {UNDECIDED}"
        return NOTHING, f"{told}; {found}."
    advised = "do nothing for now" if usable else f"use {best} for now, as doing nothing finds no rare row"
    return usable or best, (
        f"Undecided: {advised}. No remedy reliably raises the F1 of {f1[NOTHING]:.3f} of doing nothing, but {hopeful} "
        f"may change it by {_words(*gains[hopeful])}: more rows or minutes would tell; {found}."
    )


def _confidence(name, names):
    """Bonferroni's correction: one half of the 5 % is for the over-samplers, the other for the fewer other remedies."""
    n_over = sum(other in OVER_SAMPLERS for other in names)
    return 1 - 0.025 / max(n_over if name in OVER_SAMPLERS else len(names) - n_over - 1, 1)


def _gain_over_nothing(y, called, groups, name):
    return f1_gain(y, called[name], called[NOTHING], groups, confidence=_confidence(name, called))


def _thinned(y, n, rng):
    """Indices of at most n rows with the class shares of all, but of MIN_RARE rare rows if there are as many."""
    if n >= len(y):
        return np.arange(len(y))
    rare, common = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_rare = min(len(rare), max(round(n * len(rare) / len(y)), MIN_RARE))
    kept = [rng.permutation(rare)[:n_rare], rng.permutation(common)[: max(n - n_rare, n_rare)]]
    return np.sort(np.concatenate(kept))


def _check(X, y, mixed, columns):
    """X, labels with 1 for the rare class, the original labels (common, rare), and a number per distinct row."""
    if mixed:
        X = Table(X).native
        _, y = check_X_y(np.zeros((len(X), 1)), y)
        groups = same_rows(MixedEncoder(columns=columns).fit_transform(X))
    else:
        X, y = check_X_y(X, y)
        groups = same_rows(X)
    if type_of_target(y) != "binary":
        raise ValueError(f"Expected two classes in y, got {len(np.unique(y))}; advise on one class against the rest.")
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"Expected two classes in y, got only {values.tolist()}; add rows of another class.")
    order = np.argsort(-counts, kind="stable")
    distinct = min(len(np.unique(groups[y == value])) for value in values)
    if distinct < N_FOLDS:
        raise ValueError(f"Expected at least {N_FOLDS} distinct rows of each class, got {distinct}; collect more.")
    return X, (y == values[order[1]]).astype(int), values[order], groups


def _splits(y, groups, seed, n_folds):
    """Folds that keep equal rows together, shuffled again until every fold has both classes."""
    for attempt in range(20):
        splits = stratified_folds(y, groups, n_folds, seed + 1000 * attempt)
        if all(0 < y[held].sum() < len(held) for _, held in splits):
            return splits
    raise ValueError("Expected rare rows in every fold, got too many equal ones; collect more distinct rows.")


def advise(X, y, estimator=None, *, minutes=2.0, columns=None, random_state=0):
    """Compare remedies for imbalance on a table and say whether over-sampling is worth it.

    Stratified five-fold cross-validation is repeated until the time is over; equal rows share a fold. Thresholds and
    ratios are tuned by an inner cross-validation of the training part. The remedies are nothing, class weights, a tuned
    threshold, random over-sampling with noise, SMOTE and score over-sampling; with ten minutes or more also score
    over-sampling with a tuned ratio. Remedies are compared row by row of the test parts, with intervals that are
    widened for the number of remedies. An over-sampler is advised only if its gain in F1 over the best other remedy has
    an interval above zero. The verdict begins with "Undecided" while a gain of .05 can be neither shown nor ruled out,
    and a remedy that finds no rare row is never advised.

    Parameters
    ----------
    X : array, DataFrame or pyarrow table of shape (n, d)
        Columns of mixed types, with gaps. An estimator that does not take them is given numbers by
        :class:`MixedEncoder`, and SMOTE is then the variant for categories.
    y : array-like of shape (n,)
        Labels of two classes; the rarer one is the positive class.
    estimator : None or classifier with ``predict_proba``
        The classifier to use each remedy with; None is a random forest.
    minutes : float
        Time limit for starting another repetition. The first one is always finished. A table of more than 2,000 rows
        and 4,000 for each minute is thinned.
    columns : None or dict
        Kinds of columns by name, for those that :func:`describe_columns` takes for something else.
    random_state : int
        The same seed gives the same repetitions in the same order; time decides only how many of them are run.

    Returns
    -------
    Advice
        ``verdict``, ``table`` (measures, and the interval of the gain over doing nothing), ``winner``, ``code`` (ready
        to run), ``n_repetitions``, ``n_splits`` and ``n_rows``. ``winner`` is the remedy of the verdict, of the marked
        row and of the code. It is None, and the code empty, where no remedy beats calling every row rare and doing
        nothing finds no rare row. ``plot()`` draws the measures, ``write_page(path)`` writes a page.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import advise
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (170, 2)), rng.normal(1.5, 1, (30, 2))])
    >>> advice = advise(X, np.repeat([0, 1], [170, 30]), LogisticRegression(), minutes=0)
    >>> advice.n_repetitions, advice.n_splits, len(advice.table)
    (1, 5, 6)
    """
    mixed = is_mixed(X, columns)
    X, y, labels, groups = _check(X, y, mixed, columns)
    estimator = RandomForestClassifier(random_state=random_state) if estimator is None else estimator
    share, n_given = y.mean(), len(y)
    index = _thinned(y, MIN_ROWS + int(ROWS_PER_MINUTE * minutes), np.random.default_rng(random_state))
    X, y, groups, begin = take_rows(X, index), y[index], groups[index], time.monotonic()
    preparation = prepare(estimator, X, columns, fixed=True) if mixed else PLAIN
    outcomes: dict[str, _Outcome] = {}
    for repetition in range(100):
        if repetition and time.monotonic() - begin > 60 * minutes * repetition / (repetition + 1):
            break  # another repetition would exceed the time
        n_repetitions = repetition + 1
        n_rare = _repeat(outcomes, X, y, groups, estimator, random_state + repetition, minutes, preparation)
    for own in outcomes.values():
        own.called /= n_repetitions
    called = {name: own.called for name, own in outcomes.items()}
    brier = {name: np.mean(own.measures, axis=0)[MEASURES.index("brier")] for name, own in outcomes.items()}
    winner, verdict = _verdict(y, called, groups, brier)
    if len(y) < n_given:
        verdict += (
            f" (Based on {len(y)} of {n_given} rows, to keep to the time; {y.mean():.1%} of them are rare, of all "
        )
        verdict += f"rows {share:.1%}.)"
    printed = prepare(estimator, X, columns, fixed=False) if mixed else PLAIN
    code = code_for(winner, estimator, y, labels, n_rare, printed) if winner else ""
    return Advice(verdict, _table(y, outcomes, groups), winner, code, n_repetitions, len(y))


def _repeat(outcomes, X, y, groups, estimator, seed, minutes, preparation):
    """Add one repetition of all splits to the outcomes of the remedies; returns the least number of rare rows."""
    splits = _splits(y, groups, seed, N_FOLDS)
    # All parts get the same remedies, which are compared row by row.
    n_rare = min(int(y[kept].sum()) for kept, _ in splits)
    ratios = ratios_for(y) if minutes >= TUNING_MINUTES else []
    for kept, held in splits:
        inner = _splits(y[kept], groups[kept], seed, INNER_FOLDS)
        for name, model in _remedies(estimator, y[kept], inner, n_rare, seed, ratios, preparation).items():
            outcomes.setdefault(name, _Outcome(np.zeros(len(y)))).add(model, X, y, kept, held)
    return n_rare


def _table(y, outcomes, groups):
    """Measures of each remedy; F1, recall and precision are those of all test parts together."""
    table, called = [], {name: own.called for name, own in outcomes.items()}
    for name, own in outcomes.items():
        gap = _gain_over_nothing(y, called, groups, name)
        values = np.array(own.measures)
        hits = float(np.sum(y * own.called))
        row = dict(zip(MEASURES, values.mean(axis=0).tolist(), strict=True)) | {
            "f1": f1_of(y, own.called),
            "recall": hits / float(y.sum()),
            "precision": hits / max(float(own.called.sum()), 1e-12),
        }
        row |= {"gain": gap.mean, "low": gap.low, "high": gap.high}
        table.append({"remedy": name, **row, "values": dict(zip(MEASURES, values.T.tolist(), strict=True))})
    return table
