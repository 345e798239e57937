"""Patterns over events, and over neighbouring rows."""
