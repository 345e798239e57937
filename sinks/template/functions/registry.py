"""The definition of a template function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.record import Record


class Function(Record):
    """A template function: its numbers of arguments (`at_most` None: any number) and its implementation."""

    apply: Callable[..., Any]
    at_least: int
    at_most: int | None
