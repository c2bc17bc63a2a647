"""Score-matching losses, minibatches and the one trainer."""

from scorefield.training.loop import train, train_many
from scorefield.training.losses import (
    ContrastiveDenoising,
    Denoising,
    Exact,
    MultilevelDenoising,
    NoisyRows,
    Sliced,
    fisher_divergence,
    mean_loss,
)

__all__ = [
    "ContrastiveDenoising",
    "Denoising",
    "Exact",
    "MultilevelDenoising",
    "NoisyRows",
    "Sliced",
    "fisher_divergence",
    "mean_loss",
    "train",
    "train_many",
]
