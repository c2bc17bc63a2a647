"""The service of the user guide: an exported classifier behind FastAPI."""

import importlib.util
import pathlib

import numpy as np
import pytest

from scorefield import ScoreClassifier, export_onnx

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "serve.py"


@pytest.fixture(scope="module")
def model(random_networks):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.choice(["usual", "fraud"], 60)
    with random_networks():
        return ScoreClassifier(n_members=1, hidden=(8,), calibration=None, random_state=0).fit(X, y)


@pytest.fixture
def client(model, tmp_path, monkeypatch):
    pytest.importorskip("fastapi", reason="FastAPI is not installed")
    pytest.importorskip("httpx", reason="httpx, which FastAPI's test client needs, is not installed")
    from fastapi.testclient import TestClient

    export_onnx(model, tmp_path / "model.onnx")
    monkeypatch.setenv("MODEL", str(tmp_path / "model.onnx"))
    spec = importlib.util.spec_from_file_location("serve", PAGE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return TestClient(module.app)


def test_the_service_predicts_as_the_model(model, client):
    answer = client.post("/predict", json={"rows": [{"x1": 2.0, "x0": 0.5}, {"x0": -1, "x1": 0}]})
    assert answer.status_code == 200
    expected, X = answer.json(), [[0.5, 2.0], [-1, 0]]
    assert [row["label"] for row in expected] == model.predict(X).tolist()
    found = [[row["probabilities"][name] for name in ("fraud", "usual")] for row in expected]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-5)
    assert client.post("/predict", json={"rows": []}).json() == []


@pytest.mark.parametrize("row", [{"x0": 1}, {"x0": 1, "x1": "a"}, {"x0": 1, "x1": None}, {"x0": 1, "x1": 2, "x2": 3}])
def test_other_rows_are_refused(client, row):
    assert client.post("/predict", json={"rows": [row]}).status_code == 422


def test_rows_that_are_not_finite_are_refused(client):
    answer = client.post("/predict", content='{"rows": [{"x0": 1, "x1": NaN}]}')
    assert answer.status_code == 422
