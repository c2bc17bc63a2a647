"""Every parameter of every public class acts or is refused, on tables of numbers and on mixed ones.

A new parameter fails `test_every_parameter_is_listed` until it has a line here: a value beside the one of the base
estimator with which the results differ, one that is refused with its name, or the reason why neither can be seen.
"""

import inspect
import itertools
import re
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity

import scorefield as sf
from scorefield.fields.diffusion import init_diffusion_field
from scorefield.fields.mixtures import mixture
from scorefield.fields.neural import init_vector_field

RNG = np.random.default_rng(5)
N = 64
LABELS = np.repeat(["common", "rare"], [48, 16])
NUMBERS = np.column_stack([RNG.normal(size=N) + (LABELS == "rare"), RNG.standard_t(1.5, size=N)])
NUMBERS[:, 1] += 0.5 * NUMBERS[:, 0]
MIXED = pd.DataFrame(
    {
        "income": np.where(np.arange(N) % 9 == 0, np.nan, NUMBERS[:, 0]),
        "rooms": RNG.integers(1, 5, N),
        "town": RNG.choice(["Oslo", "Rome", "Lima"], N),
        "customer_id": [f"c-{number:04d}" for number in range(N)],
    }
)
WITH_MISSING = np.where((np.arange(N) % 9 == 0)[:, None] & [True, False], np.nan, NUMBERS)
TARGET = np.exp(NUMBERS[:, 0])


class Acts(NamedTuple):
    """Results differ from those of the base (of the class, or this one)."""

    value: Any
    base: dict | None = None


class Refused(NamedTuple):
    """ValueError, or a warning, that names the parameter, or the one inside its value that is at fault."""

    value: Any
    base: dict | None = None
    inside: str | None = None


class Unseen(NamedTuple):
    """Neither can be seen in results."""

    why: str


PRINTS = Unseen("prints the progress")
GAUSSIAN = sf.ScoreDensity("gaussian", random_state=0)
LIGHT = {"hidden": (4,), "max_steps": 50}
NETWORK = {"model": "mlp", **LIGHT, "anchor": "gaussian", "random_state": 0}
LONG = {**NETWORK, "max_steps": 1500, "learning_rate": 0.1}
KERNEL = {"model": "kernel", "anchor": "gaussian", "random_state": 0}
MIXED_DENSITY = sf.ScoreDensity(**LIGHT)
JOINT = {"n_members": 1, **LIGHT, "random_state": 0}
SEPARATE = {"density": GAUSSIAN, "random_state": 0}
SOME_MIXED = {"density": MIXED_DENSITY, "random_state": 0}
CHAIN = sf.Langevin(0.2, 5, 0.8)
CATEGORY = {0: "category"}
ROOMS = {"rooms": "category"}

# Settings of a density that the energy of mixed rows does not have.
NOT_OF_MIXED = {
    "model": "gaussian", "objective": "sliced", "activation": "tanh", "standardize": False, "learning_rate": 1.0,
    "batch_size": 2, "validation_fraction": 0.4, "early_stopping": False, "anchor": "gaussian",
    "integrator": "trapezoid", "smoothing": 0.5, "sampler": sf.MALA(), "tails": "gaussian", "n_projections": 3,
    "n_nodes": 5, "anchor_radius": 2.0, "smoothing_kernel": "epanechnikov",
}  # fmt: skip

DENSITY = {
    "numbers": {
        "base": {"model": "gaussian", "random_state": 0},
        "model": Acts("mixture"),
        "objective": [Acts("exact", NETWORK), Refused("sliced")],
        "hidden": Acts((6,), NETWORK),
        "activation": Acts("tanh", NETWORK),
        "noise": Acts(0.5),
        "standardize": Acts(False),
        "learning_rate": Acts(0.01, NETWORK),
        "batch_size": Acts(16, NETWORK),
        "max_steps": Acts(100, NETWORK),
        "validation_fraction": Acts(0.4, NETWORK),
        "early_stopping": Acts(False, LONG),
        "anchor": Acts("counting", KERNEL),
        "integrator": Acts("trapezoid", NETWORK),
        "n_nodes": Acts(3, NETWORK),
        "smoothing": Acts(0.5, KERNEL),
        "smoothing_kernel": Acts("epanechnikov", {**KERNEL, "smoothing": 0.5}),
        "sampler": Acts(sf.MALA()),
        "tails": Acts("gaussian", {**NETWORK, "model": "energy"}),
        "n_projections": Acts(3, {**NETWORK, "objective": "sliced"}),
        "anchor_radius": Acts(3.0, {**KERNEL, "anchor": "counting"}),
        "columns": Refused(CATEGORY),
        "constraints": Refused("x0 <= -0.5"),
        "random_state": Acts(1),
        "verbose": PRINTS,
    },
    "mixed": {
        "base": {**LIGHT, "random_state": 0},
        **{name: Refused(value) for name, value in NOT_OF_MIXED.items()},
        "hidden": Acts((6,)),
        "noise": Acts(0.4),
        "max_steps": Acts(100),
        "constraints": Refused("income <= -0.5"),
        "columns": Acts(ROOMS),
        "random_state": Acts(1),
        "verbose": PRINTS,
    },
}
CLASSIFIER = {
    "numbers": {
        "base": JOINT,
        "density": Acts(KernelDensity(), SEPARATE),
        "label_weight": [Acts(0.0), Refused(0.5, SEPARATE)],
        "denoising_weight": [Acts(0.2), Refused(0.2, SEPARATE)],
        "rules": [Acts(None), Refused(None, SEPARATE)],
        "common_per_rare": Unseen("acts on classes of over 20,000 rows, see test_row_choice"),
        "n_members": [Acts(2), Refused(2, SEPARATE)],
        "priors": Acts("equal"),
        "costs": Acts([[0, 20], [1, 0]]),
        "margin": Acts(20.0),
        "calibration": Acts(None),
        "class_weight": Acts("balanced"),
        "hidden": [Acts((6,)), Refused((6,), SEPARATE)],
        "noise": [Acts(0.6), Refused(0.6, SEPARATE)],
        "max_steps": [Acts(100), Refused(100, SEPARATE)],
        "columns": Acts(CATEGORY),
        "constraints": Refused("x0 <= -0.5"),
        "random_state": Acts(1),
        "verbose": PRINTS,
    }
}
CLASSIFIER["mixed"] = {**CLASSIFIER["numbers"], "density": Refused(GAUSSIAN), "columns": Acts(ROOMS)}
CLASSIFIER["mixed"]["constraints"] = Refused("income <= -0.5")
for setting in ("label_weight", "denoising_weight", "rules", "n_members", "hidden", "noise", "max_steps"):
    CLASSIFIER["mixed"][setting] = CLASSIFIER["numbers"][setting][0]
SHARING, MIXED_SHARING = ({**params, "purpose": "sharing"} for params in (SEPARATE, SOME_MIXED))
TEACHER, OTHER_TEACHER = LogisticRegression(), GaussianNB()
OVER = {
    "numbers": {
        "base": SHARING,
        "purpose": Refused("learning", {**SHARING, "where": "core"}),
        "teacher": [Acts(OTHER_TEACHER, {**SEPARATE, "teacher": TEACHER}), Refused(TEACHER)],
        "ids": Unseen("writes identifiers, of which a table of numbers has none"),
        "sampling_strategy": Acts(0.5),
        "density": Acts(sf.ScoreDensity("kernel", random_state=0)),
        "sampler": Acts(CHAIN),
        "bounds": Acts((-0.5, 0.5)),
        "where": Acts("diverse"),
        "columns": Acts({1: "category"}, MIXED_SHARING),
        "random_state": Acts(1),
    },
    "mixed": {
        "base": MIXED_SHARING,
        "purpose": Refused("learning", {**MIXED_SHARING, "where": "core"}),
        "teacher": Refused(TEACHER),
        "ids": Acts("blank"),
        "sampling_strategy": Acts(0.5),
        "density": [Acts(sf.ScoreDensity(hidden=(6,), max_steps=50)), Refused(GAUSSIAN, inside="model")],
        "sampler": [Acts(sf.Langevin(0.002, 5, 0.8)), *(Refused(each) for each in (sf.MALA(), sf.HMC()))],
        "bounds": Acts((-0.5, 0.5)),
        "where": Acts("diverse"),
        "columns": Acts(ROOMS),
        "random_state": Acts(1),
    },
}
SHARED = ("density", "sampler", "columns", "where", "random_state", "bounds")
REGRESSION = {
    kind: {
        "base": {name: value for name, value in cases["base"].items() if name != "purpose"},
        "relevance": Acts(lambda y: (y > np.quantile(y, 0.7)).astype(float)),
        "threshold": Acts(0.4),
        "sampling_strategy": Acts(0.8),
        **{name: cases[name] for name in SHARED},
        "columns": Acts({1: "category"} if kind == "numbers" else ROOMS, SOME_MIXED),
    }
    for kind, cases in OVER.items()
}
IMPUTER = {
    kind: {
        "base": {**LIGHT, "random_state": 0},
        "n_draws": Acts(3),
        "columns": Acts(columns),
        "constraints": Refused(f"{number} <= -0.5"),
        "hidden": Acts((6,)),
        "max_steps": Acts(100),
        "method": Acts("draws"),
        "random_state": Acts(1),
        "verbose": PRINTS,
    }
    for kind, columns, number in (("with missing", {1: "category"}, "x0"), ("mixed", ROOMS, "income"))
}
OUTLIERS = {
    "numbers": {
        "base": {"density": GAUSSIAN, "random_state": 0},
        "density": Acts(KernelDensity()),
        "contamination": Acts(0.3),
        "n_draws": Unseen("draws complete rows with missing values, of which a table of numbers has none"),
        "random_state": Acts(1, {"density": sf.ScoreDensity("kernel"), "random_state": 0}),
    },
    "mixed": {
        "base": SOME_MIXED,
        "density": [Acts(sf.ScoreDensity(hidden=(6,), max_steps=50)), Refused(GAUSSIAN, inside="model")],
        "contamination": Acts(0.3),
        "n_draws": Acts(2),
        "random_state": Acts(1),
    },
}
FEATURES = {
    kind: {
        "base": {"density": first, "random_state": 0},
        "density": others,
        "per_class": Acts(True),
        "passthrough": Acts(True),
        "random_state": Acts(1, {"density": seedless, "random_state": 0}),
    }
    for kind, first, others, seedless in (
        ("numbers", GAUSSIAN, Acts(sf.ScoreDensity("kernel", random_state=0)), sf.ScoreDensity("kernel")),
        ("mixed", MIXED_DENSITY, OUTLIERS["mixed"]["density"], MIXED_DENSITY),
    )
}
LABELLING = {
    "numbers": {
        "base": {"density": GAUSSIAN, "random_state": 0},
        "rule": Acts("pseudo-density"),
        "n_augment": Acts(20),
        "n_neighbors": Acts(9),
        "radius": Acts(0.3, {"rule": "radius"}),
        "density": Acts(sf.ScoreDensity("kernel"), {"rule": "pseudo-density", **SEPARATE}),
        "sampler": Acts(CHAIN, {"n_augment": 20, **SEPARATE}),
        "random_state": Acts(1, {"n_augment": 20, "density": sf.ScoreDensity("gaussian"), "random_state": 0}),
    }
}
PRIOR = {
    "numbers": {
        "base": {"estimator": make_pipeline(RandomOverSampler(random_state=0), LogisticRegression())},
        "estimator": Acts(make_pipeline(RandomOverSampler(random_state=0), GaussianNB())),
    }
}
DISTILLED = {
    "numbers": {
        "base": {"estimator": LogisticRegression(), "teacher": sf.ScoreClassifier(**JOINT), "random_state": 0},
        "estimator": Acts(GaussianNB()),
        "teacher": Acts(sf.ScoreClassifier(**{**JOINT, "hidden": (6,)})),
        "n_new_rows": Acts(30),
        "balance": Acts(True),
        "random_state": Acts(1),
        "verbose": PRINTS,
    }
}
ENCODER = {
    kind: {"base": {}, "form": Acts("one-hot"), "columns": Acts({1: "category"} if kind == "with missing" else ROOMS)}
    for kind in ("with missing", "mixed")
}
CHAINS = {
    "base": {"step_size": 0.1, "chain_length": 10},
    "step_size": Acts(0.2),
    "chain_length": Acts(12),
    "discard": Acts(0.7),
    "start": Acts("inverse-score"),
    "temperature": Acts(0.5),
}
SAMPLERS = {
    "Langevin": {**CHAINS, "precision": Acts("half")},
    "MALA": CHAINS,
    "HMC": {**{k: v for k, v in CHAINS.items() if k != "temperature"}, "n_leapfrog": Acts(3)},
    "AnnealedLangevin": {
        "base": {"n_levels": 5, "steps_per_level": 4},
        "step_size": Acts(0.1),
        "n_levels": Acts(6),
        "steps_per_level": Acts(5),
    },
    "ReverseDiffusion": {"base": {"n_levels": 5}, "n_levels": Acts(6)},
}


def density_results(density, X, y):
    density.fit(X)
    return [density.score_samples(X), density.grad_log_density(X), density.sample(4)]


def classifier_results(model, X, y):
    model.fit(X, y)
    results = [model.predict(X), model.predict_proba(X)]
    return [*results, model.sample(3, "rare")] if isinstance(model, sf.ScoreClassifier) else results


def outlier_results(detector, X, y):
    return [detector.fit(X).decision_function(X)]


def transformed(transformer, X, y):
    return [transformer.fit(X, y).transform(X)]


def resampled(sampler, X, y):
    return list(sampler.fit_resample(X, y))


def resampled_target(sampler, X, y):
    return list(sampler.fit_resample(X, TARGET))


def chain_results(sampler, X, y):
    key = jax.random.key(0)
    if isinstance(sampler, sf.AnnealedLangevin | sf.ReverseDiffusion):
        field = init_diffusion_field(key, X.astype(np.float32), hidden=(4,))
    elif type(sampler) is sf.Langevin:  # the precision is that of networks, whose last layer starts at zero
        field = jax.tree.map(lambda leaf: leaf + 0.3, init_vector_field(key, 2, hidden=(4,)))
    else:
        field = mixture([0.5, 0.5], [[-1.0, 0.0], [1.0, 0.0]], [np.eye(2), np.eye(2)])
    return [sampler.sample(key, field, 20, X).rows]


CLASSES = {
    "ScoreDensity": (DENSITY, density_results),
    "ScoreClassifier": (CLASSIFIER, classifier_results),
    "ScoreOverSampler": (OVER, resampled),
    "ScoreRegressionOverSampler": (REGRESSION, resampled_target),
    "ScoreImputer": (IMPUTER, transformed),
    "ScoreOutlierDetector": (OUTLIERS, outlier_results),
    "ScoreFeatures": (FEATURES, transformed),
    "LabellingClassifier": (LABELLING, classifier_results),
    "PriorCorrectedClassifier": (PRIOR, classifier_results),
    "DistilledClassifier": (DISTILLED, classifier_results),
    "MixedEncoder": (ENCODER, transformed),
    **{name: ({"numbers": cases}, chain_results) for name, cases in SAMPLERS.items()},
}
TABLES = {"numbers": NUMBERS, "mixed": MIXED, "with missing": WITH_MISSING}
HOLDERS = ("ScoreOverSampler", "ScoreRegressionOverSampler", "ScoreFeatures", "ScoreOutlierDetector")
TRAINING = ("ScoreClassifier", "DistilledClassifier")
# Each compiles a training program of its own; the other settings of a network share theirs.
SLOW_SETTINGS = {
    ("ScoreDensity", "numbers", setting)
    for setting in ("objective", "activation", "batch_size", "early_stopping", "tails", "n_projections")
}
SLOW_MIXED = {*TRAINING, "ScoreRegressionOverSampler", "ScoreFeatures", "ScoreOutlierDetector", "ScoreImputer"}


def public_classes():
    """Public classes with parameters, by name."""
    found = {name: getattr(sf, name) for name in [*sf.__all__, "LabellingClassifier"]}
    return {name: each for name, each in found.items() if inspect.isclass(each) and hasattr(each, "get_params")}


def every_case():
    """Class, kind of table, parameter and what is expected of it."""
    for name, (kinds, _) in CLASSES.items():
        for kind, cases in kinds.items():
            for setting, expected in cases.items():
                for number, each in enumerate(expected if isinstance(expected, list) else [expected]):
                    if isinstance(each, Acts | Refused):
                        light = kind == "numbers" and name not in TRAINING and setting != "columns"
                        trains = isinstance(each, Acts) and not light
                        slow = (trains and name in SLOW_MIXED) or (name, kind, setting) in SLOW_SETTINGS
                        marks = [pytest.mark.slow] if slow and isinstance(each, Acts) else []
                        label = f"{name}-{kind}-{setting}-{number}"
                        yield pytest.param(name, kind, setting, each, id=label, marks=marks)


@pytest.mark.parametrize("name", sorted(set(public_classes()) - set(SAMPLERS)))
def test_settings_of_estimators_are_given_by_name(name):
    """One positional argument at most, so that settings may be added anywhere; a learner has its teacher beside."""
    parameters = list(inspect.signature(getattr(sf, name)).parameters.values())
    positional = [each.name for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert len(positional) <= 1 or positional == ["estimator", "teacher"]


@pytest.mark.parametrize("name", public_classes())
def test_documented_defaults_are_those_of_the_signature(name):
    """Every parameter with an entry of its own tells its default; several may share one that points elsewhere."""
    lines = inspect.getdoc(getattr(sf, name)).splitlines()
    for each in inspect.signature(getattr(sf, name)).parameters.values():
        entries = [line for line in lines if line.startswith(f"{each.name} : ")]
        if each.default is not inspect.Parameter.empty and entries:
            default = f'"{each.default}"' if isinstance(each.default, str) else repr(each.default)
            assert entries[0].endswith(f", default={default}"), entries[0]


@pytest.mark.parametrize("name", public_classes())
def test_every_parameter_is_listed(name):
    assert name in CLASSES, f"{name} has no lines here: add its parameters."
    wanted = list(inspect.signature(public_classes()[name]).parameters)
    for kind, cases in CLASSES[name][0].items():
        assert sorted(set(cases) - {"base"}) == sorted(wanted), f"{name}, {kind}"


_BASES: dict = {}


def results_of(name, kind, params):
    each, results = public_classes()[name], CLASSES[name][1]
    table = TABLES[kind].copy()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = results(each(**params), table, LABELS)
    return found, [str(one.message) for one in told]


def base_results(name, kind, params):
    label = (name, kind, repr(sorted(params.items(), key=lambda item: item[0])))
    if label not in _BASES:
        _BASES[label] = results_of(name, kind, params)[0]
    return _BASES[label]


def same(one, other):
    arrays = [np.asarray(each, dtype=object) for each in (one, other)]
    if arrays[0].shape != arrays[1].shape:
        return False
    return all(a == b or (a != a and b != b) for a, b in zip(*(each.ravel() for each in arrays), strict=True))


@pytest.mark.parametrize(("name", "kind", "setting", "expected"), list(every_case()))
def test_a_setting_acts_or_is_refused(name, kind, setting, expected):
    base = CLASSES[name][0][kind]["base"] if expected.base is None else expected.base
    params = {**base, setting: expected.value}
    if isinstance(expected, Refused):
        try:
            _, told = results_of(name, kind, params)
        except ValueError as error:
            told = [str(error)]
        assert any(re.search(rf"\b{expected.inside or setting}\b", message) for message in told), told
        return
    before, (after, _) = base_results(name, kind, base), results_of(name, kind, params)
    assert not all(itertools.starmap(same, zip(before, after, strict=True)))


def test_the_comparison_sees_that_nothing_changed():
    base = DENSITY["numbers"]["base"]
    again, _ = results_of("ScoreDensity", "numbers", {**base, "n_nodes": 5})  # a Gaussian is not integrated
    assert all(itertools.starmap(same, zip(base_results("ScoreDensity", "numbers", base), again, strict=True)))


@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.parametrize("setting", NOT_OF_MIXED)
def test_settings_of_a_density_inside_are_refused_for_mixed_tables(name, setting):
    density = sf.ScoreDensity(**{setting: NOT_OF_MIXED[setting]})
    sharing = {"purpose": "sharing"} if name == "ScoreOverSampler" else {}
    with pytest.raises(ValueError, match=rf"\b{setting}\b"):
        results_of(name, "mixed", {"density": density, **sharing})


@pytest.mark.parametrize(("setting", "value"), [("discard", 0.5), ("start", "inverse-score"), ("precision", "half")])
def test_settings_of_chains_are_refused_for_mixed_tables(setting, value):
    sampler = sf.Langevin(**{setting: value})
    with pytest.raises(ValueError, match=f"{setting} of Langevin"):
        results_of("ScoreOverSampler", "mixed", {**MIXED_SHARING, "sampler": sampler})


def test_columns_of_a_density_belong_to_the_over_sampler():
    with pytest.raises(ValueError, match="columns as a parameter of the over-sampler"):
        results_of("ScoreOverSampler", "mixed", {**MIXED_SHARING, "density": sf.ScoreDensity(columns=ROOMS)})
