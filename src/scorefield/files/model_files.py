"""Fitted estimators in files that hold data and no code: plain values and arrays, in skops' container.

A file names estimators by the keys of `STORABLE` only. Everything in it is checked against an exact list of node types
before anything is built, and what it may unpack to is bounded.
"""

import io
import json
import pathlib
import zipfile

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from scorefield import __version__
from scorefield.data.encoding import TableEncoder
from scorefield.data.files import whole_file
from scorefield.data.row_space import RowSpace
from scorefield.data.spaces import NumberSpace
from scorefield.estimators.classifier import ScoreClassifier
from scorefield.estimators.density import ScoreDensity
from scorefield.estimators.distilled import DistilledClassifier
from scorefield.estimators.features import ScoreFeatures
from scorefield.estimators.imputation import ScoreImputer
from scorefield.estimators.mixed_encoder import MixedEncoder
from scorefield.estimators.outliers import ScoreOutlierDetector
from scorefield.files.stored_learner import StoredLearner
from scorefield.models.field_density import FieldDensity
from scorefield.models.number_model import NumberModel
from scorefield.models.row_density import RowDensity
from scorefield.models.row_model import RowModel
from scorefield.models.separate import SeparateModel
from scorefield.sampling.samplers import HMC, MALA, AnnealedLangevin, Langevin, ReverseDiffusion

# What a file may hold, by a name that does not change when a module moves.
STORABLE = {
    cls.__name__: cls
    for cls in (
        *(ScoreClassifier, ScoreDensity, ScoreImputer, ScoreFeatures, ScoreOutlierDetector, MixedEncoder),
        StoredLearner,
        *(Langevin, AnnealedLangevin, MALA, HMC, ReverseDiffusion),
    )
}
ESTIMATORS = [name for name, cls in STORABLE.items() if issubclass(cls, BaseEstimator) and cls is not StoredLearner]
REMEDIES = {
    "ScoreOverSampler": "store the rows that it made.",
    "ScoreRegressionOverSampler": "store the rows that it made.",
    "PriorCorrectedClassifier": "its learner has no form without code: pickle it, and load pickles only from people "
    "you trust.",
}
TABLE_PARTS = ("target", "columns", "integers", "reading")
MODELS = {
    cls.__name__: cls for cls in (FieldDensity, RowDensity, NumberModel, RowModel, SeparateModel, NumberSpace, RowSpace)
}
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


def save_model(estimator, path, *, replace=True):
    """Write a fitted estimator to a file that holds numbers and texts, and no code.

    The commands read what is written here, of classifiers that were fitted to a table with column names, and
    :func:`load_model` reads what ``scorefield fit`` writes.

    Parameters
    ----------
    estimator : fitted estimator
        A ScoreClassifier, ScoreDensity, ScoreImputer, ScoreFeatures, ScoreOutlierDetector or MixedEncoder; or a
        DistilledClassifier whose learner is boosting (HistGradientBoostingClassifier), a forest
        (RandomForestClassifier) or LogisticRegression, alone or after a MixedEncoder. It is stored without its
        teacher, and loaded as a classifier with ``predict`` and ``predict_proba``.
    path : str or Path
        File to write. It is whole or absent, whatever happens during writing.
    replace : bool, default=True
        Whether to replace a file that exists.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, load_model, save_model
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> density = ScoreDensity(model="gaussian").fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "density.skops")
    ...     save_model(density, path)
    ...     again = load_model(path)
    >>> bool((again.score_samples(X) == density.score_samples(X)).all())
    True
    """
    stored = _storable(estimator)
    check_is_fitted(stored)
    table = getattr(estimator, "table_", None)
    names = set(getattr(stored, "feature_names_in_", ()))
    if table is None or names | {table["target"]} != set(table["columns"]):  # fitted to other columns since
        table = _table_of(stored)
    write_stored(path, {"model": stored, **table}, replace=replace)


def load_model(path):
    """Read a fitted estimator that :func:`save_model` or ``scorefield fit`` wrote; nothing in the file is run.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator : fitted estimator
        It predicts the same numbers as the stored one. Its attribute ``table_`` tells what the commands know of the
        table that it was fitted to: ``target``, ``columns``, ``integers`` and ``reading``.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, load_model, save_model
    >>> density = ScoreDensity(model="gaussian").fit(np.random.default_rng(0).normal(size=(60, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "density.skops")
    ...     save_model(density, path)
    ...     load_model(path).n_features_in_
    2
    """
    stored = _read_stored(path)
    model = stored["model"]
    model.table_ = {name: stored[name] for name in TABLE_PARTS}
    return model


def write_stored(path, stored, *, replace=True):
    """Write a dictionary of a fitted ``model`` and the `TABLE_PARTS` of its table; the file is whole or absent."""
    skops_io = _skops_io()
    with whole_file(pathlib.Path(path), replace=replace) as partial:
        skops_io.dump({"format": FORMAT, "version": __version__, **_pack(stored)}, partial)


def _skops_io():
    """The module that writes and reads plain values in a file; it is an extra."""
    try:
        import skops.io
    except ModuleNotFoundError as error:
        if error.name not in ("skops", "skops.io"):
            raise
        raise ModuleNotFoundError(
            "Expected skops to write and read model files, but it is not installed; pip install 'scorefield[io]'."
        ) from error
    return skops.io


def load_classifier(path):
    """The dictionary that was stored, with the ``version`` of scorefield that wrote it, of a classifier of a table."""
    stored = _read_stored(path)
    model = stored["model"]
    if type(model) not in (ScoreClassifier, StoredLearner):
        raise ValueError(
            f"Expected a classifier in {path}, got a {type(model).__name__}; open it in Python with "
            "scorefield.load_model."
        )
    if not hasattr(model, "feature_names_in_"):
        raise ValueError(
            f"Expected a classifier of named columns in {path}, got one that was fitted to an array; fit it to a "
            "DataFrame, or open it in Python with scorefield.load_model."
        )
    return stored


def _read_stored(path):
    """The dictionary in a model file, whatever estimator it holds."""
    skops_io, path = _skops_io(), pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"Expected a model file, but {path} does not exist.")
    try:
        if path.stat().st_size > MAX_UNPACKED:
            raise ValueError(f"it is larger than {MAX_UNPACKED >> 20} MiB")
        content = path.read_bytes()  # read once: what is checked is what is loaded
        _check_content(content)
        stored = skops_io.loads(content, trusted=[])
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}, that of scorefield {__version__}")
        stored = _unpack(stored)
        if STORABLE.get(type(stored["model"]).__name__) is not type(stored["model"]):
            raise ValueError(f"it holds a {type(stored['model']).__name__}, not an estimator")
        return {name: stored[name] for name in ("model", *TABLE_PARTS, "version")}
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"Expected a model written by `scorefield fit` or save_model in {path}, got another file: {reason}"
        ) from error


def _storable(estimator):
    """What is stored of an estimator: itself, or the arrays of a taught learner; others are refused by name."""
    name = type(estimator).__name__
    if isinstance(estimator, DistilledClassifier):
        check_is_fitted(estimator)
        return StoredLearner.of(estimator)
    if name in ESTIMATORS and STORABLE[name] is type(estimator):
        return estimator
    raise ValueError(
        f"Expected an estimator of {', '.join(ESTIMATORS)} or DistilledClassifier, got a {name}; "
        + REMEDIES.get(name, "pickle it, and load pickles only from people you trust.")
    )


def _table_of(model):
    """What the commands need of the table that a model was fitted to, as far as the model knows it."""
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    target = "label"
    while target in names:
        target += "_"
    reading = {"forms": _forms(model), "na": []}
    return {"target": target, "columns": [*names, target], "integers": [], "reading": reading}


def _forms(model):
    """Kinds with which a file is read as the fitted table was: its text as text, its numbers as numbers."""
    if isinstance(model, StoredLearner):
        plain = None if model.encoder_ is None else model.encoder_.encoder_
        encoder = None if plain is None else TableEncoder.from_plain(plain)
    else:
        encoder = getattr(getattr(getattr(model, "model_", None), "space", None), "encoder", None)
    forms = {}
    for column in encoder.columns_ if encoder is not None else ():
        if column.form == "object" or column.text is not None:
            forms[str(column.name)] = "text"
        elif column.form in ("whole", "number"):
            forms[str(column.name)] = "number"
    return forms


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
        fitted.pop("table_", None)  # it stands beside the model
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
