"""Patterns that are watched: for the start of partitions, or for the end of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sql.algebra.context.end_atoms import Atom
from sql.algebra.pattern import Pattern, PatternBuilder
from sql.algebra.pattern.listening import Binding
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.functions.definition import Context

Properties = Sequence[Any]
"""Those of a partition: the values of each level (the id comes behind them)."""

Report = Callable[[Any, BaseException, int], None]
"""Called for an error of evaluation: with the event,
or None if the pattern goes on without the part that failed, and the instant."""


@dataclass(slots=True)
class PatternCondition:
    """A pattern, watched by machines of its own: one per partition that it may end, one per
    level that it may start.

    builder    makes the machines
    report       gets the errors of evaluation
    functions  those of all machines, which read `clock` and, of the partition that is watched, `at_work`
    atoms      what an event must fulfil to matter, by stream
    places     per tag the place it is kept at (None: under the name of all)
    place      where the whole match is kept, if it has a name
    inclusive  whether its tagged events count in the partition it starts
    """

    builder: PatternBuilder
    report: Report
    functions: FunctionSet
    clock: Context
    at_work: list[Any]
    atoms: dict[str, list[Atom]]
    places: tuple[int | None, ...]
    place: int | None = None
    inclusive: bool = False

    def keep(self, match: Binding, values: list[Any]) -> None:
        """Put the events of a match among the partition's values."""
        found = self.builder.plan.by_name(match)
        if self.place is not None:
            values[self.place] = found
            return
        for value, place in zip(found.values(), self.places, strict=True):
            if place is not None:
                values[place] = value

    def counted(self, match: Binding) -> Iterator[tuple[str, Any]]:
        """The stream and row of each event that counts in the partition it starts, in
        the order of the tags."""
        if not self.inclusive:
            return
        for tag, value in zip(self.builder.plan.tags, match, strict=True):
            rows = value if isinstance(value, list) else [value]
            yield from ((tag.stream, row) for row in rows if row is not None)


class PatternWatch:
    """A pattern that is watched, for a partition with these properties."""

    __slots__ = ("pattern", "point", "row")

    def __init__(self, point: PatternCondition, row: Properties) -> None:
        self.point = point
        self.row = row
        self.pattern: Pattern = point.builder.pattern(self._fail)

    def start(self, now_ms: int) -> list[Binding]:
        """Begin; the matches that are there at once."""
        self._begin(now_ms)
        return self.pattern.start(now_ms)

    def enter(self, stream: str, row: object, now_ms: int) -> list[Binding]:
        """The matches that an event completes. Raises DataError before anything has changed."""
        self._begin(now_ms)
        try:
            return self.pattern.enter(stream, row, now_ms)
        except DATA_ERRORS as error:
            raise self.point.functions.failure(error) from error

    def advance(self, now_ms: int) -> list[Binding]:
        self._begin(now_ms)
        return self.pattern.advance(now_ms)

    def restore(self, state: dict[str, Any], now_ms: int) -> None:
        self._begin(now_ms)
        self.pattern.restore(state, lambda row: row)

    def _begin(self, now_ms: int) -> None:
        self.point.clock.now_ms = now_ms
        self.point.at_work[:] = self.row

    def _fail(self, row: object, error: BaseException) -> None:
        self.point.report(row, self.point.functions.failure(error), self.point.clock.now_ms)
