"""Conditions that end partitions by an event: by hash where they are correlated, else one by one."""

from __future__ import annotations

from sql.algebra.context.buckets import Buckets
from sql.algebra.context.definitions import EventPoint
from sql.algebra.context.partition import Partition
from sql.algebra.event import Event


class EventEnds:
    """The partitions of one level that an event may end."""

    def __init__(self, point: EventPoint) -> None:
        self.point = point
        self.by_key: Buckets[Partition] = Buckets()
        self.others: dict[Partition, None] = {}
        """Where the condition is not correlated."""

    def add(self, partition: Partition) -> None:
        """Watch for the end of a partition."""
        if self.point.partition_key is None:
            self.others[partition] = None
            return
        key = self.point.partition_key(None, partition.row)
        if key is not None:
            self.by_key.add(key, partition)

    def discard(self, partition: Partition) -> None:
        """Watch for it no longer."""
        if self.point.partition_key is None:
            self.others.pop(partition, None)
            return
        self.by_key.discard(self.point.partition_key(None, partition.row), partition)

    def of(self, event: Event) -> list[Partition]:
        """The partitions the event ends, in order of allocation."""
        point = self.point
        found = list(self.others) if point.event_key is None else self.by_key.of(point.event_key(event))
        passes = point.passes
        if not found or passes is None:
            return found
        return [partition for partition in found if passes(event, partition.row)]
