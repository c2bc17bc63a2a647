"""Model files: estimators saved and loaded without code in the file."""
