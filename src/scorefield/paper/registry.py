"""Every experiment by its name, in the order of the paper."""

from scorefield.experiments.page import Study
from scorefield.paper.augment import AUGMENT_2D, MULTIMODAL_2D
from scorefield.paper.errata import ERRATA
from scorefield.paper.gaussians import GAUSSIAN_1D, GAUSSIAN_2D
from scorefield.paper.generative import GENERATIVE_10D, GENERATIVE_FRAUD
from scorefield.paper.imbalanced import FRAUD, IMBALANCED_10D
from scorefield.paper.linear import LINEAR_1D, LINEAR_2D
from scorefield.paper.logistic import LOGISTIC_1D, LOGISTIC_2D
from scorefield.paper.recover import RECOVER_1D, RECOVER_2D

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
    "Every experiment of Huang (2022), run again by scorefield. Means come with 95 % intervals over seeds. A claim "
    "holds where its whole interval agrees with it, holds within noise where only the mean does (a single seed can say "
    "no more of a difference), and does not hold otherwise. Claims marked as ours are not the paper's.",
    "scorefield reproduce",
    "In the paper: ",
)
