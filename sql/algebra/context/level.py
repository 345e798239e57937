"""The base of all levels: what starts and ends partitions, and which of them an event belongs to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sql.algebra.context.level_definitions import EventCondition, LevelDefinition
from sql.algebra.context.partition import Partition
from sql.algebra.context.pattern_ends import PatternEnds, PatternStart
from sql.algebra.event import Event

if TYPE_CHECKING:
    from sql.algebra.context.lifecycle import Lifecycle


class Arrival:
    """An event on its way through a context, and the innermost partitions it belongs to.

    `targets` are some of them, `whole` levels of which it belongs to all. `first`: partitions it has reached
    already, because it started them.
    """

    __slots__ = ("event", "first", "now_ms", "stream", "targets", "whole")

    def __init__(self, stream: str, event: Event, now_ms: int) -> None:
        self.stream = stream
        self.event = event
        self.now_ms = now_ms
        self.targets: list[Partition] = []
        self.whole: list[Level] = []
        self.first: set[int] = set()

    def clear(self) -> None:
        """Make it ready for another event."""
        if self.targets:
            self.targets.clear()
        if self.whole:
            self.whole.clear()
        if self.first:
            self.first.clear()

    def rest(self) -> list[Partition]:
        """The partitions it has still to reach, in order of allocation."""
        if not self.whole:
            return self.targets if len(self.targets) < 2 else sorted(self.targets, key=_id_of)
        found = [*self.targets, *(item for level in self.whole for item in level.partitions())]
        return sorted((item for item in found if item.id not in self.first), key=_id_of)

    def reaches(self, partition: Partition) -> bool:
        """True if it has still to reach a partition."""
        return partition.id not in self.first and (partition.level in self.whole or partition in self.targets)


_id_of = attrgetter("id")


class Level(ABC):
    """One level of a context inside one partition of the level around it (`parent`; None: the outermost)."""

    def __init__(self, definition: LevelDefinition, life: Lifecycle, parent: Partition | None) -> None:
        self.definition = definition
        self.life = life
        self.parent = parent
        self.is_innermost = definition.depth == life.depth
        """True if the statements run in its partitions."""
        self.ends_together = False
        """True if ends of several partitions are those of each: nothing but the end follows from them."""
        self.due_ms: int | None = None
        """When time starts a partition; None: never."""
        self.pattern_start: PatternStart | None = None
        """The pattern that starts partitions, where the level starts them so."""
        self.pattern_ends: PatternEnds | None = None
        """The patterns that may end partitions, where the level ends them so."""

    def unmoved(self, stream: str) -> list[Partition] | None:
        """The innermost partitions that all events of a stream belong to; None where these may change
        partitions."""
        return None

    # --- what the kinds say ---------------------------------------------------------------------------------

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

    def route(self, arrival: Arrival) -> None:
        """Name the innermost partitions an event belongs to, without any effect on the context."""
        for partition in self.belonging(arrival):
            if partition.below is None:
                arrival.targets.append(partition)
            else:
                partition.below.route(arrival)

    def offer(self, arrival: Arrival) -> None:
        """The event that started the partition around: it may start one here, and counts in
        what is here already."""
        mine = Arrival(arrival.stream, arrival.event, arrival.now_ms)
        mine.first = arrival.first
        self.act(mine)
        for partition in mine.rest():
            self.life.give_first(partition, arrival)

    def close(self, now_ms: int) -> None:
        """The partition around ends: all in it do."""
        self.due_ms = None
        if self.pattern_start is not None:
            self.pattern_start.stop()
        for partition in self.partitions():
            self.life.end(partition, now_ms, alone=False)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The level with its partitions."""
        starting = None if self.pattern_start is None else self.pattern_start.snapshot()
        partitions = [self.life.pack(item) for item in self.partitions()]
        return {"due": self.due_ms, "starting": starting, "partitions": partitions}

    def restore(self, state: dict[str, Any], now_ms: int) -> None:
        """Put a snapshot back into a level just made."""
        self.due_ms = state["due"]
        if self.pattern_start is not None:
            self.pattern_start.restore(state["starting"], now_ms)
        if self.due_ms is not None:
            self.life.timers.start(self)
        for packed in state["partitions"]:
            self.life.unpack(self, packed, now_ms)
