"""
A tree taught by ScoreClassifier
================================

A small tree can be read, but learns little from few rows. Here it learns to tell Chinstrap penguins from the others
without seeing their bills' length: alone, and from new rows with the probabilities of a ScoreClassifier.
"""

import matplotlib.pyplot as plt
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import PrecisionRecallDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from scorefield import DistilledClassifier, MixedEncoder, ScoreClassifier, load_penguins

penguins = load_penguins()
X = penguins[["bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex", "year"]]
y = penguins["species"] == "Chinstrap"
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
teacher = ScoreClassifier(random_state=0).fit(X, y)
tree = make_pipeline(MixedEncoder(), DecisionTreeClassifier(max_depth=5, random_state=0))
taught = DistilledClassifier(tree, FrozenEstimator(teacher), random_state=0).fit(X, y)
models = {"the tree alone": tree.fit(X, y), "the tree, taught": taught, "its teacher": teacher}
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for name, model in models.items():
    PrecisionRecallDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax)
plt.show()
