"""`peers`: over-sampling by other generators of rows, beside ours and simple remedies.

They need torch or minutes a class, so that this is an experiment of its own, on the narrow tables, without thresholds.
"""

import importlib.util

import numpy as np

from scorefield.evaluation.remedies import NOTHING, learners
from scorefield.studies.benchmark.arms import OURS_CLEAR, SHARING, GeneratorOverSampler, over_samplers
from scorefield.studies.benchmark.oversampling import (
    OVERSAMPLING_PROTOCOL,
    SPLITS,
    Split,
    finished,
    rows_of_arm,
    table_and_split,
)
from scorefield.studies.benchmark.summaries import show_generators
from scorefield.studies.engine.experiment import Experiment

BESIDE = ("noise .3", "SMOTE", SHARING, OURS_CLEAR)
# At most 16 columns: ForestDiffusion trains 50 models a column.
NARROW = ("ecoli", "yeast_me2", "mammography", "wine_quality", "abalone_19", "abalone", "letter_img", "pen_digits")
NRGBOOST = {
    "num_trees": 100,
    "shrinkage": 0.15,
    "max_leaves": 64,
    "max_ratio_in_leaf": 2,
    "num_model_samples": 10_000,
    "p_refresh": 0.1,
    "num_chains": 16,
    "burn_in": 100,
}  # the package's example with half of the trees, a quarter of the leaves and an eighth of the samples: small classes


def _frame(rows):
    import pandas as pd

    return pd.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])])


def forest_diffusion_rows(rows, n, seed):
    from ForestDiffusion import ForestDiffusionModel

    before = np.random.get_state()  # noqa: NPY002  the only generator that it uses
    np.random.seed(seed)  # noqa: NPY002
    try:
        return ForestDiffusionModel(rows, n_t=50, duplicate_K=10, n_jobs=1).generate(batch_size=n)
    finally:
        np.random.set_state(before)  # noqa: NPY002


def ctgan_rows(rows, n, seed):
    from ctgan import CTGAN

    model = CTGAN(epochs=300, pac=1, batch_size=100)
    model.set_random_state(seed)
    model.fit(_frame(rows))
    return model.sample(n).to_numpy()


def nrgboost_rows(rows, n, seed):
    from nrgboost import Dataset, NRGBooster

    varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)  # it refuses constant columns
    model = NRGBooster.fit(Dataset(_frame(rows[:, varying])), NRGBOOST, seed=seed)
    made = np.repeat(rows[:1], n, axis=0)
    made[:, varying] = model.sample(n, num_steps=100).to_numpy()
    return made


PEERS = {
    "ForestDiffusion": ("ForestDiffusion", forest_diffusion_rows),
    "CTGAN": ("ctgan", ctgan_rows),
    "NRGBoost": ("nrgboost", nrgboost_rows),
}


def run(seed, config):
    missing = [package for package, _ in PEERS.values() if not importlib.util.find_spec(package)]
    if missing:
        raise ValueError(f"Expected the packages of all peers, got no {' and no '.join(missing)}; pip install them.")
    name, number = table_and_split(seed, config)
    split, models = Split(name, number, seed, config), learners(seed)
    beside = over_samplers(int(split.y.sum()), seed)
    arms = {NOTHING: None} | {arm: beside[arm] for arm in BESIDE}
    arms |= {arm: GeneratorOverSampler(rows, random_state=seed) for arm, (_, rows) in PEERS.items()}
    return finished([row for arm, sampler in arms.items() for row in rows_of_arm(arm, sampler, split, models)], split)


GENERATOR_PEERS = Experiment(
    "peers",
    "Remedies for imbalance, with other generators",
    "ForestDiffusion, CTGAN and NRGBoost beside simple remedies and ScoreOverSampler on "
    f"{len(NARROW)} tables of at most 16 columns; one split of each, of the same splits.",
    run,
    show_generators,
    len(NARROW),
    2,
    {"tables": list(NARROW), **SPLITS, "protocol": OVERSAMPLING_PROTOCOL, "inner_folds": 0},
)
