"""How often Metropolis-adjusted chains should accept: near the best rate of MALA, .57 (Roberts & Rosenthal 1998)."""

from typing import Any

from scorefield._jax.errors import warn_caller

LOW_ACCEPTANCE, USUAL_ACCEPTANCE = 0.1, 0.5


def warn_of_low_acceptance(samples: Any, sampler: Any) -> None:
    """Warn where most proposals of a Metropolis-adjusted sampler were rejected."""
    if samples.acceptance is not None and samples.acceptance < LOW_ACCEPTANCE:
        warn_caller(
            f"{type(sampler).__name__} accepted only {samples.acceptance:.1%} of its proposals, so many rows are "
            "copies of their starts; choose a smaller step_size."
        )
