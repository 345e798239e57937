"""Definitions of contexts."""
