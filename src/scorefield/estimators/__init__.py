"""scikit-learn's and imbalanced-learn's interfaces; each public estimator has a file of its own."""
