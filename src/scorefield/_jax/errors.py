"""Errors and warnings of the whole library."""

import sys
import warnings


class DivergedError(ValueError):
    """Training or sampling produced non-finite numbers; `model` is the index of the model in training."""

    def __init__(self, message: str, model: int = 0):
        super().__init__(message)
        self.model = model


INSIDE = ("scorefield", "sklearn", "imblearn")  # frames of these packages are skipped


def warn_caller(message):
    """Warn at the user's line, which may call this library through scikit-learn or imbalanced-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
