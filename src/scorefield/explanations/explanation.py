"""Why a row is classified as it is: contributions of its columns to the log odds."""

import dataclasses

import jax
import numpy as np

from scorefield.explanations.posterior import class_index
from scorefield.explanations.row_views import summands, view_of
from scorefield.inference.attribution import contributions
from scorefield.inference.decisions import OneAgainstRest

N_BASELINES = 32  # rows that an explanation starts from, unless others are given
SHOWN_ROWS, SHOWN_COLUMNS = 5, 5


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What each column contributes to the log odds of each row; the result of :func:`explain`.

    Attributes
    ----------
    columns : list
        Names of the columns; positions for an array.
    labels : ndarray of shape (n,)
        The class whose log odds are explained.
    contributions : ndarray of shape (n, d)
        In nats. They sum to ``log_odds - baseline_log_odds``.
    log_odds : ndarray of shape (n,)
        Log odds of the class against all others.
    baseline_log_odds : ndarray of shape (n,)
        Their mean over the baseline rows.
    """

    columns: list
    labels: np.ndarray
    contributions: np.ndarray
    log_odds: np.ndarray
    baseline_log_odds: np.ndarray

    @property
    def errors(self):
        """Nats by which the contributions of each row miss what they should sum to."""
        return np.abs(self.contributions.sum(axis=1) - (self.log_odds - self.baseline_log_odds))

    def strongest(self, row, n=SHOWN_COLUMNS):
        """The n columns with the largest contributions to a row, as pairs (name, contribution)."""
        order = np.argsort(-np.abs(self.contributions[row]), kind="stable")[:n]
        return [(self.columns[j], float(self.contributions[row, j])) for j in order]

    def others(self, row, n=SHOWN_COLUMNS):
        """What the columns that `strongest` leaves out add up to, as (words, contribution); None where it has all."""
        left = len(self.columns) - n
        if left <= 0:
            return None
        shown = sum(value for _, value in self.strongest(row, n))
        words = "the other column" if left == 1 else f"the {left} other columns"
        return words, float(self.contributions[row].sum()) - shown

    def __str__(self):
        lines = []
        for row in range(min(len(self.labels), SHOWN_ROWS)):
            lines.append(
                f"row {row}: log odds of {self.labels.tolist()[row]!r} {self.log_odds[row]:+.2f}, "
                f"{self.baseline_log_odds[row]:+.2f} on average"
            )
            shown = [*self.strongest(row), *filter(None, [self.others(row)])]
            lines += [f"  {value:+8.2f}  {name}" for name, value in shown]
        if len(self.labels) > SHOWN_ROWS:
            lines.append(f"... and {len(self.labels) - SHOWN_ROWS} more rows")
        return "\n".join(lines)


def explain(model, X, label=None, baseline=None, progress=None):
    """Contributions of columns to the log odds of rows.

    The posterior's score field is integrated along straight lines from baseline rows to each row; every column gets its
    own part of the integral, and the parts sum to the difference in log odds. For an additive model they are its exact
    Shapley values.

    Parameters
    ----------
    model : fitted ScoreClassifier, LogisticRegression, pipeline of scalers and one of them, or jax function
        As in :func:`posterior_score`; a :class:`ScoreClassifier` may be one of a mixed table with missing values.
    X : array or DataFrame of shape (n, d)
    label : label, or index of the logit for a function; default=None
        The class to explain. None takes the second of two classes, and the predicted one of more.
    baseline : array or DataFrame of shape (k, d), default=None
        Rows to compare with. None takes some of the rows that a ScoreClassifier was fitted to, of all classes.
    progress : callable, default=None
        Called with the numbers of rows that are explained and of all rows. Long tables take a while: the contributions
        of a row need some thousand gradients.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from scorefield import explain
    >>> X, y = np.array([[-1.0, 0.0], [-0.5, 1.0], [0.5, 0.0], [1.0, 1.0]]), [0, 0, 1, 1]
    >>> model = LogisticRegression().fit(X, y)
    >>> found = explain(model, X[:1], baseline=X)
    >>> bool(np.allclose(found.contributions, model.coef_ * (X[:1] - X.mean(axis=0)), atol=1e-3))
    True
    """
    view = view_of(model)
    rows = view.read(X)
    baselines = _drawn_by_frequency(view) if baseline is None else view.read(baseline)
    wanted = _explained_classes(view, baselines, X, len(rows), label)
    found, log_odds, start = np.zeros((len(rows), len(view.names))), np.zeros(len(rows)), np.zeros(len(rows))
    done = 0

    def advance(n):
        nonlocal done
        done += n
        if progress is not None:
            progress(done, len(rows))

    with jax.enable_x64(view.double):
        for k in np.unique(wanted):
            own = np.flatnonzero(wanted == k)
            inputs = view.inputs(rows[own]), view.inputs(baselines)
            parts, log_odds[own], start[own] = contributions(_log_odds(view, k), *inputs, advance)
            np.add.at(found, (own[:, None], view.input_columns[None]), parts)
    labels = wanted if view.classes is None else view.classes[wanted]
    return Explanation(view.names, labels, found, log_odds, start)


def _log_odds(view, k):
    """Functions of the inputs that add up to the log odds of class k."""
    logits = view.input_logits()
    # Log odds of two classes are linear in the logits, those of one class against several others are not.
    parts = summands(logits) if view.classes is not None and len(view.classes) == 2 else (logits,)
    return [OneAgainstRest(part, np.int32(k)) for part in parts]


def _explained_classes(view, baselines, X, n, label):
    """Index of the class to explain for each of n rows."""
    if label is not None:
        return np.full(n, class_index(view.classes, label, view.row_logits(), baselines))
    if view.classes is not None and len(view.classes) > 2:
        return np.searchsorted(view.classes, view.model.predict(X))
    return np.ones(n, int)


def _drawn_by_frequency(view):
    """Fitted rows of all classes, drawn as often as the classes are; always the same ones."""
    by_class, rng = view.known_rows(), np.random.default_rng(0)
    labels = rng.choice(len(by_class), N_BASELINES, p=view.model.frequencies_)
    return np.stack([by_class[k][rng.integers(len(by_class[k]))] for k in labels])
