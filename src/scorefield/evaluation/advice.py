"""Advice on imbalance: compares remedies on a table by nested cross-validation, with intervals.

The paper compares over-samplers with each other only; here they also meet doing nothing, class weights and a tuned
threshold.
"""

import dataclasses
import time

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import type_of_target

from scorefield.data.splits import same_rows
from scorefield.display.displays import COLOURS
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.metrics import LOWER_IS_BETTER, NAMES, scores
from scorefield.evaluation.ranks import EQUIVALENT, corrected_interval
from scorefield.evaluation.recipes import (
    INTERPOLATED,
    NOISE,
    OURS,
    OURS_TUNED,
    OVER_SAMPLERS,
    code_for,
    ratios_for,
)
from scorefield.evaluation.remedies import NOTHING, THRESHOLD, WEIGHTS, TunedThreshold, smote_neighbors, weighted

N_FOLDS, INNER_FOLDS = 5, 3
TUNING_MINUTES = 10.0  # enough time to tune the ratio by an inner cross-validation
UNDECIDED = 0.05  # the verdict mentions a larger gain in F1 if the splits cannot rule it out
MIN_ROWS = 500  # a table is not thinned below this
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
    winner: str
    code: str
    n_splits: int
    n_rows: int

    def __str__(self):
        labels = {name: NAMES[name] for name in MEASURES} | {"average_precision": "AP"}
        widths = {name: max(len(label) + 2, 7) for name, label in labels.items()}
        head = "".join(f"{label:>{widths[name]}}" for name, label in labels.items())
        lines = [f"{'':<27}{head}{'F1 less nothing':>25}"]
        for row in self.table:
            cells = "".join(f"{row[name]:>{width}.3f}" for name, width in widths.items())
            lines.append(f"{row['remedy']:<27}{cells}{_gain(row):>25}")
        return "\n".join([self.verdict, *lines, f"({self.n_splits} train-test splits of {self.n_rows} rows)"])

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

        cells = [[row["remedy"], *(f"{row[m]:.3f}" for m in MEASURES), _gain(row)] for row in self.table]
        body = [
            tag("h1", "Is over-sampling worth it here?"),
            tag("p", tag("b", self.verdict)),
            table("Means over test parts, and the gain in F1 over doing nothing with its interval.",
                  ["remedy", *(NAMES[m] for m in MEASURES), "gain"], cells),
            picture(self.plot(), "Ticks: test parts. Dots: their means. The advised remedy is orange."),
            tag("p", f"{self.n_splits} train-test splits of {self.n_rows} rows. Code for {self.winner}:"),
            tag("pre", self.code),
        ]  # fmt: skip
        write_whole(path, page("Is over-sampling worth it here?", body), replace=replace)


def _remedies(estimator, y, inner, n_rare, seed, ratios):
    """Remedy to model, for training labels `y`, their inner folds and at least `n_rare` rare rows."""
    remedies = {NOTHING: clone(estimator)}
    heavier = weighted(estimator, y)
    if heavier is not None:
        remedies[WEIGHTS] = heavier
    remedies[THRESHOLD] = TunedThreshold(clone(estimator), scoring="f1", cv=inner)
    remedies[NOISE] = make_pipeline(RandomOverSampler(shrinkage=0.3, random_state=seed), clone(estimator))
    smote = SMOTE(k_neighbors=smote_neighbors(n_rare), random_state=seed)
    remedies[INTERPOLATED] = make_pipeline(smote, clone(estimator))
    remedies[OURS] = make_pipeline(ScoreOverSampler(random_state=seed), clone(estimator))
    if ratios:
        grid = {"scoreoversampler__sampling_strategy": ratios}
        remedies[OURS_TUNED] = GridSearchCV(clone(remedies[OURS]), grid, scoring="average_precision", cv=inner)
    return remedies


def _measures(model, X, y, X_test, y_test):
    model.fit(X, y)
    found = scores(y_test, model.predict_proba(X_test)[:, 1], model.predict(X_test))
    return [found[name] for name in MEASURES]


def _gap(first, second, n_comparisons):
    """Corrected interval of a difference, widened by Bonferroni's correction for the number of comparisons."""
    return corrected_interval(first - second, 1 / (N_FOLDS - 1), confidence=1 - 0.05 / n_comparisons)


def _verdict(scores, trivial):
    """The remedy to use, and a sentence about it. `trivial` is the F1 of predicting the rare class for every row.

    An over-sampler is advised if its gain over the best other remedy has an interval above zero, and that remedy if its
    gain over doing nothing has one. The best are chosen on the same splits, so the intervals are widened.
    """
    f1 = {name: values[:, 0] for name, values in scores.items()}
    brier = {name: values[:, 4].mean() for name, values in scores.items()}
    means = {name: values.mean() for name, values in f1.items()}
    simple = max((name for name in f1 if name not in OVER_SAMPLERS), key=means.__getitem__)
    over = max((name for name in f1 if name in OVER_SAMPLERS), key=means.__getitem__)
    best = max(f1, key=means.__getitem__)
    n = len(f1)
    skill = _gap(f1[best], trivial, n)
    if not skill.low > 0:
        return NOTHING, (
            f"No difference: no remedy reliably beats predicting the rare class for every row (F1 "
            f"{trivial.mean():.3f}); the best, {best}, changes it by {_words(*skill)}."
        )
    gap = _gap(f1[over], f1[simple], n)
    if gap.low > 0 and gap.mean > EQUIVALENT:
        recall, precision = (float((scores[over][:, i] - scores[simple][:, i]).mean()) for i in (1, 2))
        return over, (
            f"Over-sample with {over}: it raises F1 by {_words(*gap)} over {simple} (recall {recall:+.2f}, precision "
            f"{precision:+.2f})."
        )
    found = f"{over}, the best over-sampler, changes F1 by {_words(*gap)} against {simple}"
    if simple != NOTHING:
        gain = _gap(f1[simple], f1[NOTHING], n)
        if gain.low > 0 and gain.mean > EQUIVALENT:
            lower = " and has the lower Brier score" if brier[simple] < brier[over] else ""
            return simple, (
                f"Do not over-sample: {simple} raises F1 by {_words(*gain)} over doing nothing{lower} "
                f"({brier[simple]:.3f}, with {over} {brier[over]:.3f}); {found}."
            )
    high, hopeful = max((_gap(f1[name], f1[NOTHING], n).high, name) for name in f1 if name != NOTHING)
    if high > UNDECIDED:
        found += f". The splits cannot rule out a gain of {high:.2f} ({hopeful}): more rows or minutes would tell"
    return NOTHING, f"No difference: do nothing. No remedy reliably raises its F1 of {means[NOTHING]:.3f}; {found}."


def _thinned(y, n, rng):
    """Indices of at most n rows with the class shares of all, but of MIN_RARE rare rows if there are as many."""
    if n >= len(y):
        return np.arange(len(y))
    rare, common = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_rare = min(len(rare), max(round(n * len(rare) / len(y)), MIN_RARE))
    kept = [rng.permutation(rare)[:n_rare], rng.permutation(common)[: max(n - n_rare, n_rare)]]
    return np.sort(np.concatenate(kept))


def _fitting_rows(X, y, estimator, minutes, random_state):
    """Indices of the rows to use: all, or as many as the time allows for one round of all remedies."""
    begin = time.monotonic()
    rng = np.random.default_rng(random_state)
    index = _thinned(y, 5000, rng)
    clone(estimator).fit(X[index], y[index])
    # Over-sampling doubles the rows and inner searches add fits: about 15 fits per fold, each twice as long.
    seconds = 2 * 15 * N_FOLDS * (time.monotonic() - begin) * len(y) / len(index)
    share = 60 * minutes / seconds if seconds > 0 else 1.0
    return _thinned(y, max(int(share * len(y)), MIN_ROWS), rng)


def _check(X, y):
    """X, labels with 1 for the rare class, and the original labels (common, rare)."""
    X, y = check_X_y(X, y)
    if type_of_target(y) != "binary":
        raise ValueError(f"Expected two classes in y, got {len(np.unique(y))}; advise on one class against the rest.")
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"Expected two classes in y, got only {values.tolist()}; add rows of another class.")
    order = np.argsort(-counts, kind="stable")
    distinct = min(len(np.unique(same_rows(X)[y == value])) for value in values)
    if distinct < N_FOLDS:
        raise ValueError(f"Expected at least {N_FOLDS} distinct rows of each class, got {distinct}; collect more.")
    return X, (y == values[order[1]]).astype(int), values[order]


def _splits(y, groups, seed, n_folds):
    """Folds that keep equal rows together, shuffled again until every fold has both classes."""
    for attempt in range(20):
        folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed + 1000 * attempt)
        splits = list(folds.split(np.zeros(len(y)), y, groups))
        if all(0 < y[held].sum() < len(held) for _, held in splits):
            return splits
    raise ValueError("Expected rare rows in every fold, got too many equal ones; collect more distinct rows.")


def advise(X, y, estimator=None, *, minutes=2.0, random_state=0):
    """Compare remedies for imbalance on a table and say whether over-sampling is worth it.

    Stratified five-fold cross-validation is repeated until the time is over; equal rows share a fold. Thresholds and
    ratios are tuned by an inner cross-validation of the training part. The remedies are nothing, class weights, a tuned
    threshold, random over-sampling with noise, SMOTE and score over-sampling; with ten minutes or more also score
    over-sampling with a tuned ratio. An over-sampler is advised only if its gain in F1 over the best other remedy has
    an interval above zero. Intervals are widened for the number of remedies.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Numeric columns.
    y : array-like of shape (n,)
        Labels of two classes; the rarer one is the positive class.
    estimator : None or classifier with ``predict_proba``
        The classifier to use each remedy with; None is a random forest.
    minutes : float
        Time limit for starting another repetition. The first one is always finished; a table too large for it is
        thinned, but not below 500 rows.
    random_state : int

    Returns
    -------
    Advice
        ``verdict``, ``table`` (means, and the interval of the gain over doing nothing), ``winner``, ``code`` (ready to
        run), ``n_splits`` and ``n_rows``. ``plot()`` draws the measures, ``write_page(path)`` writes a page.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import advise
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), np.repeat([0, 1], [170, 30])
    >>> advice = advise(X, y, LogisticRegression(), minutes=0)
    >>> advice.winner, advice.n_splits
    ('nothing', 5)
    """
    X, y, labels = _check(X, y)
    estimator = RandomForestClassifier(random_state=random_state) if estimator is None else estimator
    share, n_given = y.mean(), len(y)
    index = _fitting_rows(X, y, estimator, minutes, random_state)
    X, y = X[index], y[index]
    groups, begin = same_rows(X), time.monotonic()
    results: dict[str, list] = {}
    trivial = []
    for repetition in range(100):
        if repetition and time.monotonic() - begin > 60 * minutes * repetition / (repetition + 1):
            break  # another repetition would exceed the time
        splits = _splits(y, groups, random_state + repetition, N_FOLDS)
        # All parts get the same remedies: the intervals compare them split by split.
        n_rare = min(int(y[kept].sum()) for kept, _ in splits)
        ratios = ratios_for(y) if minutes >= TUNING_MINUTES else []
        for kept, held in splits:
            inner = _splits(y[kept], groups[kept], random_state + repetition, INNER_FOLDS)
            remedies = _remedies(estimator, y[kept], inner, n_rare, random_state + repetition, ratios)
            for name, model in remedies.items():
                results.setdefault(name, []).append(_measures(model, X[kept], y[kept], X[held], y[held]))
            trivial.append(2 * y[held].mean() / (1 + y[held].mean()))
    found = {name: np.array(rows) for name, rows in results.items()}
    winner, verdict = _verdict(found, np.array(trivial))
    if len(y) < n_given:
        verdict += (
            f" (Based on {len(y)} of {n_given} rows, to keep to the time; {y.mean():.1%} of them are rare, of all "
        )
        verdict += f"rows {share:.1%}.)"
    code = code_for(winner, estimator, y, labels, n_rare)
    return Advice(verdict, _table(found), winner, code, len(trivial), len(y))


def _table(scores):
    table = []
    for name, rows in scores.items():
        gap = _gap(rows[:, 0], scores[NOTHING][:, 0], len(scores))
        means = dict(zip(MEASURES, rows.mean(axis=0).tolist(), strict=True))
        values = dict(zip(MEASURES, rows.T.tolist(), strict=True))
        table.append({"remedy": name, **means, "gain": gap.mean, "low": gap.low, "high": gap.high, "values": values})
    return table
