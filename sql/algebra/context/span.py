"""Levels with one partition or none: `start … end …`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sql.algebra.context.level import Arrival, Level
from sql.algebra.context.level_definitions import EventCondition, NowCondition, SpanDefinition, TimePoint
from sql.algebra.context.partition import Partition
from sql.algebra.context.pattern_ends import Match, PatternCondition, PatternEnds, PatternStart
from sql.algebra.event import Event

START_TIME: Final = 0
END_TIME: Final = 1


class SpanLevel(Level):
    """While the partition lives the start is not watched; while there is none the end is not."""

    definition: SpanDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.current: Partition | None = None
        if isinstance(self.definition.end, PatternCondition):
            self.pattern_ends = PatternEnds(self.definition.end, self.life)
        if isinstance(self.definition.start, PatternCondition):
            self.pattern_start = PatternStart(self.definition.start, self)

    def watch(self, now_ms: int) -> None:
        start = self.definition.start
        if isinstance(start, NowCondition) or self._is_inside(now_ms):
            self._open(now_ms)
        elif isinstance(start, TimePoint):
            due_ms = start.next_ms(now_ms)
            if due_ms == now_ms:
                self._open(now_ms)
            else:
                self._await(due_ms)
        elif self.pattern_start is not None:
            self._begin(self.pattern_start, self.pattern_start.begin(now_ms), now_ms)

    def _begin(self, start: PatternStart, matches: list[Match], now_ms: int) -> None:
        """Start by the first match of the pattern; it is watched anew after the end."""
        if not matches or self.current is not None:
            return
        self.due_ms = None
        start.stop()
        self._open(now_ms, match=matches[0])
        for stream, row in start.point.counted(matches[0]):
            if self.current is not None:
                self.life.join(self.current, Arrival(stream, Event(row, now_ms, 0), now_ms))

    def _is_inside(self, now_ms: int) -> bool:
        start, end = self.definition.start, self.definition.end
        if not self.definition.assumes_inside:
            return False
        assert isinstance(start, TimePoint)
        assert isinstance(end, TimePoint)
        return end.next_ms(now_ms) <= start.next_ms(now_ms)

    def _await(self, due_ms: int) -> None:
        self.due_ms = due_ms
        self.life.timers.start(self)

    def _open(self, now_ms: int, arrival: Arrival | None = None, match: Match | None = None) -> None:
        end, start = self.definition.end, self.definition.start
        values = self.values()
        values[START_TIME] = now_ms
        values[END_TIME] = end.next_ms(now_ms) if isinstance(end, TimePoint) else None
        if arrival is not None and isinstance(start, EventCondition):
            start.keep(arrival.event, values)
        if match is not None and isinstance(start, PatternCondition):
            start.keep(match, values)
        self.life.open(self, None, values, now_ms, arrival, due_ms=values[END_TIME])

    def start_due(self, now_ms: int) -> None:
        if self.pattern_start is not None:
            self._begin(self.pattern_start, self.pattern_start.advance(now_ms), now_ms)
        else:
            self._open(now_ms)

    def ended(self, partition: Partition, now_ms: int) -> None:
        start = self.definition.start
        if isinstance(start, NowCondition):
            self._open(now_ms)
        elif isinstance(start, TimePoint):
            # A start that is due at this very instant happens when time next moves.
            self._await(max(start.next_ms(now_ms), now_ms + 1))
        elif self.pattern_start is not None:
            self._begin(self.pattern_start, self.pattern_start.begin(now_ms), now_ms)

    def act(self, arrival: Arrival) -> None:
        start, end, current = self.definition.start, self.definition.end, self.current
        if current is not None and self.pattern_ends is not None:
            if not self.pattern_ends.enter(current, arrival):
                self.visit(current, arrival)
                return
            if self.current is not None:
                self.life.join(self.current, arrival)
                return
        elif current is not None:
            ends = (
                isinstance(end, EventCondition)
                and end.stream == arrival.stream
                and end.fits(arrival.event, current.row)
            )
            if not ends:
                self.visit(current, arrival)
                return
            assert isinstance(end, EventCondition)
            self.end_by(end, arrival.event, (current,), arrival.now_ms)
            if self.current is not None:
                self.life.join(self.current, arrival)
                return
        if (
            isinstance(start, EventCondition)
            and start.stream == arrival.stream
            and start.fits(arrival.event, ())
        ):
            self._open(arrival.now_ms, arrival)
        elif self.pattern_start is not None and current is None:
            self._begin(self.pattern_start, self.pattern_start.enter(arrival), arrival.now_ms)

    def unmoved(self, stream: str) -> list[Partition] | None:
        points = self.definition.start, self.definition.end
        hears = any(isinstance(point, PatternCondition | EventCondition) for point in points)
        return None if hears or not self.is_innermost else self.partitions()

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        return self.partitions()

    def partitions(self) -> list[Partition]:
        return [] if self.current is None else [self.current]

    def add(self, partition: Partition) -> None:
        self.current = partition

    def discard(self, partition: Partition) -> None:
        self.current = None
