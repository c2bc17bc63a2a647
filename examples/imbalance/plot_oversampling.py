"""
Over-sampling beside SMOTE
==========================

Two crescents, one of them rare. SMOTE draws rows on lines between neighbours; score over-sampling walks along the
learned field of the rare class.
"""

import matplotlib.pyplot as plt
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn.datasets import make_moons

from scorefield import SamplesDisplay, ScoreOverSampler

X, y = make_moons((1000, 120), noise=0.15, random_state=0)
samplers = {
    "random with noise": RandomOverSampler(shrinkage=1.0, random_state=0),
    "SMOTE": SMOTE(random_state=0),
    "score over-sampling": ScoreOverSampler(random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharex=True, sharey=True)
for ax, (name, sampler) in zip(axes, samplers.items(), strict=True):
    X_more, _ = sampler.fit_resample(X, y)
    ax.scatter(*X[y == 0].T, s=4, color="0.8")
    SamplesDisplay.from_rows(X[y == 1], X_more[len(X) :], ax=ax, size=10)
    ax.set_title(name)
plt.show()
