"""advise: is over-sampling worth it on this table? Remedies compared by cross-validation, with intervals.

The paper compares over-samplers with each other; here doing nothing, class weights and a tuned threshold compete too.
"""

import dataclasses
import time

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import type_of_target

from scorefield.oversampling import ScoreOverSampler

N_FOLDS = 5
OVER_SAMPLERS = ("random with noise", "SMOTE", "score over-sampling")
METRICS = ("f1", "average_precision", "brier")
CODE = {
    "nothing": "model = {estimator}",
    "class weights": "model = {estimator}.set_params(class_weight='balanced')",
    "tuned threshold": "from sklearn.model_selection import TunedThresholdClassifierCV\n"
    "model = TunedThresholdClassifierCV({estimator}, scoring='f1')",
    "random with noise": "from imblearn.over_sampling import RandomOverSampler\n"
    "from imblearn.pipeline import make_pipeline\n"
    "model = make_pipeline(RandomOverSampler(shrinkage=0.3), {estimator})",
    "SMOTE": "from imblearn.over_sampling import SMOTE\nfrom imblearn.pipeline import make_pipeline\n"
    "model = make_pipeline(SMOTE(), {estimator})",
    "score over-sampling": "from imblearn.pipeline import make_pipeline\nfrom scorefield import ScoreOverSampler\n"
    "model = make_pipeline(ScoreOverSampler(), {estimator})",
}


@dataclasses.dataclass(frozen=True)
class Advice:
    """What `advise` found: a verdict in words, a row of means per remedy, the winner and code for it."""

    verdict: str
    table: list
    winner: str
    code: str
    n_splits: int

    def __str__(self):
        lines = [f"{'':<20}{'F1':>8}{'AP':>8}{'Brier':>8}{'F1 less nothing':>26}"]
        for row in self.table:
            interval = f"{row['gain']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
            lines.append(
                f"{row['remedy']:<20}{row['f1']:>8.3f}{row['average_precision']:>8.3f}{row['brier']:>8.3f}{interval:>26}"
            )
        return "\n".join([self.verdict, *lines, f"({self.n_splits} train-test splits)"])


def _remedies(estimator, n_minor, seed):
    """Remedy to model; SMOTE only where every training part has rows enough for a neighbour."""
    remedies = {"nothing": clone(estimator)}
    if "class_weight" in estimator.get_params():
        remedies["class weights"] = clone(estimator).set_params(class_weight="balanced")
    inner = StratifiedKFold(3, shuffle=True, random_state=seed)
    remedies["tuned threshold"] = TunedThresholdClassifierCV(clone(estimator), scoring="f1", cv=inner)
    remedies["random with noise"] = make_pipeline(RandomOverSampler(shrinkage=0.3, random_state=seed), clone(estimator))
    neighbors = min(5, n_minor - n_minor // N_FOLDS - 2)
    if neighbors >= 1:
        remedies["SMOTE"] = make_pipeline(SMOTE(k_neighbors=neighbors, random_state=seed), clone(estimator))
    remedies["score over-sampling"] = make_pipeline(ScoreOverSampler(random_state=seed), clone(estimator))
    return remedies


def _scores(model, X, y, X_test, y_test):
    model.fit(X, y)
    proba = model.predict_proba(X_test)[:, 1]
    return (
        f1_score(y_test, model.predict(X_test), zero_division=0),
        average_precision_score(y_test, proba),
        brier_score_loss(y_test, proba),
    )


def _interval(differences):
    """Mean and 95 % interval of differences over overlapping training parts (Nadeau & Bengio 2003)."""
    n = len(differences)
    error = np.sqrt((1 / n + 1 / (N_FOLDS - 1)) * np.var(differences, ddof=1))
    reach = student.ppf(0.975, n - 1) * error
    mean = float(np.mean(differences))
    return mean, mean - reach, mean + reach


def _verdict(f1):
    """The remedy to use and a sentence; an over-sampler must beat the best remedy that does not over-sample."""
    means = {name: values.mean() for name, values in f1.items()}
    simple = max((name for name in f1 if name not in OVER_SAMPLERS), key=means.get)
    best = max((name for name in f1 if name in OVER_SAMPLERS), key=means.get)
    gain, low, high = _interval(f1[best] - f1[simple])
    if low > 0:
        return best, f"Over-sample with {best}: it raises F1 by {gain:.3f} [{low:.3f}, {high:.3f}] over {simple}."
    found = f"{best}, the best over-sampler, changes F1 by {gain:+.3f} [{low:+.3f}, {high:+.3f}] against {simple}"
    if simple == "nothing":
        return simple, f"No difference: do nothing. {found}."
    gain, low, high = _interval(f1[simple] - f1["nothing"])
    if low > 0:
        return simple, f"Do not over-sample: {simple} raises F1 by {gain:.3f} [{low:.3f}, {high:.3f}]; {found}."
    return "nothing", f"No difference: do nothing. No remedy is certain to raise F1; {found}."


def advise(X, y, estimator=None, *, minutes=2.0, random_state=0):
    """Compare remedies for imbalance on a table and say whether over-sampling is worth it.

    Stratified five-fold cross-validation, repeated while the time lasts; everything is fitted on training parts only.
    Remedies: nothing, class weights, a tuned threshold, random over-sampling with noise, SMOTE, score over-sampling.
    An over-sampler is advised only if its gain in F1 over the best other remedy has a 95 % interval above zero.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Numbers.
    y : array-like of shape (n,)
        Two classes; the rarer is the positive one.
    estimator : None or classifier with ``predict_proba``
        None is a random forest.
    minutes : float
        Time after which no further repetition is begun; the first is always finished.
    random_state : int

    Returns
    -------
    Advice
        ``verdict``, ``table`` (means and the interval of the gain over nothing), ``winner``, ``code``, ``n_splits``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import advise
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 2)), np.repeat([0, 1], [170, 30])
    >>> advise(X, y, LogisticRegression(), minutes=0).n_splits
    5
    """
    X, y = check_X_y(X, y)
    if type_of_target(y) != "binary":
        raise ValueError(f"Expected two classes in y, got {len(np.unique(y))}; advise on one class against the rest.")
    values, counts = np.unique(y, return_counts=True)
    y = (y == values[np.argmin(counts)]).astype(int)
    if counts.min() < N_FOLDS:
        raise ValueError(f"Expected at least {N_FOLDS} rows of each class, got {counts.min()}; collect more.")
    estimator = RandomForestClassifier(random_state=random_state) if estimator is None else estimator
    begin, results = time.monotonic(), {}
    for repetition in range(100):
        if repetition and time.monotonic() - begin > 60 * minutes * repetition / (repetition + 1):
            break  # another repetition would outlast the budget
        seed = random_state + repetition
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
        for kept, held in folds.split(X, y):
            for name, model in _remedies(estimator, counts.min(), seed).items():
                results.setdefault(name, []).append(_scores(model, X[kept], y[kept], X[held], y[held]))
    scores = {name: np.array(rows) for name, rows in results.items()}
    winner, verdict = _verdict({name: rows[:, 0] for name, rows in scores.items()})
    table = []
    for name, rows in scores.items():
        gain, low, high = _interval(rows[:, 0] - scores["nothing"][:, 0]) if name != "nothing" else (0.0, 0.0, 0.0)
        means = dict(zip(METRICS, rows.mean(axis=0).tolist(), strict=True))
        table.append({"remedy": name, **means, "gain": gain, "low": low, "high": high})
    code = CODE[winner].format(estimator=repr(estimator))
    return Advice(verdict, table, winner, code, len(scores["nothing"]))
