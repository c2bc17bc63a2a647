"""Exported models agree with the estimators: ONNX graphs in onnxruntime, and JSON in a few lines of numpy."""

import copy
import dataclasses
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline

from scorefield import (
    PriorCorrectedClassifier,
    ScoreClassifier,
    ScoreDensity,
    ScoreOverSampler,
    __version__,
    encode_rows,
    export_json,
    export_onnx,
)
from scorefield._jax.storage import to_plain
from scorefield.fields.gaussian import fit_gaussian
from scorefield.fields.networks import Network
from scorefield.fields.neural import EnergyField
from scorefield.fields.student import fit_student
from scorefield.models.row_model import RowModel

LIGHT = {"hidden": (16, 16), "random_state": 0}
OFFSET = [0.0, 1e9, -3.0]  # single precision knows the middle one to 64


def run(model, path, rows):
    """Outputs of the exported graph."""
    export_onnx(model, path)
    return onnxruntime.InferenceSession(path).run(None, {"rows": rows})


def assert_classifies_alike(model, path, X):
    label, probabilities = run(model, path, encode_rows(model, X))
    expected = model.predict_proba(X)
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)
    assert probabilities.dtype == expected.dtype
    assert label.tolist() == model.predict(X).tolist()
    return probabilities


def assert_log_densities_alike(density, path, X):
    (found,) = run(density, path, encode_rows(density, X))
    expected = density.score_samples(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert found.dtype == expected.dtype
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


@pytest.fixture(scope="module")
def numbers():
    """Correlated columns of three classes, one column far from zero; half of the members see them whitened."""
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "b", "ü"], 150, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(150, 3)) @ [[1, 0.9, 0], [0, 0.3, 0], [0, 0, 2]]
    X[:, 0] += np.unique(labels, return_inverse=True)[1]
    return X + OFFSET, labels


@pytest.fixture(scope="module")
def fitted(random_networks, with_random_rules):
    """Fits of classifiers whose networks and calibration are made up."""

    def fit(X, y, **options):
        with random_networks():
            model = ScoreClassifier(calibration=None, **{"n_members": 2, **LIGHT, **options}).fit(X, y)
        n_classes = len(model.classes_)
        model.model_.temperature, model.model_.intercepts = 1.7, np.linspace(-0.4, 0.3, n_classes)
        model.model_.anchors = np.linspace(-3, 2, n_classes)[:, None] * [1, 0]
        return with_random_rules(model, 0.3)

    return fit


@pytest.fixture(scope="module")
def classifier(fitted, numbers):
    return fitted(*numbers, priors=[0.2, 0.3, 0.5])


@pytest.fixture(scope="module")
def table():
    """Numbers, a number with a spike, categories, flags and gaps."""
    rng = np.random.default_rng(1)
    age, colour = rng.gamma(4, 10, 200), rng.choice(["red", "green", "blue"], 200)
    height = 2 * age + 20 * rng.normal(size=200)
    height[:100] = (height[:100] / 10).round() * 10  # values that several rows share
    frame = pd.DataFrame(
        {
            "age": age,
            "gain": np.where(rng.random(200) < 0.6, 0.0, rng.lognormal(8, 1, 200)),
            "height": height,
            "colour": colour,
            "warm": rng.random(200) < 0.3,
            "rooms": rng.integers(1, 6, 200),
        }
    )
    for name in ("age", "gain", "colour"):
        frame[name] = frame[name].astype(object).where(rng.random(200) > 0.15, None)
    return frame.astype({"age": float, "gain": float}), age / 40 + (colour == "red") + rng.normal(size=200) > 1.5


@pytest.fixture(scope="module")
def mixed(fitted, table):
    return fitted(*table)


@pytest.fixture(scope="module")
def fitted_density(random_networks):
    """Fits of densities of mixed rows whose networks and constants are made up."""

    def fit(X):
        with random_networks(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(RowModel, "_anchors", lambda model, key: np.array([[1.5, 0.1]]))
            return ScoreDensity(**LIGHT).fit(X)

    return fit


@pytest.fixture(scope="module")
def mixed_density(fitted_density, table):
    return fitted_density(table[0])


@pytest.fixture(scope="module")
def energy(numbers):
    """A density whose field is replaced by an energy of random weights."""
    rng, density = np.random.default_rng(2), ScoreDensity("gaussian").fit(numbers[0])
    sizes = [(3, 8), (8, 8), (8, 1)]
    weights, biases = ([rng.normal(size=size).astype(np.float32) for size in part] for part in (sizes, [8, 8, 1]))
    field = EnergyField(Network(tuple(weights), tuple(biases)), fit_gaussian(density.model_.start_rows))
    model = density.model_
    model.plain_field, model.name, model.anchor = to_plain(field), "energy", [0.7, 100.0, 0.1]
    return density


def test_numbers_are_classified_alike(classifier, numbers, path):
    rng = np.random.default_rng(2)
    X = np.concatenate([numbers[0], OFFSET + 3 * rng.normal(size=(500, 3))])
    probabilities = assert_classifies_alike(classifier, path, X)
    assert np.ptp(probabilities, axis=0).max() > 0.5
    # Had the offset been taken off in single precision, the graph would be wrong.
    blurred = run(classifier, path, X.astype(np.float32).astype(float))[1]
    assert np.abs(blurred - probabilities).max() > 0.1


def test_mixed_rows_with_gaps_are_classified_alike(mixed, table, path):
    rows = encode_rows(mixed, table[0])
    assert (rows.dtype, rows.shape) == (np.float32, (200, 2 * 3 + 4))
    assert {-1.0} < set(rows[:, 6:].ravel())
    probabilities = assert_classifies_alike(mixed, path, table[0])
    assert np.ptp(probabilities) > 0.5
    # New levels, and rows that are nearly all gaps.
    odd = table[0][:3].assign(colour=["violet", None, "red"], age=[np.nan, 1e6, -1e6], gain=[np.nan, 0.0, 5.0])
    assert_classifies_alike(mixed, path, odd)


def test_log_densities_of_mixed_rows_agree(mixed_density, table, path):
    found = assert_log_densities_alike(mixed_density, path, table[0])
    assert np.ptp(found) > 5


def test_a_gaussian_and_a_mixture_agree(numbers, path):
    X = numbers[0] - OFFSET
    for standardize in (True, False):
        assert_log_densities_alike(ScoreDensity("gaussian", standardize=standardize).fit(X), path, X)
    apart = np.concatenate([X, X[: len(X) // 2] + 6.0])
    mixture = ScoreDensity("mixture", random_state=0).fit(apart)
    assert len(mixture.model_.plain_field["weights"]) > 1
    assert_log_densities_alike(mixture, path, np.concatenate([apart, 40 + apart[:5]]))
    (found,) = run(ScoreDensity("gaussian").fit(X.astype(np.float32)), path, X.astype(np.float32))
    assert found.dtype == np.float32


@pytest.mark.parametrize("per_column", [None, False, True])
@pytest.mark.parametrize("activation", ["silu", "gelu", "softplus", "tanh"])
def test_energies_agree_on_every_base_and_activation(energy, numbers, path, per_column, activation):
    field, density = energy.model_.field, copy.deepcopy(energy)
    student = per_column is not None
    base = fit_student(energy.model_.start_rows, 3, per_column=per_column) if student else field.base
    network = dataclasses.replace(field.network, activation=activation)
    density.model_.plain_field = to_plain(EnergyField(network, base))
    X = np.concatenate([numbers[0][:20], OFFSET + 30 * np.random.default_rng(3).normal(size=(20, 3))])
    found = assert_log_densities_alike(density, path, X)
    assert np.ptp(found) > 10


def test_costs_and_margin_decide(classifier, numbers, path):
    decided = copy.copy(classifier).set_params(costs=[[0, 1, 1], [4, 0, 1], [9, 2, 0]], margin=0.3)
    assert_classifies_alike(decided, path, numbers[0])
    assert np.mean(decided.predict(numbers[0]) != classifier.predict(numbers[0])) > 0.02


def test_equal_costs_go_to_the_later_class(classifier, numbers, path):
    indifferent = copy.copy(classifier).set_params(costs=np.zeros((3, 3)))
    assert_classifies_alike(indifferent, path, numbers[0])
    assert set(indifferent.predict(numbers[0])) == {"ü"}


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-5, 0, 2**62]),
        np.array([1, 2, 3], np.uint8),
        np.array([0.0, 1.0, 2.0]),
        np.array(["new", "old", "worn"], np.dtypes.StringDType()),
        np.array(["", "né", "\U0001f427"], object),
        np.array([False, True]),
        np.array([np.False_, np.True_], object),
    ],
    ids=lambda labels: f"{labels.dtype} {labels[0]!r}",
)
def test_labels_keep_their_type(classifier, mixed, numbers, table, path, labels):
    model, X = (mixed, table[0]) if len(labels) == 2 else (classifier, numbers[0])
    model = copy.copy(model)
    model.classes_ = labels
    assert_classifies_alike(model, path, X)
    told = onnxruntime.InferenceSession(path).get_modelmeta().custom_metadata_map
    assert json.loads(told["classes"]) == labels.tolist()


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[ns]"),
        np.array([1, 2, 3], "m8[ns]"),
        np.array([b"a", b"b", b"c"]),
        np.array([1, "a", True], object),
        np.array([1, 2, 2**63], np.uint64),
    ],
    ids=lambda labels: f"{labels.dtype}",
)
def test_labels_of_other_types_are_refused(classifier, path, labels):
    model = copy.copy(classifier)
    model.classes_ = labels
    with pytest.raises(ValueError, match="Expected labels that are all whole numbers"):
        export_onnx(model, path)
    assert not path.exists()


def test_a_purely_generative_member_in_single_precision(fitted, numbers, path):
    """One member, constants of classes, and rows of float32."""
    X, y = (numbers[0] - OFFSET).astype(np.float32), numbers[1]
    model = fitted(X, y, n_members=1, label_weight=0)
    assert assert_classifies_alike(model, path, X).dtype == np.float32
    assert onnxruntime.InferenceSession(path).get_inputs()[0].type == "tensor(float)"


def test_one_row_no_rows_and_far_rows(classifier, energy, numbers, path):
    X = numbers[0]
    assert_classifies_alike(classifier, path, X[:1])
    label, probabilities = run(classifier, path, X[:0])
    assert (label.shape, probabilities.shape) == ((0,), (0, 3))
    far = np.array([[1e300, 0, 0], [-1e300, 1e300, 0], [0, 0, 1e20], [1e308, 1e308, -1e308]])
    assert_classifies_alike(classifier, path, far)
    assert_log_densities_alike(energy, path, far)
    assert run(energy, path, X[:0])[0].shape == (0,)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused_as_here(classifier, mixed, numbers, table, path, bad):
    X = numbers[0][:5].copy()
    X[2, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        classifier.predict_proba(X)
    with pytest.raises(Exception, match="expected_finite_rows_got_NaN_or_infinity"):
        run(classifier, path, X)
    rows = encode_rows(mixed, table[0])
    rows[0, 0] = bad
    with pytest.raises(Exception, match="expected_finite_rows_got_NaN_or_infinity"):
        run(mixed, path, rows)


def test_the_graph_tells_what_it_is(classifier, mixed, mixed_density, path):
    export_onnx(classifier, str(path))
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert (model.producer_name, model.producer_version) == ("scorefield", __version__)
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 17)]
    assert "raw rows" in model.doc_string
    told = {prop.key: prop.value for prop in model.metadata_props}
    lists = {"columns": json.dumps(["x0", "x1", "x2"]), "classes": json.dumps(["a", "b", "ü"])}
    assert told == {"scorefield": __version__, "input": "numbers", **lists}
    names = [[value.name for value in values] for values in (model.graph.input, model.graph.output)]
    assert names == [["rows"], ["label", "probabilities"]]
    export_onnx(mixed, path)
    told = {prop.key: json.loads(prop.value) for prop in onnx.load(path).metadata_props if prop.value[0] == "["}
    assert told["columns"] == ["age", "gain", "height", "colour", "warm", "rooms"]
    assert (told["numbers"], told["categories"], told["levels"]) == (
        ["age", "gain", "height"], ["gain", "colour", "warm", "rooms"], [2, 3, 2, 5],
    )  # fmt: skip
    export_onnx(mixed_density, path)
    assert [value.name for value in onnx.load(path).graph.output] == ["log_density"]


# What a reader of the JSON needs; the user guide describes it.


def network(member, x, indicators):
    u = (x - np.array(member["shift"])) / np.array(member["scale"])
    u = u if member["rotation"] is None else np.hstack([u, u @ np.array(member["rotation"])])
    u = u if member["reach"] is None else u / np.sqrt(1 + (u / member["reach"]) ** 2)
    seen = [u, indicators]
    if member["columns"]:
        steps = np.tanh(np.array(member["slopes"]) * (u[:, member["columns"], None] - np.array(member["thresholds"])))
        seen.insert(1, steps.reshape(len(u), -1))
    h = np.hstack(seen)
    for depth, layer in enumerate(member["layers"]):
        assert member["activation"] == "silu"
        h = (h / (1 + np.exp(-h)) if depth else h) @ np.array(layer["weights"]) + layer["bias"]
    return h


def base_and_outputs(told, rows):
    given, base = told["input"], told["base"]
    if given["kind"] == "numbers":
        x = np.clip((rows - given["mean"]) / given["scale"], -given["furthest"], given["furthest"])
        x, indicators = x if given["mix"] is None else x @ np.array(given["mix"]), np.zeros((len(rows), 0))
        parts = base["parts"] if base["kind"] == "mixture" else [base]
        logs = [b["constant"] - np.sum(((x - b["mean"]) @ np.array(b["whiten"])) ** 2, axis=1) / 2 for b in parts]
        logs = logsumexp(np.transpose(logs) + base.get("log_weights", 0.0), axis=1)
    else:
        p = len(given["numbers"])
        x, known, codes = rows[:, :p].astype(float), rows[:, p : 2 * p], rows[:, 2 * p :]
        reached = [np.equal, np.greater_equal]
        levels = np.hstack([
            reached[ordered](codes[:, [k]], np.arange(size))
            for k, (size, ordered) in enumerate(zip(given["levels"], given["ordered"], strict=True))
        ])  # fmt: skip
        deviations = np.array(base["deviations"])
        normal = -0.5 * (x / deviations) ** 2 - np.log(deviations) - 0.5 * np.log(2 * np.pi)
        logs = np.sum(normal * known, axis=1) + levels @ np.array(base["log_shares"])
        for j, slopes in enumerate(told["output"].get("log_slopes", [])):
            logs += known[:, j] * np.array(slopes["values"])[np.searchsorted(slopes["cuts"], x[:, j], side="right")]
        indicators = np.hstack([levels, known])
        for number, category in given["spikes"]:
            x[:, number] *= codes[:, category] <= 0
    outputs = [network(member, x, indicators) for member in told["members"]]
    rules = network(told["rules"], x, indicators) if told.get("rules") else None
    return logs, np.mean(outputs, axis=0) if outputs else np.zeros((len(rows), 1)), rules


def read(model, tmp_path):
    export_json(model, tmp_path / "model.json")
    return json.loads((tmp_path / "model.json").read_text())


@pytest.mark.parametrize("name", ["numbers", "mixed"])
def test_json_is_evaluated_alike_by_numpy(classifier, mixed, numbers, table, tmp_path, name):
    model, X = (classifier, numbers[0]) if name == "numbers" else (mixed, table[0])
    model = copy.copy(model).set_params(margin=0.4)
    told = read(model, tmp_path)
    assert (told["format"], told["version"], told["model"]) == (3, __version__, "ScoreClassifier")
    output = told["output"]
    base, outputs, rules = base_and_outputs(told, encode_rows(model, X))
    mixed_outputs = (1 - told["share"]) * outputs + told["share"] * rules
    logits = (mixed_outputs + output["class_constants"]) / output["temperature"] + output["intercepts"]
    np.testing.assert_allclose(softmax(logits, axis=1), model.predict_proba(X), atol=1e-5)
    logs = log_softmax(logits, axis=1) - output["margin"] * (np.arange(len(output["classes"])) > 0)
    costs = softmax(logs, axis=1) @ np.array(output["costs"])
    assert [output["classes"][k] for k in costs.argmin(axis=1)] == model.predict(X).tolist()
    if name == "numbers":  # the base is the rest of log p(x | y), up to a constant per class
        gap = model.log_likelihood(X) - base[:, None] - outputs
        assert np.ptp(gap, axis=0).max() < 1e-4


@pytest.mark.parametrize("name", ["gaussian", "mixture", "energy", "mixed"])
def test_json_of_densities_is_evaluated_alike_by_numpy(energy, mixed_density, numbers, table, tmp_path, name):
    density, X = (mixed_density, table[0]) if name == "mixed" else (energy, numbers[0])
    density = ScoreDensity(name, random_state=0).fit(X) if name in ("gaussian", "mixture") else density
    told = read(density, tmp_path)
    base, outputs, _ = base_and_outputs(told, encode_rows(density, X))
    found = base + outputs[:, 0] + told["output"]["constant"]
    np.testing.assert_allclose(found, density.score_samples(X), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("export", [export_onnx, export_json])
def test_other_models_are_refused(energy, numbers, tmp_path, export):
    X, y = numbers
    corrected = PriorCorrectedClassifier(make_pipeline(ScoreClassifier()))
    separate = ScoreClassifier(ScoreDensity("gaussian"), calibration=None).fit(X, y)
    kernel = ScoreDensity("kernel", random_state=0).fit(X - OFFSET)
    smoothed = copy.copy(energy).set_params(smoothing=0.1)
    for model, error, said in [
        (corrected, TypeError, "got PriorCorrectedClassifier; export the fitted estimator that it holds"),
        (ScoreOverSampler(), TypeError, "got ScoreOverSampler"),
        (KernelDensity(), TypeError, "got KernelDensity"),
        (ScoreClassifier(), NotFittedError, "not fitted"),
        (separate, ValueError, "got one of separate densities; fit the joint model"),
        (kernel, ValueError, "got 'kernel'; fit ScoreDensity"),
        (smoothed, ValueError, "Expected smoothing=None"),
    ]:
        with pytest.raises(error, match=said):
            export(model, tmp_path / f"model.{export.__name__[7:]}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("export", [export_onnx, export_json])
def test_paths_that_cannot_be_are_refused(energy, tmp_path, export):
    ending = export.__name__[6:].replace("_", ".")
    (tmp_path / f"folder{ending}").mkdir()
    (tmp_path / f"old{ending}").write_text("old")
    for name, error, said in [
        ("model.txt", ValueError, f"ends in {ending}, got"),
        (f"folder{ending}", IsADirectoryError, "Expected a file as output, got the folder"),
        (f"none/model{ending}", FileNotFoundError, "Expected an existing folder"),
    ]:
        with pytest.raises(error, match=said):
            export(energy, tmp_path / name)
    with pytest.raises(FileExistsError, match="which exists"):
        export(energy, tmp_path / f"old{ending}", replace=False)
    assert (tmp_path / f"old{ending}").read_text() == "old"
    export(energy, tmp_path / f"old{ending}")
    assert (tmp_path / f"old{ending}").read_bytes() != b"old"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("export", [export_onnx, export_json])
def test_a_full_disk_leaves_the_old_file(energy, tmp_path, monkeypatch, export):
    from scorefield.data import files

    path = tmp_path / f"model{export.__name__[6:].replace('_', '.')}"
    path.write_text("old")
    monkeypatch.setattr(files.pathlib.Path, "touch", lambda own, **options: own.symlink_to("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        export(energy, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_package_is_named(energy, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "scorefield.export.onnx_graph", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'scorefield\[onnx\]'"):
        export_onnx(energy, path)


@pytest.mark.parametrize("names", [["colour", "warm"], ["age", "height"]])
def test_tables_of_categories_alone_and_of_numbers_with_gaps(fitted, fitted_density, table, path, names):
    X, y = table[0][names], table[1]
    assert_classifies_alike(fitted(X, y), path, X)
    assert_log_densities_alike(fitted_density(X), path, X)
