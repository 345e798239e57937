"""The state of match_recognize as plain data: rows and readings are written once, however
many attempts share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.algebra.recognize.attempts import Attempt, Attempts, Match, Reading, Recent
from sql.types import Saved, Value

Cell = tuple[Any, Any]
"""The newest of several rows of a variable, behind the cell of those before it."""


class ReadingPacker:
    """Collects the rows and the readings of a state."""

    def __init__(self, lists: tuple[bool, ...]) -> None:
        """`lists`: which variables take several rows."""
        self.lists = lists
        self.rows = Packer()
        self.row = self.rows.row
        """The place of a row in the table of rows."""
        self.cells: list[tuple[int | None, int]] = []
        self._places: dict[int, int] = {}

    def readings(self, readings: list[Reading]) -> list[Any]:
        """Number of the first row, place, and the rows of each variable."""
        return [[first, place, *map(self._value, values, self.lists)] for first, place, *values in readings]

    def recent(self, recent: Recent) -> list[int | None]:
        """The newest rows of a partition."""
        return [None if row is None else self.row(row) for row in recent]

    def attempts(self, partition: Attempts) -> list[Any]:
        """A partition whose rows leave a window, or whose matches wait."""
        attempts = [
            [
                attempt.first,
                attempt.begun,
                attempt.due,
                self.readings(attempt.readings),
                [[match.last, *self.readings([match.reading])] for match in attempt.complete],
            ]
            for attempt in partition.live
        ]
        rows = [[number, self.row(row), at] for number, (row, at) in partition.rows.items()]
        return [attempts, self.recent(partition.recent), rows]

    def _value(self, value: Value, is_list: bool) -> int | None:
        if value is None:
            return None
        return self._cell(value) if is_list else self.row(value)

    def _cell(self, cell: Cell) -> int:
        """The place of a cell in the table of cells, behind that of the one before it."""
        new = []
        at: Cell | None = cell
        while at is not None and id(at) not in self._places:
            new.append(at)
            at = at[0]
        before = None if at is None else self._places[id(at)]
        for each in reversed(new):
            self.cells.append((before, self.row(each[1])))
            before = self._places[id(each)] = len(self.cells) - 1
        assert before is not None
        return before


class ReadingUnpacker:
    """Makes rows and readings again."""

    def __init__(
        self, rows: list[Any], cells: list[Any], lists: tuple[bool, ...], make_row: Callable[[Any], Any]
    ) -> None:
        self.lists = lists
        self.row = Unpacker(rows, [], make_row).row
        """The row at a place of the table."""
        self.cells: list[Cell] = []
        for before, place in cells:
            self.cells.append((None if before is None else self.cells[before], self.row(place)))

    def readings(self, packed: list[Any]) -> list[Reading]:
        return [(first, place, *map(self._value, values, self.lists)) for first, place, *values in packed]

    def recent(self, packed: list[int | None]) -> Recent:
        return tuple(None if place is None else self.row(place) for place in packed)

    def attempts(self, partition: Attempts, state: Saved) -> None:
        """Put the attempts, the newest and the retained rows back into a partition just made."""
        attempts, recent, rows = state
        for first, begun, due, readings, complete in attempts:
            matches = [Match(last, *self.readings([reading])) for last, reading in complete]
            partition.live.append(Attempt(first, begun, self.readings(readings), matches, due))
        partition.recent = self.recent(recent)
        partition.rows = {number: (self.row(place), at) for number, place, at in rows}

    def _value(self, place: int | None, is_list: bool) -> Any:
        if place is None:
            return None
        return self.cells[place] if is_list else self.row(place)
