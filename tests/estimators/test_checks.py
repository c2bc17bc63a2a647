"""scikit-learn's and imbalanced-learn's own suites on every estimator."""

import pytest
from imblearn.utils.estimator_checks import parametrize_with_checks as sampler_checks
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from scorefield import (
    DistilledClassifier,
    MixedEncoder,
    PriorCorrectedClassifier,
    ScoreClassifier,
    ScoreDensity,
    ScoreFeatures,
    ScoreImputer,
    ScoreOutlierDetector,
    ScoreOverSampler,
)
from scorefield.paper import LabellingClassifier

LIGHT = {"max_steps": 100, "hidden": (8, 8), "random_state": 0}  # the suites fit hundreds of tables


def light(model):
    return ScoreDensity(model=model, **LIGHT)


# Teachers: one that compiles nothing and takes what the suites give, and one that compiles for every width of a table.
TREE = make_pipeline(MixedEncoder(), DecisionTreeClassifier(max_depth=3, random_state=0))
NETWORK = ScoreClassifier(n_members=1, **LIGHT)
# One of each class, with a model that compiles little.
ONE_EACH = [
    light("gaussian"),
    ScoreClassifier(light("gaussian"), random_state=0),
    PriorCorrectedClassifier(LogisticRegression()),
    DistilledClassifier(LogisticRegression(), LogisticRegression(), random_state=0),
    ScoreFeatures(light("gaussian"), per_class=True, passthrough=True),
    MixedEncoder(),
    LabellingClassifier(density=light("gaussian"), random_state=0),
    ScoreOutlierDetector(light("gaussian"), random_state=0),
    ScoreOverSampler(purpose="sharing", density=light("gaussian"), random_state=0),
    ScoreOverSampler(teacher=TREE, random_state=0),
]
# Tables of many widths, each of which compiles a network's programs anew.
MORE = [
    ScoreClassifier(n_members=2, **{**LIGHT, "max_steps": 500}),  # the suite asks for an accuracy of .83
    DistilledClassifier(
        LogisticRegression(), ScoreClassifier(n_members=1, **{**LIGHT, "max_steps": 300}), random_state=0
    ),
    ScoreOverSampler(teacher=NETWORK, random_state=0),
    ScoreFeatures(light("gaussian")),
    MixedEncoder("one-hot"),
    LabellingClassifier("radius", n_augment=5, density=light("gaussian"), random_state=0),
    LabellingClassifier("pseudo-density", density=light("gaussian"), random_state=0),
    ScoreImputer(method="neighbours", **{**LIGHT, "max_steps": 50}),
]


@parametrize_with_checks(ONE_EACH)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(MORE)
def test_scikit_learn_checks_of_more_estimators(estimator, check):
    check(estimator)


@sampler_checks(
    [
        ScoreOverSampler(purpose="sharing", density=light("gaussian"), random_state=0),
        ScoreOverSampler(teacher=TREE, random_state=0),
    ]
)
def test_imbalanced_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@sampler_checks(
    [
        ScoreOverSampler(teacher=NETWORK, random_state=0),
        *(
            ScoreOverSampler(purpose="sharing", density=light(model), random_state=0)
            for model in ("kernel", "energy", "auto")
        ),
    ]
)
def test_imbalanced_learn_checks_of_more_models(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gaussian", "mixture", "kernel", "energy", "mlp", "diffusion", "auto"])
@pytest.mark.parametrize("wrap", ["density", "classifier", "features", "over-sampler", "outlier detector"])
def test_scikit_learn_checks_of_every_model(model, wrap):
    estimator = {
        "density": lambda d: d,
        "classifier": lambda d: ScoreClassifier(d, random_state=0),
        "features": ScoreFeatures,
        "over-sampler": lambda d: ScoreOverSampler(purpose="sharing", density=d, random_state=0),
        "outlier detector": lambda d: ScoreOutlierDetector(d, random_state=0),
    }[wrap](light(model))
    for instance, check in estimator_checks_generator(estimator):
        check(instance)
