"""Rows of relations as values, and the change that a write makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Row = dict[str, Any]

Change = tuple[list[Row], list[Row]]
"""The rows that came, also by an update, and those that were there before in their place or at all."""


def shaped(row: Mapping[str, Any], columns: Iterable[str]) -> Row:
    """A row of just these columns; those it lacks are NULL."""
    return {column: row.get(column) for column in columns}
