"""
Why is this bird a Chinstrap?
=============================

Contributions of the columns to the log odds of two penguins: one that is easy to recognise, and the one that is
nearest to a probability of one half. A table with text and missing values is explained as it is.
"""

import matplotlib.pyplot as plt
import numpy as np

from scorefield import ExplanationDisplay, ScoreClassifier, load_penguins

X = load_penguins()
y = X.pop("species")
model = ScoreClassifier(random_state=0).fit(X[::2], y[::2])
new = X[1::2]
probability = model.predict_proba(new)[:, list(model.classes_).index("Chinstrap")]
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, row in zip(axes, (np.argmax(probability), np.argmin(np.abs(probability - 0.5))), strict=True):
    ExplanationDisplay.from_estimator(model, new, row=int(row), label="Chinstrap", n_columns=5, ax=ax)
    ax.set_title(f"{y[1::2].iloc[row]}: P(Chinstrap) = {probability[row]:.2f}")
plt.show()
