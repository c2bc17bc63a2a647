"""Errors and warnings of the whole library."""

import sys
import warnings


class DivergedError(ValueError):
    """Training or sampling left the finite numbers; `model` is the number of the model in training that did."""

    def __init__(self, message: str, model: int = 0):
        super().__init__(message)
        self.model = model


INSIDE = ("scorefield", "sklearn", "imblearn")  # packages whose lines are no use in a warning


def warn_caller(message):
    """Warn at the line that called this library, also through scikit-learn or imbalanced-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
