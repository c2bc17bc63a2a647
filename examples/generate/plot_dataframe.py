"""
A DataFrame with categories, integers and bounds
================================================

Names, order and dtypes are kept; integers stay integers, categories exist, and no amount is negative.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from scorefield import ScoreOverSampler, compare_tables

rng = np.random.default_rng(0)
fraud = np.repeat([0, 1], [1000, 120])
table = pd.DataFrame(
    {
        "amount": rng.lognormal(3 + fraud, 0.8).round(2),
        "items": rng.poisson(3 + 2 * fraud),
        "country": pd.Categorical(np.where(rng.random(1120) < 0.3 + 0.4 * fraud, "abroad", "home")),
    }
)
sampler = ScoreOverSampler(purpose="sharing", random_state=0, bounds="observed")
more, labels = sampler.fit_resample(table, fraud)
generated = more[sampler.is_synthetic_]
print(more.dtypes)
print(*compare_tables(table[fraud == 1], generated).sentences, sep="\n")

# %%
# Each generated row knows the row that its chain started from.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
bins = np.linspace(0, table["amount"].quantile(0.99), 40)
for part, colour, name in ((table[fraud == 1], "black", "frauds"), (generated, "#D55E00", "generated")):
    axes[0].hist(part["amount"], bins=bins, density=True, histtype="step", color=colour, label=name)
axes[0].set(xlabel="amount", ylabel="density")
axes[0].legend()
parents = table["amount"].to_numpy()[sampler.parent_indices_[sampler.is_synthetic_]]
axes[1].scatter(parents, generated["amount"], s=5, color="#D55E00")
axes[1].set(xlabel="amount of the parent", ylabel="amount of the generated row", xscale="log", yscale="log")
plt.show()
