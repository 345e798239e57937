"""The readings of one partition, and its state as plain data, with each row once, however many readings share
it."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sql.algebra.pattern.snapshot import Packer, Unpacker
from sql.algebra.recognize.automaton import END, RecognizeProgram
from sql.errors import CorruptState
from sql.plan.recognize_plan import RecognizePlan

Reading = tuple[Any, ...]
"""A reading of the rows of an attempt: the number of its first row, the place of its newest one, and for
each variable its row, or the newest of its rows: a pair of the one before it and the row itself."""

Recent = tuple[Any, ...]
"""The newest rows of a partition, the newest first, for `prev`."""

Step = Callable[[list[Reading], int, Any, Recent], tuple[list[Reading], list[Reading]]]
"""Leads a row with its number through the readings of all attempts: those that go on, and those that are
complete with it; of each attempt the preferred first. Compiled from the conditions."""


Key = Callable[[Any], Hashable]
"""The key of a row's partition."""


class Match(NamedTuple):
    """A complete reading, and the number of its last row."""

    last: int
    reading: Reading

    @property
    def first(self) -> int:
        return int(self.reading[0])


@dataclass(slots=True)
class Waiting:
    """The matches of an attempt, which wait for the end of its interval."""

    due: int
    complete: list[Match] = field(default_factory=list)

    def reaches(self, places: Container[int]) -> bool:
        """True if the newest row of a match is at one of these places."""
        return any(match.reading[1] in places for match in self.complete)


class HeldRow(NamedTuple):
    """A row that the window holds, when it came, and the rows before it, for `prev`; None: not known."""

    row: Any
    at: int
    before: Recent | None


class Rules:
    """The data shared by all recognizers of a plan: the automaton with its conditions, the key of a row's
    partition, the depth of `prev`."""

    def __init__(
        self,
        plan: RecognizePlan,
        program: RecognizeProgram,
        step: Step,
        key: Key,
        most: int,
    ) -> None:
        """`most`: live readings or attempts, and readings of one attempt; more are not begun."""
        self.plan = plan
        self.step = step
        self.key = key
        self.most = most
        self.begin: Reading = (program.start, *(None,) * len(plan.variables))
        """A reading without rows, behind the number of its first."""
        self.final = frozenset(place for place, after in enumerate(program.after) if after == (END,))
        """The places where the pattern ends, so that no row can be added."""
        self.depth = max(plan.previous, default=0)
        self.nothing: Recent = (None,) * self.depth


class Readings:
    """The readings of one partition, in order of their first rows, and its newest rows. Those with one first
    row are an attempt, in order of preference."""

    __slots__ = ("readings", "recent")

    def __init__(self, rules: Rules) -> None:
        self.readings: list[Reading] = []
        self.recent = rules.nothing

    def __len__(self) -> int:
        """The number of its readings, which counts towards the recognizer's bound."""
        return len(self.readings)

    def pack(self, packer: ReadingPacker) -> list[Any]:
        """The readings and the newest rows as plain data."""
        return [packer.readings(self.readings), packer.recent(self.recent)]

    def unpack(self, unpacker: ReadingUnpacker, readings: list[Any], recent: list[int | None]) -> None:
        """Put that back into a partition just made."""
        self.readings, self.recent = unpacker.readings(readings), unpacker.recent(recent)


class HeldReadings(Readings):
    """One whose rows leave a window, or whose matches wait."""

    __slots__ = ("rows", "waiting")

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.rows: dict[int, HeldRow] = {}
        """The rows that the window holds; only kept where there is a window."""
        self.waiting: dict[int, Waiting] = {}
        """By first row the attempts, where there is an interval."""

    def __len__(self) -> int:
        """Attempts, each of which may have several readings."""
        return len(self.waiting or {reading[0] for reading in self.readings})

    @property
    def is_idle(self) -> bool:
        """True if nothing can come of it but through `prev`."""
        return not (self.readings or self.waiting or self.rows)

    def end(self, firsts: Container[int]) -> None:
        """End the attempts with these first rows."""
        self.readings = [reading for reading in self.readings if reading[0] not in firsts]
        self.waiting = {first: held for first, held in self.waiting.items() if first not in firsts}

    def cut(self) -> None:
        """Rows have left the window: attempts that began with them read no more; their matches go on
        waiting."""
        self.readings = [reading for reading in self.readings if reading[0] in self.rows]
        waiting = self.waiting.items()
        self.waiting = {first: held for first, held in waiting if held.complete or first in self.rows}

    def pack(self, packer: ReadingPacker) -> list[Any]:
        rows = [
            [number, packer.row(row), at, None if before is None else packer.recent(before)]
            for number, (row, at, before) in self.rows.items()
        ]
        waiting = [[first, held.due, packer.matches(held.complete)] for first, held in self.waiting.items()]
        return [*super().pack(packer), rows, waiting]

    def unpack(self, unpacker: ReadingUnpacker, *state: Any) -> None:
        if len(state) == 2:
            raise CorruptState("match_recognize held no rows of a window when this was saved")
        readings, recent, rows, waiting = state if len(state) == 4 else _from_attempts(*state)
        super().unpack(unpacker, readings, recent)
        self.rows = {number: _held_row(unpacker, *held) for number, *held in rows}
        self.waiting = {first: Waiting(due, unpacker.matches(complete)) for first, due, complete in waiting}


def _held_row(
    unpacker: ReadingUnpacker, place: int, at: int, before: list[int | None] | None = None
) -> HeldRow:
    """A row of the window. Earlier versions did not save what came before it."""
    return HeldRow(unpacker.row(place), at, None if before is None else unpacker.recent(before))


def _from_attempts(state: list[Any]) -> list[Any]:
    """The state of a partition that an earlier version saved, as a list of attempts."""
    attempts, recent, rows = state
    readings = [reading for _, _, _, found, _ in attempts for reading in found]
    waiting = [[first, due, complete] for first, _, due, _, complete in attempts if due is not None]
    return [readings, recent, rows, waiting]


Cell = tuple[Any, Any]
"""The newest of several rows of a variable, behind the cell of those before it."""


class ReadingPacker(Packer):
    """Collects the rows and the readings of a state."""

    def __init__(self, lists: tuple[bool, ...]) -> None:
        """`lists`: which variables take several rows."""
        super().__init__()
        self.lists = lists
        self.cells: list[tuple[int | None, int]] = []
        self._places: dict[int, int] = {}

    def readings(self, readings: Iterable[Reading]) -> list[Any]:
        """Number of the first row, place, and the rows of each variable."""
        return [[first, place, *map(self._taken, values, self.lists)] for first, place, *values in readings]

    def matches(self, matches: Iterable[Match]) -> list[Any]:
        """Number of the last row, and the reading."""
        return [[match.last, *self.readings([match.reading])] for match in matches]

    def recent(self, recent: Recent) -> list[int | None]:
        """The newest rows of a partition."""
        return [None if row is None else self.row(row) for row in recent]

    def _taken(self, value: Any, is_list: bool) -> int | None:
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


class ReadingUnpacker(Unpacker):
    """Makes rows and readings again."""

    def __init__(
        self, rows: list[Any], cells: list[Any], lists: tuple[bool, ...], make_row: Callable[[Any], Any]
    ) -> None:
        super().__init__(rows, [], make_row)
        self.lists = lists
        self.cells: list[Cell] = []
        for before, place in cells:
            self.cells.append((None if before is None else self.cells[before], self.row(place)))

    def readings(self, packed: list[Any]) -> list[Reading]:
        return [(first, place, *map(self._taken, values, self.lists)) for first, place, *values in packed]

    def matches(self, packed: list[Any]) -> list[Match]:
        return [Match(last, *self.readings([reading])) for last, reading in packed]

    def recent(self, packed: list[int | None]) -> Recent:
        return tuple(None if place is None else self.row(place) for place in packed)

    def _taken(self, place: int | None, is_list: bool) -> Any:
        if place is None:
            return None
        return self.cells[place] if is_list else self.row(place)
