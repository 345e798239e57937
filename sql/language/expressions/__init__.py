"""Expressions: operands, operators, calls and constants."""
