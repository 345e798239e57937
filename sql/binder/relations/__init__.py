"""Binding what concerns relations: declarations, statements that act on them, reads in queries."""
