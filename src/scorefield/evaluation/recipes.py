"""Ready-to-run code for a remedy with a given estimator and the labels of the user's table."""

import ast
import sys
from typing import Any, NamedTuple

import numpy as np

from scorefield.evaluation.remedies import INNER_FOLDS, NOTHING, RATIOS, THRESHOLD, WEIGHTS, smote_neighbors, weighted

NOISE, INTERPOLATED, OURS = "random with noise", "SMOTE", "score over-sampling"
OURS_TUNED = "score over-sampling, tuned"
OVER_SAMPLERS = (NOISE, INTERPOLATED, OURS, OURS_TUNED)
PIPELINE = "from imblearn.pipeline import make_pipeline\n"
CODE = {
    NOTHING: "model = {estimator}",
    WEIGHTS: "model = {weighted}",
    THRESHOLD: "from sklearn.metrics import f1_score, make_scorer\n"
    "from sklearn.model_selection import TunedThresholdClassifierCV\n"
    "model = TunedThresholdClassifierCV({estimator}, cv={inner},\n"
    "                                   scoring=make_scorer(f1_score, pos_label={rare}))",
    NOISE: "from imblearn.over_sampling import RandomOverSampler\n"
    + PIPELINE
    + "model = make_pipeline(RandomOverSampler(shrinkage=0.3), {estimator})",
    INTERPOLATED: "from imblearn.over_sampling import SMOTE\n"
    + PIPELINE
    + "model = make_pipeline(SMOTE({neighbors}), {estimator})",
    OURS: PIPELINE + "from scorefield import ScoreOverSampler\nmodel = make_pipeline(ScoreOverSampler(), {estimator})",
    OURS_TUNED: PIPELINE
    + "from scorefield import ScoreOverSampler\n"
    + "from sklearn.metrics import average_precision_score, make_scorer\n"
    + "from sklearn.model_selection import GridSearchCV\n"
    + "scorer = make_scorer(average_precision_score, response_method='predict_proba', pos_label={rare})\n"
    + "model = GridSearchCV(make_pipeline(ScoreOverSampler(), {estimator}),\n"
    + "                     {{'scoreoversampler__sampling_strategy': {ratios}}}, scoring=scorer, cv={inner})",
}


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


def _weighted_expression(estimator, y):
    heavier = weighted(estimator, y)
    if heavier is None:
        return "estimator"
    source = written(heavier)
    if source is not None:
        return source.text
    name = "class_weight" if "class_weight" in heavier.get_params() else "scale_pos_weight"
    return f"estimator.set_params({name}={heavier.get_params()[name]!r})"


def code_for(winner, estimator, y, labels, n_rare):
    """Code for the winner, for a table whose (common, rare) classes have these labels."""
    source = written(estimator)
    imports = "" if source is None else "".join(sorted(source.imports))
    common, rare = (label.item() if hasattr(label, "item") else label for label in labels)
    if "scale_pos_weight" in estimator.get_params() and (common, rare) != (0, 1):
        imports += f"y = (y == {rare!r}).astype(int)  # boosting needs labels 0 and 1; its weight is that of class 1\n"
        rare = 1
    neighbors = smote_neighbors(n_rare)
    parts = {
        "estimator": "estimator" if source is None else source.text,
        "weighted": _weighted_expression(estimator, y),
        "ratios": ratios_for(y),
        "inner": INNER_FOLDS,
        "rare": repr(rare),
        "neighbors": "" if neighbors == 5 else f"k_neighbors={neighbors}",
    }
    return imports + CODE[winner].format(**parts)
