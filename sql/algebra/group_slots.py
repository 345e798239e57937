"""The class of groups: its attributes, how each begins, and how it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sql.aggregates import rare
from sql.aggregates.plain_values import decode, encode
from sql.codegen.source import SourceWriter
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


def write_group_class(
    source: SourceWriter,
    given: str,
    firsts: Mapping[str, str],
    slots: Sequence[GroupSlot],
    bind: Callable[[object, str], str],
) -> None:
    """The class of groups, made of what is `given`. `firsts`: attributes with the texts of their first
    values, before those that are kept for the aggregates."""
    firsts = {**firsts, **{slot.name: slot.first(bind) for slot in slots}}
    with source.block("class Group:"):
        source.line(f"__slots__ = {tuple(firsts)!r}")
        source.line("")
        with source.block(f"def __init__(self, {given}):"):
            for name, text in firsts.items():
                source.line(f"self.{name} = {text}")
    source.line("")
