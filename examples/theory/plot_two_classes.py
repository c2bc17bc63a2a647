"""
Score fields, samples, densities and boundary of two classes
============================================================

The paper's 2-D example from end to end: learn a field for each class from 200 rows, sample it, integrate it, and find
where the classes are equally probable.
"""

import matplotlib.pyplot as plt

from scorefield import (
    BoundaryDisplay,
    DensityDisplay,
    SamplesDisplay,
    ScoreClassifier,
    ScoreDensity,
    ScoreFieldDisplay,
)
from scorefield.paper import make_gaussians

X, y = make_gaussians(200, random_state=0)
model = ScoreClassifier(ScoreDensity(), priors="equal", random_state=0).fit(X, y)

# %%
# Arrows point to where rows of the class are denser; long ones are cut. Generated rows start from the class's own rows
# and follow its field. Crosses mark the boundary that Newton's method finds.

figure, axes = plt.subplots(2, 2, figsize=(10, 9), layout="constrained", sharex=True, sharey=True)
for label, colour in enumerate(("#0072B2", "#D55E00")):
    rows = X[y == label]
    ScoreFieldDisplay.from_estimator(model, X, label=label, ax=axes[0, label], color=colour)
    axes[0, label].scatter(*rows.T, s=6, color="black", alpha=0.4)
    axes[0, label].set_title(f"Score field of class {label}")
    SamplesDisplay.from_estimator(
        model, rows, n=1000, label=label, random_state=0, ax=axes[1, 0], color=colour, legend=label == 0
    )
    DensityDisplay.from_estimator(model, X, label=label, ax=axes[1, 1], color=colour)
axes[1, 0].set_title("Generated rows (black: the rows learned from)")
BoundaryDisplay.from_estimator(model, X, ax=axes[1, 1], size=4)
axes[1, 1].set_title("Recovered densities, labels and boundary")
plt.show()
