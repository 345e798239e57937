"""Errors that a command prints instead of a traceback."""

from __future__ import annotations


class UsageError(Exception):
    """The request of the user cannot be fulfilled; the text gives the remedy. Exit code 2."""


class MissingError(Exception):
    """A package that must be installed is not; the text names it and the command. Exit code 3."""
