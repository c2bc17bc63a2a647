"""`learning` and `mixed-learning`: learners after over-samplers, taught by ScoreClassifier, and the controls.

One teacher is fitted for each split and serves every arm that needs it. Arms and learners can be run a few at a time.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from scorefield.data.splits import stratified_folds
from scorefield.estimators.distilled import DistilledClassifier
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation import remedies
from scorefield.evaluation.metrics import best_threshold, decision_scores, measured
from scorefield.evaluation.remedies import NOTHING, WEIGHTS, boosting, weighted
from scorefield.studies.benchmark import arms, mixed, mixed_tables, tables
from scorefield.studies.benchmark.arms import DISTILLED, NOISE, OURS, OUT_OF_FOLD, SHARING, SMOTE_ROWS, TEACHER
from scorefield.studies.benchmark.classifiers import tuned_boosting
from scorefield.studies.benchmark.learning_summary import show_learning
from scorefield.studies.benchmark.lessons import Lessons
from scorefield.studies.benchmark.oversampling import (
    QUICK_TABLES,
    SPLITS,
    Split,
    finished,
    measures,
    resampled,
    row_of_arm,
    table_and_split,
)
from scorefield.studies.engine.experiment import Experiment

ESSENTIAL = (NOTHING, NOISE, SMOTE_ROWS, OURS, SHARING, DISTILLED, TEACHER, OUT_OF_FOLD)
CONTROLS = (arms.HALF_OUT_OF_FOLD, arms.PARENTS_LABELS, arms.AS_MANY_ROWS, arms.BOOSTING_TEACHES, arms.FOREST_TEACHES,
            arms.SPUNGE)  # fmt: skip
NUMERIC_ARMS = (*ESSENTIAL, WEIGHTS, "ADASYN", *arms.PAPER_CASES, *CONTROLS)
MIXED_ARMS = (*ESSENTIAL, WEIGHTS, *CONTROLS)
FIVE = ("boosting", "forest", "network", "logistic", "neighbours")
TUNED = "tuned boosting"  # settings are chosen once for each split, on its real rows, and serve every arm
LEARNERS = (*FIVE, TUNED)
TUNED_TEACHER, FOREST_TEACHER = "tuned XGBoost", "forest of 500"
HALVINGS = 5  # of the test rows, to choose thresholds on one half and decide on the other
LEARNING_PROTOCOL = 2  # raise it when a change of the code changes the rows, so that older rows are run again


class Task(NamedTuple):
    """A split with all that its arms need."""

    split: Any
    seed: int
    learners: dict[str, tuple[Any, Any]]  # name to encoder (or None) and classifier
    samplers: dict[str, Callable[[], tuple[Any, Any, str | None]]]  # arm to resampled table, labels and refusal
    lessons: Lessons

    def model(self, learner, heavier=False):
        """An unfitted learner; with class weights, or None where it takes none."""
        encoder, model = self.learners[learner]
        if heavier:
            model = weighted(model, self.split.y)
        return None if model is None else piped(encoder, model)


def piped(encoder, model):
    return clone(model) if encoder is None else make_pipeline(clone(encoder), clone(model))


def crossed_f1(y, probability, seed):
    """F1 of decisions at thresholds that the other half of the test rows chose, a mean over random halves."""
    values = []
    for k in range(HALVINGS):
        decided = np.zeros(len(y), bool)
        for chosen_on, decided_on in stratified_folds(y, np.arange(len(y)), 2, seed + k):
            decided[decided_on] = probability[decided_on] >= best_threshold(y[chosen_on], probability[chosen_on])
        values.append(decision_scores(y, decided)["f1"])
    return float(np.mean(values))


def _distilled(task, model, n_new_rows="auto"):
    student = DistilledClassifier(
        model, FrozenEstimator(task.lessons.teacher), n_new_rows=n_new_rows, random_state=task.seed
    ).fit(task.split.X, task.split.y)
    return student, len(task.split.y) + student.n_new_rows_


def _parents_labels(task, model):
    return task.lessons.taught(model, lambda rows, parents: np.eye(2)[task.split.y[parents]])


def _told_by(teacher, task, model, kind="chains"):
    return task.lessons.taught(model, lambda rows, parents: teacher(task).predict_proba(rows), kind)


def _shortfall(task):
    return int(np.sum(task.split.y == 0) - np.sum(task.split.y == 1))


# Arm to what it shares with others, by which its time is counted, and to a function of task and learner that returns
# the fitted model and its number of rows.
TAUGHT = {
    DISTILLED: (["teacher"], _distilled),
    OUT_OF_FOLD: (["out of fold"], lambda task, model: task.lessons.relabelled(model, 0.0)),
    arms.HALF_OUT_OF_FOLD: (["out of fold"], lambda task, model: task.lessons.relabelled(model, 0.5)),
    arms.PARENTS_LABELS: (["teacher"], _parents_labels),
    arms.AS_MANY_ROWS: (["teacher"], lambda task, model: _distilled(task, model, _shortfall(task))),
    arms.BOOSTING_TEACHES: (
        ["teacher", TUNED_TEACHER],
        functools.partial(_told_by, lambda task: task.lessons.peer(TUNED_TEACHER)),
    ),
    arms.FOREST_TEACHES: (
        ["teacher", FOREST_TEACHER],
        functools.partial(_told_by, lambda task: task.lessons.peer(FOREST_TEACHER)),
    ),
    arms.SPUNGE: (["teacher"], functools.partial(_told_by, lambda task: task.lessons.teacher, kind="spunge")),
}


def _shared_seconds(task, names):
    """Make the shared parts that an arm needs; their seconds in all."""
    for name in names:
        if name == "teacher":
            _ = task.lessons.teacher
        elif name == "out of fold":
            _ = task.lessons.out_of_fold
        else:
            task.lessons.peer(name)
    return sum(task.lessons.seconds[name] for name in names)


def _row(task, arm, learner, model, cost, before, **extra):
    probability = np.asarray(model.predict_proba(task.split.X_test), dtype=float)[:, 1]
    found = measures(task.split.y_test, probability)
    found["f1_tuned"] = crossed_f1(task.split.y_test, probability, task.seed)
    cost.seconds += before
    return row_of_arm(arm, learner, found, cost, **extra)


def rows_of_parts(task, parts):
    """Rows of (arm, learner) pairs; learners share the resampled table of an arm."""
    for arm, pairs in itertools.groupby(parts, key=lambda part: part[0]):
        learners = [learner for _, learner in pairs]
        if arm == TEACHER:
            before = _shared_seconds(task, ["teacher"])
            for learner in learners:  # the same row: it stands beside every learner
                with measured() as cost:
                    model = task.lessons.teacher
                yield _row(task, arm, learner, model, cost, before, n=len(task.split.y))
        elif arm in TAUGHT:
            names, fit = TAUGHT[arm]
            before = _shared_seconds(task, names)
            for learner in learners:
                with measured() as cost:
                    fitted, n = fit(task, task.model(learner))
                yield _row(task, arm, learner, fitted, cost, before, n=n)
        else:
            yield from _rows_after_sampler(task, arm, learners)


def _rows_after_sampler(task, arm, learners):
    before = _shared_seconds(task, ["teacher"]) if arm == OURS else 0.0
    with measured() as sampling:
        X, y, refused = task.samplers[arm]() if arm in task.samplers else (task.split.X, task.split.y, None)
    for learner in learners:
        model = task.model(learner, heavier=arm == WEIGHTS)
        if model is None:
            continue
        with measured() as cost:
            fitted = model.fit(X, y)
        extra = {} if refused is None else {"refused": refused}
        yield _row(task, arm, learner, fitted, cost, before + sampling.seconds, n=len(y), **extra)


def ours(lessons, seed):
    """Our over-samplers by arm; the default takes the teacher that there is."""
    return {
        OURS: lambda: ScoreOverSampler(teacher=FrozenEstimator(lessons.teacher), random_state=seed),
        SHARING: lambda: ScoreOverSampler(purpose="sharing", random_state=seed),
    }


def numeric_task(name, number, seed, config):
    split = Split(name, number, seed, config)
    usual = remedies.learners(seed)
    peers = {
        TUNED_TEACHER: tuned_boosting(seed, split.inner),
        FOREST_TEACHER: RandomForestClassifier(500, random_state=seed, n_jobs=1),
    }
    lessons = Lessons(split, peers, seed)
    learners = {name: (None, usual[name]) for name in FIVE}
    others = arms.over_samplers(int(split.y.sum()), seed)
    makers = {arm: functools.partial(others.get, arm) for arm in others} | ours(lessons, seed)
    samplers = {arm: functools.partial(_resample, make, split.X, split.y) for arm, make in makers.items()}
    return Task(split, seed, learners, samplers, lessons)


def _resample(make, X, y):
    return resampled(make(), X, y)


def mixed_task(name, number, seed, config):
    split = mixed.split_of(name, number, seed, config)
    trees, filled, one_hot = (make(split.X) for make in (
        mixed_tables.codes, mixed_tables.filled_codes, lambda frame: mixed_tables.one_hot()))  # fmt: skip
    learners = {
        "boosting": (trees, boosting(seed)),
        "forest": (filled, RandomForestClassifier(random_state=seed, n_jobs=1)),
        "network": (one_hot, MLPClassifier(max_iter=100, random_state=seed)),
        "logistic": (one_hot, LogisticRegression(max_iter=1000)),
        "neighbours": (one_hot, KNeighborsClassifier()),
    }
    peers = {
        TUNED_TEACHER: mixed.OnEncodedRows(trees, tuned_boosting(seed, split.inner)),
        FOREST_TEACHER: make_pipeline(filled, RandomForestClassifier(500, random_state=seed, n_jobs=1)),
    }
    lessons = Lessons(split, peers, seed)
    makers = ours(lessons, seed)
    samplers = {arm: functools.partial(_resample, make, split.X, split.y) for arm, make in makers.items()}
    samplers[SMOTE_ROWS] = lambda: (*mixed.smotenc(split.X, split.y, seed), None)
    samplers[NOISE] = lambda: (*mixed.noisy_copies(split.X, split.y, seed), None)
    return Task(split, seed, learners, samplers, lessons)


def with_tuned_boosting(task, encoder=None):
    """The task with a further learner: boosting whose settings random search has chosen on the real rows."""
    X = task.split.X if encoder is None else clone(encoder).fit_transform(task.split.X)
    search = tuned_boosting(task.seed, task.split.inner).fit(X, task.split.y)
    return task._replace(learners={**task.learners, TUNED: (encoder, clone(search.best_estimator_))})


def run(task_of, seed, config):
    name, number = table_and_split(seed, config)
    task = task_of(name, number, seed, config)
    parts = config["parts"]
    if any(learner == TUNED for _, learner in parts):
        task = with_tuned_boosting(task, task.learners["boosting"][0])
    return finished(list(rows_of_parts(task, sorted(parts, key=lambda part: NUMERIC_ARMS.index(part[0])))), task.split)


def _experiment(name, title, what, task_of, names, quick, of_arms):
    return Experiment(
        name,
        title,
        f"{what} One teacher is fitted for each split and serves all arms that need it. F1 is that of thresholds which "
        "the other half of the test rows chose. The recipes were found with the help of other tables and of these "
        "among them.",
        functools.partial(run, task_of),
        show_learning,
        len(names) * SPLITS["n_folds"] * SPLITS["n_repeats"],
        len(quick),
        {
            "tables": list(names),
            **SPLITS,
            "protocol": LEARNING_PROTOCOL,
            "parts": [list(part) for part in itertools.product(of_arms, LEARNERS)],
        },
        {
            "tables": list(quick),
            "parts": [list(part) for part in itertools.product(ESSENTIAL, FIVE)],
        },
    )


LEARNING = _experiment(
    "learning",
    "Rows that help a learner, and a teacher for it",
    "22 tables of imbalanced-learn's collection, thinned to 3,000 rows, before five learners and a tuned XGBoost.",
    numeric_task,
    tables.TABLES,
    QUICK_TABLES[:2],
    NUMERIC_ARMS,
)
MIXED_LEARNING = _experiment(
    "mixed-learning",
    "Rows that help a learner, and a teacher for it, on mixed tables",
    "Four raw tables of numbers, text, spikes and missing values before five learners and a tuned XGBoost.",
    mixed_task,
    mixed.OVERSAMPLED,
    ("titanic",),
    MIXED_ARMS,
)
