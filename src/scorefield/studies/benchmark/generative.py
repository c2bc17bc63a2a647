"""`generative`: classifiers that learn the density of each class, compared with boosting and a forest.

Eq:generative_classification_1 with our densities, the paper's and scikit-learn's.
"""

import importlib.util

import numpy as np
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity

from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import ScoreDensity
from scorefield.evaluation.metrics import measured
from scorefield.evaluation.remedies import boosting
from scorefield.studies.benchmark import tables
from scorefield.studies.benchmark.arms import LABEL_FREE_CLASSIFIER, OUR_CLASSIFIER, paper_field
from scorefield.studies.benchmark.oversampling import QUICK_TABLES, SPLITS, Split, arm_row, table_and_split
from scorefield.studies.benchmark.summaries import show_generative
from scorefield.studies.engine.experiment import Experiment


class RegularisedQDA(QuadraticDiscriminantAnalysis):
    """QuadraticDiscriminantAnalysis that falls back to a shrunk covariance for fewer rows than columns."""

    def fit(self, X, y):
        try:
            return super().fit(X, y)
        except np.linalg.LinAlgError:
            self.__dict__.update(vars(QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1).fit(X, y)))
        return self


def classifiers(seed):
    """Generative classifiers by name, and two discriminative ones."""
    per_class = {model: ScoreDensity(model=model) for model in ("auto", "gaussian", "kernel", "energy")}
    found = {
        "naive Bayes": GaussianNB(),
        "QDA": RegularisedQDA(reg_param=0.1),
        "KDE": ScoreClassifier(KernelDensity(bandwidth="scott"), calibration=None),
        "GMM": ScoreClassifier(GaussianMixture(3, reg_covar=1e-2, random_state=seed), calibration=None),
        "paper's": ScoreClassifier(paper_field(seed), calibration=None),
    }
    found |= {f"ScoreDensity {name}": ScoreClassifier(d, random_state=seed) for name, d in per_class.items()}
    # Two members instead of eight: without labels to stop it early, it trains longest.
    found[LABEL_FREE_CLASSIFIER] = ScoreClassifier(label_weight=0.0, n_members=2, random_state=seed)
    found[OUR_CLASSIFIER] = ScoreClassifier(random_state=seed)
    found["forest"] = RandomForestClassifier(random_state=seed, n_jobs=1)
    if importlib.util.find_spec("xgboost"):
        found["boosting"] = boosting(seed)
    return found


def run(seed, config):
    name, number = table_and_split(seed, config)
    split = Split(name, number, seed, config)
    kept, _ = split.inner[0]
    rows = []
    for arm, model in classifiers(seed).items():
        # The threshold comes from one inner fold; all three would take three times as long.
        inner = clone(model).fit(split.X[kept], split.y[kept])
        with measured() as cost:
            fitted = clone(model).fit(split.X, split.y)
        rows.append(arm_row(arm, "itself", split, [inner, fitted], cost, n=len(split.y)))
    return split.finished(rows)


GENERATIVE = Experiment(
    "generative",
    "Generative classifiers",
    "Bayes' rule on densities learned for each class, with boosting and a forest as the bar; the same splits.",
    run,
    show_generative,
    len(tables.TABLES) * SPLITS["n_folds"],  # one repetition; --seeds runs more
    len(QUICK_TABLES),
    {"tables": list(tables.TABLES), **SPLITS},
    {"tables": list(QUICK_TABLES)},
)
