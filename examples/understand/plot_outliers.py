"""
Unusual penguins
================

Which birds do not fit the others? The density of the whole table, with text and missing values, says so. Three birds
are spoiled by hand: each of their cells is possible, but not together.
"""

import matplotlib.pyplot as plt

from scorefield import ScoreOutlierDetector, load_penguins

penguins = load_penguins()
gentoo = penguins.index[penguins["species"] == "Gentoo"][:3]
penguins.loc[gentoo, "bill_depth_mm"] = 21.0  # only Adelies have such bills
detector = ScoreOutlierDetector(random_state=0).fit(penguins)
scores = detector.score_samples(penguins)
odd = detector.predict(penguins) == -1
print(penguins[odd].assign(score=scores[odd].round(1)).sort_values("score").to_string())

# %%

figure, ax = plt.subplots(figsize=(6.5, 4.8), layout="constrained")
columns = ["bill_depth_mm", "flipper_length_mm"]
for part, colour, size, name in ((~odd, "0.6", 10, "usual"), (odd, "#D55E00", 30, "unusual")):
    ax.scatter(*penguins.loc[part, columns].to_numpy(float).T, s=size, color=colour, label=name)
ax.set(xlabel="depth of the bill, mm", ylabel="length of the flipper, mm")
ax.legend()
plt.show()
