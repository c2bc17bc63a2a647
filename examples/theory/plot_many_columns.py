"""
Ten columns on a plane
======================

With more than two columns the displays show principal components, or two columns of your choice with the others at
their medians.
"""

import matplotlib.pyplot as plt

from scorefield import SamplesDisplay, ScoreClassifier, ScoreFieldDisplay
from scorefield.paper import make_imbalanced_10d

X, y = make_imbalanced_10d(6)
model = ScoreClassifier(random_state=0).fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
SamplesDisplay.from_estimator(model, X[y == 1], n=300, label=1, features="pca", random_state=0, ax=axes[0])
axes[0].set_title("Positives and generated ones")
ScoreFieldDisplay.from_estimator(model, X, label=1, features=(0, 1), ax=axes[1], color="#D55E00")
axes[1].set_title("Field of the positives over two columns")
plt.show()
