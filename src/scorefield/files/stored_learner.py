"""A taught learner as plain arrays: trees of boosting or a forest, or the weights of logistic regression.

A model file holds arrays and no code, so that it cannot hold scikit-learn's own estimators.
"""

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from scorefield.estimators._sklearn import boosted_trees, sklearn_validate_data
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.distilled import DistilledClassifier
from scorefield.estimators.mixed_encoder import MixedEncoder

LEARNERS = ("boosting", "forest", "logistic")
FORMS = {"boosting": "codes", "forest": "filled", "logistic": "one-hot"}  # of tables, see MixedEncoder
KINDS = {
    HistGradientBoostingClassifier: "boosting",
    RandomForestClassifier: "forest",
    LogisticRegression: "logistic",
}
STORED = f"a learner of {', '.join(each.__name__ for each in KINDS)}, alone or after MixedEncoder"
REMEDY = "pickle the classifier, and load pickles only from people you trust."
MAX_NODES = 4_000_000  # of all trees: what a model file may hold


class StoredLearner(ClassifierMixin, BaseEstimator):
    """A learner that was taught by ScoreClassifier, as plain arrays that predict what it does.

    Parameters
    ----------
    kind : {"boosting", "forest", "logistic"}
    columns : None or dict
        Kinds of columns.
    random_state : None or int
    verbose : int

    Attributes
    ----------
    encoder_ : MixedEncoder or None
        What makes numbers of a table; None for a table of numbers.
    trees_ : dict
        Nodes of all trees, one after the other: ``feature`` (-1 for a leaf), ``threshold``, ``left``, ``right``,
        ``missing_left`` and ``value`` (nodes, k); and the ``root`` and the ``output`` of each tree.
    weights_, intercepts_ : ndarray
        Of logistic regression; of boosting the intercepts alone.
    n_new_rows_, agreement_, classes_, n_features_in_ : as of DistilledClassifier
    priors_ : ndarray
        Frequencies of the classes.
    """

    def __init__(self, kind="boosting", columns=None, random_state=None, verbose=0):
        self.kind = kind
        self.columns = columns
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y):
        """Teach the learner, and keep it as arrays."""
        learner = {
            "boosting": HistGradientBoostingClassifier(),
            "forest": RandomForestClassifier(300),
            "logistic": LogisticRegression(max_iter=1000),
        }[self.kind]
        teacher = ScoreClassifier(columns=self.columns, verbose=self.verbose)
        pipeline = make_pipeline(MixedEncoder(FORMS[self.kind], columns=self.columns), learner)
        taught = DistilledClassifier(pipeline, teacher, random_state=self.random_state).fit(X, y)
        return self._keep(taught, *taught.estimator_.named_steps.values())

    @classmethod
    def of(cls, taught):
        """The learner of a fitted DistilledClassifier; others than those of `LEARNERS` are refused."""
        steps = list(taught.estimator_.named_steps.values()) if isinstance(taught.estimator_, Pipeline) else []
        encoder, learner = (None, taught.estimator_) if not steps else (steps[0], steps[-1])
        kind = KINDS.get(type(learner))
        if kind is None or len(steps) not in (0, 2) or (steps and type(encoder) is not MixedEncoder):
            names = " after ".join(type(step).__name__ for step in reversed(steps or [learner]))
            raise ValueError(f"Expected {STORED}, got {names}; {REMEDY}")
        if kind == "boosting" and learner.is_categorical_ is not None:
            raise ValueError(f"Expected boosting without categorical features, got some; {REMEDY}")
        if kind == "logistic" and learner.solver == "liblinear" and len(learner.classes_) > 2:
            raise ValueError(f"Expected another solver than 'liblinear' for several classes, got it; {REMEDY}")
        return cls(kind)._keep(taught, encoder, learner)

    def _keep(self, taught, encoder, learner):
        """Keep what a learner predicts with as arrays."""
        self.encoder_, self.classes_, self.priors_ = encoder, taught.classes_, taught.frequencies_
        for name in ("n_new_rows_", "agreement_", "n_features_in_", "feature_names_in_"):
            if hasattr(taught, name):
                setattr(self, name, getattr(taught, name))
        if self.kind == "boosting":
            self.trees_, self.intercepts_ = boosted_trees(learner)
        elif self.kind == "forest":
            self.trees_ = _forest_trees(learner)
        else:
            self.weights_, self.intercepts_ = learner.coef_, learner.intercept_
        return self

    def _numbers(self, X):
        if self.encoder_ is not None:
            return self.encoder_.transform(X)
        takes_nan = "allow-nan" if self.kind != "logistic" else True
        return sklearn_validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=takes_nan)

    def predict_proba(self, X):
        """p(y | x), shape (n, classes)."""
        check_is_fitted(self)
        numbers = self._numbers(X)
        if self.kind == "forest":
            numbers = numbers.astype(np.float32)  # as scikit-learn's trees see them
            return _sum_of_trees(self.trees_, numbers, len(self.classes_)) / len(self.trees_["root"])
        if self.kind == "boosting":
            raw = self.intercepts_ + _sum_of_trees(self.trees_, numbers, len(self.intercepts_))
        else:
            raw = numbers @ self.weights_.T + self.intercepts_
        if raw.shape[1] > 1:
            return softmax(raw, axis=1)
        return np.column_stack([expit(-raw[:, 0]), expit(raw[:, 0])])

    def predict(self, X):
        """The most probable labels."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _forest_trees(forest):
    """The trees of a forest; every one gives the probabilities of all classes."""
    parts, start, roots = [], 0, []
    for tree in (member.tree_ for member in forest.estimators_):
        leaf = tree.children_left < 0
        roots.append(start)
        parts.append(
            {
                "feature": np.where(leaf, -1, tree.feature),
                "threshold": tree.threshold,
                "left": tree.children_left + start,
                "right": tree.children_right + start,
                "missing_left": np.asarray(tree.missing_go_to_left).astype(bool),
                "value": tree.value[:, 0] / tree.value[:, 0].sum(axis=1, keepdims=True),
            }
        )
        start += len(leaf)
    if start > MAX_NODES:
        raise ValueError(
            f"Expected a forest of at most {MAX_NODES:,} nodes for a model file, got {start:,}; use boosting."
        )
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {**joined, "root": np.array(roots), "output": np.full(len(roots), -1)}


def _sum_of_trees(trees, rows, n_outputs):
    """Sum over the trees of the values of the leaves that rows fall into, (n, n_outputs)."""
    inner = np.flatnonzero(trees["feature"] >= 0)
    if (np.minimum(trees["left"], trees["right"])[inner] <= inner).any():  # a loop would have no end
        raise ValueError("Expected trees whose nodes stand before those below them, got others; the file was edited.")
    total, everything = np.zeros((len(rows), n_outputs)), np.arange(len(rows))
    for root, output in zip(trees["root"].tolist(), trees["output"].tolist(), strict=True):
        node = np.full(len(rows), root)
        inner = everything
        while len(inner):
            inner = inner[trees["feature"][node[inner]] >= 0]
            at = node[inner]
            cells = rows[inner, trees["feature"][at]]
            left = np.where(np.isnan(cells), trees["missing_left"][at], cells <= trees["threshold"][at])
            node[inner] = np.where(left, trees["left"][at], trees["right"][at])
        if output < 0:
            total += trees["value"][node]
        else:
            total[:, output] += trees["value"][node, 0]
    return total
