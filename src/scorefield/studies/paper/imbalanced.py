"""`imbalanced-10d` and `fraud`: over-samplers with ordinary classifiers.

Tab:synthesized_imbalanced_discriminative and Tab:fraud_detection, with further arms.
"""

import numpy as np
from imblearn.over_sampling import ADASYN, SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV, train_test_split
from sklearn.neural_network import MLPClassifier

from scorefield.data.datasets import fetch_creditcard, make_imbalanced_10d
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.estimators.prior_correction import PriorCorrectedClassifier
from scorefield.evaluation.metrics import NAMES, scores
from scorefield.evaluation.remedies import NOTHING, THRESHOLD, WEIGHTS, boosting, weighted
from scorefield.evaluation.statistics import seed_means, verdict_between
from scorefield.sampling.samplers import Langevin
from scorefield.studies.engine.experiment import Claim, Experiment, Section, compact, of_kind
from scorefield.studies.paper.comparison import (
    confusion_figure,
    differences_table,
    samples_figure,
    scores_table,
    superiority_claim,
)
from scorefield.studies.paper.settings import paper_density

TEST_ROWS_10D = 741
TEST_COUNTS_FRAUD = (72_352, 123)
SWAPPED = 18  # swapped training labels per class of the fraud data
SHOWN = 500  # rows in a figure
CASES_10D = {"score case 1": (0.01, 10, 0.2), "score case 2": (0.01, 20, 0.9), "score case 3": (0.0005, 40, 0.9)}
CASES_FRAUD = {"score case 1": (1e-4, 300, 0.1), "score case 2": (0.01, 100, 0.3), "score case 3": (0.05, 10, 0.1)}
BASELINES = ("SMOTE", "ADASYN", "noise .3", "noise 1")
OTHERS = (WEIGHTS, THRESHOLD, "random", *BASELINES)
PAPER_10D = {
    "RF": {
        "nothing": (0.17, 0.54, 0.25),
        "SMOTE": (0.50, 0.36, 0.42),
        "ADASYN": (0.52, 0.37, 0.44),
        "score case 1": (0.74, 0.44, 0.55),
        "score case 2": (0.86, 0.34, 0.49),
        "score case 3": (0.71, 0.52, 0.60),
    },
    "NN": {
        "nothing": (0.26, 0.31, 0.29),
        "SMOTE": (0.29, 0.27, 0.28),
        "ADASYN": (0.24, 0.22, 0.23),
        "score case 1": (0.48, 0.30, 0.37),
        "score case 2": (0.52, 0.22, 0.31),
        "score case 3": (0.48, 0.33, 0.39),
    },
}
PAPER_FRAUD = {
    "nothing": (0.54, 0.97, 0.70),
    "SMOTE": (0.68, 0.88, 0.77),
    "ADASYN": (0.69, 0.87, 0.77),
    "score case 1": (0.65, 0.98, 0.78),
    "score case 2": (0.72, 0.90, 0.80),
    "score case 3": (0.74, 0.82, 0.78),
}


def samplers(strategy, cases, hidden, seed):
    """Over-samplers by name; the score cases use the same field settings, and the last one is our default."""
    field = paper_density(hidden, seed)
    found = {
        "random": RandomOverSampler(sampling_strategy=strategy, random_state=seed),
        "noise .3": RandomOverSampler(sampling_strategy=strategy, shrinkage=0.3, random_state=seed),
        "noise 1": RandomOverSampler(sampling_strategy=strategy, shrinkage=1.0, random_state=seed),
        "SMOTE": SMOTE(sampling_strategy=strategy, random_state=seed),
        "ADASYN": ADASYN(sampling_strategy=strategy, random_state=seed),
    }
    for name, case in cases.items():
        found[name] = ScoreOverSampler(
            sampling_strategy=strategy, purpose="sharing", density=field, sampler=Langevin(*case), random_state=seed
        )
    # Keeps every row that it draws, like the paper's cases; the benchmark studies selection.
    found["ScoreOverSampler"] = ScoreOverSampler(sampling_strategy=strategy, purpose="sharing", random_state=seed)
    return found


def _arm_row(arm, learner, model, X_test, y_test, **extra):
    probability = model.predict_proba(X_test)[:, 1]
    found = scores(y_test, probability, model.predict(X_test))
    return {"kind": "arm", "arm": arm, "learner": learner, **found, **extra}


def compare(split, learners, over_samplers, seed):
    """Rows of all arms for each learner; fitted models use the test part only once."""
    X, X_test, y, y_test = split
    inner = StratifiedKFold(5, shuffle=True, random_state=seed)
    rows = []
    for name, learner in learners.items():
        rows.append(_arm_row(NOTHING, name, clone(learner).fit(X, y), X_test, y_test))
        heavier = weighted(learner, y)
        if heavier is not None:
            rows.append(_arm_row(WEIGHTS, name, heavier.fit(X, y), X_test, y_test))
        tuned = TunedThresholdClassifierCV(clone(learner), scoring="f1", cv=inner).fit(X, y)
        rows.append(_arm_row(THRESHOLD, name, tuned, X_test, y_test, threshold=float(tuned.best_threshold_)))
    for arm, sampler in over_samplers.items():
        X_more, y_more = sampler.fit_resample(X, y)
        for name, learner in learners.items():
            rows.append(_arm_row(arm, name, clone(learner).fit(X_more, y_more), X_test, y_test, n=len(y_more)))
        if seed == 0 and not arm.startswith(("random", "noise")):
            generated = np.random.default_rng(0).permutation(X_more[len(X) :, :2])[:SHOWN]
            rows.append({"kind": "generated", "arm": arm, "rows": compact(generated, 3)})
    for name, learner in learners.items():
        model = PriorCorrectedClassifier(make_pipeline(clone(over_samplers["ScoreOverSampler"]), clone(learner)))
        rows.append(_arm_row("ScoreOverSampler, corrected", name, model.fit(X, y), X_test, y_test))
    if seed == 0:
        rows.append(
            {
                "kind": "table",
                "names": ["first column", "second column"],
                "positives": compact(X[y == 1][:SHOWN, :2], 3),
                "negatives": compact(X[y == 0][:SHOWN, :2], 3),
            }
        )
    return rows


def _baselines_table(rows, **match):
    caption = "Paired differences of the baselines from doing nothing (* interval without zero)."
    return differences_table(rows, caption, OTHERS, (NOTHING,), **match)


def split_10d(seed):
    """Stratified split with as many test rows as in the paper's tables."""
    X, y = make_imbalanced_10d(seed)
    return train_test_split(X, y, test_size=TEST_ROWS_10D, stratify=y, random_state=seed)


def run_10d(seed, config):
    learners = {"RF": RandomForestClassifier(random_state=seed, n_jobs=1)}
    if config["network"]:
        learners["NN"] = MLPClassifier((32, 64, 128, 64, 32), max_iter=config["network_epochs"], random_state=seed)
    over_samplers = samplers("auto", CASES_10D, config["hidden"], seed)
    return compare(split_10d(seed), learners, over_samplers, seed)


def show_10d(rows):
    tables = []
    for learner, name in (("RF", "random forest"), ("NN", "network")):
        if of_kind(rows, "arm", learner=learner):
            caption = f"Over-samplers before a {name}; mean and 95 % interval over seeds."
            tables.append(scores_table(rows, caption, PAPER_10D[learner], learner=learner))
            caption = f"Paired differences with a {name} (* interval without zero)."
            arms = [*CASES_10D, "ScoreOverSampler"]
            tables.append(differences_table(rows, caption, arms, (NOTHING, *BASELINES), learner=learner))
    tables.append(_baselines_table(rows, learner="RF"))
    caption = "Mean confusion matrices with a forest; shade is the share of the true class."
    figures = [
        samples_figure(rows, "Original positives (black) and generated ones, first two columns, seed 0."),
        confusion_figure(rows, caption, learner="RF"),
    ]
    return Section(_claims_10d(rows), tables, figures)


def _claims_10d(rows):
    claims, selected = [], of_kind(rows, "arm", learner="RF")
    for arm, low, high in ((NOTHING, 0.1, 0.35), ("SMOTE", 0.3, 0.5)):
        value = seed_means(selected, "f1", arm=arm)
        text = f"The simulation is in the paper's regime: forest F1 with {arm} between {low} and {high}."
        claims.append(Claim(text, verdict_between(value, low, high), f"F1 {value}"))
    for arm in CASES_10D:
        for metric in ("recall", "f1"):
            for reference in BASELINES:
                own = "" if reference in ("SMOTE", "ADASYN") else " (a baseline that the paper lacks)"
                text = f"{arm} has a higher {NAMES[metric]} than {reference} with a forest{own}."
                claims.append(superiority_claim(rows, text, metric, arm, reference, learner="RF"))
    for reference, name in (("SMOTE", "SMOTE"), (NOTHING, "doing nothing")):
        text = f"ScoreOverSampler has a higher average precision than {name} with a forest (ours, not the paper's)."
        arms = ("ScoreOverSampler", reference)
        claims.append(superiority_claim(rows, text, "average_precision", *arms, learner="RF"))
    return claims


def split_fraud(seed):
    """V1 to V10 with the paper's counts; 18 labels per class are swapped, in the training part only."""
    bunch = fetch_creditcard()
    first = bunch.feature_names.index("V1")
    rng = np.random.default_rng(seed)
    test = np.concatenate(
        [
            rng.choice(np.flatnonzero(bunch.target == label), n, replace=False)
            for label, n in enumerate(TEST_COUNTS_FRAUD)
        ]
    )
    in_test = np.zeros(len(bunch.target), bool)
    in_test[test] = True
    columns = bunch.data[:, first : first + 10]
    X, X_test, y, y_test = columns[~in_test], columns[in_test], bunch.target[~in_test], bunch.target[in_test]
    swapped = [rng.choice(np.flatnonzero(y == label), SWAPPED, replace=False) for label in (0, 1)]
    y[np.concatenate(swapped)] ^= 1
    return X, X_test, y, y_test


def run_fraud(seed, config):
    learners = {"XGB": boosting(seed, n_estimators=config["n_trees"])}
    # ADASYN chooses the number of rows by itself: near 3,690, but not exactly.
    over_samplers = samplers({1: config["positives"]}, CASES_FRAUD, config["hidden"], seed)
    return compare(split_fraud(seed), learners, over_samplers, seed)


def show_fraud(rows):
    claims = []
    for arm in (NOTHING, "SMOTE", "ADASYN", *CASES_FRAUD):
        value = seed_means(of_kind(rows, "arm"), "f1", arm=arm)
        claims.append(
            Claim(
                f"F1 of XGB with {arm} is near Table 4 (.70 to .82; paper {PAPER_FRAUD[arm][2]:.2f}).",
                verdict_between(value, 0.70, 0.82),
                f"F1 {value}",
            )
        )
    for arm in CASES_FRAUD:
        for reference in (NOTHING, "SMOTE", "ADASYN", "noise .3", "noise 1"):
            claims.append(
                superiority_claim(rows, f"{arm} has a higher F1 than {reference} with XGB.", "f1", arm, reference)
            )
        claims.append(superiority_claim(rows, f"{arm} makes fewer errors than SMOTE with XGB.", "errors", arm, "SMOTE"))
    tables = [
        scores_table(rows, "Over-samplers before XGB on V1 to V10; mean and 95 % interval over seeds.", PAPER_FRAUD),
        differences_table(
            rows,
            "Paired differences (* interval without zero).",
            [*CASES_FRAUD, "ScoreOverSampler"],
            (NOTHING, *BASELINES),
            ("recall", "precision", "f1", "errors", "average_precision", "brier"),
        ),
        _baselines_table(rows),
    ]
    figures = [
        samples_figure(rows, "Original frauds (black) and generated ones, V1 and V2, seed 0; tails are cut off."),
        confusion_figure(rows, "Mean confusion matrices; shade is the share of the true class."),
    ]
    return Section(claims, tables, figures)


IMBALANCED_10D = Experiment(
    "imbalanced-10d",
    "Table 2: over-sampling a ten-dimensional simulation",
    "Raises 128 positives to parity with SMOTE, ADASYN and three Langevin settings on a learned field, before a random "
    "forest and a network; one split.",
    run_10d,
    show_10d,
    20,
    2,
    {"hidden": [128, 256, 128], "network": True, "network_epochs": 100},
    {"network": False},
)
FRAUD = Experiment(
    "fraud",
    "Table 4: over-sampling the credit-card frauds",
    "Trains XGB on V1 to V10 of 212,332 transactions with 369 frauds, 36 labels swapped, the frauds raised to 3,690; "
    "one split.",
    run_fraud,
    show_fraud,
    10,
    1,
    {"hidden": [128, 256, 128], "positives": 3690, "n_trees": 100},
)
