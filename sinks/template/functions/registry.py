"""What a template function is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Function:
    """A template function: how many arguments it takes (`at_most` None: any number) and what it does."""

    apply: Callable[..., Any]
    at_least: int
    at_most: int | None
