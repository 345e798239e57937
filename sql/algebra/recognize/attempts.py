"""The attempts of one partition whose rows leave a window, or whose matches wait for the end of an interval.

As plain data rows and readings are written once, however many attempts share them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.algebra.recognize.automaton import END, RecognizeProgram
from sql.codegen.functions import DATA_ERRORS

Reading = tuple[Any, ...]
"""A reading of the rows of an attempt: the number of its first row, the place of its newest one, and for
each variable its row, or the newest of its rows: a pair of the one before it and the row itself."""

Recent = tuple[Any, ...]
"""The newest rows of a partition, the newest first, for `prev`."""

Step = Callable[[list[Reading], int, Any, Recent], tuple[list[Reading], list[Reading]]]
"""Leads a row with its number through readings: those that go on, and those that are complete with it, the
preferred first. Compiled from the conditions."""


class Match(NamedTuple):
    """A complete reading, and the number of its last row."""

    last: int
    reading: Reading

    @property
    def first(self) -> int:
        """The number of the first row."""
        return int(self.reading[0])


@dataclass(slots=True)
class Attempt:
    """An attempt that began with row `first`, whose instant was `begun`."""

    first: int
    begun: int
    readings: list[Reading]
    """In order of preference."""
    complete: list[Match] = field(default_factory=list)
    """The complete matches that wait for the end of the interval."""
    due: int | None = None


class Rules:
    """The data shared by all partitions: the automaton with its conditions, and the depth of `prev`."""

    def __init__(self, program: RecognizeProgram, step: Step, width: int, offsets: tuple[int, ...]) -> None:
        self.step = step
        self.begin: Reading = (program.start, *(None,) * width)
        """A reading without rows, behind the number of its first."""
        self.final = frozenset(place for place, after in enumerate(program.after) if after == (END,))
        """The places where the pattern ends, so that no row can be added."""
        self.depth = max(offsets, default=0)
        self.nothing: Recent = (None,) * self.depth


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

    def _value(self, value: Any, is_list: bool) -> int | None:
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

    def _value(self, place: int | None, is_list: bool) -> Any:
        if place is None:
            return None
        return self.cells[place] if is_list else self.row(place)


class Attempts:
    """The attempts of one partition, oldest first."""

    __slots__ = ("live", "recent", "rows", "rules")
    parts = 1
    """The number of values it is packed in."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.live: list[Attempt] = []
        self.recent = rules.nothing
        self.rows: dict[int, tuple[Any, int]] = {}
        """The rows that the window holds, with their instants; only kept where there is a window."""

    def read(
        self, number: int, row: object, now: int, *, may_begin: bool, keeps: bool = False
    ) -> list[tuple[Attempt, list[Match]]]:
        """Lead a row through all attempts, and begin one with it. The matches it
        completes, by attempt, in order.

        `keeps`: an attempt that has matched and cannot go on lives until the caller ends it. A row that a
        condition cannot be evaluated for changes nothing.
        """
        rules, attempts = self.rules, self.live
        if may_begin:
            attempts = [*attempts, Attempt(number, now, [(number, *rules.begin)])]
        read = [rules.step(attempt.readings, number, row, self.recent) for attempt in attempts]
        self.recent = (row, *self.recent)[: rules.depth]
        self.live = []
        found = []
        for attempt, (readings, told) in zip(attempts, read, strict=True):
            attempt.readings = readings
            if told:
                found.append((attempt, [Match(number, reading) for reading in told]))
            if readings or attempt.complete or (told and keeps):
                self.live.append(attempt)
        return found

    @property
    def is_idle(self) -> bool:
        """True if nothing can come of it but through `prev`."""
        return not self.live and not self.rows

    def drop(self, upto: int) -> None:
        """End the attempts that began at or before a row."""
        self.live = [attempt for attempt in self.live if attempt.first > upto]

    def remove(self, numbers: set[int]) -> None:
        """Rows leave the window: the oldest end what holds them; any other order reads what remains anew."""
        held = [number for number in numbers if number in self.rows]
        if not held:
            return
        oldest = list(self.rows)[: len(held)]
        for number in held:
            del self.rows[number]
        if set(oldest) == set(held):
            self.drop(max(held))
            return
        self.live = []
        self.recent = self.rules.nothing
        for number, (row, at) in list(self.rows.items()):
            try:
                self.read(number, row, at, may_begin=True)
            except DATA_ERRORS:  # behind another row than when it came: it fits nothing
                continue

    def __len__(self) -> int:
        return len(self.live)

    def pack(self, packer: ReadingPacker) -> list[Any]:
        """The attempts, the newest rows and the retained ones as plain data."""
        attempts = [
            [
                attempt.first,
                attempt.begun,
                attempt.due,
                packer.readings(attempt.readings),
                [[match.last, *packer.readings([match.reading])] for match in attempt.complete],
            ]
            for attempt in self.live
        ]
        rows = [[number, packer.row(row), at] for number, (row, at) in self.rows.items()]
        return [[attempts, packer.recent(self.recent), rows]]

    def unpack(self, unpacker: ReadingUnpacker, state: list[Any]) -> None:
        """Put that back into a partition just made."""
        attempts, recent, rows = state
        for first, begun, due, readings, complete in attempts:
            matches = [Match(last, *unpacker.readings([reading])) for last, reading in complete]
            self.live.append(Attempt(first, begun, unpacker.readings(readings), matches, due))
        self.recent = unpacker.recent(recent)
        self.rows = {number: (unpacker.row(place), at) for number, place, at in rows}
