"""Advice on imbalance, quality of generated rows, metrics, statistics, splits."""
