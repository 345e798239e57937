"""The tree of live partitions: ids, deadlines, and the order of what happens to them.

At one instant the statements' own timers come first (their owner sees to it), then ends, then starts. Among
ends and starts the earlier due time comes first, then the outer level.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol

from sql.algebra.context.partition import Arrival, Level, Partition
from sql.algebra.deadlines import Deadlines
from sql.algebra.event import Event
from sql.codegen.functions import DATA_ERRORS
from sql.errors import DataError

SPARE: Final = 64
"""The number of ended ones that may stay: a list of few partitions is not made anew with each end."""

END: Final = 0
START: Final = 1
"""At one instant ends come before starts."""

_id_of = attrgetter("id")


class LivePartitions:
    """A list by id, eight bytes a partition; those that have ended leave it together, when they are half as
    many as the others."""

    def __init__(self, partitions: Iterable[Partition] = ()) -> None:
        self._items = sorted(partitions, key=_id_of)
        self._first = 0
        """Those before this place have ended."""
        self._count = len(self._items)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Partition]:
        return (item for item in self._items if item.level is not None)

    def add(self, partition: Partition) -> None:
        """A partition with an id above all others."""
        self._items.append(partition)
        self._count += 1

    def forget(self) -> None:
        """Note that one of them has ended."""
        self._count -= 1
        ended = len(self._items) - self._count
        if ended > SPARE + self._count // 2:
            self._items = list(self)
            self._first = 0

    def oldest(self) -> Partition:
        while self._items[self._first].level is None:
            self._first += 1
        return self._items[self._first]

    def get(self, number: int) -> Partition | None:
        """The one with this id, if it lives."""
        place = bisect_left(self._items, number, key=_id_of)
        found = self._items[place] if place < len(self._items) else None
        return found if found is not None and found.id == number and found.level is not None else None


class Bodies(Protocol):
    """The statements in the innermost partitions, as the life cycle calls them."""

    def settle(self) -> None:
        """The properties of a partition are about to change: events before that are done first."""

    def start(self, partition: Partition, now_ms: int) -> None:
        """A partition has been allocated. Raises `DATA_ERRORS` where a statement cannot begin in it."""

    def abandon(self, partition: Partition) -> None:
        """Discard what has begun in a partition in which not all statements can begin."""

    def give_first(self, partition: Partition, arrival: Arrival) -> None:
        """The event that started a partition, for the statements in it."""

    def stop(self, partition: Partition, now_ms: int) -> None:
        """A partition ends; its properties are filled in."""


class TooMany(DataError):
    """There are as many partitions as the context may have."""


MakeLevel = Callable[["Lifecycle", Partition | None], Level]
"""Makes a live level inside a partition of the level around it."""


class Lifecycle:
    """The partitions of one context, from its activation on.

    makers          make its levels, from the outermost
    max_partitions  how many may live; a further one is refused,
                    or with `oldest_first` the oldest one ends for it
    """

    def __init__(
        self,
        makers: Sequence[MakeLevel],
        bodies: Bodies,
        max_partitions: int = 100_000,
        *,
        oldest_first: bool = False,
    ) -> None:
        self.makers = makers
        self.depth = len(makers) - 1
        self.bodies = bodies
        self.max_partitions = max_partitions
        self.oldest_first = oldest_first
        self.live = LivePartitions()
        """The innermost partitions."""
        self.next_id = 0
        self.next_outer = 0
        self.watches = 0
        """How often a level has begun to watch for what starts or ends its partitions."""
        self.counts = {"partitions_started": 0, "partitions_ended": 0, "partitions_refused": 0}
        self.deadlines: Deadlines[Partition | Level] = Deadlines()
        self.root: Level | None = None

    @property
    def is_active(self) -> bool:
        return self.root is not None

    # --- driving --------------------------------------------------------------------------------------------

    def activate(self, now_ms: int) -> None:
        """The first statement uses the context."""
        self.next_id = self.next_outer = 0
        self.root = self.level(0, None)
        self.root.watch(now_ms)

    def deactivate(self) -> None:
        """The last statement is gone: all partitions vanish, without output."""
        self.root = None
        self.live = LivePartitions()
        self.deadlines.clear()

    def arrive(self, stream: str, event: Event, now_ms: int) -> Arrival:
        """Apply an event to the context; the arrival holds the partitions that it belongs to."""
        arrival = Arrival(stream, event, now_ms)
        if self.root is not None:
            self.root.act(arrival)
        return arrival

    def route(self, stream: str, event: Event, now_ms: int) -> Arrival:
        """The partitions an event belongs to, before it has any effect on the context."""
        arrival = Arrival(stream, event, now_ms)
        if self.root is not None:
            self.root.route(arrival)
        return arrival

    def fire(self, now_ms: int) -> None:
        """Do what is due next, at `now_ms`."""
        owner = self.deadlines.pop()
        if isinstance(owner, Level):
            owner.start_due(now_ms)
        elif owner.level is not None:
            owner.level.end_due(owner, now_ms)

    # --- what levels call -----------------------------------------------------------------------------------

    def level(self, depth: int, parent: Partition | None) -> Level:
        return self.makers[depth](self, parent)

    def next_watch(self) -> int:
        """The place of a level that begins to watch for an event, behind all others."""
        self.watches += 1
        return self.watches

    def move_end(self, partition: Partition, due_ms: int | None) -> None:
        """Time will end a live partition, or may, at another instant; None: never."""
        assert partition.level is not None
        self.deadlines.move(partition, due_ms, END, partition.level.definition.depth, partition.id)

    def move_start(self, level: Level, due_ms: int | None) -> None:
        """Time will start a partition of a level, or may, at another instant; None: never."""
        outer = 0 if level.parent is None else level.parent.id
        self.deadlines.move(level, due_ms, START, level.definition.depth, outer)

    def open(
        self,
        level: Level,
        key: object,
        values: list[Any],
        now_ms: int,
        arrival: Arrival | None = None,
        *,
        due_ms: int | None = None,
    ) -> Partition:
        """Allocate a partition, which time will end at `due_ms`; the event that started it counts in it.

        Raises `DATA_ERRORS`, among them TooMany, where it cannot be or a statement cannot begin in it: then
        there is none.
        """
        innermost = level.is_innermost
        if innermost and len(self.live) >= self.max_partitions:
            self._make_room(now_ms)
        partition = Partition(level, key, values, self.next_id if innermost else self.next_outer)
        level.add(partition)
        if innermost:
            self.next_id += 1
            self._start(partition, now_ms)
            self.counts["partitions_started"] += 1
            if arrival is not None:
                self.give_first(partition, arrival)
        else:
            self.next_outer += 1
            below = partition.below = self.level(level.definition.depth + 1, partition)
            try:
                below.watch(now_ms)
                if arrival is not None:
                    below.offer(arrival)
            except DATA_ERRORS:
                self.end(partition, now_ms, alone=False)
                raise
        if partition.level is not None:
            if due_ms is not None:
                self.move_end(partition, due_ms)
            level.started(partition, now_ms)
        return partition

    def _start(self, partition: Partition, now_ms: int) -> None:
        self.live.add(partition)
        try:
            self.bodies.start(partition, now_ms)
        except DATA_ERRORS:
            assert partition.level is not None
            partition.level.discard(partition)
            partition.level = None
            self.live.forget()
            self.bodies.abandon(partition)
            raise

    def _make_room(self, now_ms: int) -> None:
        if not self.oldest_first:
            self.counts["partitions_refused"] += 1
            raise TooMany(
                f"the context has {self.max_partitions} partitions; raise maxPartitions, or let them end"
            )
        self.end(self.live.oldest(), now_ms)

    def join(self, partition: Partition, arrival: Arrival) -> None:
        """An event that caused a partition, without being what starts it, counts in it."""
        if partition.below is None:
            self.give_first(partition, arrival)
        else:
            partition.below.offer(arrival)

    def give_first(self, partition: Partition, arrival: Arrival) -> None:
        arrival.first.add(partition.id)
        self.bodies.give_first(partition, arrival)

    def end(
        self, partition: Partition, now_ms: int, arrival: Arrival | None = None, *, alone: bool = True
    ) -> None:
        """End a partition, with everything in it. `arrival`: the event that ends it. `alone`: the level
        around it goes on."""
        level = partition.level
        if level is None:
            return
        if partition.below is not None:
            partition.below.close(now_ms)
        else:
            partition.level = None
            self.live.forget()
            self.counts["partitions_ended"] += 1
            self.bodies.stop(partition, now_ms)
        level.discard(partition)
        self.deadlines.move(partition, None)
        partition.level = None
        if alone:
            level.ended(partition, now_ms, arrival)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The life cycle as plain JSON-able data; the statements' own state is theirs to save."""
        root = None if self.root is None else self.root.snapshot()
        numbers = {"next_id": self.next_id, "serial": self.next_outer, "watches": self.watches}
        return {**numbers, "counts": dict(self.counts), "root": root}

    def restore(self, state: dict[str, Any], now_ms: int) -> None:
        """Put a snapshot back; partitions are started anew, so that the statements can
        be restored into them."""
        self.deactivate()
        self.counts = dict(state["counts"])
        if state["root"] is not None:
            self.root = self.level(0, None)
            self.root.restore(state["root"], now_ms)
        self.live = LivePartitions(self.live)
        self.next_id, self.next_outer = state["next_id"], state["serial"]
        self.watches = state.get("watches", 0)  # earlier states have none

    def put_back(self, partition: Partition, below: dict[str, Any] | None, now_ms: int) -> None:
        """A partition from data lives again, with the level inside it."""
        level = partition.level
        assert level is not None
        level.add(partition)
        if below is None:
            self._start(partition, now_ms)
        else:
            partition.below = self.level(level.definition.depth + 1, partition)
            partition.below.restore(below, now_ms)
