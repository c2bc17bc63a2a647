"""`classifiers`: ScoreClassifier beside trees, kernels, linear models and classifiers that learn densities.

Eq:generative_classification_1 with our densities, the paper's and scikit-learn's, and what people use instead of it.
`classifier-peers` runs networks that need torch on the same splits.
"""

import functools
import importlib
import importlib.util
from typing import Optional

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import RandomizedSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.validation import check_array, check_X_y

from scorefield.data.datasets import data_folder
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import ScoreDensity
from scorefield.evaluation.metrics import measured
from scorefield.evaluation.remedies import boosting
from scorefield.studies.benchmark import tables
from scorefield.studies.benchmark.arms import LABEL_FREE_CLASSIFIER, OUR_CLASSIFIER, TUNED_BOOSTING, paper_field
from scorefield.studies.benchmark.oversampling import (
    QUICK_TABLES,
    SPLITS,
    Split,
    finished,
    measures,
    row_of_arm,
    table_and_split,
)
from scorefield.studies.benchmark.summaries import show_ablation, show_classifier_peers, show_classifiers
from scorefield.studies.engine.experiment import Experiment

DRAWS = 20  # random settings that a tuned classifier chooses from
TABPFN_COLUMNS = 100  # TabPFN v1 takes no more


class RegularisedQDA(QuadraticDiscriminantAnalysis):
    """QuadraticDiscriminantAnalysis that falls back to a shrunk covariance for fewer rows than columns."""

    def fit(self, X, y):
        try:
            return super().fit(X, y)
        except np.linalg.LinAlgError:
            self.__dict__.update(vars(QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1).fit(X, y)))
        return self


def tuned_boosting(seed, cv, n_jobs=1):
    """XGBoost whose settings are the best of random draws, by log loss."""
    space = {
        "n_estimators": randint(50, 400), "max_depth": randint(2, 9), "learning_rate": loguniform(0.01, 0.3),
        "subsample": uniform(0.5, 0.5), "colsample_bytree": uniform(0.5, 0.5), "min_child_weight": loguniform(0.5, 10),
    }  # fmt: skip
    base = boosting(seed).set_params(n_jobs=n_jobs)
    return RandomizedSearchCV(base, space, n_iter=DRAWS, cv=cv, scoring="neg_log_loss", random_state=seed)


class TunedSVM:
    """A support vector machine with the best of random draws by a score, then Platt's probabilities."""

    def __init__(self, seed, cv, scoring="average_precision"):
        space = {"C": loguniform(0.1, 100), "gamma": loguniform(0.001, 1)}
        self.search = RandomizedSearchCV(SVC(cache_size=500), space, n_iter=DRAWS, cv=cv, scoring=scoring,
                                         random_state=seed, refit=False)  # fmt: skip

    def fit(self, X, y):
        best = SVC(cache_size=500, **self.search.fit(X, y).best_params_)
        self.model_ = CalibratedClassifierCV(best, method="sigmoid", cv=self.search.cv, ensemble=False).fit(X, y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def classifiers(seed, cv):
    """Classifiers by name; `cv` are the folds of those that tune or calibrate themselves."""
    forest = RandomForestClassifier(500, random_state=seed, n_jobs=1)
    found = {
        "naive Bayes": GaussianNB(),
        "QDA": RegularisedQDA(reg_param=0.1),
        "KDE": ScoreClassifier(KernelDensity(bandwidth="scott"), calibration=None),
        "GMM": ScoreClassifier(GaussianMixture(3, reg_covar=1e-2, random_state=seed), calibration=None),
        "paper's": ScoreClassifier(paper_field(seed), calibration=None),
        OUR_CLASSIFIER: ScoreClassifier(random_state=seed),
        "logistic": LogisticRegression(max_iter=2000),
        "SVM, tuned": TunedSVM(seed, cv),
        "forest": forest,
        "forest, sigmoid": CalibratedClassifierCV(forest, method="sigmoid", cv=cv),
        "forest, isotonic": CalibratedClassifierCV(forest, method="isotonic", cv=cv),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=seed),
    }
    if importlib.util.find_spec("xgboost"):
        found["boosting"] = boosting(seed)
        found[TUNED_BOOSTING] = tuned_boosting(seed, cv)
    return found


def ablated(seed, cv):
    """ScoreClassifier without one of its parts or more, with fewer members, and without the labels' term."""
    return {
        OUR_CLASSIFIER: ScoreClassifier(random_state=seed),
        "without rules": ScoreClassifier(rules=None, random_state=seed),
        "without score matching": ScoreClassifier(denoising_weight=0.0, random_state=seed),
        "without both": ScoreClassifier(rules=None, denoising_weight=0.0, random_state=seed),
        "one member": ScoreClassifier(n_members=1, random_state=seed),
        "four members": ScoreClassifier(n_members=4, random_state=seed),
        # Two members instead of eight: without labels to stop it early, it trains longest.
        LABEL_FREE_CLASSIFIER: ScoreClassifier(label_weight=0.0, n_members=2, random_state=seed),
        "ScoreDensity": ScoreClassifier(ScoreDensity(), random_state=seed),
    }


def _tabpfn(seed):
    """TabPFN v1; its checkpoint is in the folder tabpfn of SCOREFIELD_DATA, where the package does not fetch it.

    The package of 2022 needs some names of older versions of torch and scikit-learn.
    """
    torch = importlib.import_module("torch")  # never a dependency of this library
    vars(torch.nn.modules.transformer).setdefault("Optional", Optional)
    from tabpfn.scripts import transformer_prediction_interface as interface

    for check in (check_X_y, check_array):
        setattr(interface, check.__name__, functools.partial(_with_older_option, check))
    load, folder = torch.load, data_folder()
    torch.load = functools.partial(load, weights_only=False)  # the checkpoint holds more than arrays
    try:
        own = {} if folder is None or not (folder / "tabpfn").is_dir() else {"base_path": folder / "tabpfn"}
        device = "cuda" if torch.cuda.is_available() else "cpu"
        options = {"N_ensemble_configurations": 32, "batch_size_inference": 4}
        return interface.TabPFNClassifier(device=device, seed=seed, **options, **own)
    finally:
        torch.load = load


def _with_older_option(check, *given, force_all_finite=True, **options):
    return check(*given, ensure_all_finite=force_all_finite, **options)


class TabPFN:
    """TabPFN v1 on at most 100 columns, those with the largest F statistics."""

    def __init__(self, seed):
        self.seed = seed

    def fit(self, X, y):
        self.model_ = _tabpfn(self.seed)
        if X.shape[1] > TABPFN_COLUMNS:
            self.model_ = make_pipeline(SelectKBest(k=TABPFN_COLUMNS), self.model_)
            self.model_.fit(X, y, tabpfnclassifier__overwrite_warning=True)
        else:
            self.model_.fit(X, y, overwrite_warning=True)  # above 1,024 rows it warns
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def classifier_peers(seed, cv):
    """Networks that need torch by name, those that are installed, beside ours."""
    found = {}
    if importlib.util.find_spec("tabpfn"):
        found["TabPFN v1"] = TabPFN(seed)
    if importlib.util.find_spec("pytabkit"):
        from pytabkit import RealMLP_TD_Classifier, TabM_D_Classifier

        options = {"random_state": seed, "n_threads": 1, "verbosity": 0}
        found["RealMLP"] = RealMLP_TD_Classifier(n_cv=5, val_metric_name="cross_entropy", **options)
        found["TabM"] = TabM_D_Classifier(val_metric_name="cross_entropy", **options)
    if not found:
        raise ValueError("Expected tabpfn or pytabkit to be installed, got neither; pip install one of them.")
    return found | {OUR_CLASSIFIER: ScoreClassifier(random_state=seed)}


def run(models_of, seed, config):
    """Rows of the models of a seed and its inner folds, fitted to a split and measured on its test rows."""
    name, number = table_and_split(seed, config)
    split, rows = Split(name, number, seed, config), []
    for arm, model in models_of(seed, split.inner).items():
        with measured() as cost:
            probability = model.fit(split.X, split.y).predict_proba(split.X_test)[:, 1]
        rows.append(row_of_arm(arm, "itself", measures(split.y_test, probability), cost, n=len(split.y)))
    return finished(rows, split)


def _experiment(name, title, what, models_of, show, repetitions=1):
    return Experiment(
        name,
        title,
        f"{what}; the same splits.",
        functools.partial(run, models_of),
        show,
        len(tables.TABLES) * SPLITS["n_folds"] * repetitions,
        len(QUICK_TABLES),
        {"tables": list(tables.TABLES), **SPLITS},
        {"tables": list(QUICK_TABLES)},
    )


CLASSIFIERS = _experiment(
    "classifiers",
    "Classifiers",
    "ScoreClassifier, and Bayes' rule on densities learned for each class, beside trees, kernels and linear models",
    classifiers,
    show_classifiers,
    SPLITS["n_repeats"],
)
ABLATION = _experiment(
    "ablation",
    "What the parts of ScoreClassifier contribute",
    "ScoreClassifier without rules, without score matching, with fewer members, and its purely generative forms: the "
    "joint model without the labels' term (label-free, of two members) and a density for each class (ScoreDensity)",
    ablated,
    show_ablation,
    SPLITS["n_repeats"],
)
CLASSIFIER_PEERS = _experiment(
    "classifier-peers",
    "Classifiers that need torch",
    "TabPFN v1 (a transformer with pre-trained weights, 32 ensemble members), RealMLP-TD (five folds, early stopping "
    "by log loss) and TabM, those that are installed, beside ScoreClassifier",
    classifier_peers,
    show_classifier_peers,
)
