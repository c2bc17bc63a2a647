"""
Advice on a table
=================

Is anything to be gained from over-sampling, weights or a threshold? ``advise`` compares the remedies on the same test
rows; without time it leaves out those that train a ScoreClassifier. Wine of one vineyard is the rare class here.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression

from scorefield import advise

X, y = load_wine(return_X_y=True)
advice = advise(X[:, :4], y == 2, LogisticRegression(max_iter=1000), minutes=0)
print(advice)

# %%
# The bars are the five test parts, dots their means; the advised remedy is orange.

advice.plot()
plt.show()
