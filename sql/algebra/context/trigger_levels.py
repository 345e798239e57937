"""Levels that triggers start: `start … end …`, and `initiated by … terminated by …`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

from sql.algebra.context.ends import ends_of
from sql.algebra.context.level import LiveLevel, PatternStart
from sql.algebra.context.level_definitions import (
    EventCondition,
    NowCondition,
    OverlappingDefinition,
    SpanDefinition,
    TimePoint,
)
from sql.algebra.context.partition import Arrival, Partition
from sql.algebra.context.pattern_watch import Match, PatternCondition
from sql.algebra.event import Event

START_TIME: Final = 0
END_TIME: Final = 1


class TriggeredLevel(LiveLevel):
    """A level with conditions for the start and for the end of partitions."""

    definition: SpanDefinition | OverlappingDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        start = self.definition.start
        if isinstance(start, PatternCondition):
            self.pattern_start = PatternStart(start, self.move_start)

    def open(
        self,
        now_ms: int,
        arrival: Arrival | None = None,
        match: Match | None = None,
        key: Hashable = None,
    ) -> Partition:
        """A partition starts now, by an event, by a match or by time."""
        start, values, end_ms = self.definition.start, self.values(), self.ends.next_ms(now_ms)
        values[START_TIME], values[END_TIME] = now_ms, end_ms
        if isinstance(start, EventCondition) and arrival is not None:
            start.keep(arrival.event, values)
        if isinstance(start, PatternCondition) and match is not None:
            start.keep(match, values)
        return self.life.open(self, key, values, now_ms, arrival, due_ms=end_ms)

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        return self.partitions()

    def count_match(self, start: PatternStart, match: Match, partition: Partition, now_ms: int) -> None:
        """The events of the match that started a partition count in it."""
        for stream, row in start.point.counted(match):
            self.life.join(partition, Arrival(stream, Event(row, now_ms, 0), now_ms))


class SpanLevel(TriggeredLevel):
    """While the partition lives the start is not watched; while there is none the end is not."""

    definition: SpanDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ends = ends_of(self.definition.end, self, self.life, of_all=False)
        self.current: Partition | None = None

    def watch(self, now_ms: int) -> None:
        if self._is_inside(now_ms):
            self.open(now_ms)
        else:
            self._await(now_ms, now_ms)

    def ended(self, partition: Partition, now_ms: int) -> None:
        # A start that is due at this very instant happens when time next moves.
        self._await(now_ms, now_ms + 1)

    def _await(self, now_ms: int, earliest_ms: int) -> None:
        """Watch for the start, which time causes at `earliest_ms` or later."""
        start = self.definition.start
        if isinstance(start, NowCondition):
            self.open(now_ms)
        elif isinstance(start, TimePoint):
            due_ms = max(start.next_ms(now_ms), earliest_ms)
            if due_ms == now_ms:
                self.open(now_ms)
            else:
                self.move_start(due_ms)
        elif self.pattern_start is not None:
            self._begin(self.pattern_start, self.pattern_start.begin(now_ms), now_ms)

    def _begin(self, start: PatternStart, matches: list[Match], now_ms: int) -> None:
        """Start by the first match of the pattern; it is watched anew after the end."""
        if not matches or self.current is not None:
            return
        self.due_ms = None
        start.stop()
        self.open(now_ms, match=matches[0])
        if self.current is not None:
            self.count_match(start, matches[0], self.current, now_ms)

    def _is_inside(self, now_ms: int) -> bool:
        start, end = self.definition.start, self.definition.end
        if not self.definition.assumes_inside:
            return False
        assert isinstance(start, TimePoint)
        assert isinstance(end, TimePoint)
        return end.next_ms(now_ms) <= start.next_ms(now_ms)

    def start_due(self, now_ms: int) -> None:
        if self.pattern_start is not None:
            self._begin(self.pattern_start, self.pattern_start.advance(now_ms), now_ms)
        else:
            self.open(now_ms)

    def act(self, arrival: Arrival) -> None:
        start, current = self.definition.start, self.current
        if current is not None:
            if not self.ends.enter(current, arrival):
                self.visit(current, arrival)
                return
            if self.current is not None:
                self.life.join(self.current, arrival)
                return
        if (
            isinstance(start, EventCondition)
            and start.stream == arrival.stream
            and start.fits(arrival.event, ())
        ):
            self.open(arrival.now_ms, arrival)
        elif self.pattern_start is not None and current is None:
            self._begin(self.pattern_start, self.pattern_start.enter(arrival), arrival.now_ms)

    def unmoved(self, stream: str) -> list[Partition] | None:
        points = self.definition.start, self.definition.end
        hears = any(isinstance(point, PatternCondition | EventCondition) for point in points)
        return None if hears or not self.is_innermost else self.partitions()

    def partitions(self) -> list[Partition]:
        return [] if self.current is None else [self.current]

    def add(self, partition: Partition) -> None:
        self.ends.add(partition)
        self.current = partition

    def discard(self, partition: Partition) -> None:
        self.ends.discard(partition)
        self.current = None


class OverlappingLevel(TriggeredLevel):
    """Each trigger allocates; every event belongs to every live partition."""

    definition: OverlappingDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.found: dict[Partition, None] = {}
        self.values_seen: dict[Any, Partition] = {}
        """`distinct`: the partition that lives for each value."""
        self.ends = ends_of(self.definition.end, self, self.life, of_all=True)
        self.ends_together = self.is_innermost and self.ends.together
        start = self.definition.start
        self.event_start = start if isinstance(start, EventCondition) else None

    def watch(self, now_ms: int) -> None:
        if isinstance(self.definition.start, TimePoint):
            self._await(now_ms)
        if self.definition.now:
            self.open(now_ms)
        if self.pattern_start is not None:
            self._begin(self.pattern_start, self.pattern_start.begin(now_ms), now_ms)

    def _begin(
        self, start: PatternStart, matches: list[Match], now_ms: int, arrival: Arrival | None = None
    ) -> None:
        """A partition for each match of the pattern. The event that completes it does not count as such."""
        for match in matches:
            partition = self.open(now_ms, match=match)
            if arrival is not None:
                arrival.first.add(partition.id)
            self.count_match(start, match, partition, now_ms)

    def _await(self, now_ms: int) -> None:
        start = self.definition.start
        assert isinstance(start, TimePoint)
        self.move_start(max(start.next_ms(now_ms), now_ms + 1))

    def start_due(self, now_ms: int) -> None:
        start = self.pattern_start
        if start is not None:
            self._begin(start, start.advance(now_ms), now_ms)
        else:
            self._await(now_ms)
            self.open(now_ms)

    def act(self, arrival: Arrival) -> None:
        start = self.event_start
        self.ends.enter_all(arrival)
        is_innermost = self.is_innermost
        before = None if is_innermost else self.partitions()
        if start is not None:
            if start.stream == arrival.stream and (start.passes is None or start.passes(arrival.event, ())):
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
            self.open(arrival.now_ms, arrival, key=key)

    def partitions(self) -> list[Partition]:
        return list(self.found)

    def add(self, partition: Partition) -> None:
        self.ends.add(partition)
        self.found[partition] = None
        if self.definition.distinct is not None:
            self.values_seen[partition.key] = partition

    def discard(self, partition: Partition) -> None:
        self.ends.discard(partition)
        del self.found[partition]
        if self.definition.distinct is not None:
            del self.values_seen[partition.key]
