"""Markov kernels and the samplers that users hold."""

from scorefield.sampling.samplers import HMC, MALA, AnnealedLangevin, Langevin, ReverseDiffusion, Samples

__all__ = [
    "AnnealedLangevin",
    "HMC",
    "Langevin",
    "MALA",
    "ReverseDiffusion",
    "Samples",
]
