"""Questions on demand: a SELECT, or a change, of the present rows of named windows and tables."""
