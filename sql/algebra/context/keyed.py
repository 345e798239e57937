"""Levels with a partition per key, per hash or per category."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.algebra.context.level import LiveLevel
from sql.algebra.context.level_definitions import (
    CategoriesDefinition,
    EventCondition,
    HashedDefinition,
    KeyedDefinition,
    ListedType,
    TimePoint,
)
from sql.algebra.context.partition import Arrival, Partition
from sql.algebra.context.pattern_ends import EventEnds, PatternEnds
from sql.algebra.context.pattern_watch import PatternCondition


class SegmentedLevel(LiveLevel):
    """A partition per key; an event of a listed stream belongs to the one of its key, any other to all."""

    definition: KeyedDefinition | HashedDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.by_key: dict[Any, Partition] = {}

    def watch(self, now_ms: int) -> None:
        return None

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        listed = self.definition.types.get(arrival.stream)
        if listed is None:
            return self.partitions()
        if listed.passes is not None and not listed.passes(arrival.event):
            return ()
        found = self.by_key.get(listed.key(arrival.event))
        return () if found is None else (found,)

    def partitions(self) -> list[Partition]:
        return list(self.by_key.values())

    def add(self, partition: Partition) -> None:
        self.by_key[partition.key] = partition

    def discard(self, partition: Partition) -> None:
        super().discard(partition)
        del self.by_key[partition.key]


class HashedLevel(SegmentedLevel):
    """A partition per hash modulo the granularity, allocated by its first event or all at the start."""

    definition: HashedDefinition

    def watch(self, now_ms: int) -> None:
        if self.definition.preallocate:
            for number in range(self.definition.granularity):
                self.life.open(self, number, self.values(), now_ms)

    def act(self, arrival: Arrival) -> None:
        listed = self.definition.types.get(arrival.stream)
        if listed is None:
            self.visit_all(arrival)
            return
        if listed.passes is not None and not listed.passes(arrival.event):
            return
        number = listed.key(arrival.event)
        partition = self.by_key.get(number)
        if partition is None:
            self.life.open(self, number, self.values(), arrival.now_ms, arrival)
        else:
            self.visit(partition, arrival)


class KeyedLevel(SegmentedLevel):
    """A partition per key; the first event of a key that may allocates it."""

    definition: KeyedDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.touched: dict[Partition, int] = {}
        """The time of the newest event of each partition since its idle deadline was set."""
        end = self.definition.end
        self.ends: EventEnds | None = None
        if isinstance(end, EventCondition) and end.stream not in self.definition.types:
            self.ends = EventEnds(end)
        if isinstance(end, PatternCondition):
            self.pattern_ends = PatternEnds(end, self.life)
        self.ends_together = (
            self.is_innermost and self.pattern_ends is None and self.definition.idle_ms is None
        )

    def act(self, arrival: Arrival) -> None:
        listed = self.definition.types.get(arrival.stream)
        if listed is None:
            self._act_on_all(arrival)
            return
        event = arrival.event
        passes = listed.passes is None or listed.passes(event)
        key = listed.key(event)
        partition = self.by_key.get(key)
        if partition is None:
            point = self.definition.initiated.get(arrival.stream)
            initiates = (
                passes if not self.definition.initiated else point is not None and point.fits(event, ())
            )
            if initiates:
                self._allocate(key, listed, point, arrival, counts=passes)
            return
        end = self.definition.end
        if self.pattern_ends is not None and self.pattern_ends.enter(partition, arrival):
            return
        if (
            isinstance(end, EventCondition)
            and end.stream == arrival.stream
            and end.fits(event, partition.row)
        ):
            self.end_by(end, event, (partition,), arrival.now_ms)
        elif passes:
            self._touch(partition, arrival.now_ms)
            self.visit(partition, arrival)

    def _act_on_all(self, arrival: Arrival) -> None:
        """An event of a stream that is not listed belongs to every partition, and may end some."""
        if self.ends is not None and self.ends.point.stream == arrival.stream:
            found = self.ends.of(arrival.event)
            self.end_by(self.ends.point, arrival.event, found, arrival.now_ms)
        if self.pattern_ends is not None:
            self.pattern_ends.enter_all(arrival)
        self.visit_all(arrival)

    def _allocate(
        self, key: object, listed: ListedType, point: EventCondition | None, arrival: Arrival, *, counts: bool
    ) -> None:
        """`counts`: whether the event that allocates is one of those the context divides."""
        values = self.values()
        assert listed.values is not None
        keys = listed.values(arrival.event)
        values[: len(keys)] = keys
        place = listed.place if point is None else point.place
        if place is not None:
            EventCondition(arrival.stream, place=place).keep(arrival.event, values)
        first, due_ms = arrival if counts else None, self._end_ms(arrival.now_ms)
        self.life.open(self, key, values, arrival.now_ms, first, due_ms=due_ms)

    # --- ends -----------------------------------------------------------------------------------------------

    def _end_ms(self, now_ms: int) -> int | None:
        definition = self.definition
        if definition.idle_ms is not None:
            return now_ms + definition.idle_ms
        return definition.end.next_ms(now_ms) if isinstance(definition.end, TimePoint) else None

    def _touch(self, partition: Partition, now_ms: int) -> None:
        """The key is not idle; its deadline moves when it is met."""
        if self.definition.idle_ms is not None:
            self.touched[partition] = now_ms

    def end_due(self, partition: Partition, now_ms: int) -> None:
        idle_ms = self.definition.idle_ms
        if idle_ms is not None and self.touched.get(partition, -idle_ms) + idle_ms > now_ms:
            self.life.timers.end(partition, self.touched.pop(partition) + idle_ms)
            return
        super().end_due(partition, now_ms)

    # --- partitions -----------------------------------------------------------------------------------------

    def add(self, partition: Partition) -> None:
        super().add(partition)
        if self.ends is not None:
            self.ends.add(partition)

    def discard(self, partition: Partition) -> None:
        super().discard(partition)
        self.touched.pop(partition, None)
        if self.ends is not None:
            self.ends.discard(partition)


class CategoriesLevel(LiveLevel):
    """A partition per category, all from the start; an event belongs to each whose condition is TRUE."""

    definition: CategoriesDefinition

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.found: list[Partition] = []

    def watch(self, now_ms: int) -> None:
        for label in self.definition.labels:
            self.life.open(self, label, [label], now_ms)

    def act(self, arrival: Arrival) -> None:
        if arrival.stream != self.definition.stream:
            self.visit_all(arrival)
            return
        for partition in self.belonging(arrival):
            self.visit(partition, arrival)

    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        definition, event = self.definition, arrival.event
        if arrival.stream != definition.stream:
            return self.found
        if definition.passes is not None and not definition.passes(event):
            return ()
        return [item for item, test in zip(self.found, definition.conditions, strict=True) if test(event)]

    def partitions(self) -> list[Partition]:
        return list(self.found)

    def add(self, partition: Partition) -> None:
        self.found.append(partition)

    def discard(self, partition: Partition) -> None:
        self.found.remove(partition)
