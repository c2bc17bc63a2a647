"""Model files carry no code: hostile ones, made here, are refused before anything in them is built."""

import io
import json
import pathlib
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import scorefield
from scorefield import (
    Langevin,
    MixedEncoder,
    PriorCorrectedClassifier,
    ScoreClassifier,
    ScoreDensity,
    ScoreFeatures,
    ScoreImputer,
    ScoreOutlierDetector,
    ScoreOverSampler,
    __version__,
    load_model,
    save_model,
)
from scorefield.data.formats import Reading
from scorefield.files.model_files import MAX_UNPACKED, _read_stored, load_classifier, write_stored

ROWS = np.random.default_rng(0).normal(size=(60, 2))
LABELS = np.repeat(["a", "b", "c"], 20)


def fitted(**options):
    rows = ROWS + np.repeat([[0, 0], [3, 0], [0, 3]], 20, axis=0)
    return ScoreClassifier(n_members=2, max_steps=100, random_state=0, **options).fit(rows, LABELS)


def stored(model):
    return {"model": model, "target": "kind", "columns": ["x", "y", "kind"], "integers": [], "reading": {}}


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.skops"
    write_stored(path, stored(fitted()))
    return path


def edited(path, change, **zip_options):
    """A copy of a model file whose schema went through `change`."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(entries["schema.json"])
    entries["schema.json"] = json.dumps(change(schema) or schema).encode()
    result = path.with_name("edited.skops")
    with zipfile.ZipFile(result, "w", **zip_options) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return result


def node(loader, module, name, **rest):
    return {"__loader__": loader, "__module__": module, "__class__": name, **rest}


def text(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def runs_a_command(module, marker):
    """A dictionary whose key type is os.system, reached as an attribute of a module of this package."""
    system = node(
        "MethodNode", module, "os", content={"func": "system", "obj": node("FunctionNode", module, "os")}
    )  # fmt: skip
    keys = node("ListNode", "builtins", "list", content=[system])
    return node("DictNode", "builtins", "dict", content={f"touch {marker}": text(1)}, key_types=keys)


def writes_a_file(module, marker):
    """A call of a function of this package that writes a file."""
    arguments = node("TupleNode", "builtins", "tuple", content=[text(str(marker)), text("written")])
    return node("ConstructorFromReduceNode", module, "write_whole", content=arguments)


@pytest.mark.parametrize("attack", [runs_a_command, writes_a_file])
def test_a_crafted_file_runs_nothing(model_file, attack):
    from scorefield.data import files

    marker = model_file.with_name("marker")

    def change(schema):
        schema["content"]["target"] = attack(files.__name__, marker)

    with pytest.raises(ValueError, match=r"names the type"):
        load_model(edited(model_file, change))
    assert not marker.exists()
    # The control: skops itself, told to trust the names in the file, does run it.
    path = edited(model_file, change)
    skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    assert marker.exists()
    marker.unlink()


@pytest.mark.parametrize(
    ("loader", "module", "name"),
    [
        ("ObjectNode", "sklearn.pipeline", "Pipeline"),  # trusted by skops, not stored by us
        ("FunctionNode", "numpy", "add"),
        ("ObjectNode", "scorefield.classifier", "ScoreClassifier"),
        ("CachedNode", "builtins", "list"),
        ("NdArrayNode", "scorefield.files", "write_whole"),
        (["DictNode"], "builtins", "dict"),
    ],
)
def test_other_types_are_refused(model_file, loader, module, name):
    def change(schema):
        schema["content"]["target"] = node(loader, module, name, type="json", content=[])

    with pytest.raises(ValueError, match=r"names the type|unhashable"):
        load_model(edited(model_file, change))


def test_a_small_file_cannot_unpack_to_much(tmp_path):
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(MAX_UNPACKED // 8, np.int8))
    once = node("NdArrayNode", "numpy", "ndarray", type="numpy", file="zeros.npy")
    for n, tag in ((9, "many references"), (1, "one")):
        schema = node("ListNode", "builtins", "list", content=[once] * n)
        path = tmp_path / f"{tag}.skops"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros.npy", zeros.getvalue())
            archive.writestr("schema.json", json.dumps(schema))
        assert path.stat().st_size < 1 << 20
        with pytest.raises(ValueError, match="unpacks to more than" if n > 1 else "Expected a model written by"):
            load_model(path)


def test_attributes_of_an_estimator_cannot_be_replaced(model_file):
    for name in ("predict", "__class__", "_check", "n_features_in"):

        def change(schema, name=name):
            fitted_part = schema["content"]["model"]["content"]["fitted"]
            fitted_part["content"][name] = text("odd")
            fitted_part["key_types"]["content"].append(node("TypeNode", "builtins", "str"))

        with pytest.raises(ValueError, match="sets the attribute"):
            load_model(edited(model_file, change))


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"PK\x05\x06" + bytes(18)])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "model.skops"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="Expected a model written by"):
        load_model(path)


def test_commands_take_classifiers_of_named_columns(tmp_path):
    path = tmp_path / "model.skops"
    save_model(ScoreDensity(model="gaussian").fit(ROWS), path)
    with pytest.raises(ValueError, match=r"got a ScoreDensity; open it in Python with scorefield.load_model"):
        load_classifier(path)
    save_model(ScoreClassifier(ScoreDensity(model="gaussian")).fit(ROWS, LABELS), path)
    with pytest.raises(ValueError, match="fitted to an array; fit it to a DataFrame"):
        load_classifier(path)


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    density = ScoreDensity(model="gaussian", random_state=np.random.default_rng(0))
    with pytest.raises(ValueError, match="got a Generator; use an integer as random_state"):
        save_model(density.fit(ROWS), path)
    with pytest.raises(NotFittedError):
        save_model(ScoreClassifier(), path)
    with pytest.raises(ValueError, match="got a ScoreOverSampler; store the rows"):
        save_model(ScoreOverSampler(), path)
    corrected = PriorCorrectedClassifier(GaussianNB()).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match=r"got a PriorCorrectedClassifier; .* pickle it"):
        save_model(corrected, path)
    with pytest.raises(ValueError, match="got a GaussianNB; pickle it"):
        save_model(GaussianNB().fit(ROWS, LABELS), path)
    assert list(tmp_path.iterdir()) == []
    path.write_text("theirs")
    with pytest.raises(FileExistsError):
        save_model(ScoreDensity(model="gaussian").fit(ROWS), path, replace=False)
    assert path.read_text() == "theirs"


def test_without_skops_the_error_says_what_to_install(tmp_path, monkeypatch):
    model = ScoreDensity(model="gaussian").fit(ROWS)
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'scorefield\[io\]'"):
        save_model(model, tmp_path / "model.skops")


def test_every_estimator_is_stored_or_refused_with_a_reason():
    from scorefield.files.model_files import ESTIMATORS, REMEDIES

    public = {name for name in scorefield.__all__ if hasattr(getattr(scorefield, name), "fit")}
    refused = {*REMEDIES, "LabellingClassifier"}  # that of studies, told to be pickled like estimators from elsewhere
    assert {*ESTIMATORS, "DistilledClassifier"} == {
        name for name in public - refused if not hasattr(getattr(scorefield, name), "fit_resample")
    }


def mixed_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=60), "zip": rng.choice(["01", "02", "03"], 60)})
    table.loc[::7, "size"] = np.nan
    return table


LIGHT = ScoreDensity(model="energy", hidden=(4,), max_steps=10)
ANY_TABLE = [
    (LIGHT, ("score_samples", "grad_log_density")),
    (ScoreImputer(method="neighbours", hidden=(4,), max_steps=10, random_state=0), ("transform",)),
    (ScoreOutlierDetector(LIGHT, random_state=0), ("score_samples", "predict")),
    (ScoreFeatures(LIGHT, passthrough=True, per_class=True, random_state=0), ("transform",)),
    (MixedEncoder("one-hot"), ("transform",)),
]


@pytest.mark.parametrize(("kind", "as_path"), [("numbers", pathlib.Path), ("mixed", str)])
@pytest.mark.parametrize(("estimator", "methods"), ANY_TABLE, ids=lambda x: type(x).__name__)
@pytest.mark.usefixtures("untrained")
def test_estimators_come_back_as_they_were(tmp_path, estimator, methods, kind, as_path):
    X = ROWS if kind == "numbers" else mixed_table()
    model = clone(estimator).fit(X, LABELS)
    path = as_path(tmp_path / "model.skops")
    save_model(model, path)
    found = load_model(path)
    assert type(found) is type(model)
    assert str(found.get_params()) == str(model.get_params())
    for method in methods:
        expected, got = getattr(model, method)(X), getattr(found, method)(X)
        assert type(got) is type(expected)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


@pytest.mark.parametrize("labels", [[3, 7, 9], [True, False, True], ["a", "b", "c"], [1.0, 2.0, 3.0]], ids=str)
def test_types_of_labels_come_back(tmp_path, labels):
    y = np.repeat(np.array(labels), 20)
    model = ScoreClassifier(ScoreDensity(model="gaussian")).fit(ROWS, y)
    save_model(model, tmp_path / "model.skops")
    found = load_model(tmp_path / "model.skops")
    assert found.classes_.dtype == model.classes_.dtype
    assert found.predict(ROWS).tolist() == model.predict(ROWS).tolist()
    assert {type(label) for label in found.predict(ROWS).tolist()} == {type(labels[0])}


@pytest.mark.usefixtures("untrained")
def test_commands_read_what_python_wrote_and_python_what_they_wrote(tmp_path):
    from scorefield.cli import commands

    table = mixed_table().assign(kind=np.repeat([0, 1], 30))
    light = ScoreClassifier(n_members=1, hidden=(4,), max_steps=10, random_state=0)
    save_model(light.fit(table[["size", "zip"]], table["kind"]), tmp_path / "m.skops")
    stored = load_classifier(tmp_path / "m.skops")
    table.to_csv(tmp_path / "new.csv", index=False)  # 01 in a file of its own would be a number
    rows = commands.rows_for(stored, tmp_path / "new.csv", Reading())
    assert rows["zip"].tolist() == table["zip"].tolist()
    np.testing.assert_array_equal(stored["model"].predict_proba(rows), light.predict_proba(table[["size", "zip"]]))
    assert list(commands.sample(stored, "1", 3, 0).columns) == ["size", "zip", "label"]

    theirs = {"target": "kind", "columns": ["size", "kind", "zip"], "integers": ["size"]}
    theirs["reading"] = {"forms": {"zip": "text"}, "na": ["none"]}
    write_stored(tmp_path / "m.skops", {"model": light, **theirs})
    found = load_model(str(tmp_path / "m.skops"))
    assert found.table_ == theirs
    save_model(found, tmp_path / "again.skops")
    assert load_model(tmp_path / "again.skops").table_ == theirs
    found.fit(table[["zip"]], table["kind"])  # of other columns now
    save_model(found, tmp_path / "again.skops")
    assert load_model(tmp_path / "again.skops").table_["columns"] == ["zip", "label"]


DENSITIES = [
    "joint",
    ScoreDensity(model="gaussian", sampler=Langevin(0.02)),
    {label: ScoreDensity("kernel") for label in "abc"},
]


@pytest.mark.parametrize("density", DENSITIES)
def test_a_loaded_model_is_the_stored_one(tmp_path, density):
    model = fitted(density=density)
    write_stored(tmp_path / "model.skops", {**stored(model)})
    found = _read_stored(tmp_path / "model.skops")
    assert found["version"] == __version__
    assert (found["target"], found["columns"]) == ("kind", ["x", "y", "kind"])
    for method in ("predict", "predict_proba", "score_samples", "grad_log_density"):
        np.testing.assert_array_equal(getattr(found["model"], method)(ROWS), getattr(model, method)(ROWS))
    np.testing.assert_array_equal(found["model"].sample(9, "b", 0), model.sample(9, "b", 0))
    assert str(found["model"].get_params()) == str(model.get_params())


def test_files_name_no_module(model_file):
    with zipfile.ZipFile(model_file) as archive:
        schema = archive.read("schema.json").decode()
    assert '"scorefield.' not in schema
