"""Score fields of tabular data: sample them, integrate them, decide with them."""

import importlib

__version__ = "0.1.0.dev0"

# Public names are resolved on first use, so that `import scorefield` costs nothing and does not import jax.
_PUBLIC = {
    "ScoreDensity": "density",
    "ScoreClassifier": "classifier",
    "ScoreOverSampler": "oversampling",
    "PriorCorrectedClassifier": "prior_correction",
    "ScoreFeatures": "features",
    "LabellingClassifier": "labelling",
    "resample_to_parquet": "distributed",
    "find_boundary": "posterior",
    "posterior_score": "posterior",
    "posterior_gradient": "posterior",
    "advise": "advice",
    "fetch_creditcard": "datasets",
    "make_gaussians": "datasets",
    "make_imbalanced_10d": "datasets",
    "compare_tables": "quality",
    "ScoreFieldDisplay": "plotting",
    "DensityDisplay": "plotting",
    "BoundaryDisplay": "plotting",
    "SamplesDisplay": "plotting",
    "Langevin": "samplers",
    "AnnealedLangevin": "samplers",
    "MALA": "samplers",
    "HMC": "samplers",
    "ReverseDiffusion": "samplers",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_PUBLIC})
