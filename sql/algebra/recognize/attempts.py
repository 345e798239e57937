"""The attempts of one partition: each began with a row, and holds the readings of the rows since."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sql.algebra.recognize.program import END, Program

Values = tuple[Any, ...]
"""The rows of each variable: None, a row, or for one that takes several the tuple of them."""

Fits = Callable[[Any, Values], bool]


class Reading(NamedTuple):
    """A reading of the rows of an attempt that waits at a place for the next one."""

    place: int
    values: Values


class Match(NamedTuple):
    """A complete reading: of the rows from `first` to `last`, by their numbers.

    `is_final`: it has reached the end of the pattern, where no further row can be added to it.
    """

    first: int
    last: int
    values: Values
    is_final: bool = False


@dataclass(slots=True)
class Attempt:
    """What began with row `first`, whose instant was `begun`."""

    first: int
    begun: int
    readings: list[Reading]
    """In order of preference."""
    complete: list[Match] = field(default_factory=list)
    """What waits for the end of the interval."""
    due: int | None = None


class Step(NamedTuple):
    """What a place of the program does with a row: `test` None takes any; `after`: the
    places that may follow."""

    variable: int
    test: Fits | None
    is_list: bool
    after: tuple[int, ...]


class Rules:
    """What all partitions share: the program with its conditions, and how far `prev` looks back."""

    def __init__(
        self, program: Program, lists: tuple[bool, ...], fits: dict[int, Fits], offsets: tuple[int, ...]
    ) -> None:
        """`fits`: the conditions of the variables that have one. `lists`: which take several rows."""
        self.offsets = offsets
        self.depth = max(offsets, default=0) + 1
        self.steps = [
            Step(variable, fits.get(variable), lists[variable], tuple(after))
            for variable, after in zip(program.variables, program.after, strict=True)
        ]
        empty = (None,) * len(lists)
        self.begin = [Reading(place, empty) for place in program.first if place != END]


class Attempts:
    """The attempts of one partition, oldest first."""

    __slots__ = ("live", "recent", "rows", "rules")

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.live: list[Attempt] = []
        self.recent: deque[tuple[int, Any]] = deque(maxlen=rules.depth)
        """The newest rows of the partition, for `prev`."""
        self.rows: dict[int, tuple[Any, int]] = {}
        """The rows that the window holds, with their instants; only kept where there is a window."""

    def read(
        self, number: int, row: Any, now: int, *, may_begin: bool, keeps: bool = False
    ) -> list[tuple[Attempt, list[Match]]]:
        """Lead a row through all attempts, and begin one with it. The matches it
        completes, by attempt, in order.

        `keeps`: an attempt that has matched and cannot go on lives until somebody ends it. A row that a
        condition cannot be evaluated for changes nothing.
        """
        self.recent.append((number, row))
        attempts = self.live
        if may_begin:
            attempts = [*attempts, Attempt(number, now, self.rules.begin)]
        try:
            previous = tuple([self._previous(offset) for offset in self.rules.offsets])
            read = [self._advance(attempt, number, row, previous) for attempt in attempts]
        except BaseException:
            self.recent.pop()
            raise
        self.live = []
        found = []
        for attempt, (readings, matches) in zip(attempts, read, strict=True):
            attempt.readings = readings
            if matches:
                found.append((attempt, matches))
            if readings or attempt.complete or (matches and keeps):
                self.live.append(attempt)
        return found

    def _previous(self, offset: int) -> Any:
        return self.recent[-1 - offset][1] if offset < len(self.recent) else None

    def _advance(
        self, attempt: Attempt, number: int, row: Any, previous: Values
    ) -> tuple[list[Reading], list[Match]]:
        """The readings that go on with a row; those that are complete with it, the preferred first."""
        steps = self.rules.steps
        readings: list[Reading] = []
        matches: list[Match] = []
        for place, values in attempt.readings:
            variable, test, is_list, after = steps[place]
            if test is not None and not test(row, values + previous):
                continue
            value = ((values[variable] or ()) + (row,)) if is_list else row
            taken = (*values[:variable], value, *values[variable + 1 :])
            for following in after:
                if following == END:
                    matches.append(Match(attempt.first, number, taken, len(after) == 1))
                else:
                    readings.append(Reading(following, taken))
        return readings, matches

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
        self.recent.clear()
        for number, (row, at) in list(self.rows.items()):
            self.read(number, row, at, may_begin=True)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self.live)
