"""Fitted models for other programs: arrays, JSON, ONNX."""
