"""Operators that hold events back and release them together: batches, triggers, lots."""
