"""The definition of a template function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sql.record import Record


class Function(Record):
    """A template function: its numbers of arguments (`at_most` None: any number) and its implementation."""

    apply: Callable[..., Any]
    at_least: int
    at_most: int | None


def must_forms(functions: Mapping[str, Function], names: Iterable[str]) -> dict[str, Function]:
    """These functions by their names that begin with `must`: an error is a dead letter with either."""
    return {f"must{name[0].upper()}{name[1:]}": functions[name] for name in names}
