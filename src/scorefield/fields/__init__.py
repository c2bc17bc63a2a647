"""Score fields as functions of one point: Gaussian, networks, diffusion, random features, joint energies, mixtures."""

from scorefield.fields.base import Field
from scorefield.fields.diffusion import DiffusionField, init_diffusion_field
from scorefield.fields.flow import FlowLogDensity
from scorefield.fields.gaussian import Gaussian, fit_gaussian, gaussian_from_covariance, standard_gaussian
from scorefield.fields.joint import JointEnergies, init_joint
from scorefield.fields.mixtures import GaussianMixture, mixture
from scorefield.fields.neural import EnergyField, VectorField, init_energy_field, init_vector_field
from scorefield.fields.random_features import KernelField, fit_kernel

__all__ = [
    "DiffusionField",
    "EnergyField",
    "Field",
    "FlowLogDensity",
    "Gaussian",
    "GaussianMixture",
    "JointEnergies",
    "KernelField",
    "VectorField",
    "fit_gaussian",
    "fit_kernel",
    "gaussian_from_covariance",
    "init_diffusion_field",
    "init_energy_field",
    "init_joint",
    "init_vector_field",
    "mixture",
    "standard_gaussian",
]
