"""
Missing values filled by draws
==============================

The weights of half of the penguins are hidden and filled again. A draw keeps the spread of the column and its relation
to the others; the mean of a column does not. Several draws show how uncertain each value is.
"""

import matplotlib.pyplot as plt
import numpy as np

from scorefield import ScoreImputer, load_penguins

penguins = load_penguins().dropna(ignore_index=True)
hidden = np.random.default_rng(0).random(len(penguins)) < 0.5
table = penguins.assign(body_mass_g=penguins["body_mass_g"].astype(float).mask(hidden))
draws = ScoreImputer(random_state=0).fit(table).draws(table, 9)
filled = np.array([draw["body_mass_g"][hidden].to_numpy(float) for draw in draws])

# %%
# Left: one draw beside the truth. Right: the range of nine draws for each hidden weight, by the true weight.

length, truth = penguins["flipper_length_mm"][hidden], penguins["body_mass_g"][hidden].to_numpy(float)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
axes[0].scatter(length, truth, s=10, color="0.6", label="true")
axes[0].scatter(length, filled[0], s=10, color="#D55E00", label="one draw")
axes[0].axhline(table["body_mass_g"].mean(), color="black", linewidth=0.8, label="mean of the column")
axes[0].set(xlabel="length of the flipper, mm", ylabel="weight, g")
axes[0].legend()
axes[1].vlines(truth, filled.min(axis=0), filled.max(axis=0), color="#D55E00", alpha=0.4)
axes[1].plot(np.sort(truth), np.sort(truth), color="black", linewidth=0.8)
inside = np.mean((filled.min(axis=0) <= truth) & (truth <= filled.max(axis=0)))
axes[1].set(xlabel="true weight, g", title=f"{inside:.0%} of the true weights are within nine draws")
plt.show()
