"""Ready-to-run code for a remedy before a given estimator, on the labels of the user's own table."""

import numpy as np

from scorefield.evaluation.remedies import NOTHING, RATIOS, THRESHOLD, WEIGHTS, smote_neighbors, weighted

NOISE, INTERPOLATED, OURS = "random with noise", "SMOTE", "score over-sampling"
OURS_TUNED = "score over-sampling, tuned"
OVER_SAMPLERS = (NOISE, INTERPOLATED, OURS, OURS_TUNED)
PIPELINE = "from imblearn.pipeline import make_pipeline\n"
CODE = {
    NOTHING: "model = {estimator}",
    WEIGHTS: "model = {weighted}",
    THRESHOLD: "from sklearn.metrics import f1_score, make_scorer\n"
    "from sklearn.model_selection import TunedThresholdClassifierCV\n"
    "model = TunedThresholdClassifierCV({estimator}, scoring=make_scorer(f1_score, pos_label={rare}))",
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
    + "                     {{'scoreoversampler__sampling_strategy': {ratios}}}, scoring=scorer)",
}


def ratios_for(y):
    """The ratios that any inner part can be brought to: those well above its own."""
    return [ratio for ratio in RATIOS if ratio > 1.3 * np.sum(y == 1) / np.sum(y == 0)]


def _expression(estimator):
    """(imports, expression) that make the estimator again, or a name for it where its parameters cannot be written."""
    kind = type(estimator)
    module = ".".join(part for part in kind.__module__.split(".") if not part.startswith("_"))
    own = ("", "estimator")  # the one that advise was given
    try:
        usual = kind().get_params(deep=False)
        changed = {k: v for k, v in estimator.get_params(deep=False).items() if repr(v) != repr(usual.get(k))}
        imports = f"from {module} import {kind.__name__}\n"
        text = f"{kind.__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"
        names = {}
        exec(imports + f"made = {text}", names)  # nothing but what was just written
    except Exception:
        return own
    return (imports, text) if repr(names["made"].get_params()) == repr(estimator.get_params()) else own


def _weighted_expression(estimator, y):
    heavier = weighted(estimator, y)
    if heavier is None:
        return "estimator"
    text = _expression(heavier)[1]
    if text != "estimator":
        return text
    name = "class_weight" if "class_weight" in heavier.get_params() else "scale_pos_weight"
    return f"estimator.set_params({name}={heavier.get_params()[name]!r})"


def code_for(winner, estimator, y, labels, n_rare):
    """Code for the winner on the table as it was given, whose (common, rare) labels are `labels`."""
    imports, text = _expression(estimator)
    common, rare = (label.item() if hasattr(label, "item") else label for label in labels)
    if "scale_pos_weight" in estimator.get_params() and (common, rare) != (0, 1):
        imports += f"y = (y == {rare!r}).astype(int)  # boosting takes labels of 0 and 1, and weighs the second\n"
        rare = 1
    neighbors = smote_neighbors(n_rare)
    parts = {
        "estimator": text,
        "weighted": _weighted_expression(estimator, y),
        "ratios": ratios_for(y),
        "rare": repr(rare),
        "neighbors": "" if neighbors == 5 else f"k_neighbors={neighbors}",
    }
    return imports + CODE[winner].format(**parts)
