"""
Are the probabilities right?
============================

Breast cancer: of the tumours with a probability of .1, one in ten should be malignant. A forest is compared on the same
new rows.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from scorefield import ScoreClassifier

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y == 0, test_size=0.5, stratify=y, random_state=0)
figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, model in {
    "ScoreClassifier": ScoreClassifier(random_state=0),
    "forest": RandomForestClassifier(random_state=0),
}.items():
    probability = model.fit(X, y).predict_proba(X_test)[:, 1]
    name = f"{name}, log loss {log_loss(y_test, probability):.2f}"
    CalibrationDisplay.from_predictions(y_test, probability, n_bins=6, strategy="quantile", name=name, ax=ax)
plt.show()
