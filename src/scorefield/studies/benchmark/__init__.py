"""The benchmark on real tables."""
