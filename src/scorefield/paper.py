"""What belongs to the paper alone: closed forms, its labelling rules, its simulated data."""

import importlib

_NAMES = {
    "LabellingClassifier": "estimators.labelling",
    "TwoGaussians": "inference.two_gaussians",
    "fisher_divergence": "estimators.density",
    "make_gaussians": "data.datasets",
    "make_imbalanced_10d": "data.datasets",
}

__all__ = list(_NAMES)


def __getattr__(name):
    if name in _NAMES:
        return getattr(importlib.import_module(f"scorefield.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_NAMES})
