"""
Fields of a posterior
=====================

The gradient of log p(y | x) of a logistic regression is one direction everywhere; that of a score classifier bends
with the classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from scorefield import ScoreClassifier, ScoreDensity, ScoreFieldDisplay, posterior_score
from scorefield.paper import make_gaussians

X, y = make_gaussians(200, random_state=0)
grid = np.linspace(X.min(axis=0), X.max(axis=0), 16)
points = np.stack(np.meshgrid(*grid.T), axis=-1).reshape(-1, 2)
models = {
    "logistic regression": LogisticRegression(),
    "score classifier": ScoreClassifier(ScoreDensity(model="gaussian")),
}
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    vectors = posterior_score(model.fit(X, y), points, label=1)
    ScoreFieldDisplay(points, vectors, ("x0", "x1")).plot(ax, color="black")
    ax.scatter(*X.T, s=5, c=["#0072B2" if label == 0 else "#D55E00" for label in y])
    ax.set_title(name)
plt.show()
