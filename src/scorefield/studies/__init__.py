"""Experiments as functions of (seed, config): the engine, the paper's experiments, the benchmark."""
