"""Inventories for intersphinx of the few outside names that the pages mention, so that a build needs no network."""

import pathlib
import zlib

# Address, pattern of its pages, and names by their kind.
LIBRARIES = {
    "sklearn": (
        "https://scikit-learn.org/stable",
        "modules/generated/{name}.html#$",
        {
            "class": [
                "sklearn.calibration.CalibratedClassifierCV",
                "sklearn.compose.ColumnTransformer",
                "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
                "sklearn.ensemble.IsolationForest",
                "sklearn.impute.KNNImputer",
                "sklearn.inspection.DecisionBoundaryDisplay",
                "sklearn.mixture.GaussianMixture",
                "sklearn.model_selection.TunedThresholdClassifierCV",
                "sklearn.naive_bayes.GaussianNB",
                "sklearn.neighbors.KernelDensity",
            ],
            "function": ["sklearn.datasets.make_classification", "sklearn.datasets.fetch_openml"],
        },
    ),
    "imblearn": (
        "https://imbalanced-learn.org/stable",
        "references/generated/{name}.html#$",
        {
            "class": [
                "imblearn.over_sampling.ADASYN",
                "imblearn.over_sampling.RandomOverSampler",
                "imblearn.over_sampling.SMOTE",
                "imblearn.pipeline.Pipeline",
            ]
        },
    ),
}


def write(path, project, page, names):
    """Write an inventory in Sphinx's format, version 2."""
    lines = [f"{name} py:{kind} 1 {page.format(name=name)} -\n" for kind in names for name in names[kind]]
    header = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n# compressed with zlib.\n"
    path.write_bytes(header.encode() + zlib.compress("".join(lines).encode()))
    return str(path)


def mapping(folder):
    """The value of `intersphinx_mapping`, with inventories written to a folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return {
        project: (address, write(folder / f"{project}.inv", project, page, names))
        for project, (address, page, names) in LIBRARIES.items()
    }


def set_mapping(app, config):
    config.intersphinx_mapping = mapping(app.doctreedir / "inventories")


def setup(app):
    app.connect("config-inited", set_mapping)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
