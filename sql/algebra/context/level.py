"""The base of all levels: what starts and ends partitions, and which of them an event belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.context.level_definitions import EventCondition, LevelDefinition
from sql.algebra.context.lifecycle import Lifecycle
from sql.algebra.context.partition import Arrival, Level, Partition
from sql.algebra.context.pattern_ends import PatternEnds, PatternStart
from sql.algebra.event import Event
from sql.algebra.event_store import pack_key, unpack_key


class LiveLevel(Level):
    """A level whose partitions the life cycle keeps."""

    def __init__(self, definition: LevelDefinition, life: Lifecycle, parent: Partition | None) -> None:
        super().__init__(definition, parent, is_innermost=definition.depth == life.depth)
        self.life = life
        self.pattern_start: PatternStart | None = None
        """The pattern that starts partitions, where the level starts them so."""
        self.pattern_ends: PatternEnds | None = None
        """The patterns that may end partitions, where the level ends them so."""

    def started(self, partition: Partition, now_ms: int) -> None:
        if self.pattern_ends is not None:
            self.pattern_ends.watch(partition, now_ms)

    def discard(self, partition: Partition) -> None:
        if self.pattern_ends is not None:
            self.pattern_ends.forget(partition)

    def move_start(self, due_ms: int | None) -> None:
        """Time starts a partition at another instant; None: never."""
        if due_ms != self.due_ms:
            self.due_ms = due_ms
            if due_ms is not None:
                self.life.timers.start(self)

    def end_due(self, partition: Partition, now_ms: int) -> None:
        if self.pattern_ends is None:
            self.life.end(partition, now_ms)
        else:
            self.pattern_ends.advance(partition, now_ms)

    def end_by(
        self, point: EventCondition, event: Event, partitions: Sequence[Partition], now_ms: int
    ) -> None:
        """An event ends partitions, and is among the properties of each then."""
        if point.place is not None and partitions:
            self.life.bodies.settle()
            for partition in partitions:
                point.keep(event, partition.values)
        self.life.end_all(self, partitions, now_ms)

    # --- common ---------------------------------------------------------------------------------------------

    def values(self) -> list[Any]:
        """The properties of a new partition, all NULL."""
        return [None] * self.definition.size

    def visit(self, partition: Partition, arrival: Arrival) -> None:
        """An event belongs to a partition: the level inside acts, or the partition is one of its targets."""
        if partition.below is not None:
            partition.below.act(arrival)
        else:
            arrival.targets.append(partition)

    def visit_all(self, arrival: Arrival, before: Iterable[Partition] | None = None) -> None:
        """An event belongs to every partition that was here before it."""
        if self.is_innermost:
            arrival.whole.append(self)
            return
        for partition in self.partitions() if before is None else before:
            if partition.below is not None:
                partition.below.act(arrival)

    def offer(self, arrival: Arrival) -> None:
        mine = Arrival(arrival.stream, arrival.event, arrival.now_ms)
        mine.first = arrival.first
        self.act(mine)
        for partition in mine.rest():
            self.life.give_first(partition, arrival)

    def close(self, now_ms: int) -> None:
        self.due_ms = None
        if self.pattern_start is not None:
            self.pattern_start.stop()
        for partition in self.partitions():
            self.life.end(partition, now_ms, alone=False)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        starting = None if self.pattern_start is None else self.pattern_start.snapshot()
        partitions = [self._pack(item) for item in self.partitions()]
        return {"due": self.due_ms, "starting": starting, "partitions": partitions}

    def restore(self, state: dict[str, Any], now_ms: int) -> None:
        self.due_ms = state["due"]
        if self.pattern_start is not None:
            self.pattern_start.restore(state["starting"], now_ms)
        if self.due_ms is not None:
            self.life.timers.start(self)
        for packed in state["partitions"]:
            self._unpack(packed, now_ms)

    def _pack(self, partition: Partition) -> list[Any]:
        """A partition as data."""
        below = None if partition.below is None else partition.below.snapshot()
        key, values = pack_key(partition.key), encode(partition.values)
        pattern = None if self.pattern_ends is None else self.pattern_ends.snapshot(partition)
        return [key, values, partition.id, partition.due_ms, below, pattern]

    def _unpack(self, packed: list[Any], now_ms: int) -> None:
        """A partition from data, its timers running again."""
        key, values, *numbers, due_ms, below, pattern = packed
        number = numbers[-1 if below is None else 0]  # of version 1: over all, and over the innermost
        partition = Partition(self, unpack_key(key), decode(values), number)
        self.life.put_back(partition, below, now_ms)
        if pattern is not None and self.pattern_ends is not None:
            self.pattern_ends.restore(partition, pattern, now_ms)
        if due_ms is not None:
            self.life.timers.end(partition, due_ms)
