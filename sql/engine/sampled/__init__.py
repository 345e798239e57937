"""Sampled rules: a window in GROUP BY, alone or with groups that several rules share."""
