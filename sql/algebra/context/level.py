"""The base of all levels: what starts and ends partitions, and which of them an event belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sql.algebra.context.definitions import Definition
from sql.algebra.context.partition import Partition
from sql.windows.event import Event

if TYPE_CHECKING:
    from sql.algebra.context.lifecycle import Lifecycle


class Arrival:
    """An event on its way through a context, and the innermost partitions it belongs to.

    `targets` are some of them, `whole` levels of which it belongs to all. `first`: partitions it has reached already,
    because it started them.
    """

    __slots__ = ("event", "first", "now_ms", "stream", "targets", "whole")

    def __init__(self, stream: str, event: Event, now_ms: int) -> None:
        self.stream = stream
        self.event = event
        self.now_ms = now_ms
        self.targets: list[Partition] = []
        self.whole: list[Level] = []
        self.first: set[int] = set()

    def rest(self) -> list[Partition]:
        """The partitions it has still to reach, in order of allocation."""
        if not self.whole:
            return self.targets if len(self.targets) < 2 else sorted(self.targets, key=_id_of)
        found = [*self.targets, *(item for level in self.whole for item in level.partitions())]
        return sorted((item for item in found if item.id not in self.first), key=_id_of)

    def reaches(self, partition: Partition) -> bool:
        """Whether it has still to reach a partition."""
        return partition.id not in self.first and (partition.level in self.whole or partition in self.targets)


_id_of = attrgetter("id")


class Level(ABC):
    """One level of a context inside one partition of the level around it (`parent`; None: the outermost)."""

    def __init__(self, definition: Definition, life: Lifecycle, parent: Partition | None) -> None:
        self.definition = definition
        self.life = life
        self.parent = parent
        self.due_ms: int | None = None
        """When time starts a partition; None: never."""

    # --- what the kinds say -------------------------------------------------------------------------------------------

    @abstractmethod
    def watch(self, now_ms: int) -> None:
        """Begin: what exists from the start is allocated, what starts partitions is watched."""

    @abstractmethod
    def act(self, arrival: Arrival) -> None:
        """Do what an event does to this level: end partitions, start partitions, name those it belongs to."""

    @abstractmethod
    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        """The live partitions of this level that an event belongs to, as they are now."""

    @abstractmethod
    def partitions(self) -> list[Partition]:
        """The live partitions of this level, in order of allocation."""

    @abstractmethod
    def add(self, partition: Partition) -> None:
        """Remember a partition just made."""

    @abstractmethod
    def discard(self, partition: Partition) -> None:
        """Forget a partition that ends."""

    def start_due(self, now_ms: int) -> None:
        """The instant `due_ms` has come."""
        return

    def ended(self, partition: Partition, now_ms: int) -> None:
        """A partition has ended, and not with everything around it."""
        return

    def end_due(self, partition: Partition, now_ms: int) -> None:
        """The instant a partition's `due_ms` has come."""
        self.life.end(partition, now_ms)

    # --- common -------------------------------------------------------------------------------------------------------

    def values(self) -> list[Any]:
        """The properties of a new partition, all NULL."""
        return [None] * self.definition.size

    def row(self, values: list[Any]) -> tuple[Any, ...]:
        """What conditions read of a partition with these values."""
        return (values,) if self.parent is None else (*self.parent.row, values)

    @property
    def is_innermost(self) -> bool:
        """Whether the statements run in its partitions."""
        return self.definition.depth == self.life.depth

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

    def route(self, arrival: Arrival) -> None:
        """Name the innermost partitions an event belongs to, without any effect on the context."""
        for partition in self.belonging(arrival):
            if partition.below is None:
                arrival.targets.append(partition)
            else:
                partition.below.route(arrival)

    def offer(self, arrival: Arrival) -> None:
        """The event that started the partition around: it may start one here, and counts in what is here already."""
        mine = Arrival(arrival.stream, arrival.event, arrival.now_ms)
        mine.first = arrival.first
        self.act(mine)
        for partition in mine.rest():
            self.life.give_first(partition, arrival)

    def close(self, now_ms: int) -> None:
        """The partition around ends: all in it do."""
        self.due_ms = None
        for partition in self.partitions():
            self.life.end(partition, now_ms, alone=False)

    # --- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The level with its partitions."""
        return {"due": self.due_ms, "partitions": [self.life.pack(item) for item in self.partitions()]}

    def restore(self, state: dict[str, Any], now_ms: int) -> None:
        """Put a snapshot back into a level just made."""
        self.due_ms = state["due"]
        if self.due_ms is not None:
            self.life.schedule_start(self)
        for packed in state["partitions"]:
            self.life.unpack(self, packed, now_ms)
