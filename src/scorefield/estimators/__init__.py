"""scikit-learn's and imbalanced-learn's interfaces: one file an estimator."""
