"""What a command tells its user instead of a traceback."""

from __future__ import annotations


class UsageError(Exception):
    """What the user asked for cannot be done; the text says what to change. Exit code 2."""


class MissingError(Exception):
    """Something that must be installed is not; the text says what and how. Exit code 3."""
