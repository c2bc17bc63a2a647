"""
The density models compared
===========================

A ring has no Gaussian shape and no density at its mean, so it tells the models apart.
"""

import matplotlib.pyplot as plt
import numpy as np

from scorefield import DensityDisplay, ScoreDensity

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, size=800)
X = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(3, 0.4, size=(800, 1))
models = ("gaussian", "kernel", "energy", "diffusion")
figure, axes = plt.subplots(1, 4, figsize=(14, 3.8), layout="constrained", sharex=True, sharey=True)
for ax, name in zip(axes, models, strict=True):
    density = ScoreDensity(model=name, random_state=0).fit(X[:600])
    DensityDisplay.from_estimator(density, X, ax=ax, filled=True, grid_resolution=60)
    ax.set_title(f"{name}: {density.score_samples(X[600:]).mean():.2f} nats a new row")
    ax.set_aspect("equal")
plt.show()
