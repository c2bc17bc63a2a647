"""Fitted networks as named arrays: all that is needed to evaluate an exported model without this library.

`export_json` explains the parts, and a test evaluates them in a few lines of numpy.
"""

import jax
import numpy as np
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted

from scorefield import __version__
from scorefield._jax.batching import FURTHEST
from scorefield.fields.base import LOG_2PI
from scorefield.fields.gaussian import Gaussian
from scorefield.fields.joint import REACH
from scorefield.fields.mixtures import GaussianMixture
from scorefield.fields.neural import BOUND
from scorefield.fields.student import StudentT
from scorefield.inference.decisions import check_costs

FORMAT = 3  # raised when a reader of the earlier one would be wrong
EXPORTED_DENSITIES = ("energy", "gaussian", "mixture")


def describe_network(model):
    """A fitted classifier or density as a dictionary of plain values and arrays."""
    check_exportable(model)
    parts = _classifier_parts(model) if _is_classifier(model) else _density_parts(model)
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    head = {"format": FORMAT, "version": __version__, "model": type(model).__name__, "columns": list(map(str, names))}
    return {**head, "input": _input(model), **parts}


def check_exportable(model):
    """Refuse a model that has no description."""
    if not _is_classifier(model) and not hasattr(model, "log_density_function"):
        raise TypeError(
            f"Expected a ScoreClassifier or a ScoreDensity to export, got {type(model).__name__}; export the fitted "
            "estimator that it holds."
        )
    check_is_fitted(model)
    if hasattr(model, "densities_"):
        raise ValueError(
            'Expected a classifier with density="joint" to export, got one of separate densities; fit the joint model, '
            "or export each density that is a ScoreDensity."
        )
    if not _is_classifier(model) and model.model_name_ not in EXPORTED_DENSITIES:
        raise ValueError(
            f"Expected a ScoreDensity whose model is 'energy', 'gaussian' or 'mixture' to export, got "
            f"{model.model_name_!r}; fit ScoreDensity(model='energy')."
        )
    if not _is_classifier(model) and model.smoothing is not None:
        raise ValueError(f"Expected smoothing=None to export a density, got {model.smoothing}; fit it without.")


def _is_classifier(model):
    return hasattr(model, "log_posterior_function")


def space_of(model):
    """The space of the rows of an exported model."""
    return model.model_.space


def _input(model):
    """How a row becomes the numbers x of the network, with indicators of levels where it is encoded."""
    space = space_of(model)
    if space.layout is None:
        mean, scale, *mix = space.units if _is_classifier(model) else model.model_.units
        units = {"mean": np.asarray(mean, float), "scale": np.asarray(scale, float), "mix": mix[0] if mix else None}
        return {"kind": "numbers", "dtype": np.dtype(space.dtype).name, **units, "furthest": FURTHEST}
    layout, variables = space.layout, space.encoder.variables
    category_names = {v.category: str(v.name) for v in variables}
    return {
        "kind": "encoded",
        "dtype": "float32",
        "numbers": [str(v.name) for v in variables if v.number >= 0],
        "categories": [category_names[k] for k in space.kept],
        "levels": list(layout.sizes),
        "ordered": list(layout.ordered),
        "spikes": [[number, category] for number, category in layout.variables if number >= 0 and category >= 0],
    }


def _classifier_parts(model):
    fitted, n_classes = model.model_, len(model.classes_)
    joint = fitted.joint
    costs = 1.0 - np.eye(n_classes) if model.costs is None else check_costs(model.costs, n_classes)
    output = {
        "dtype": np.dtype(fitted.space.dtype).name,
        "classes": plain_classes(model.classes_),
        "class_constants": np.broadcast_to(fitted.class_constants(), n_classes).astype(float),
        "temperature": float(fitted.temperature),
        "intercepts": fitted.intercepts + model.prior_shift_,
        "costs": costs,
        "margin": float(model.margin),
    }
    rules, share = None, 0.0
    if joint.rules is not None:
        (rules,), share = _column_networks([joint.rules]), float(joint.share)
    posterior = {"rules": rules, "share": share}
    return {"members": _column_networks(joint.members), **posterior, "base": _base(joint.base), "output": output}


def plain_classes(classes):
    """Labels as a list of whole numbers, numbers, flags or texts, all of one type."""
    numpy_types = np.bool_ | np.integer | np.floating | np.str_
    plain = classes.dtype.kind not in "mM"  # durations are integers to numpy
    labels = [label.item() if plain and isinstance(label, numpy_types) else label for label in classes]
    for kind in (bool, int, float, str):
        if all(type(label) is kind for label in labels) and not (kind is int and max(map(abs, labels)) >= 1 << 63):
            return labels
    raise ValueError(
        f"Expected labels that are all whole numbers, numbers, flags or texts to export, got {labels}; fit to such "
        "labels."
    )


def _density_parts(model):
    density = model.model_
    output = {"dtype": np.dtype(density.space.dtype).name, "log_slopes": []}
    if density.space.is_mixed:
        slopes = [_log_slopes(knots) for knots in density.space.scores.knots]
        output |= {"constant": float(model.log_constant_), "log_slopes": slopes}
        joint = density.row_model.joint
        return {"members": _column_networks(joint.members), "base": _base(joint.base), "output": output}
    field = density.field
    output["constant"] = float(model.log_constant_ + density.log_volume())
    if isinstance(field, Gaussian | GaussianMixture):
        return {"members": [], "base": _base(field), "output": output}
    reach = BOUND if isinstance(field.base, StudentT) else None
    member = _member(field.network, field.base.mean, field.base.scale, reach)
    return {"members": [member], "base": _base(field.base), "output": output}


def _log_slopes(knots):
    """Log derivative of a column's normal scores z: `values[k]` where z is at or above k of the cuts."""
    values, scores, first, _ = knots
    return {"cuts": first[1:-1], "values": np.log(np.diff(scores) / np.diff(values))}


def _column_networks(networks):
    """Networks of a joint model."""
    d = np.shape(networks[0].rotation)[0]
    return [
        _member(
            member.network, np.zeros(d), np.ones(d), REACH, rotation=member.rotation, columns=member.columns,
            thresholds=member.thresholds, slopes=member.slopes,
        )
        for member in networks
    ]  # fmt: skip


def _member(network, shift, scale, reach, *, rotation=None, columns=(), thresholds=(), slopes=()):
    """A network on u = (x - shift) / scale, u rotation, and steps tanh(slopes (u[columns] - thresholds)).

    Both parts of u are drawn in to v / sqrt(1 + (v / reach)^2), unless the reach is None.
    """
    layers = [
        {"weights": np.asarray(weights), "bias": np.asarray(bias)}
        for weights, bias in zip(network.weights, network.biases, strict=True)
    ]
    return {
        "shift": np.asarray(shift, np.float32),
        "scale": np.asarray(scale, np.float32),
        "rotation": np.asarray(rotation) if rotation is not None and np.size(rotation) else None,
        "reach": reach,
        "columns": [int(column) for column in columns],
        "thresholds": np.asarray(thresholds, np.float32),
        "slopes": np.asarray(slopes, np.float32),
        "layers": layers,
        "activation": network.activation,
    }


def _base(base):
    """The log density that the members' energies are added to, as a function of x."""
    if isinstance(base, GaussianMixture):
        parts = [jax.tree.map(lambda leaf, k=k: leaf[k], base.parts) for k in range(len(base.weights))]
        return {"kind": "mixture", "log_weights": np.log(base.weights), "parts": [_base(part) for part in parts]}
    if isinstance(base, Gaussian | StudentT):
        whiten, d = np.asarray(base.whiten), len(base.mean)
        parts = {"mean": np.asarray(base.mean), "whiten": whiten}
        volume = float(np.log(np.diagonal(whiten).astype(float)).sum())
        if isinstance(base, Gaussian):
            return {"kind": "gaussian", **parts, "constant": volume - 0.5 * d * LOG_2PI}
        size, count = (1, d) if base.per_column else (d, 1)
        nu = float(base.degrees)
        constant = gammaln((nu + size) / 2) - gammaln(nu / 2) - 0.5 * size * np.log(nu * np.pi)
        student = {"degrees": base.degrees, "per_column": base.per_column, "constant": volume + count * float(constant)}
        return {"kind": "student", **parts, **student}
    layout, shares = base.layout, []
    for v, (_, category) in enumerate(layout.variables):
        if category >= 0:
            own = np.asarray(base.log_shares)[v, : layout.sizes[category]]
            shares.append(np.diff(own, prepend=np.float32(0)) if layout.ordered[category] else own)
    return {
        "kind": "columns",
        "deviations": np.asarray(base.deviations),
        "log_shares": np.concatenate([*shares, np.zeros(0, np.float32)]),
    }
