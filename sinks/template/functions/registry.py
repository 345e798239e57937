"""What a template function is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.record import Record


class Function(Record):
    """A template function: how many arguments it takes (`at_most` None: any number) and what it does."""

    apply: Callable[..., Any]
    at_least: int
    at_most: int | None
