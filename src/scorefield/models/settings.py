"""Settings of estimators as models take them: those that were changed, and those of an energy of mixed rows."""

import inspect

from scorefield.data.spaces import refuse_mixed, what_is_mixed

MODELS_OF_MIXED = ("auto", "energy")  # of `ScoreDensity`
MIXED_SETTINGS = ("model", "hidden", "noise", "max_steps", "columns", "random_state", "verbose")


def changed_settings(estimator, but=()):
    """Parameters that have other values than their defaults, as a dictionary; those named in `but` are left out."""
    defaults = {name: each.default for name, each in inspect.signature(type(estimator)).parameters.items()}
    given = estimator.get_params(deep=False)
    return {
        name: value
        for name, value in given.items()
        if name not in but and (value is not defaults[name] and repr(value) != repr(defaults[name]))
    }


def refuse_model_of_mixed(space, density):
    """Raise an error that names what a density's model cannot take."""
    refuse_mixed(space, "model 'auto' or 'energy'", repr(density.model))


def generator_options(density, space, *, also=()):
    """What a density says of the network of mixed rows; a setting that such a network does not have is refused.

    The settings named in `also` act elsewhere.
    """
    if density.model not in MODELS_OF_MIXED:
        refuse_model_of_mixed(space, density)
    for name, value in changed_settings(density, but=(*MIXED_SETTINGS, *also)).items():
        raise ValueError(
            f"Expected no {name} for a table with {what_is_mixed(space)}, whose model has no such setting, got "
            f"{name}={value!r}; leave it out, or fill missing values and encode text as numbers."
        )
    chosen = {name: getattr(density, name) for name in ("noise", "max_steps")}
    return {"hidden": tuple(density.hidden), **{name: value for name, value in chosen.items() if value != "auto"}}
