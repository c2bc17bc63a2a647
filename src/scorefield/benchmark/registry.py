"""The benchmark's experiments by name, and what its page says of them."""

import dataclasses

from scorefield.benchmark.generative import GENERATIVE
from scorefield.benchmark.oversampling import OVERSAMPLING
from scorefield.experiments.page import Study

# The same with the optional peers, beside the others: a machine that has them must not change the study's rows.
PEERS = dataclasses.replace(
    OVERSAMPLING,
    name="peers",
    title="Remedies for imbalance, with other generators",
    config={**OVERSAMPLING.config, "peers": True},
)
EXPERIMENTS = {experiment.name: experiment for experiment in (OVERSAMPLING, GENERATIVE, PEERS)}
DEFAULT = (OVERSAMPLING.name, GENERATIVE.name)
STUDY = Study(
    "Remedies for imbalance and generative classifiers on real tables",
    "Half of the rows of each table are its development half: this library's defaults were chosen on them, so they are "
    "in every training part and in no test part. Equal rows stay on one side of every train-test split. Columns are "
    "standardised by the training part; every sampler, weight and threshold sees training rows alone. Claims compare "
    "means over tables; a better rank holds where a one-sided signed-rank test over tables agrees (p < .05), and "
    "holds within noise where only the ranks do. The paper's three cases share a field: the first pays for it.",
    "scorefield benchmark",
)
