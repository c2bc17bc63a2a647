"""Model files carry no code: hostile ones, made here, are refused before anything in them is built."""

import io
import json
import zipfile

import numpy as np
import pytest
import skops.io

from scorefield import Langevin, ScoreClassifier, ScoreDensity, __version__
from scorefield.files.model_files import MAX_UNPACKED, load_model, save_model

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
    save_model(path, stored(fitted()))
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


def test_only_classifiers_are_loaded(tmp_path):
    path = tmp_path / "model.skops"
    save_model(path, stored(ScoreDensity(model="gaussian").fit(ROWS)))
    with pytest.raises(ValueError, match="holds a ScoreDensity, not a classifier"):
        load_model(path)
    with pytest.raises(ValueError, match="got a Generator; use an integer as random_state"):
        save_model(path, stored(ScoreClassifier(random_state=np.random.default_rng(0))))


DENSITIES = [
    "joint",
    ScoreDensity(model="gaussian", sampler=Langevin(0.02)),
    {label: ScoreDensity("kernel") for label in "abc"},
]


@pytest.mark.parametrize("density", DENSITIES)
def test_a_loaded_model_is_the_stored_one(tmp_path, density):
    model = fitted(density=density)
    save_model(tmp_path / "model.skops", stored(model))
    found = load_model(tmp_path / "model.skops")
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
