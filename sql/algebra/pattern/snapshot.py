"""Patterns as plain data: rows and bindings are written once, however many instances hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sql.aggregates.plain_values import decode
from sql.algebra.event_store import pack_key, pack_row, unpack_key
from sql.types import Value

if TYPE_CHECKING:
    from sql.algebra.pattern.atoms import Filter
    from sql.algebra.pattern.nodes import Binding
    from sql.algebra.pattern.pattern_timers import Timed


class Packer:
    """Collects the rows and bindings of a state. What is the same object is written once
    and is one object again."""

    def __init__(self) -> None:
        self.packed: list[Any] = []
        self.bindings: list[Any] = []
        self._rows: dict[int, int] = {}
        self._bindings: dict[int, int] = {}

    def binding(self, binding: Binding) -> int:
        """The place in the table of bindings of one that the state holds: it is known by its identity."""
        place = self._bindings.get(id(binding))
        if place is None:
            place = self._bindings[id(binding)] = len(self.bindings)
            self.bindings.append([self._value(value) for value in binding])
        return place

    def rows(self, rows: Sequence[Any]) -> list[int]:
        """The places of rows in the table of rows."""
        return [self._row(row) for row in rows]

    def key(self, key: object) -> Any:
        """A key of `every-distinct`."""
        return pack_key(key)

    def _value(self, value: object) -> Any:
        if value is None:
            return None
        return self.rows(value) if value.__class__ in (list, tuple) else self._row(value)

    def _row(self, row: object) -> int:
        place = self._rows.get(id(row))
        if place is None:
            place = self._rows[id(row)] = len(self.packed)
            self.packed.append(pack_row(row))
        return place


class Unpacker:
    """Makes rows and bindings again, and collects what has to be put back in order of its start."""

    def __init__(
        self, rows: list[Any], bindings: list[Any], make_row: Callable[[dict[str, Any]], Any]
    ) -> None:
        self._rows = [make_row({name: decode(item) for name, item in row.items()}) for row in rows]
        self._bindings = [tuple(self._value(value) for value in binding) for binding in bindings]
        self.listeners: list[Filter] = []
        self.timers: list[tuple[Timed, int | None]] = []

    def binding(self, place: int) -> Binding:
        """The binding at a place of the table."""
        return self._bindings[place]

    def rows(self, places: list[int]) -> list[Any]:
        """The rows at places of the table."""
        return [self._rows[place] for place in places]

    def _value(self, value: Value) -> Any:
        if value is None:
            return None
        return self.rows(value) if value.__class__ is list else self._rows[value]


__all__ = ["Packer", "Unpacker", "unpack_key"]
