"""advise: is over-sampling worth it on this table? Remedies compared by nested cross-validation, with intervals.

The paper compares over-samplers with each other; here doing nothing, class weights and a tuned threshold compete too.
"""

import dataclasses
import time

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, brier_score_loss, precision_recall_fscore_support
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import type_of_target

from scorefield.data.splits import same_rows
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.ranks import EQUIVALENT, corrected_interval
from scorefield.evaluation.recipes import (
    INTERPOLATED,
    NOISE,
    OURS,
    OURS_TUNED,
    OVER_SAMPLERS,
    code_for,
    neighbors_for,
    ratios_for,
)
from scorefield.evaluation.remedies import NOTHING, THRESHOLD, WEIGHTS, TunedThreshold, weighted

N_FOLDS, INNER_FOLDS = 5, 3
TUNING_MINUTES = 10.0  # from here on there is time to choose the ratio by an inner cross-validation
UNDECIDED = 0.05  # a gain in F1 that is worth more rows or time where it cannot be ruled out
MIN_ROWS = 500  # below which a table is not thinned to fit the time
MIN_RARE = 10 * N_FOLDS  # rare rows that thinning leaves: ten in each test part
MEASURES = ("f1", "recall", "precision", "average_precision", "brier")


@dataclasses.dataclass(frozen=True)
class Advice:
    """What `advise` found: a verdict in words, a row of means per remedy, the winner and code for it."""

    verdict: str
    table: list
    winner: str
    code: str
    n_splits: int
    n_rows: int

    def __str__(self):
        lines = [f"{'':<27}{'F1':>7}{'recall':>8}{'precision':>11}{'AP':>7}{'Brier':>8}{'F1 less nothing':>25}"]
        for row in self.table:
            interval = f"{row['gain']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
            lines.append(
                f"{row['remedy']:<27}{row['f1']:>7.3f}{row['recall']:>8.3f}{row['precision']:>11.3f}"
                f"{row['average_precision']:>7.3f}{row['brier']:>8.3f}{interval:>25}"
            )
        return "\n".join([self.verdict, *lines, f"({self.n_splits} train-test splits of {self.n_rows} rows)"])

    def plot(self, axes=None):
        """Draw F1, average precision and Brier score of every remedy; returns the figure."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(1, 3, figsize=(11, 0.6 + 0.45 * len(self.table)), sharey=True, layout="constrained")
        names = [row["remedy"] for row in self.table]
        for ax, (measure, title) in zip(
            axes, {"f1": "F1", "average_precision": "average precision", "brier": "Brier (less is better)"}.items(),
            strict=True,
        ):  # fmt: skip
            for place, row in enumerate(self.table):
                colour = "#D55E00" if row["remedy"] == self.winner else "#0072B2"
                ax.plot(row["values"][measure], np.full(self.n_splits, place), "|", color=colour, alpha=0.5)
                ax.plot(row[measure], place, "o", color=colour)
            ax.set(title=title, yticks=range(len(names)), yticklabels=names)
        axes[0].invert_yaxis()
        return axes[0].figure

    def write_page(self, path, *, replace=True):
        """Write a self-contained page: the verdict, the table, the plot and the code."""
        from scorefield.data.files import write_whole
        from scorefield.display.html import page, picture, table, tag

        cells = [
            [row["remedy"], *(f"{row[m]:.3f}" for m in MEASURES),
             f"{row['gain']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"]
            for row in self.table
        ]  # fmt: skip
        body = [
            tag("h1", "Is over-sampling worth it here?"),
            tag("p", tag("b", self.verdict)),
            table("Means over test parts, and the gain in F1 over doing nothing with its interval.",
                  ["remedy", "F1", "recall", "precision", "average precision", "Brier", "gain"], cells),
            picture(self.plot(), "Ticks are test parts, dots their means; the advised remedy is orange."),
            tag("p", f"{self.n_splits} train-test splits of {self.n_rows} rows. Code for {self.winner}:"),
            tag("pre", self.code),
        ]  # fmt: skip
        write_whole(path, page("Is over-sampling worth it here?", body), replace=replace)


def _remedies(estimator, y, inner, n_rare, seed, ratios):
    """Remedy to model for training labels and their inner folds; SMOTE only where `n_rare` rows have a neighbour."""
    remedies = {NOTHING: clone(estimator)}
    heavier = weighted(estimator, y)
    if heavier is not None:
        remedies[WEIGHTS] = heavier
    remedies[THRESHOLD] = TunedThreshold(clone(estimator), scoring="f1", cv=inner)
    remedies[NOISE] = make_pipeline(RandomOverSampler(shrinkage=0.3, random_state=seed), clone(estimator))
    neighbors = neighbors_for(n_rare)
    if neighbors >= 1:
        remedies[INTERPOLATED] = make_pipeline(SMOTE(k_neighbors=neighbors, random_state=seed), clone(estimator))
    remedies[OURS] = make_pipeline(ScoreOverSampler(random_state=seed), clone(estimator))
    if ratios:
        grid = {"scoreoversampler__sampling_strategy": ratios}
        remedies[OURS_TUNED] = GridSearchCV(clone(remedies[OURS]), grid, scoring="average_precision", cv=inner)
    return remedies


def _measures(model, X, y, X_test, y_test):
    model.fit(X, y)
    proba = model.predict_proba(X_test)[:, 1]
    precision, recall, f1, _ = precision_recall_fscore_support(
        y_test, model.predict(X_test), average="binary", zero_division=0
    )
    return f1, recall, precision, average_precision_score(y_test, proba), brier_score_loss(y_test, proba)


def _gap(first, second, n_comparisons):
    """The corrected interval of a difference, wide enough for all comparisons together."""
    return corrected_interval(first - second, 1 / (N_FOLDS - 1), confidence=1 - 0.05 / n_comparisons)


def _words(gap):
    return f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"


def _verdict(scores, trivial):
    """The remedy to use and a sentence. `trivial` is the F1 of calling every row rare.

    An over-sampler must surely beat the best remedy that does not over-sample, and that one doing nothing; which is
    best is found on the same splits, so intervals are widened for the number of remedies.
    """
    f1 = {name: values[:, 0] for name, values in scores.items()}
    brier = {name: values[:, 4].mean() for name, values in scores.items()}
    means = {name: values.mean() for name, values in f1.items()}
    simple = max((name for name in f1 if name not in OVER_SAMPLERS), key=means.get)
    over = max((name for name in f1 if name in OVER_SAMPLERS), key=means.get)
    best = max(f1, key=means.get)
    n = len(f1)
    skill = _gap(f1[best], trivial, n)
    if not skill.low > 0:
        return NOTHING, (
            f"No difference: no remedy surely beats calling every row rare (F1 {trivial.mean():.3f}); the best, "
            f"{best}, changes it by {_words(skill)}."
        )
    gap = _gap(f1[over], f1[simple], n)
    if gap.low > 0 and gap.mean > EQUIVALENT:
        recall, precision = (float((scores[over][:, i] - scores[simple][:, i]).mean()) for i in (1, 2))
        return over, (
            f"Over-sample with {over}: it raises F1 by {_words(gap)} over {simple} (recall {recall:+.2f}, precision "
            f"{precision:+.2f})."
        )
    found = f"{over}, the best over-sampler, changes F1 by {_words(gap)} against {simple}"
    if simple != NOTHING:
        gain = _gap(f1[simple], f1[NOTHING], n)
        if gain.low > 0 and gain.mean > EQUIVALENT:
            lower = " and has the lower Brier score" if brier[simple] < brier[over] else ""
            return simple, (
                f"Do not over-sample: {simple} raises F1 by {_words(gain)} over doing nothing{lower} "
                f"({brier[simple]:.3f}, with {over} {brier[over]:.3f}); {found}."
            )
    high, hopeful = max((_gap(f1[name], f1[NOTHING], n).high, name) for name in f1 if name != NOTHING)
    if high > UNDECIDED:
        found += f". The splits cannot rule out a gain of {high:.2f} ({hopeful}): more rows or minutes would tell"
    return NOTHING, f"No difference: do nothing. No remedy surely raises its F1 of {means[NOTHING]:.3f}; {found}."


def _thinned(y, n, rng):
    """At most n rows, with the class shares of all, but no fewer than MIN_RARE rare ones where there are so many."""
    if n >= len(y):
        return np.arange(len(y))
    rare, common = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_rare = min(len(rare), max(round(n * len(rare) / len(y)), MIN_RARE))
    kept = [rng.permutation(rare)[:n_rare], rng.permutation(common)[: max(n - n_rare, n_rare)]]
    return np.sort(np.concatenate(kept))


def _fitting_rows(X, y, estimator, minutes, random_state):
    """Indices of as many rows as one round of all remedies has time for: all, or a thinned table."""
    begin = time.monotonic()
    rng = np.random.default_rng(random_state)
    index = _thinned(y, 5000, rng)
    clone(estimator).fit(X[index], y[index])
    # Over-sampling doubles the rows; an inner search costs three fits more: about 15 fits a fold, twice as long each.
    seconds = 2 * 15 * N_FOLDS * (time.monotonic() - begin) * len(y) / len(index)
    share = 60 * minutes / seconds if seconds > 0 else 1.0
    return _thinned(y, max(int(share * len(y)), MIN_ROWS), rng)


def _check(X, y):
    """X, y with 1 for the rare class, and the labels (common, rare)."""
    X, y = check_X_y(X, y)
    if type_of_target(y) != "binary":
        raise ValueError(f"Expected two classes in y, got {len(np.unique(y))}; advise on one class against the rest.")
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"Expected two classes in y, got only {values.tolist()}.")
    order = np.argsort(-counts, kind="stable")
    distinct = min(len(np.unique(same_rows(X)[y == value])) for value in values)
    if distinct < N_FOLDS:
        raise ValueError(f"Expected at least {N_FOLDS} distinct rows of each class, got {distinct}; collect more.")
    return X, (y == values[order[1]]).astype(int), values[order]


def _splits(y, groups, seed, n_folds):
    """Folds, shuffled again while one of them is left without a class: equal rows stay together."""
    for attempt in range(20):
        folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed + 1000 * attempt)
        splits = list(folds.split(np.zeros(len(y)), y, groups))
        if all(0 < y[held].sum() < len(held) for _, held in splits):
            return splits
    raise ValueError("Expected rare rows in every fold, got too many equal ones; collect more distinct rows.")


def advise(X, y, estimator=None, *, minutes=2.0, random_state=0):
    """Compare remedies for imbalance on a table and say whether over-sampling is worth it.

    Stratified five-fold cross-validation with equal rows in one fold, repeated while the time lasts; thresholds and
    ratios are tuned by an inner cross-validation of the training part. Remedies: nothing, class weights, a tuned
    threshold, random over-sampling with noise, SMOTE, score over-sampling, and with ten minutes or more score
    over-sampling with a tuned ratio. An over-sampler is advised only where its gain in F1 over the best other remedy
    has an interval above zero, widened for the number of remedies that were compared.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Numbers.
    y : array-like of shape (n,)
        Two classes; the rarer is the positive one.
    estimator : None or classifier with ``predict_proba``
        None is a random forest.
    minutes : float
        Time after which no further repetition is begun; the first is always finished, and a table that is too large
        for that is thinned, to no less than 500 rows.
    random_state : int

    Returns
    -------
    Advice
        ``verdict``, ``table`` (means, and the interval of the gain over nothing), ``winner``, ``code`` (ready to run),
        ``n_splits``, ``n_rows``; ``plot()`` draws it, ``write_page(path)`` writes a page.

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
    groups, begin, results, trivial = same_rows(X), time.monotonic(), {}, []
    for repetition in range(100):
        if repetition and time.monotonic() - begin > 60 * minutes * repetition / (repetition + 1):
            break  # another repetition would outlast the budget
        splits = _splits(y, groups, random_state + repetition, N_FOLDS)
        # One set of remedies for all parts: the intervals compare them split by split.
        n_rare = min(int(y[kept].sum()) for kept, _ in splits)
        ratios = ratios_for(y) if minutes >= TUNING_MINUTES else []
        for kept, held in splits:
            inner = _splits(y[kept], groups[kept], random_state + repetition, INNER_FOLDS)
            remedies = _remedies(estimator, y[kept], inner, n_rare, random_state + repetition, ratios)
            for name, model in remedies.items():
                results.setdefault(name, []).append(_measures(model, X[kept], y[kept], X[held], y[held]))
            trivial.append(2 * y[held].mean() / (1 + y[held].mean()))
    results = {name: rows for name, rows in results.items() if len(rows) == len(trivial)}
    scores = {name: np.array(rows) for name, rows in results.items()}
    winner, verdict = _verdict(scores, np.array(trivial))
    if len(y) < n_given:
        verdict += f" (Found on {len(y)} of {n_given} rows, {y.mean():.1%} of them rare where {share:.1%} are: more "
        verdict += "would have taken longer than the minutes given.)"
    code = code_for(winner, estimator, y, labels, n_rare)
    return Advice(verdict, _table(scores), winner, code, len(trivial), len(y))


def _table(scores):
    table = []
    for name, rows in scores.items():
        gap = _gap(rows[:, 0], scores[NOTHING][:, 0], len(scores))
        means = dict(zip(MEASURES, rows.mean(axis=0).tolist(), strict=True))
        values = dict(zip(MEASURES, rows.T.tolist(), strict=True))
        table.append({"remedy": name, **means, "gain": gap.mean, "low": gap.low, "high": gap.high, "values": values})
    return table
