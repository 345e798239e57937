"""The attributes of a group: how each begins, and how it is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sql.aggregates import rare
from sql.aggregates.plain_values import decode, encode
from sql.types import Saved


class GroupSlot(NamedTuple):
    """An attribute of a group: how it begins, and how it is stored."""

    name: str
    make: Callable[[], Any]
    pack: Callable[[Any], Any]
    unpack: Callable[[Any, Any], Any]
    """Takes what was stored and a function that finds an event by its number."""

    def first(self, bind: Callable[[object, str], str]) -> str:
        """The text of its first value."""
        return "0" if self.make is int else f"{bind(self.make, f'new_{self.name}')}()"


def number_slot(name: str) -> GroupSlot:
    """A whole number."""
    return GroupSlot(name, int, encode, lambda state, find: decode(state))


def rest_slot(name: str, kind: type[rare.Rest]) -> GroupSlot:
    """The accumulator of rare values; None without any."""

    def pack(rest: rare.Rest | None) -> Saved:
        return None if rest is None else rest.snapshot()

    return GroupSlot(name, lambda: None, pack, lambda state, find: rare.restored(kind, state))
