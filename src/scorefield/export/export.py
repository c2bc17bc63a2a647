"""Fitted models in files that other programs run: ONNX graphs, and plain arrays in JSON."""

import json
import pathlib

import numpy as np

from scorefield.data.files import check_output, write_whole
from scorefield.export.network_description import check_exportable, describe_network, space_of


def export_onnx(model, path, *, replace=True):
    """Write a fitted model as an ONNX graph.

    The graph takes ``rows`` as :func:`encode_rows` makes them: raw rows of tables of numbers, in the type that the
    model was fitted to, and encoded rows of mixed tables in single precision. It gives ``label`` and ``probabilities``
    of a classifier, and ``log_density`` of a density. Rows that are not finite make it fail, as they do here. Needs
    onnx (``pip install 'scorefield[onnx]'``); runtimes need opset 17.

    Parameters
    ----------
    model : ScoreClassifier or ScoreDensity
        A fitted classifier with ``density="joint"``, or a density whose model is "energy", "gaussian" or
        "mixture".
    path : str or path
        File to write, which ends in ``.onnx``. It is written whole or not at all.
    replace : bool
        Overwrite a file that exists.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, export_onnx
    >>> density = ScoreDensity(model="gaussian").fit(np.random.default_rng(0).normal(size=(200, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(density, pathlib.Path(folder) / "density.onnx")
    """
    path = _checked_path(path, ".onnx", replace)
    try:
        from scorefield.export.onnx_graph import onnx_model
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise ModuleNotFoundError(
            "Expected onnx to write ONNX files, but it is not installed; pip install 'scorefield[onnx]'."
        ) from error
    write_whole(path, onnx_model(describe_network(model)).SerializeToString(), replace=replace)


def export_json(model, path, *, replace=True):
    r"""Write a fitted model as plain arrays in JSON.

    The ``format`` number of the file is raised when its parts change their meaning.

    Parameters
    ----------
    model : ScoreClassifier or ScoreDensity
        A fitted classifier with ``density="joint"``, or a density whose model is "energy", "gaussian" or
        "mixture".
    path : str or path
        File to write, which ends in ``.json``. It is written whole or not at all.
    replace : bool
        Overwrite a file that exists.

    Notes
    -----
    ``format`` is 3. The parts are:

    ``input``
        ``kind`` "numbers": x = (row - ``mean``) / ``scale``, clipped to ± ``furthest``, times the matrix ``mix``
        unless it is null. ``kind`` "encoded": x are the first p entries of an encoded row, set to 0 where the
        category of a pair (number, category) of ``spikes`` is above 0; the indicators are a 0 or 1 for each level
        of each category (``levels`` counts them), where a category that is ``ordered`` has a 1 for its level and
        for all before it, then the p flags.
    ``members``
        Networks whose outputs are averaged; none for a Gaussian or a mixture. u = (x - ``shift``) / ``scale``,
        followed by u times ``rotation`` unless it is null; each entry v becomes v / sqrt(1 + (v / ``reach``)²)
        unless that is null. The inputs of the first layer are u, tanh(``slopes`` (u[``columns``] - ``thresholds``))
        with all thresholds of the first column first, and the indicators. A layer is inputs times ``weights`` plus
        ``bias``; between layers stands ``activation``: silu is v / (1 + exp(-v)), gelu the form with tanh.
    ``rules`` and ``share`` of a classifier
        Null, or one more network, as those of ``members``. The outputs for the posterior are (1 - ``share``) times
        those of the members plus ``share`` times its own.
    ``output`` of a classifier
        Posterior log odds are (outputs + ``class_constants``) / ``temperature`` + ``intercepts``; their softmax are
        the probabilities of ``classes``. The prediction has the least expected cost by ``costs`` [true, predicted],
        after ``margin`` is taken off the log probabilities of all classes but the first; in a tie it is the last of
        the tied classes.
    ``base``
        A log density of x. "gaussian": ``constant`` - \|z\|² / 2 with z = (x - ``mean``) ``whiten``. "mixture":
        the log of the sum over ``parts``, each a "gaussian", of exp(``log_weights`` + its log density). "student":
        ``constant`` - (ν + d) / 2 log(1 + \|z\|² / ν) with ν = ``degrees``; if ``per_column``, the sum over
        columns of (ν + 1) / 2 log(1 + z² / ν) is taken off instead. "columns": independent normal numbers with
        ``deviations`` where they are known, plus ``log_shares`` of the levels whose indicator is 1.
    ``output`` of a density
        The log density is base + output + ``constant``, plus, for encoded rows, the log slope of each known number:
        entry k of ``values``, where k of the ``cuts`` are at or below it.

    For a classifier, base + outputs + class constants are the log joint densities of its classes, up to one constant.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, export_json
    >>> density = ScoreDensity(model="gaussian").fit(np.random.default_rng(0).normal(size=(200, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "density.json"
    ...     export_json(density, path)
    ...     sorted(json.loads(path.read_text()))
    ['base', 'columns', 'format', 'input', 'members', 'model', 'output', 'version']
    """
    path = _checked_path(path, ".json", replace)
    text = json.dumps(_plain(describe_network(model)), allow_nan=False)
    write_whole(path, text, replace=replace)


def encode_rows(model, X):
    """The rows of a table as the exported graph of a model takes them.

    Rows of a table of numbers are checked and otherwise as they are. Those of a mixed table become flat rows of p
    numbers, p flags and q codes: the normal scores of the columns of numbers, where missing ones are filled by
    regression on the known ones; 1 where a number is known and 0 where it is missing or a spike; and the level of each
    category, -1 where it is missing.

    Parameters
    ----------
    model : ScoreClassifier or ScoreDensity
        A fitted model that :func:`export_onnx` takes.
    X : array-like of shape (n, d) or data frame
        A table like the one that the model was fitted to.

    Returns
    -------
    rows : ndarray of shape (n, d) or (n, 2 p + q)

    Examples
    --------
    >>> import numpy as np
    >>> from scorefield import ScoreDensity, encode_rows
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> density = ScoreDensity(model="gaussian").fit(X)
    >>> bool((encode_rows(density, X) == X).all())
    True
    """
    check_exportable(model)
    space = space_of(model)
    return model._read(X).astype(space.dtype if space.layout is None else np.float32)


def _checked_path(path, ending, replace):
    path = pathlib.Path(path)
    check_output(path, force=replace, kinds=(ending,))
    return path


def _plain(value):
    """Nested lists and numbers; single-precision ones with as many digits as tell them apart."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return (value.astype(str).astype(float) if value.dtype == np.float32 else value).tolist()
    return value
