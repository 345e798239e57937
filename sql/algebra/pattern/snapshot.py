"""Patterns as plain data: rows and bindings are written once, however many instances hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sql.aggregates.plain_values import decode
from sql.algebra.event_store import PackedRow, pack_row
from sql.algebra.pattern.listening import Binding
from sql.algebra.pattern.machine import Timed
from sql.errors import CorruptState
from sql.types import Plain

Places = int | list[int] | None
"""The place of a row in the table of rows, or of several."""


VERSION = 2
"""The version of stored states; states of another version are not restored."""


def check_version(state: Mapping[str, Any], what: str) -> None:
    """Raise CorruptState for a state of another version."""
    if state.get("version") != VERSION:
        raise CorruptState(f"{what} of version {state.get('version')!r} is not {VERSION}")


class Packer:
    """Collects the rows and bindings of a state. What is the same object is written once
    and is one object again."""

    def __init__(self) -> None:
        self.packed: list[PackedRow] = []
        self.bindings: list[list[Places]] = []
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
        return [self.row(row) for row in rows]

    def row(self, row: object) -> int:
        """The place of a row in the table of rows."""
        place = self._rows.get(id(row))
        if place is None:
            place = self._rows[id(row)] = len(self.packed)
            self.packed.append(pack_row(row))
        return place

    def _value(self, value: object) -> Places:
        if value is None:
            return None
        return self.rows(value) if value.__class__ in (list, tuple) else self.row(value)


class Unpacker:
    """Makes rows and bindings again, and collects what has to be put back in order of its start."""

    def __init__(
        self,
        rows: list[dict[str, Plain]],
        bindings: list[list[Places]],
        make_row: Callable[[dict[str, Any]], Any],
    ) -> None:
        self.row = [make_row({name: decode(item) for name, item in row.items()}) for row in rows].__getitem__
        """The row at a place of the table."""
        self.binding = [tuple(map(self._value, binding)) for binding in bindings].__getitem__
        """The binding at a place of the table."""
        self.listeners: list[tuple[int, Callable[[], None]]] = []
        """The numbers of the starts of listeners, and what makes each listen again."""
        self.timers: list[tuple[Timed, int]] = []
        """What waits, each with its instant."""

    def rows(self, places: list[int]) -> list[Any]:
        """The rows at places of the table."""
        return list(map(self.row, places))

    def _value(self, value: Places) -> Any:
        if value is None:
            return None
        return self.rows(value) if isinstance(value, list) else self.row(value)
