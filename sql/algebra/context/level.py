"""The base of all levels: what starts and ends partitions, and which of them an event belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.context.ends import Ends
from sql.algebra.context.level_definitions import LevelDefinition
from sql.algebra.context.lifecycle import Lifecycle
from sql.algebra.context.partition import Arrival, Level, Partition
from sql.algebra.context.pattern_watch import Match, PatternCondition, PatternWatch
from sql.algebra.event_store import pack_key, unpack_key


class PatternStart:
    """The pattern that starts partitions of one level, while it is watched."""

    def __init__(self, point: PatternCondition, moved: Callable[[int | None], None]) -> None:
        """`moved` gets the instant at which time may complete it."""
        self.point = point
        self.moved = moved
        self.watch: PatternWatch | None = None

    def begin(self, now_ms: int) -> list[Match]:
        """Watch for it anew; the matches that are there at once."""
        self.watch = PatternWatch(self.point, ())
        return self._moved(self.watch.start(now_ms))

    def enter(self, arrival: Arrival) -> list[Match]:
        """The matches that an event completes."""
        if self.watch is None:
            return []
        return self._moved(self.watch.enter(arrival.stream, arrival.event.row, arrival.now_ms))

    def advance(self, now_ms: int) -> list[Match]:
        """The matches that time completes."""
        return [] if self.watch is None else self._moved(self.watch.advance(now_ms))

    def stop(self) -> None:
        """Watch for it no longer."""
        if self.watch is not None:
            self.watch.pattern.quit()
            self.watch = None

    def _moved(self, matches: list[Match]) -> list[Match]:
        """The matches; the level's deadline is that of the pattern."""
        assert self.watch is not None
        self.moved(self.watch.pattern.deadline())
        return matches

    def snapshot(self) -> dict[str, Any] | None:
        return None if self.watch is None else self.watch.pattern.snapshot()

    def restore(self, state: dict[str, Any] | None, now_ms: int) -> None:
        """Put a snapshot back."""
        if state is not None:
            self.watch = PatternWatch(self.point, ())
            self.watch.restore(state, now_ms)


class LiveLevel(Level):
    """A level whose partitions the life cycle keeps."""

    def __init__(self, definition: LevelDefinition, life: Lifecycle, parent: Partition | None) -> None:
        super().__init__(definition, parent, is_innermost=definition.depth == life.depth)
        self.life = life
        self.pattern_start: PatternStart | None = None
        """The pattern that starts partitions, where the level starts them so."""
        self.ends = Ends(self, life)

    def started(self, partition: Partition, now_ms: int) -> None:
        self.ends.watch(partition, now_ms)

    def end_due(self, partition: Partition, now_ms: int) -> None:
        self.ends.due(partition, now_ms)

    def move_start(self, due_ms: int | None) -> None:
        """Time starts a partition at another instant; None: never."""
        if due_ms != self.due_ms:
            self.due_ms = due_ms
            if due_ms is not None:
                self.life.timers.start(self)

    # --- common ---------------------------------------------------------------------------------------------

    def values(self) -> list[Any]:
        """The properties of a new partition, all NULL."""
        return [None] * len(self.definition.properties)

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
        return [key, values, partition.id, partition.due_ms, below, self.ends.snapshot(partition)]

    def _unpack(self, packed: list[Any], now_ms: int) -> None:
        """A partition from data, its timers running again."""
        key, values, *numbers, due_ms, below, watched = packed
        number = numbers[-1 if below is None else 0]  # of version 1: over all, and over the innermost
        partition = Partition(self, unpack_key(key), decode(values), number)
        self.life.put_back(partition, below, now_ms)
        if watched is not None:
            self.ends.restore(partition, watched, now_ms)
        if due_ms is not None:
            self.life.timers.end(partition, due_ms)
