"""
Costs move the boundary
=======================

If missing the second class costs ten times as much as a false alarm, more of the plane belongs to it.
"""

import matplotlib.pyplot as plt
import numpy as np

from scorefield import BoundaryDisplay, ScoreClassifier, ScoreDensity
from scorefield.paper import make_gaussians

X, y = make_gaussians([300, 60], means=[[0, 0], [2.5, 2.5]], random_state=0)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.scatter(*X.T, s=8, c=np.array(["#0072B2", "#D55E00"])[y], alpha=0.6)
for costs, colour, label in (
    ([[0, 1], [1, 0]], "black", "equal costs"),
    ([[0, 1], [10, 0]], "#CC79A7", "a miss costs ten"),
):
    odds = np.log(costs[1][0] / costs[0][1])
    model = ScoreClassifier(ScoreDensity(model="gaussian"), random_state=0).fit(X, y)
    shifted = model.priors_ * [1.0, np.exp(odds)]
    model.set_params(priors=shifted / shifted.sum()).fit(X, y)
    BoundaryDisplay.from_estimator(model, X, ax=ax, size=0, boundary_color=colour, label=label)
ax.legend()
plt.show()
