"""`oversampling`: remedies for imbalance with five learners, on every table.

The paper's comparison (Tab:fraud_detection) with further arms that could refute it.
"""

import jax
import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from scorefield.data.splits import same_rows, stratified_folds
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.evaluation.metrics import best_threshold, decision_scores, measured, scores
from scorefield.evaluation.remedies import NOTHING, RATIOS, THRESHOLD, WEIGHTS, TunedThreshold, learners, weighted
from scorefield.sampling.samplers import Langevin
from scorefield.studies.benchmark import tables
from scorefield.studies.benchmark.arms import OURS_TUNED, over_samplers
from scorefield.studies.benchmark.summaries import show_oversampling
from scorefield.studies.engine.experiment import Experiment, compact

INNER_FOLDS = 3
CHAINS = {"short": (0.005, 20, 0.95), "default": None}  # step size, chain length, discarded share
PROTOCOL = 6  # raise it when a change of the code changes the rows, so that older rows are run again
OVERSAMPLING_PROTOCOL = 7  # likewise, for the rows of this experiment and those made from it
SPLITS = {"n_folds": 2, "n_repeats": 3, "max_rows": 3000, "protocol": PROTOCOL}
QUICK_TABLES = ("ecoli", "yeast_me2", "oil", "car_eval_4", "solar_flare_m0")


class Split:
    """Standardised training and test rows of one split, and inner folds of the training rows, if any are asked for."""

    def __init__(self, name, number, seed, config):
        self.name, self.number = name, number
        X, y = tables.load(name)
        kept, held = kept_and_held(X, y, number, config)
        scaler = StandardScaler().fit(X[kept])
        self.X, self.X_test = scaler.transform(X[kept]), scaler.transform(X[held])
        self.y, self.y_test = y[kept], y[held]
        n_inner = config.get("inner_folds", INNER_FOLDS)
        self.inner = stratified_folds(self.y, same_rows(self.X), n_inner, seed) if n_inner else []

    def parts(self):
        """Indices of the inner folds' training rows, then of all training rows."""
        return [*(kept for kept, _ in self.inner), np.arange(len(self.y))]

    def held_out(self, models):
        """Labels and probabilities of the held-out rows of the first inner folds, one for each model."""
        pairs = [(self.y[held], model.predict_proba(self.X[held])[:, 1])
                 for model, (_, held) in zip(models, self.inner, strict=False)]  # fmt: skip
        return tuple(np.concatenate(part) for part in zip(*pairs, strict=True))


def finished(rows, split):
    """Rows with the table and the number of a split; also clears jax's caches: other tables need other programs."""
    jax.clear_caches()
    share = round(len(split.y_test) / len(split.y), 4)
    return [{**row, "table": split.name, "split": split.number, "test_share": share} for row in rows]


def kept_and_held(X, y, number, config):
    """Training and test indices of one split."""
    settings = {key: config[key] for key in ("n_folds", "n_repeats", "max_rows")}
    return list(tables.splits(X, y, **settings))[number]


def table_and_split(seed, config):
    """Table and split of a seed: seeds run through the tables first, then through the splits."""
    number, index = divmod(seed, len(config["tables"]))
    if number >= config["n_folds"] * config["n_repeats"]:
        most = len(config["tables"]) * config["n_folds"] * config["n_repeats"]
        raise ValueError(f"Expected at most {most} seeds, got seed number {seed + 1}; ask for fewer.")
    return config["tables"][index], number


def resampled(sampler, X, y):
    """The resampled table; if a sampler refuses it, the table itself and the sampler's message."""
    if sampler is None:
        return X, y, None
    try:
        return *sampler.fit_resample(X, y), None
    except (ValueError, RuntimeError) as error:
        return X, y, " ".join(str(error).split())[:120]


def measures(y, probability):
    """Measures of probabilities, and of decisions at one half."""
    probability = np.asarray(probability, dtype=float)
    found = scores(y, probability, probability >= 0.5)
    return {name: found[name] for name in ("average_precision", "roc_auc", "f1", "brier", "log_loss")}


def _measures_at(threshold, y, probability):
    """Measures of probabilities, and of decisions at one half and at the threshold."""
    tuned = decision_scores(y, np.asarray(probability) >= threshold)["f1"]
    return measures(y, probability) | {"f1_tuned": tuned, "threshold": threshold}


def row_of_arm(arm, learner, found, cost, **extra):
    """Measures and cost of an arm with a learner, with few digits."""
    found = found | {"seconds": cost.seconds, "megabytes": cost.megabytes}
    short = {key: None if value is None else compact(np.float64(value), 4) for key, value in found.items()}
    return {"kind": "arm", "arm": arm, "learner": learner, **short, **extra}


def _arm_row(arm, learner, split, models, cost, **extra):
    """Measures of the last model, with a threshold tuned on the inner folds, if there are any, by the other models."""
    probability = models[-1].predict_proba(split.X_test)[:, 1]
    found = measures(split.y_test, probability)
    if split.inner:
        found = _measures_at(best_threshold(*split.held_out(models[:-1])), split.y_test, probability)
    return row_of_arm(arm, learner, found, cost, **extra)


def rows_of_arm(arm, sampler, split, models):
    """Rows of one remedy with every learner; learners share the resampled tables."""
    tables = []
    for part in split.parts():
        with measured() as sampling:
            tables.append(resampled(sampler, split.X[part], split.y[part]))
    for name, learner in models.items():
        fitted = []
        for X, y, _ in tables:
            with measured() as cost:
                fitted.append(clone(learner).fit(X, y))
        cost.seconds += sampling.seconds
        if cost.megabytes is not None:
            cost.megabytes = max(cost.megabytes, sampling.megabytes)
        refused = {} if tables[-1][2] is None else {"refused": tables[-1][2]}
        yield _arm_row(arm, name, split, fitted, cost, n=len(tables[-1][1]), **refused)


def _threshold_arm(split, models):
    """Rows of scikit-learn's tuned threshold; both F1 measures use this threshold."""
    for name, learner in models.items():
        with measured() as cost:
            tuned = TunedThreshold(clone(learner), scoring="f1", cv=split.inner).fit(split.X, split.y)
        probability = tuned.predict_proba(split.X_test)[:, 1]
        found = _measures_at(tuned.best_threshold_, split.y_test, probability)
        yield row_of_arm(THRESHOLD, name, found | {"f1": found["f1_tuned"]}, cost, n=len(split.y))


def _thinned(X, y, n_before, ratio, rng):
    """A balanced table with only as many of its new rows as a ratio needs."""
    wanted = int(ratio * np.sum(y == 0)) - np.sum(y[:n_before] == 1)
    new = n_before + rng.permutation(len(y) - n_before)[: max(wanted, 0)]
    index = np.concatenate([np.arange(n_before), new])
    return X[index], y[index]


def _tuned_arm(split, models, seed):
    """Rows of our sampler with chain and ratio chosen by average precision on the inner folds."""
    from sklearn.metrics import average_precision_score

    rng, settings, tables, spent = np.random.default_rng(seed), [], [], 0.0
    for chain, values in CHAINS.items():
        sampler = ScoreOverSampler(
            purpose="sharing", sampler=None if values is None else Langevin(*values), random_state=seed, where="clear",
            bounds=None,
        )  # fmt: skip
        with measured() as sampling:
            even = [(part, *resampled(sampler, split.X[part], split.y[part])[:2]) for part in split.parts()]
        spent += sampling.seconds
        for ratio in RATIOS:
            settings.append({"chain": chain, "ratio": ratio})
            tables.append([_thinned(X, y, len(part), ratio, rng) for part, X, y in even])
    for name, learner in models.items():
        with measured() as search:
            tried = []
            for parts in tables:
                fitted = [clone(learner).fit(X, y) for X, y in parts[:-1]]
                tried.append((average_precision_score(*split.held_out(fitted)), fitted))
        best = int(np.argmax([value for value, _ in tried]))
        with measured() as cost:
            final = clone(learner).fit(*tables[best][-1])
        cost.seconds += search.seconds + spent
        log = {"chosen": settings[best], "inner": compact(np.array([value for value, _ in tried]), 3)}
        yield _arm_row(OURS_TUNED, name, split, [*tried[best][1], final], cost, n=len(tables[best][-1][1]), **log)


def run(seed, config):
    name, number = table_and_split(seed, config)
    split = Split(name, number, seed, config)
    models = learners(seed)
    rows = list(rows_of_arm(NOTHING, None, split, models))
    rows += _threshold_arm(split, models)
    for learner, model in models.items():
        heavier = weighted(model, split.y)
        rows += [] if heavier is None else rows_of_arm(WEIGHTS, None, split, {learner: heavier})
    n_rare = min(int(split.y[part].sum()) for part in split.parts())
    for arm, sampler in over_samplers(n_rare, seed).items():
        rows += rows_of_arm(arm, sampler, split, models)
    if config["tuned"]:
        rows += _tuned_arm(split, models, seed)
    return finished(rows, split)


OVERSAMPLING = Experiment(
    "oversampling",
    "Remedies for imbalance before five learners",
    "22 tables of imbalanced-learn's collection, thinned to 3,000 rows; half of a table's rows are in every training "
    "part, the rest is tested by two-fold cross-validation; every 44 seeds repeat it. ScoreOverSampler is "
    "that for sharing, which was its default when these rows were made; `learning` has the present one.",
    run,
    show_oversampling,
    len(tables.TABLES) * SPLITS["n_folds"] * SPLITS["n_repeats"],
    len(QUICK_TABLES),
    {"tables": list(tables.TABLES), **SPLITS, "protocol": OVERSAMPLING_PROTOCOL, "tuned": False},
    {"tables": list(QUICK_TABLES)},
)
