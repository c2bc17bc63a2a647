"""Experiments as functions from a seed to rows, run and resumed, and the page that is drawn from their rows."""
