"""From bound expressions to Python code."""
