"""
Do new rows still look like the old ones?
=========================================

A classifier of tumours is in use; then a device is exchanged, and one column is a tenth too high. ``drift`` compares
the new rows with old ones that the model has not learned from, and names the column that changed.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from scorefield import DriftDisplay, ScoreClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[["mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"]]
X, rest, y, _ = train_test_split(X, y, test_size=0.6, random_state=0)
reference, new = rest[::2], rest[1::2].copy()
new["mean smoothness"] *= 1.1
model = ScoreClassifier(random_state=0).fit(X, y)
display = DriftDisplay.from_estimator(model, new, reference)
print(*display.drift.sentences, sep="\n")
plt.show()
