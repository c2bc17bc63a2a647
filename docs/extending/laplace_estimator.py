"""LaplaceClassifier: Bayes' rule on one Laplace density per class."""

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from scorefield.estimators.table_input import read, read_new
from scorefield.models.laplace_classes import LaplaceClasses


class LaplaceClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by Laplace densities of complete numbers."""

    columns = None

    def fit(self, X, y):
        rows, y, space = read_new(self, X, y, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.model_ = LaplaceClasses.fit(space, rows, labels)
        return self

    def predict_proba(self, X):
        return softmax(self.model_.logits(read(self, X, self.model_.space)), axis=1)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
