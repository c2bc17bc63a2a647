"""
Rows on request
===============

Rows of a class with given cells: Chinstraps that are female and weigh at least 3,900 g, of which the table has few. The
other cells follow from what was learned.
"""

import matplotlib.pyplot as plt

from scorefield import ScoreClassifier, load_penguins

X = load_penguins()
y = X.pop("species")
model = ScoreClassifier(random_state=0).fit(X, y)
asked = {"sex": "female", "body_mass_g": (3900, None)}
rows = model.sample(100, "Chinstrap", 0, given=asked)
print(rows[:5].to_string(index=False))

# %%
# Heavy birds have longer flippers, whether they are asked for or not.

chinstraps = X[y == "Chinstrap"]
females = chinstraps[chinstraps["sex"] == "female"]
figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
for table, colour, name in ((chinstraps, "0.7", "real Chinstraps"), (females, "black", "real females"),
                            (rows, "#D55E00", "asked for")):  # fmt: skip
    ax.scatter(table["body_mass_g"], table["flipper_length_mm"], s=14, color=colour, label=name)
ax.set(xlabel="weight, g", ylabel="length of the flipper, mm")
ax.legend()
plt.show()
