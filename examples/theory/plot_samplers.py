"""
Short chains, long chains, Metropolis steps
===========================================

The same field, sampled three ways. A short Langevin chain stays near the row that it started from; a long one forgets
it; MALA corrects the error of the step by accepting or rejecting.
"""

import matplotlib.pyplot as plt
import numpy as np

from scorefield import MALA, Langevin, ScoreDensity
from scorefield.paper import make_gaussians

X, y = make_gaussians(200, random_state=0)
rows = X[y == 1]
density = ScoreDensity(model="energy", standardize=False, random_state=0).fit(rows)
samplers = {
    "Langevin, 20 steps": Langevin(0.01, 20, 0.95),
    "Langevin, 500 steps": Langevin(0.05, 500, 0.998),
    "MALA, 500 steps": MALA(0.2, 500, 0.998),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharex=True, sharey=True)
for ax, (name, sampler) in zip(axes, samplers.items(), strict=True):
    drawn = density.draw(400, 0, sampler=sampler, X_start=rows)
    parents = rows[drawn.parents]
    ax.plot(*np.stack([parents, drawn.rows]).T.swapaxes(1, 2)[:, :, :120], color="0.8", linewidth=0.7)
    ax.scatter(*drawn.rows.T, s=6, color="#D55E00")
    moved = np.linalg.norm(drawn.rows - parents, axis=1).mean()
    ax.set(title=f"{name}: rows move {moved:.2f}", xlabel="x0", ylabel="x1")
plt.show()
