"""Joins of two or more sources, incremental in both directions."""
