"""Conditions that end partitions by an event: by hash where they are correlated, else one by one."""

from __future__ import annotations

from typing import Any

from sql.algebra.context.definitions import EventPoint
from sql.algebra.context.partition import Partition
from sql.algebra.event import Event


class EventEnds:
    """The partitions of one level that an event may end."""

    def __init__(self, point: EventPoint) -> None:
        self.point = point
        self.by_key: dict[Any, dict[Partition, None]] = {}
        self.others: dict[Partition, None] = {}
        """Where the condition is not correlated."""

    def add(self, partition: Partition) -> None:
        """Watch for the end of a partition."""
        if self.point.partition_key is None:
            self.others[partition] = None
            return
        key = self.point.partition_key(partition.row)
        if key is not None:
            self.by_key.setdefault(key, {})[partition] = None

    def discard(self, partition: Partition) -> None:
        """Watch for it no longer."""
        if self.point.partition_key is None:
            self.others.pop(partition, None)
            return
        key = self.point.partition_key(partition.row)
        found = self.by_key.get(key)
        if found is not None:
            found.pop(partition, None)
            if not found:
                del self.by_key[key]

    def of(self, event: Event) -> list[Partition]:
        """The partitions the event ends, in order of allocation."""
        point = self.point
        found = self.others if point.event_key is None else self.by_key.get(point.event_key(event), {})
        return [partition for partition in found if point.passes is None or point.passes(event, partition.row)]
