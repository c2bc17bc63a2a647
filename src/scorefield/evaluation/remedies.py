"""Remedies for imbalance without new rows, settings of over-samplers, and the learners that they are used with."""

import importlib.util

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

NOTHING, WEIGHTS, THRESHOLD = "nothing", "class weights", "tuned threshold"
INNER_FOLDS = 3  # of the searches for thresholds and ratios
RATIOS = (0.25, 0.5, 1.0)  # rare over common rows, for over-samplers whose ratio is tuned


def learners(seed):
    """Learners by name, each with one thread because several processes run at once."""
    found = {
        "logistic": LogisticRegression(max_iter=1000),
        "neighbours": KNeighborsClassifier(),
        "forest": RandomForestClassifier(random_state=seed, n_jobs=1),
        # No early stopping: it monitors accuracy, which is best at the start if rare rows are few.
        "network": MLPClassifier(max_iter=100, random_state=seed),
    }
    if importlib.util.find_spec("xgboost"):
        found["boosting"] = boosting(seed)
    return found


def boosting(seed, **options):
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=1, **options)


class TunedThreshold(TunedThresholdClassifierCV):
    """TunedThresholdClassifierCV that falls back to one half if an inner fold has constant probabilities."""

    def fit(self, X, y, **params):
        try:
            return super().fit(X, y, **params)
        except ValueError as error:
            if "constant predictions" not in str(error):
                raise
        self.estimator_, self.best_threshold_ = clone(self.estimator).fit(X, y), 0.5
        return self


def weighted(learner, y):
    """The learner with classes weighted by their inverse frequencies, or None if it does not support weights."""
    parameters = learner.get_params()
    if "class_weight" in parameters:
        return clone(learner).set_params(class_weight="balanced")
    if "scale_pos_weight" in parameters:
        return clone(learner).set_params(scale_pos_weight=float(np.sum(y == 0) / np.sum(y == 1)))
    return None


def smote_neighbors(n_rare):
    """SMOTE's default of five neighbours, or all other rows of a small class; SMOTE itself refuses a single row."""
    return max(1, min(5, n_rare - 1))
