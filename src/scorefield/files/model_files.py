"""Fitted estimators in files that hold data and no code: plain values and arrays, in skops' container.

A file names estimators by the keys of `STORABLE` only. Everything in it is checked against an exact list of node types
before anything is built, and what it may unpack to is bounded.
"""

import io
import json
import zipfile

import numpy as np

from scorefield import __version__
from scorefield.data.files import whole_file
from scorefield.data.row_space import RowSpace
from scorefield.data.spaces import NumberSpace
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import ScoreDensity
from scorefield.estimators.mixed_encoder import MixedEncoder
from scorefield.estimators.stored_learner import StoredLearner
from scorefield.models.number_model import NumberModel
from scorefield.models.row_model import RowModel
from scorefield.models.separate import SeparateModel
from scorefield.sampling.samplers import HMC, MALA, AnnealedLangevin, Langevin, ReverseDiffusion

# What a file may hold, by a name that does not change when a module moves.
STORABLE = {
    cls.__name__: cls
    for cls in (
        *(ScoreClassifier, ScoreDensity, StoredLearner, MixedEncoder),
        *(Langevin, AnnealedLangevin, MALA, HMC, ReverseDiffusion),
    )
}
MODELS = {cls.__name__: cls for cls in (NumberModel, RowModel, SeparateModel, NumberSpace, RowSpace)}
FORMAT = 2  # of the dictionary in the file; raised when older code could not read it
ESTIMATOR = "scorefield estimator"  # the key that tells a stored estimator from a plain dictionary
MODEL = "scorefield model"  # the same of what estimators hold
# The largest models have a few hundred columns and tens of classes: about 20 MB of weights and 50 MB of start rows.
MAX_UNPACKED = 512 << 20
PLAIN_NODES = {
    ("DictNode", "builtins", "dict"),
    ("ListNode", "builtins", "list"),
    ("TupleNode", "builtins", "tuple"),
    ("JsonNode", "builtins", "str"),
    ("NdArrayNode", "numpy", "ndarray"),
    *(("TypeNode", "builtins", name) for name in ("str", "int", "float", "bool")),  # of the keys of a dictionary
}


def save_model(path, stored, *, replace=True):
    """Write a dictionary of a fitted ``model`` and plain values that belong to it; the file is whole or absent."""
    import skops.io

    with whole_file(path, replace=replace) as partial:
        skops.io.dump({"format": FORMAT, "version": __version__, **_pack(stored)}, partial)


def load_model(path):
    """The dictionary that was stored, with the ``version`` of scorefield that wrote it."""
    import skops.io

    if not path.is_file():
        raise FileNotFoundError(f"Expected a model file, but {path} does not exist.")
    try:
        if path.stat().st_size > MAX_UNPACKED:
            raise ValueError(f"it is larger than {MAX_UNPACKED >> 20} MiB")
        content = path.read_bytes()  # read once: what is checked is what is loaded
        _check_content(content)
        stored = skops.io.loads(content, trusted=[])
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}, that of scorefield {__version__}")
        stored = _unpack(stored)
        if type(stored["model"]) not in (ScoreClassifier, StoredLearner):
            raise ValueError(f"it holds a {type(stored['model']).__name__}, not a classifier")
        return {name: stored[name] for name in ("model", "target", "columns", "integers", "reading", "version")}
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"Expected a model written by `scorefield fit` in {path}, got another file: {reason}"
        ) from error


def _check_content(content):
    """Refuse a file that names other types than plain ones, or that unpacks to more than MAX_UNPACKED bytes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        unpacked = sizes.get("schema.json", 0)
        if unpacked > MAX_UNPACKED:
            raise ValueError(f"it unpacks to more than {MAX_UNPACKED >> 20} MiB")
        waiting = [json.loads(archive.read("schema.json"))]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "__loader__" in part:
                node = tuple(part.get(key) for key in ("__loader__", "__module__", "__class__"))
                if node not in PLAIN_NODES:
                    raise ValueError(f"it names the type {part.get('__module__')}.{part.get('__class__')}")
                # Each reference counts: skops reads an entry again for every node that names it.
                unpacked += sizes.get(part["file"], 0) if "file" in part else 0
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    if unpacked > MAX_UNPACKED:
        raise ValueError(f"it unpacks to more than {MAX_UNPACKED >> 20} MiB")


def _pack(value):
    """A value of plain types; an estimator becomes its name, its parameters and its fitted attributes."""
    if type(value).__name__ in STORABLE and STORABLE[type(value).__name__] is type(value):
        params = value.get_params(deep=False)
        fitted = {name: _pack(part) for name, part in vars(value).items() if _is_fitted_name(type(value), name)}
        return {ESTIMATOR: type(value).__name__, "params": _pack(params), "fitted": fitted}
    if MODELS.get(type(value).__name__) is type(value):
        return {MODEL: type(value).__name__, "parts": _pack(value.to_plain())}
    if isinstance(value, dict):
        return {_pack(key): _pack(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_pack(part) for part in value)
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(
        f"Expected numbers, texts, arrays and estimators of {', '.join(STORABLE)} in a model to store, got a "
        f"{type(value).__name__}; use an integer as random_state, and pickle models with other parts."
    )


def _unpack(value):
    """The value behind `_pack`."""
    if isinstance(value, list | tuple):
        return type(value)(_unpack(part) for part in value)
    if not isinstance(value, dict):
        return value
    if MODEL in value:
        return MODELS[value[MODEL]].from_plain(_unpack(value["parts"]))
    if ESTIMATOR not in value:
        return {key: _unpack(part) for key, part in value.items()}
    cls = STORABLE[value[ESTIMATOR]]
    params, fitted = _unpack(value["params"]), _unpack(value["fitted"])
    known = set(cls().get_params(deep=False))
    if set(params) != known:
        odd = ", ".join(sorted(set(params) ^ known))
        raise ValueError(f"its {cls.__name__} differs in the parameters {odd}; it was written by another version")
    estimator = cls(**params)
    for name, part in fitted.items():
        if not _is_fitted_name(cls, name):
            raise ValueError(f"it sets the attribute {name!r} of a {cls.__name__}")
        setattr(estimator, name, part)
    return estimator


def _is_fitted_name(cls, name):
    """True for names such as classes_, which fit sets; never for methods or private attributes."""
    return name.endswith("_") and not name.startswith("_") and not hasattr(cls, name)
