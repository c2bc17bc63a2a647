"""Checks of a fit on rows that it has not learned from."""
