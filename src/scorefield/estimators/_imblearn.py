"""Private names of imbalanced-learn; no other module imports them. A classifier does not import it: it takes long."""

from imblearn.utils._validation import ArraysTransformer

__all__ = ["ArraysTransformer"]
