"""The demonstration: a small real table from its columns to a page, in two minutes."""
