"""Instants as text for people."""

from __future__ import annotations

from datetime import UTC, datetime


def to_the_second(at_ms: int) -> str:
    """An instant in UTC.

    >>> to_the_second(1_767_225_600_000)
    '2026-01-01 00:00:00Z'
    """
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
