"""Serve an exported classifier of numbers: MODEL=model.onnx uvicorn serve:app"""

import json
import os

import numpy as np
import onnxruntime
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

session = onnxruntime.InferenceSession(os.environ["MODEL"])
metadata = session.get_modelmeta().custom_metadata_map
columns, classes = json.loads(metadata["columns"]), json.loads(metadata["classes"])
app = FastAPI()


class Rows(BaseModel):
    rows: list[dict[str, float]]  # by the names of the columns


@app.post("/predict")
def predict(table: Rows):
    for row in table.rows:
        if set(row) != set(columns):
            raise HTTPException(422, f"Expected the columns {columns}, got {sorted(row)}.")
    numbers = np.array([[row[name] for name in columns] for row in table.rows], np.float64).reshape(-1, len(columns))
    if not np.isfinite(numbers).all():
        raise HTTPException(422, "Expected finite numbers, got NaN or infinity.")
    labels, probabilities = session.run(["label", "probabilities"], {"rows": numbers})
    found = [dict(zip(map(str, classes), row, strict=True)) for row in probabilities.tolist()]
    return [{"label": label, "probabilities": own} for label, own in zip(labels.tolist(), found, strict=True)]
