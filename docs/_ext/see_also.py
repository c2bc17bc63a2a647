"""What the page of a public name points to: names of this package, or full names of others."""

_SAMPLERS = ["Langevin", "AnnealedLangevin", "MALA", "HMC", "ReverseDiffusion"]
_DISPLAYS = ["ScoreFieldDisplay", "DensityDisplay", "BoundaryDisplay", "SamplesDisplay"]
_DATA = ["load_penguins", "fetch_creditcard"]


def _each_other(names, *more):
    return {name: [*(other for other in names if other != name), *more] for name in names}


ENTRIES = {
    "ScoreDensity": ["ScoreClassifier", "ScoreOverSampler", "DensityDisplay", "sklearn.neighbors.KernelDensity"],
    "ScoreClassifier": [
        "ScoreDensity",
        "find_boundary",
        "paper.LabellingClassifier",
        "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
    ],
    "ScoreOverSampler": ["PriorCorrectedClassifier", "advise", "compare_tables", "imblearn.over_sampling.SMOTE"],
    "ScoreOutlierDetector": ["ScoreDensity", "ScoreImputer", "sklearn.ensemble.IsolationForest"],
    "PriorCorrectedClassifier": [
        "ScoreOverSampler",
        "advise",
        "sklearn.calibration.CalibratedClassifierCV",
        "sklearn.model_selection.TunedThresholdClassifierCV",
    ],
    "ScoreImputer": ["describe_columns", "ScoreClassifier", "sklearn.impute.KNNImputer"],
    "MixedEncoder": ["describe_columns", "ScoreImputer", "advise", "sklearn.compose.ColumnTransformer"],
    "ScoreFeatures": ["ScoreDensity", "ScoreClassifier", "posterior_score"],
    "DistilledClassifier": ["ScoreClassifier", "ScoreOverSampler", "MixedEncoder"],
    "save_model": ["load_model", "export_onnx", "export_json"],
    "load_model": ["save_model"],
    "LabellingClassifier": ["ScoreClassifier", "ScoreOverSampler"],
    "find_boundary": ["BoundaryDisplay", "posterior_score", "posterior_gradient"],
    "posterior_score": ["posterior_gradient", "find_boundary", "ScoreFieldDisplay"],
    "posterior_gradient": ["posterior_score", "find_boundary"],
    "explain": ["ExplanationDisplay", "boundary_distance", "counterfactuals"],
    "boundary_distance": ["find_boundary", "explain", "counterfactuals"],
    "counterfactuals": ["explain", "boundary_distance"],
    "ExplanationDisplay": ["explain"],
    "CalibrationDisplay": ["ScoreClassifier", "sklearn.calibration.CalibratedClassifierCV"],
    "CredibilityDisplay": ["compare_tables", "SamplesDisplay"],
    "ScoreRegressionOverSampler": ["ScoreOverSampler"],
    "cache_programs": ["ScoreClassifier"],
    "advise": ["ScoreOverSampler", "compare_tables", "sklearn.model_selection.TunedThresholdClassifierCV"],
    "compare_tables": ["advise", "ScoreOverSampler", "SamplesDisplay"],
    "drift": ["DriftDisplay", "compare_tables", "PriorCorrectedClassifier"],
    "DriftDisplay": ["drift", "DiagnosisDisplay"],
    "describe_columns": ["ScoreImputer", "MixedEncoder", "compare_tables"],
    "resample_to_parquet": ["ScoreOverSampler"],
    **_each_other(_SAMPLERS, "ScoreDensity"),
    **_each_other(_DISPLAYS, "sklearn.inspection.DecisionBoundaryDisplay"),
    **_each_other(_DATA),
}


def set_context(app, config):
    config.autosummary_context = {"see_also": ENTRIES}


def setup(app):
    app.connect("config-inited", set_context)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
