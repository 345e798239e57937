"""Binding contexts: their declaration, the properties of partitions, equalities with these in filters."""
