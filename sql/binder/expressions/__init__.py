"""Expressions: names to columns, operators, access to fields and elements, rows of tables."""
