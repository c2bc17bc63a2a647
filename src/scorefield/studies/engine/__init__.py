"""What an experiment is, runs on disk, and the report."""
