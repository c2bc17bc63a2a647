"""Errors and warnings of the whole library."""

import sys
import types
import warnings


class DivergedError(ValueError):
    """Training or sampling produced non-finite numbers; `model` is the index of the model in training."""

    def __init__(self, message: str, model: int = 0):
        super().__init__(message)
        self.model = model


# Packages whose frames are skipped to find the user's line, beside the standard library.
INSIDE = {"scorefield", "sklearn", "imblearn", "joblib", "dask", "distributed", "typer", "click"}


def warn_caller(message):
    """Warn at the user's line that called this library, also through pipelines, threads and the command line.

    In a thread or process of a pool there is no such line: the warning then names the line of this library.
    """
    level = 2
    frame: types.FrameType | None = sys._getframe(1)
    while frame and _is_inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level if frame else 2)


def _is_inside(module):
    package = module.partition(".")[0]
    return package in INSIDE or package in sys.stdlib_module_names
