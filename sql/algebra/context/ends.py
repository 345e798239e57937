"""Conditions that end partitions by an event: by hash where they are correlated,
once for all where they read the event alone, else one by one."""

from __future__ import annotations

from collections.abc import Sequence

from sql.algebra.buckets import Buckets, items_of
from sql.algebra.context.level_definitions import EventCondition
from sql.algebra.context.partition import Partition
from sql.algebra.event import Event


class EventEnds:
    """The partitions of one level that an event may end."""

    def __init__(self, point: EventCondition) -> None:
        self.point = point
        self.by_key: Buckets[Partition] = Buckets()
        self.others: dict[Partition, None] = {}
        """The partitions whose condition is not correlated."""

    def add(self, partition: Partition) -> None:
        """Watch for the end of a partition."""
        if self.point.partition_key is None:
            self.others[partition] = None
            return
        key = partition.end_key = self.point.partition_key(None, partition.row)
        if key is not None and self.by_key.found.setdefault(key, partition) is not partition:
            self.by_key.add(key, partition)

    def discard(self, partition: Partition) -> None:
        """Watch for it no longer."""
        if self.point.partition_key is None:
            self.others.pop(partition, None)
        elif partition.end_key is not None:
            self.by_key.discard(partition.end_key, partition)

    def of(self, event: Event) -> Sequence[Partition]:
        """The partitions the event ends, in order of allocation."""
        find, passes = self.point.find, self.point.passes
        found: Sequence[Partition]
        if find is None:
            if not self.others or not (self.point.asks_each or passes is None or passes(event, ())):
                return ()
            found = tuple(self.others)
            if not self.point.asks_each:
                return found
        else:
            one = find(event, self.by_key.found)
            if one is None:
                return ()
            found = items_of(one)
        return found if passes is None else [item for item in found if passes(event, item.row)]
