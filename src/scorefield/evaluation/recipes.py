"""Ready-to-run code for a remedy with a given estimator and the labels of the user's table."""

import ast
import sys
from typing import Any, NamedTuple

import numpy as np
from imblearn.over_sampling import RandomOverSampler

from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.distilled import DistilledClassifier
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.preparation import PLAIN
from scorefield.evaluation.remedies import INNER_FOLDS, NOTHING, RATIOS, THRESHOLD, WEIGHTS, smote_neighbors, weighted

NOISE, INTERPOLATED, OURS = "random with noise", "SMOTE", "score over-sampling"
OURS_TUNED, OUR_CLASSIFIER, TEACHING = "score over-sampling, tuned", "ScoreClassifier", "DistilledClassifier"
OVER_SAMPLERS = (NOISE, INTERPOLATED, OURS, OURS_TUNED)
CODE = {
    NOTHING: "model = {estimator}",
    WEIGHTS: "model = {weighted}",
    THRESHOLD: "model = TunedThresholdClassifierCV({estimator}, cv={inner},\n"
    "                                   scoring=make_scorer(f1_score, pos_label={rare}))",
    OUR_CLASSIFIER: "model = {classifier}",
    TEACHING: "model = {taught}",
    NOISE: "model = {noise}",
    INTERPOLATED: "model = {smote}",
    OURS: "model = {ours}",
    OURS_TUNED: "scorer = make_scorer(average_precision_score, response_method='predict_proba', pos_label={rare})\n"
    "model = GridSearchCV({ours},\n"
    "                     {{'scoreoversampler__sampling_strategy': {ratios}}}, scoring=scorer, cv={inner})",
}
IMPORTS = {
    THRESHOLD: {
        "from sklearn.metrics import f1_score, make_scorer\n",
        "from sklearn.model_selection import TunedThresholdClassifierCV\n",
    },
    OURS_TUNED: {
        "from sklearn.metrics import average_precision_score, make_scorer\n",
        "from sklearn.model_selection import GridSearchCV\n",
    },
}
PIPELINE = "from imblearn.pipeline import make_pipeline\n"
WIDTH = 100  # characters of a pipeline on one line


def ratios_for(y):
    """Ratios well above that of the table, so that every inner part can reach them."""
    return [ratio for ratio in RATIOS if ratio > 1.3 * np.sum(y == 1) / np.sum(y == 0)]


class Source(NamedTuple):
    """Source code of a value: its imports, its expression, and the value of this expression."""

    imports: frozenset
    text: str
    value: Any


def written(value):
    """Source of a literal, or of an estimator whose non-default parameters can all be written; otherwise None."""
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return _literal(value)
    try:
        return _estimator(value)
    except Exception:  # any constructor may be called here, also with too few arguments
        return None


def _estimator(value):
    kind = type(value)
    public = ".".join(part for part in kind.__module__.split(".") if not part.startswith("_"))
    if getattr(sys.modules.get(public), kind.__name__, None) is not kind:
        return None  # defined in a function or a script
    given, usual = value.get_params(deep=False), kind().get_params(deep=False)
    same = {name for name, v in given.items() if (type(v), repr(v)) == (type(usual.get(name)), repr(usual.get(name)))}
    parts = {name: written(v) for name, v in given.items() if name not in same}
    if None in parts.values():
        return None
    made = kind(**{name: part.value for name, part in parts.items()})
    if repr(made.get_params(deep=False)) != repr(given):
        return None
    imports = frozenset({f"from {public} import {kind.__name__}\n"}).union(*(part.imports for part in parts.values()))
    return Source(imports, f"{kind.__name__}({', '.join(f'{k}={v.text}' for k, v in parts.items())})", made)


def _literal(value):
    try:
        read = ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return None
    return Source(frozenset(), repr(value), read) if type(read) is type(value) and read == value else None


def _weighted_source(estimator, y):
    heavier = weighted(estimator, y)
    if heavier is None:
        return Source(frozenset(), "estimator", estimator)
    source = written(heavier)
    if source is not None:
        return source
    name = "class_weight" if "class_weight" in heavier.get_params() else "scale_pos_weight"
    return Source(frozenset(), f"estimator.set_params({name}={heavier.get_params()[name]!r})", heavier)


def _chained(*sources):
    """Source of a pipeline, or of its only step."""
    imports, texts = frozenset().union(*(source.imports for source in sources)), [source.text for source in sources]
    if len(texts) == 1:
        return Source(imports, texts[0], None)
    joined = ", ".join(texts)
    if len(joined) > WIDTH:
        joined = "\n    " + ",\n    ".join(texts) + ",\n"
    return Source(imports | {PIPELINE}, f"make_pipeline({joined})", None)


def _interpolation_source(preparation, n_rare):
    name, neighbors = preparation.interpolation.__name__, smote_neighbors(n_rare)
    given = [str(list(preparation.categories))] if name == "SMOTENC" else []
    given += [] if neighbors == 5 else [f"k_neighbors={neighbors}"]
    return Source(frozenset({f"from imblearn.over_sampling import {name}\n"}), f"{name}({', '.join(given)})", None)


def _taught_source(student, columns):
    """Source of a DistilledClassifier around the learner; kinds of columns go to its teacher."""
    imports = student.imports | {f"from {DistilledClassifier.__module__} import DistilledClassifier\n"}
    text = student.text
    if columns:
        teacher = written(ScoreClassifier(columns=columns))
        imports, text = imports | teacher.imports, f"{text}, {teacher.text}"
    return Source(imports, f"DistilledClassifier({text})", None)


def code_for(winner, estimator, y, labels, n_rare, preparation=PLAIN, grouped=False):
    """Code for the winner, for a table whose (common, rare) classes have these labels; common is None for several.

    Folds of a `grouped` table keep the user's groups together.
    """
    learner = written(estimator) or Source(frozenset(), "estimator", estimator)
    common, rare = (label.item() if hasattr(label, "item") else label for label in labels)
    relabelled = ""
    if common is None:
        relabelled, rare = f"y = (y == {rare!r}).astype(int)  # this class against all others\n", 1
    elif "scale_pos_weight" in estimator.get_params() and (common, rare) != (0, 1):
        relabelled = (
            f"y = (y == {rare!r}).astype(int)  # boosting needs labels 0 and 1; its weight is that of class 1\n"
        )
        rare = 1
    steps = {
        name: [written(step) for step in getattr(preparation, name)]
        for name in ("learner", "noise", "smote", "after_smote")
    }
    over_sampler = written(ScoreOverSampler(columns=preparation.columns))
    sources = {
        "estimator": _chained(*steps["learner"], learner),
        "weighted": _chained(*steps["learner"], _weighted_source(estimator, y)),
        "noise": _chained(*steps["noise"], written(RandomOverSampler(shrinkage=0.3)), learner),
        "smote": _chained(
            *steps["smote"], _interpolation_source(preparation, n_rare), *steps["after_smote"], learner
        ),
        "ours": _chained(over_sampler, *steps["learner"], learner),
        "classifier": written(ScoreClassifier(columns=preparation.columns)),
        "taught": _taught_source(_chained(*steps["learner"], learner), preparation.columns),
    }  # fmt: skip
    used = [source for name, source in sources.items() if "{" + name + "}" in CODE[winner]]
    imports, inner = set(IMPORTS.get(winner, ())).union(*(source.imports for source in used)), str(INNER_FOLDS)
    if grouped and winner in IMPORTS:
        imports.add("from sklearn.model_selection import StratifiedGroupKFold\n")
        inner = f"list(StratifiedGroupKFold({INNER_FOLDS}).split(X, y, groups))"
    texts = {name: source.text for name, source in sources.items()}
    text = CODE[winner].format(**texts, ratios=ratios_for(y), inner=inner, rare=repr(rare))
    return "".join(sorted(imports)) + relabelled + text
