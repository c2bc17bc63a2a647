"""A part of the benchmark's page in which a reader chooses experiment, measure, arms and tables."""

import importlib.resources
import json

import numpy as np

from scorefield.display.html import Raw
from scorefield.evaluation.metrics import LOWER_IS_BETTER
from scorefield.studies.benchmark.arms import OUR_CLASSIFIER
from scorefield.studies.benchmark.summaries import METRICS, OUR_ARMS, scores_by_learner

MEASURES = ("average_precision", "log_loss", "brier", "f1", "f1_tuned", "roc_auc", "seconds")


def explorer(found):
    """HTML with its own script and numbers, of (experiment, headers, rows) for each experiment."""
    learners = [(experiment, _learners(rows)) for experiment, _, rows in found]
    results = {each.name: {"title": each.title, "learners": own} for each, own in learners if own}
    if not results:
        return Raw("")
    text = (importlib.resources.files(__package__) / "explorer.html").read_text(encoding="utf-8")
    ours = [OUR_CLASSIFIER, *OUR_ARMS]
    return Raw(text.replace("/*RESULTS*/", _embedded(results)).replace("/*OURS*/", _embedded(ours)))


def _embedded(values):
    """JSON that no text in it can end the script of."""
    return json.dumps(values, separators=(",", ":")).replace("<", "\\u003c")


def _learners(rows):
    """Per learner the tables, the arms and (tables, arms) of every measure that all of them have."""
    found = {}
    for learner, scores in scores_by_learner(rows).items():
        values = {metric: scores.of(metric) for metric in MEASURES}
        metrics = {
            metric: {
                "name": METRICS[metric],
                "lower": metric in LOWER_IS_BETTER or metric == "seconds",
                "values": own.round(6).tolist(),
            }
            for metric, own in values.items()
            if own.size and np.isfinite(own).all()
        }
        if metrics:
            found[learner] = {"tables": scores.tables, "arms": scores.arms, "metrics": metrics}
    return found
