"""Functions of nested values: arrays, objects, JSON."""
