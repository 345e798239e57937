"""Levels with a partition per trigger: `initiated by … terminated by …`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.algebra.context.ends import EventEnds
from sql.algebra.context.level import Arrival, Level
from sql.algebra.context.level_definitions import EventCondition, OverlappingDefinition, TimePoint
from sql.algebra.context.partition import Partition
from sql.algebra.context.pattern_ends import Match, PatternCondition, PatternEnds, PatternStart
from sql.algebra.context.span import END_TIME, START_TIME
from sql.algebra.event import Event


class OverlappingLevel(Level):
    """Each trigger allocates; every event belongs to every live partition."""

    definition: OverlappingDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.found: dict[Partition, None] = {}
        self.values_seen: dict[Any, Partition] = {}
        """`distinct`: the partition that lives for each value."""
        end = self.definition.end
        self.ends = EventEnds(end) if isinstance(end, EventCondition) else None
        self.pattern_ends = PatternEnds(end, self.life) if isinstance(end, PatternCondition) else None
        self.ends_together = self.is_innermost and self.pattern_ends is None
        start = self.definition.start
        self.event_start = start if isinstance(start, EventCondition) else None
        self.pattern_start = PatternStart(start, self) if isinstance(start, PatternCondition) else None

    def watch(self, now_ms: int) -> None:
        if isinstance(self.definition.start, TimePoint):
            self._await(now_ms)
        if self.definition.now:
            self._open(now_ms)
        if self.pattern_start is not None:
            self._begin(self.pattern_start, self.pattern_start.begin(now_ms), now_ms)

    def _begin(
        self, start: PatternStart, matches: list[Match], now_ms: int, arrival: Arrival | None = None
    ) -> None:
        """A partition for each match of the pattern. The event that completes it does not count as such."""
        for match in matches:
            partition = self._open(now_ms, match=match)
            if arrival is not None:
                arrival.first.add(partition.id)
            for stream, row in start.point.counted(match):
                self.life.join(partition, Arrival(stream, Event(row, now_ms, 0), now_ms))

    def _await(self, now_ms: int) -> None:
        start = self.definition.start
        assert isinstance(start, TimePoint)
        self.due_ms = max(start.next_ms(now_ms), now_ms + 1)
        self.life.timers.start(self)

    def start_due(self, now_ms: int) -> None:
        start = self.pattern_start
        if start is not None:
            self._begin(start, start.advance(now_ms), now_ms)
        else:
            self._await(now_ms)
            self._open(now_ms)

    def _open(
        self, now_ms: int, arrival: Arrival | None = None, key: object = None, match: Match | None = None
    ) -> Partition:
        start, end = self.definition.start, self.definition.end
        values = self.values()
        values[START_TIME] = now_ms
        values[END_TIME] = end.next_ms(now_ms) if isinstance(end, TimePoint) else None
        if arrival is not None and isinstance(start, EventCondition):
            start.keep(arrival.event, values)
        elif match is not None and isinstance(start, PatternCondition):
            start.keep(match, values)
        return self.life.open(self, key, values, now_ms, arrival, due_ms=values[END_TIME])

    def act(self, arrival: Arrival) -> None:
        stream, start, ends = arrival.stream, self.event_start, self.ends
        if ends is not None and ends.point.stream == stream:
            self.end_by(ends.point, arrival.event, ends.of(arrival.event), arrival.now_ms)
        if self.pattern_ends is not None:
            self.pattern_ends.enter_all(arrival)
        is_innermost = self.is_innermost
        before = None if is_innermost else self.partitions()
        if start is not None:
            if start.stream == stream and (start.passes is None or start.passes(arrival.event, ())):
                self._initiate(arrival)
        elif self.pattern_start is not None:
            self._begin(self.pattern_start, self.pattern_start.enter(arrival), arrival.now_ms, arrival)
        if is_innermost:
            arrival.whole.append(self)
        else:
            self.visit_all(arrival, before)

    def _initiate(self, arrival: Arrival) -> None:
        distinct = self.definition.distinct
        key = None if distinct is None else distinct(arrival.event)
        if distinct is None or key not in self.values_seen:
            self._open(arrival.now_ms, arrival, key)

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        return self.partitions()

    def partitions(self) -> list[Partition]:
        return list(self.found)

    def add(self, partition: Partition) -> None:
        self.found[partition] = None
        if self.definition.distinct is not None:
            self.values_seen[partition.key] = partition
        if self.ends is not None:
            self.ends.add(partition)

    def discard(self, partition: Partition) -> None:
        del self.found[partition]
        if self.definition.distinct is not None:
            del self.values_seen[partition.key]
        if self.ends is not None:
            self.ends.discard(partition)
