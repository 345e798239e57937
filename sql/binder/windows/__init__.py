"""Binding windows: those of FROM, those of GROUP BY, and those of stream queries."""
