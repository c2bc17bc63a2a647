"""Over-samplers of the benchmark by name."""

from typing import Any

import numpy as np
from imblearn.over_sampling import ADASYN, SMOTE, BorderlineSMOTE, RandomOverSampler
from imblearn.over_sampling.base import BaseOverSampler
from sklearn.covariance import ledoit_wolf
from sklearn.neighbors import KernelDensity

from scorefield.data.scaling import safe_deviation
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.remedies import smote_neighbors
from scorefield.sampling.samplers import Langevin
from scorefield.studies.paper.imbalanced import CASES_10D
from scorefield.studies.paper.settings import paper_density

OURS, OURS_CLEAR, OURS_TUNED = "ScoreOverSampler", "ScoreOverSampler, clear", "ScoreOverSampler, tuned"
OUR_CLASSIFIER, LABEL_FREE_CLASSIFIER = "ScoreClassifier", "ScoreClassifier, label-free"
TUNED_BOOSTING = "boosting, tuned"
NOISE, SMOTE_ROWS, SHARING, DISTILLED = "noise .3", "SMOTE", "ScoreOverSampler for sharing", "DistilledClassifier"
TEACHER, OUT_OF_FOLD, HALF_OUT_OF_FOLD = "ScoreClassifier itself", "out-of-fold labels", "half out-of-fold labels"
PARENTS_LABELS, AS_MANY_ROWS = "parents' labels", "DistilledClassifier of as many rows"
BOOSTING_TEACHES, FOREST_TEACHES, SPUNGE = "tuned XGBoost teaches", "forest teaches", "spunge rows"
PAPER_CASES = tuple(case.replace("score", "paper's") for case in CASES_10D)
PAPER_HIDDEN = (128, 128)


class GeneratorOverSampler(BaseOverSampler):
    """Over-sample with ``generate(rows, n, seed)``, a function from the rows of a class to n new rows."""

    def __init__(self, generate, *, sampling_strategy="auto", random_state=None):
        super().__init__(sampling_strategy=sampling_strategy)
        self.generate = generate
        self.random_state = random_state

    def _fit_resample(self, X, y, **params):
        new = [(label, n) for label, n in self.sampling_strategy_.items() if n > 0]
        try:
            rows = [self.generate(X[y == label], n, self.random_state) for label, n in new]
        except Exception as error:  # whatever a third-party generator raises, its arm alone is refused
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        labels = [np.full(n, label, y.dtype) for label, n in new]
        return np.concatenate([X, *rows]), np.concatenate([y, *labels])


def gaussian_rows(rows, n, seed):
    """Rows from a Gaussian with the mean and the shrunk covariance of the class."""
    covariance = ledoit_wolf(rows)[0]
    return np.random.default_rng(seed).multivariate_normal(rows.mean(axis=0), covariance, n, method="svd")


def kde_rows(rows, n, seed):
    """Rows from a Gaussian kernel density with Silverman's bandwidth on scaled columns."""
    scale = safe_deviation(rows)
    return KernelDensity(bandwidth="silverman").fit(rows / scale).sample(n, random_state=seed) * scale


def paper_field(seed):
    """The paper's density with a little noise, since a column may be constant within a class."""
    return paper_density(PAPER_HIDDEN, seed, noise=0.1)


class PaperRows:
    """Rows from the paper's Langevin chains; instances with the same `fields` dict share fitted fields."""

    def __init__(self, chain, fields):
        self.chain, self.fields = chain, fields

    def __call__(self, rows, n, seed):
        key = rows.tobytes()
        if key not in self.fields:
            self.fields[key] = paper_field(seed).fit(rows)
        return self.fields[key].set_params(sampler=Langevin(*self.chain)).sample(n, random_state=seed)


def over_samplers(n_rare, seed):
    """All over-samplers by name, for classes of at least `n_rare` rows."""
    neighbors = smote_neighbors(n_rare)
    fields: dict[bytes, Any] = {}
    found = {
        "random": RandomOverSampler(random_state=seed),
        "noise .3": RandomOverSampler(shrinkage=0.3, random_state=seed),
        "SMOTE": SMOTE(k_neighbors=neighbors, random_state=seed),
        "Borderline-SMOTE": BorderlineSMOTE(k_neighbors=neighbors, random_state=seed),
        "ADASYN": ADASYN(n_neighbors=neighbors, random_state=seed),
        "Gaussian": GeneratorOverSampler(gaussian_rows, random_state=seed),
        "KDE": GeneratorOverSampler(kde_rows, random_state=seed),
    }
    for case, chain in CASES_10D.items():
        found[case.replace("score", "paper's")] = GeneratorOverSampler(PaperRows(chain, fields), random_state=seed)
    found[SHARING] = ScoreOverSampler(random_state=seed, purpose="sharing")
    # For rows that only a learner sees, before purpose="learning" did it better; chosen on the development halves.
    found[OURS_CLEAR] = ScoreOverSampler(random_state=seed, purpose="sharing", where="clear", bounds=None)
    return found
