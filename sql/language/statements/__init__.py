"""Statements, clause by clause."""
