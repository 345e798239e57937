"""Partitions of a context, the levels they live in, and events on their way to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Any, ClassVar

from sql.algebra.event import Event
from sql.plan.context_plan import LevelPlan


class LevelDefinition:
    """Base of what is made once of a level's plan, for all live levels: conditions and keys as functions."""

    chosen_by: ClassVar[str] = ""
    """The word by which a query chooses partitions of this kind: `keys`, `hashes`, `labels`, or none."""

    def __init__(self, plan: LevelPlan, depth: int) -> None:
        self.name = plan.name
        self.depth = depth
        self.properties = tuple(item.name for item in plan.properties)


class Partition:
    """A partition of a level; on the innermost level it holds one instance of each statement of the context.

    level     the level it lives in
    key       its key, hash, label or distinct value: what the level finds it by
    row       what statements read: the properties of every level from the outermost on, by place, and the id
    id        its number in the order of allocation, over the whole context; outer ones are counted apart
    below     the level inside it; None on the innermost
    due_ms    when time ends it; None: never
    bodies    the instances of the statements, in the order in which those were created
    """

    __slots__ = ("below", "bodies", "due_ms", "id", "key", "level", "row")

    def __init__(self, level: Level, key: Hashable, values: list[Any], number: int) -> None:
        self.level: Level | None = level
        self.key = key
        before = () if level.parent is None else level.parent.row
        self.row: tuple[Any, ...] = (*before, values, number) if level.is_innermost else (*before, values)
        self.id = number
        self.below: Level | None = None
        self.due_ms: int | None = None
        self.bodies: tuple[Any, ...] = ()

    @property
    def values(self) -> list[Any]:
        """Its properties on its own level, by place."""
        values: list[Any] = self.row[-1 if self.below is not None else -2]
        return values

    def path(self) -> list[Partition]:
        """The partitions it lies in, from the outermost to itself."""
        found: list[Partition] = []
        at: Partition | None = self
        while at is not None:
            found.append(at)
            at = None if at.level is None else at.level.parent
        return found[::-1]


class Arrival:
    """An event on its way through a context, and the innermost partitions it belongs to.

    `targets` are some of them, `whole` levels of which it belongs to all. `first`: partitions it has reached
    already, because it started them. `has_ended`: while it goes to the partition that follows the one it has
    ended; statements that outrank the context have seen it there.
    """

    __slots__ = ("event", "first", "has_ended", "now_ms", "stream", "targets", "whole")

    def __init__(self, stream: str, event: Event, now_ms: int) -> None:
        self.stream = stream
        self.event = event
        self.now_ms = now_ms
        self.targets: list[Partition] = []
        self.whole: list[Level] = []
        self.first: set[int] = set()
        self.has_ended = False

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
            return self.targets if len(self.targets) < 2 else sorted(self.targets, key=attrgetter("id"))
        found = [*self.targets, *(item for level in self.whole for item in level.partitions())]
        return sorted((item for item in found if item.id not in self.first), key=attrgetter("id"))

    def reaches(self, partition: Partition) -> bool:
        """True if it has still to reach a partition."""
        return partition.id not in self.first and (partition.level in self.whole or partition in self.targets)


class Level(ABC):
    """One level of a context inside one partition of the level around it (`parent`; None: the outermost), as
    partitions and the life cycle see it."""

    def __init__(self, definition: LevelDefinition, parent: Partition | None, *, is_innermost: bool) -> None:
        self.definition = definition
        self.parent = parent
        self.is_innermost = is_innermost
        """True if the statements run in its partitions."""
        self.by_key: dict[Hashable, Partition] = {}
        """The live partitions, in order of allocation."""
        self.due_ms: int | None = None
        """When time starts a partition; None: never."""
        self.since = 0
        """Its place among the levels that watch for a start or an end: in the order in which they began."""

    def partitions(self) -> list[Partition]:
        """The live partitions of this level, in order of allocation."""
        return list(self.by_key.values())

    # --- partitions start and end ---------------------------------------------------------------------------

    @abstractmethod
    def watch(self, now_ms: int) -> None:
        """Begin: what exists from the start is allocated, what starts partitions is watched."""

    @abstractmethod
    def add(self, partition: Partition) -> None:
        """Remember a partition just made."""

    @abstractmethod
    def discard(self, partition: Partition) -> None:
        """Forget a partition that ends."""

    @abstractmethod
    def started(self, partition: Partition, now_ms: int) -> None:
        """A partition has started, and lives."""

    @abstractmethod
    def ended(self, partition: Partition, now_ms: int, arrival: Arrival | None) -> None:
        """A partition has ended, and not with everything around it: by an event, or else by time."""

    @abstractmethod
    def start_due(self, now_ms: int) -> None:
        """The instant `due_ms` has come."""

    @abstractmethod
    def end_due(self, partition: Partition, now_ms: int) -> None:
        """The instant a partition's `due_ms` has come."""

    @abstractmethod
    def close(self, now_ms: int) -> None:
        """The partition around ends: all in it do."""

    # --- events ---------------------------------------------------------------------------------------------

    @abstractmethod
    def act(self, arrival: Arrival) -> None:
        """Do what an event does to this level: end partitions, start partitions, name those it belongs to."""

    @abstractmethod
    def offer(self, arrival: Arrival) -> None:
        """The event that started the partition around: it may start one here, and counts in what is here
        already. It ends nothing, and patterns begin after it."""

    @abstractmethod
    def belonging(self, arrival: Arrival) -> Iterable[Partition]:
        """The live partitions of this level that an event belongs to, as they are now."""

    def route(self, arrival: Arrival) -> None:
        """Name the innermost partitions an event belongs to, without any effect on the context."""
        for partition in self.belonging(arrival):
            if partition.below is None:
                arrival.targets.append(partition)
            else:
                partition.below.route(arrival)

    def unmoved(self, stream: str) -> list[Partition] | None:
        """The innermost partitions that all events of a stream belong to; None where these may change
        partitions."""
        return None

    # --- state ----------------------------------------------------------------------------------------------

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """The level with its partitions."""

    @abstractmethod
    def restore(self, state: dict[str, Any], now_ms: int) -> None:
        """Put a snapshot back into a level just made."""
