"""The kinds of ends of the partitions of a level: by time, silence, an event or a pattern.

The partitions that an event ends are found by hash where it is correlated with them, at once where its
condition reads the event alone, else one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from sql.algebra.context.by_property import ByProperty
from sql.algebra.context.context_conditions import End, EventCondition, TimeCondition
from sql.algebra.context.end_atoms import Atom
from sql.algebra.context.lifecycle import Lifecycle
from sql.algebra.context.partition import Arrival, Level, Partition
from sql.algebra.context.pattern_watch import PatternCondition, PatternWatch
from sql.algebra.event import Event
from sql.algebra.pattern.listening import Binding


class Ends:
    """Ends the partitions of one level. Here they end by time, or with the partition around them; subclasses
    add other ends."""

    def __init__(self, level: Level, life: Lifecycle, end: TimeCondition | None = None) -> None:
        self.level = level
        self.life = life
        self.end = end

    def next_ms(self, now_ms: int) -> int | None:
        """When time ends a partition that starts now."""
        return None if self.end is None else self.end.next_ms(now_ms)

    def add(self, partition: Partition) -> None:
        """There is another partition."""

    def watch(self, partition: Partition, now_ms: int) -> None:
        """A partition has just started; its end may be there at once."""

    def discard(self, partition: Partition) -> None:
        """A partition has ended."""

    def enter(self, partition: Partition, arrival: Arrival) -> bool:
        """True if an event ends a partition, which has ended then."""
        return False

    def enter_all(self, arrival: Arrival) -> None:
        """An event may end any partition."""

    def touch(self, partition: Partition, now_ms: int) -> None:
        """An event belongs to a partition."""

    def due(self, partition: Partition, now_ms: int) -> None:
        """The instant a partition's `due_ms` has come."""
        self.life.end(partition, now_ms)

    def snapshot(self, partition: Partition) -> dict[str, Any] | None:
        """The state of what is watched for a partition."""
        return None

    def restore(self, partition: Partition, state: dict[str, Any], now_ms: int) -> None:
        """Put it back."""


class IdleEnds(Ends):
    """A partition ends when so long no event has belonged to it; its deadline moves when it is met."""

    def __init__(self, level: Level, life: Lifecycle, idle_ms: int) -> None:
        super().__init__(level, life)
        self.idle_ms = idle_ms
        self.touched: dict[Partition, int] = {}
        """The time of the newest event of each partition since its deadline was set."""

    def next_ms(self, now_ms: int) -> int:
        return now_ms + self.idle_ms

    def discard(self, partition: Partition) -> None:
        self.touched.pop(partition, None)

    def touch(self, partition: Partition, now_ms: int) -> None:
        self.touched[partition] = now_ms

    def due(self, partition: Partition, now_ms: int) -> None:
        touched_ms = self.touched.pop(partition, None)
        if touched_ms is not None and touched_ms + self.idle_ms > now_ms:
            self.life.move_end(partition, touched_ms + self.idle_ms)
        else:
            self.life.end(partition, now_ms)

    def snapshot(self, partition: Partition) -> dict[str, Any] | None:
        touched_ms = self.touched.get(partition)
        return None if touched_ms is None else {"touched": touched_ms}

    def restore(self, partition: Partition, state: dict[str, Any], now_ms: int) -> None:
        self.touch(partition, state["touched"])


class EventEnds(Ends):
    """An event ends the partitions that it fits."""

    def __init__(self, level: Level, life: Lifecycle, point: EventCondition, *, of_all: bool) -> None:
        """`of_all`: events are asked about all partitions at once, not about one."""
        super().__init__(level, life)
        self.point = point
        self.by_key: ByProperty[Partition] | None = None
        if of_all and point.sides is not None:
            self.by_key = ByProperty(point.sides)

    def add(self, partition: Partition) -> None:
        if self.by_key is not None:
            self.by_key.enter(partition, partition.row)

    def discard(self, partition: Partition) -> None:
        if self.by_key is not None:
            self.by_key.leave(partition, partition.row)

    def enter(self, partition: Partition, arrival: Arrival) -> bool:
        ends = self.point.stream == arrival.stream and self.point.fits(arrival.event, partition.row)
        if ends:
            self._end((partition,), arrival)
        return ends

    def enter_all(self, arrival: Arrival) -> None:
        if self.point.stream == arrival.stream:
            found = self.of(arrival.event)
            if found:
                self._end(found, arrival)

    def of(self, event: Event) -> Sequence[Partition]:
        """The partitions the event ends, in order of allocation."""
        passes = self.point.passes
        if self.by_key is not None:
            found = self.by_key.fitting(event)
        elif self.point.asks_each:
            found = self.level.partitions()
        else:
            is_end = bool(self.level.by_key) and (passes is None or passes(event, ()))
            return self.level.partitions() if is_end else ()
        return found if passes is None else [item for item in found if passes(event, item.row)]

    def _end(self, partitions: Sequence[Partition], arrival: Arrival) -> None:
        """End partitions; the event is among the properties of each then."""
        if self.point.place is not None:
            self.life.bodies.settle()
            for partition in partitions:
                self.point.keep(arrival.event, partition.values)
        for partition in partitions:
            self.life.end(partition, arrival.now_ms, arrival)


class PatternEnds(Ends):
    """Each partition has a pattern that ends it. An event is given to those that it may move."""

    def __init__(self, level: Level, life: Lifecycle, point: PatternCondition) -> None:
        super().__init__(level, life)
        self.point = point
        self.watches: dict[Partition, PatternWatch] = {}
        self.ways: dict[str, list[tuple[Atom, ByProperty[Partition] | None]]] = {
            stream: [(atom, None if atom.sides is None else ByProperty(atom.sides)) for atom in atoms]
            for stream, atoms in point.atoms.items()
        }
        """By stream the filters of the pattern, each with the partitions that it finds by hash."""

    def add(self, partition: Partition) -> None:
        self.watches[partition] = PatternWatch(self.point, partition.row)
        for index in self._indexes():
            index.enter(partition, partition.row)

    def watch(self, partition: Partition, now_ms: int) -> None:
        self._ended_by(partition, self.watches[partition].start(now_ms), now_ms)

    def discard(self, partition: Partition) -> None:
        self.watches.pop(partition).pattern.quit()
        for index in self._indexes():
            index.leave(partition, partition.row)

    def _indexes(self) -> list[ByProperty[Partition]]:
        return [index for ways in self.ways.values() for _, index in ways if index is not None]

    def reached(self, stream: str, row: object) -> Sequence[Partition]:
        """The partitions whose pattern an event may move, in order of allocation."""
        reached: dict[Partition, None] = {}
        for atom, index in self.ways.get(stream, ()):
            if not atom.passes(row):
                continue
            if index is None:
                return tuple(self.watches)
            reached |= dict.fromkeys(index.fitting(row))
        return sorted(reached, key=attrgetter("id"))

    def enter_all(self, arrival: Arrival) -> None:
        for partition in self.reached(arrival.stream, arrival.event.row):
            self.enter(partition, arrival)

    def enter(self, partition: Partition, arrival: Arrival) -> bool:
        watch = self.watches.get(partition)
        if watch is None or arrival.stream not in self.ways:
            return False
        matches = watch.enter(arrival.stream, arrival.event.row, arrival.now_ms)
        return self._ended_by(partition, matches, arrival.now_ms, arrival)

    def due(self, partition: Partition, now_ms: int) -> None:
        self._ended_by(partition, self.watches[partition].advance(now_ms), now_ms)

    def _ended_by(
        self, partition: Partition, matches: list[Binding], now_ms: int, arrival: Arrival | None = None
    ) -> bool:
        if not matches:
            self.life.move_end(partition, self.watches[partition].pattern.deadline())
            return False
        self.life.bodies.settle()
        self.point.keep(matches[0], partition.values)
        self.life.end(partition, now_ms, arrival)
        return True

    def snapshot(self, partition: Partition) -> dict[str, Any]:
        return self.watches[partition].pattern.snapshot()

    def restore(self, partition: Partition, state: dict[str, Any], now_ms: int) -> None:
        self.watches[partition].restore(state, now_ms)


def ends_of(end: End, level: Level, life: Lifecycle, *, of_all: bool) -> Ends:
    """The end of the partitions of a level. `of_all`: an event is asked about all of them at once."""
    if isinstance(end, EventCondition):
        return EventEnds(level, life, end, of_all=of_all)
    return PatternEnds(level, life, end) if isinstance(end, PatternCondition) else Ends(level, life, end)
