"""The base of all kinds of levels: how partitions are kept, how events reach them, what is saved of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Any

from sql.aggregates.plain_values import decode, encode
from sql.algebra.context.ends import Ends
from sql.algebra.context.lifecycle import Lifecycle
from sql.algebra.context.partition import Arrival, Level, LevelDefinition, Partition
from sql.algebra.event_store import pack_key, unpack_key

_since_of = attrgetter("since")


class LiveLevel(Level):
    """A level whose partitions start and end in a life cycle."""

    def __init__(self, definition: LevelDefinition, life: Lifecycle, parent: Partition | None) -> None:
        super().__init__(definition, parent, is_innermost=definition.depth == life.depth)
        self.life = life
        self.ends = Ends(self, life)

    # --- partitions start and end ---------------------------------------------------------------------------

    def place_of(self, partition: Partition) -> Hashable:
        """The key by which a partition is found."""
        return partition.key

    def add(self, partition: Partition) -> None:
        self.ends.add(partition)
        self.by_key[self.place_of(partition)] = partition

    def discard(self, partition: Partition) -> None:
        self.ends.discard(partition)
        del self.by_key[self.place_of(partition)]

    def started(self, partition: Partition, now_ms: int) -> None:
        self.ends.watch(partition, now_ms)

    def ended(self, partition: Partition, now_ms: int, arrival: Arrival | None) -> None:
        return

    def start_due(self, now_ms: int) -> None:
        return

    def end_due(self, partition: Partition, now_ms: int) -> None:
        self.ends.due(partition, now_ms)

    def close(self, now_ms: int) -> None:
        self.life.move_start(self, None)
        for partition in self.partitions():
            self.life.end(partition, now_ms, alone=False)

    # --- events ---------------------------------------------------------------------------------------------

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
        self.visit_each(self.partitions() if before is None else before, arrival)

    def visit_each(self, partitions: Iterable[Partition], arrival: Arrival) -> None:
        """An event belongs to these partitions. The levels in them act in the order in which they began to
        watch for what starts or ends theirs."""
        if self.is_innermost:
            arrival.targets.extend(partitions)
            return
        levels = [partition.below for partition in partitions if partition.below is not None]
        for level in sorted(levels, key=_since_of):
            level.act(arrival)

    def offer(self, arrival: Arrival) -> None:
        before = list(self.belonging(arrival))
        self.start_by_event(arrival)
        for partition in before:
            self.life.join(partition, arrival)

    def start_by_event(self, arrival: Arrival) -> None:
        """Start a partition, if the event is one that starts it."""

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        return {"due": self.due_ms, "partitions": [self._pack(item) for item in self.partitions()]}

    def restore(self, state: dict[str, Any], now_ms: int) -> None:
        self.life.move_start(self, state["due"])
        for packed in state["partitions"]:
            self._unpack(packed, now_ms)

    def _pack(self, partition: Partition) -> list[Any]:
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
        self.life.move_end(partition, due_ms)
