"""Patterns: from the syntax tree to the plan."""
