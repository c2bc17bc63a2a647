"""A first look at the 10-D imbalanced simulation of the paper: over-samplers before a random forest, and classifiers.

Stratified splits with 741 test rows, as in the paper's Table 2; recall, precision and F1 at one half, average
precision and Brier score; means over seeds with their standard error. Doing nothing, class weights and random
over-sampling with noise are there to refute the claim that score fields help.

    python benchmarks/first_look.py [--seeds 10]
"""

import argparse
import warnings

import numpy as np
from imblearn.over_sampling import ADASYN, SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, precision_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from scorefield import Langevin, PriorCorrectedClassifier, ScoreClassifier, ScoreDensity, ScoreOverSampler


def arms(seed):
    def forest(**options):
        return RandomForestClassifier(random_state=seed, n_jobs=2, **options)

    def after(sampler):
        return make_pipeline(sampler, forest())

    exact = ScoreDensity(model="mlp", objective="exact", activation="relu", standardize=False)

    def langevin(step, length, discard):
        return ScoreOverSampler(density=exact, sampler=Langevin(step, length, discard), random_state=seed)

    return {
        "forest": forest(),
        "forest, class weights": forest(class_weight="balanced"),
        "random + noise": after(RandomOverSampler(shrinkage=0.3, random_state=seed)),
        "SMOTE": after(SMOTE(random_state=seed)),
        "ADASYN": after(ADASYN(random_state=seed)),
        "paper: l=10, eps=.01": after(langevin(0.01, 10, 0.2)),
        "paper: l=20, eps=.01": after(langevin(0.01, 20, 0.9)),
        "paper: l=40, eps=.0005": after(langevin(0.0005, 40, 0.9)),
        "ScoreOverSampler": after(ScoreOverSampler(random_state=seed)),
        "ScoreOverSampler, corrected": PriorCorrectedClassifier(after(ScoreOverSampler(random_state=seed))),
        "GaussianNB": GaussianNB(),
        "ScoreClassifier": ScoreClassifier(random_state=seed),
        "ScoreClassifier, no labels": ScoreClassifier(label_weight=0.0, random_state=seed),
    }


METRICS = ("recall", "precision", "F1", "AP", "Brier")


def evaluate(model, X, X_test, y, y_test):
    proba = model.fit(X, y).predict_proba(X_test)[:, 1]
    predicted = proba >= 0.5
    return (
        recall_score(y_test, predicted),
        precision_score(y_test, predicted, zero_division=0),
        f1_score(y_test, predicted),
        average_precision_score(y_test, proba),
        brier_score_loss(y_test, proba),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    n_seeds = parser.parse_args().seeds
    warnings.filterwarnings("ignore", category=UserWarning)
    results = {}
    for seed in range(n_seeds):
        X, y = make_classification(
            3000, 10, n_informative=3, n_redundant=0, n_clusters_per_class=2, weights=[0.95], flip_y=0.01,
            class_sep=0.8, random_state=seed,
        )  # fmt: skip
        X, X_test, y, y_test = train_test_split(X, y, test_size=741, stratify=y, random_state=seed)
        for name, model in arms(seed).items():
            results.setdefault(name, []).append(evaluate(model, X, X_test, y, y_test))
    print(f"{n_seeds} seeds, mean +- standard error")
    print(f"{'':<28}" + "".join(f"{metric:>16}" for metric in METRICS))
    for name, rows in results.items():
        values = np.array(rows)
        errors = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros(len(METRICS))
        cells = "".join(f"{m:>9.3f} +-{e:.3f}" for m, e in zip(values.mean(axis=0), errors, strict=True))
        print(f"{name:<28}" + cells, flush=True)


if __name__ == "__main__":
    main()
