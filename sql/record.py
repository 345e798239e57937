"""Plain data of the trees: records that do not change and are compared by their fields.

A dataclass compiles half a dozen methods when its module is imported, which for the kinds of nodes was a
quarter of the start of the gateway. msgspec makes a class in a fortieth of that time,
in a fifth of the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, dataclass_transform

from msgspec import NODEFAULT, Struct, field
from msgspec.structs import FieldInfo, astuple, fields, replace


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True, eq=False):
    """Base of all records. Two are equal if they are of one class and all fields that count are equal."""

    beside: ClassVar[frozenset[str]] = frozenset({"span"})
    """Fields that do not count: they say where and how something was written, or follow from the others."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        kind = self.__class__
        return kind is other.__class__ and bool(_content(kind)(self) == _content(kind)(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_content(self.__class__)(self))


@cache
def _content(kind: type[Record]) -> Callable[[Any], Any]:
    """The function that reads the fields that equality compares."""
    names = [name for name in kind.__struct_fields__ if name not in kind.beside]
    return attrgetter(*names) if names else lambda record: ()


def changed_fields(record: Record) -> list[tuple[str, Any]]:
    """The fields that count and do not hold their default, with their values."""
    held = astuple(record)
    return [
        (info.name, held[place])
        for place, info in _counted(record.__class__)
        if not _is_default(held[place], info)
    ]


def _is_default(held: object, info: FieldInfo) -> bool:
    if info.default_factory is not NODEFAULT:
        return bool(held == info.default_factory())
    return held.__class__ is info.default.__class__ and bool(held == info.default)


@cache
def _counted(kind: type[Record]) -> list[tuple[int, FieldInfo]]:
    """The fields that count, with their places and defaults."""
    return [(place, info) for place, info in enumerate(fields(kind)) if info.name not in kind.beside]


__all__ = ["Record", "changed_fields", "field", "replace"]
