"""Experiments, their rows on disk, and reports."""
