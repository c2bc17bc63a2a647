"""Score fields of tabular data: sample them, integrate them, decide with them."""

import importlib

__version__ = "0.1.0.dev0"

# Public names are resolved on first use, so that `import scorefield` costs nothing and does not import jax.
_PUBLIC = {
    "ScoreDensity": "estimators.density",
    "ScoreClassifier": "estimators.classifier",
    "DistilledClassifier": "estimators.distilled",
    "ScoreOverSampler": "estimators.oversampling",
    "ScoreRegressionOverSampler": "estimators.regression_oversampling",
    "ScoreImputer": "estimators.imputation",
    "ScoreOutlierDetector": "estimators.outliers",
    "MixedEncoder": "estimators.mixed_encoder",
    "PriorCorrectedClassifier": "estimators.prior_correction",
    "ScoreFeatures": "estimators.features",
    "resample_to_parquet": "estimators.distributed",
    "export_onnx": "export.export",
    "export_json": "export.export",
    "encode_rows": "export.export",
    "save_model": "files.model_files",
    "load_model": "files.model_files",
    "find_boundary": "explanations.posterior",
    "posterior_score": "explanations.posterior",
    "posterior_gradient": "explanations.posterior",
    "explain": "explanations.explanation",
    "boundary_distance": "explanations.boundary_distance",
    "counterfactuals": "explanations.counterfactuals",
    "advise": "evaluation.advice",
    "cache_programs": "_jax.program_cache",
    "fetch_creditcard": "data.datasets",
    "load_penguins": "data.datasets",
    "compare_tables": "evaluation.quality",
    "drift": "evaluation.drift",
    "describe_columns": "data.description",
    "ScoreFieldDisplay": "display.displays",
    "DensityDisplay": "display.displays",
    "BoundaryDisplay": "display.displays",
    "SamplesDisplay": "display.displays",
    "CalibrationDisplay": "display.calibration",
    "CredibilityDisplay": "evaluation.credibility_display",
    "DiagnosisDisplay": "display.diagnosis",
    "DriftDisplay": "evaluation.drift_display",
    "ExplanationDisplay": "display.explanations",
    "Langevin": "sampling.samplers",
    "AnnealedLangevin": "sampling.samplers",
    "MALA": "sampling.samplers",
    "HMC": "sampling.samplers",
    "ReverseDiffusion": "sampling.samplers",
}

# Classes that pickles of fitted estimators name, so that they survive a move of their modules.
_STORED = {
    "LabellingClassifier": "estimators.labelling",
    "NumberSpace": "data.spaces",
    "RowSpace": "data.row_space",
    "FieldDensity": "models.field_density",
    "RowDensity": "models.row_density",
    "NumberModel": "models.number_model",
    "RowModel": "models.row_model",
    "SeparateModel": "models.separate",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name):
    module = _PUBLIC.get(name) or _STORED.get(name)
    if module is not None:
        return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_PUBLIC})
