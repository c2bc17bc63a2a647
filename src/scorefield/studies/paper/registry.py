"""Experiments by name, in the order of the paper."""

from scorefield.studies.engine.page import Study
from scorefield.studies.paper.augment import AUGMENT_2D, MULTIMODAL_2D
from scorefield.studies.paper.errata import ERRATA
from scorefield.studies.paper.gaussians import GAUSSIAN_1D, GAUSSIAN_2D
from scorefield.studies.paper.generative import GENERATIVE_10D, GENERATIVE_FRAUD
from scorefield.studies.paper.imbalanced import FRAUD, IMBALANCED_10D
from scorefield.studies.paper.linear import LINEAR_1D, LINEAR_2D
from scorefield.studies.paper.logistic import LOGISTIC_1D, LOGISTIC_2D
from scorefield.studies.paper.recover import RECOVER_1D, RECOVER_2D

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        GAUSSIAN_1D,
        GAUSSIAN_2D,
        RECOVER_1D,
        RECOVER_2D,
        LOGISTIC_1D,
        LOGISTIC_2D,
        AUGMENT_2D,
        MULTIMODAL_2D,
        LINEAR_1D,
        LINEAR_2D,
        IMBALANCED_10D,
        FRAUD,
        GENERATIVE_10D,
        GENERATIVE_FRAUD,
        ERRATA,
    )
}
STUDY = Study(
    "Classification via score-based generative modelling, reproduced",
    "Every experiment of Huang (2022), run again by scorefield. Means come with 95 % intervals over seeds.",
    "scorefield reproduce",
    "In the paper: ",
    "A claim holds where its whole interval agrees with it, holds within noise where only the mean does (a single seed "
    "can say no more of a difference), and does not hold otherwise. Claims marked as ours are not the paper's.",
)
