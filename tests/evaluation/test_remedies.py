"""Remedies for imbalance: SMOTE's neighbours and class weights."""

import numpy as np
import pytest
from imblearn.over_sampling import SMOTE
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from scorefield.evaluation.remedies import boosting, smote_neighbors, weighted


@pytest.mark.parametrize("n_rare", [2, 3, 6, 7])
def test_smote_has_as_many_neighbours_as_it_can(rng, n_rare):
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], [40 - n_rare, n_rare])
    k = smote_neighbors(n_rare)
    assert k == 5 or k == n_rare - 1
    assert SMOTE(k_neighbors=k, random_state=0).fit_resample(X, y)[1].sum() == 40 - n_rare
    if k < 5:
        with pytest.raises(ValueError, match="n_neighbors"):
            SMOTE(k_neighbors=k + 1, random_state=0).fit_resample(X, y)


def test_a_single_row_is_refused_by_smote_itself(rng):
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], [39, 1])
    with pytest.raises(ValueError, match="n_neighbors"):
        SMOTE(k_neighbors=smote_neighbors(1)).fit_resample(X, y)


def test_weights_where_a_learner_takes_them():
    y = np.repeat([0, 1], [90, 10])
    assert weighted(LogisticRegression(), y).class_weight == "balanced"
    assert weighted(KNeighborsClassifier(), y) is None
    assert weighted(boosting(0), y).scale_pos_weight == 9
