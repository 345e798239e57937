"""Warnings for rules that are valid but hardly intended: a function for each code. Start at `check`."""
