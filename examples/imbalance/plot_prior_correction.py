"""
Probabilities after over-sampling
=================================

A forest trained on balanced classes believes that half the world is fraud. Bayes' rule takes that back; what is left of
the curve's distance from the diagonal is the forest's own caution about rare rows.
"""

import matplotlib.pyplot as plt
from imblearn.pipeline import make_pipeline
from sklearn.calibration import CalibrationDisplay
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from scorefield import PriorCorrectedClassifier, ScoreOverSampler
from scorefield.paper import make_imbalanced_10d

X, y = make_imbalanced_10d(6)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
pipeline = make_pipeline(ScoreOverSampler(purpose="sharing", random_state=0), RandomForestClassifier(random_state=0))
figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, model in (("over-sampled", pipeline), ("corrected", PriorCorrectedClassifier(pipeline))):
    CalibrationDisplay.from_estimator(model.fit(X, y), X_test, y_test, n_bins=8, name=name, ax=ax)
plt.show()
