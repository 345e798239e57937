"""minby, maxby, sorted and deduplicate: events, chosen or ordered by keys. Results are the events themselves.

Criteria are compared like ORDER BY compares: any two values have an order, NULL is lowest. An argument
written with `desc` comes wrapped in `Descending`. Of events with equal criteria the earliest is first, for
minby and maxby alike. minby and maxby skip an event whose only criterion is NULL; sorted keeps it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal, register
from sql.aggregates.plain_values import decode, encode
from sql.aggregates.structures.ordered_multiset import OrderedMultiset
from sql.aggregates.structures.sequences import arrivals
from sql.costs import Cost, Growth
from sql.functions.definition import Parameter
from sql.types import Descending, Plain, Type, key_of, order_key

Criteria = tuple[Any, ...]


def criteria(value: object) -> Criteria:
    """The arguments of an aggregate as a key that orders any two events."""
    return tuple(
        Descending(order_key(part.key)) if part.__class__ is Descending else order_key(part)
        for part in _parts(value)
    )


def _parts(value: object) -> tuple[Any, ...]:
    """The criteria of an event as a tuple."""
    return value if value.__class__ is tuple else (value,)


def _is_null(value: object) -> bool:
    first, *more = _parts(value)
    return not more and (first is None or (first.__class__ is Descending and first.key is None))


Packed = list[tuple[Plain, bool]]
"""The arguments as plain data: each with whether its order is descending."""


def pack(value: object) -> Packed:
    """The arguments of an aggregate as plain data."""
    return [
        (encode(part.key), True) if part.__class__ is Descending else (encode(part), False)
        for part in _parts(value)
    ]


def unpack(data: Packed) -> Criteria:
    """The arguments again, as a tuple."""
    return tuple(Descending(decode(part)) if descending else decode(part) for part, descending in data)


Entry = tuple[Criteria, EventView, Any]
"""The key, the event, and the arguments the key was made of."""


class KeptEvent(Accumulator):
    """The best event so far; for values that never leave."""

    __slots__ = ("best", "largest")

    def __init__(self, largest: bool) -> None:
        self.largest = largest
        self.best: Entry | None = None

    def add(self, value: object, event: EventView) -> None:
        if _is_null(value):
            return
        key = criteria(value)
        best = self.best
        if best is None or (best[0] < key if self.largest else key < best[0]):
            self.best = (key, event, value)

    def result(self) -> EventView | None:
        return None if self.best is None else self.best[1]

    def held(self) -> Iterable[EventView]:
        return () if self.best is None else (self.best[1],)

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, KeptEvent)
        if other.best is not None:
            self.add(other.best[2], other.best[1])

    def snapshot(self) -> tuple[Packed, int] | None:
        return None if self.best is None else (pack(self.best[2]), self.best[1].seq)

    def restore(self, state: tuple[Packed, int] | None, events: Callable[[int], EventView]) -> None:
        self.best = None
        if state is not None:
            self.add(unpack(state[0]), events(state[1]))


class QueuedEvents(Accumulator):
    """The best event, for a FIFO: only events that no later one beats are kept, best first."""

    __slots__ = ("largest", "queue")

    def __init__(self, largest: bool) -> None:
        self.largest = largest
        self.queue: deque[Entry] = deque()

    def add(self, value: object, event: EventView) -> None:
        if _is_null(value):
            return
        key, queue = criteria(value), self.queue
        while queue and (queue[-1][0] < key if self.largest else key < queue[-1][0]):
            queue.pop()
        queue.append((key, event, value))

    def remove(self, value: object, event: EventView) -> None:
        if self.queue and self.queue[0][1].seq == event.seq:
            self.queue.popleft()

    def result(self) -> EventView | None:
        return self.queue[0][1] if self.queue else None

    def held(self) -> Iterable[EventView]:
        return [event for _, event, _ in self.queue]

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, QueuedEvents)
        for _, event, value in other.queue:
            self.add(value, event)

    def snapshot(self) -> list[tuple[Packed, int]]:
        return [(pack(value), event.seq) for _, event, value in self.queue]

    def restore(self, state: list[tuple[Packed, int]], events: Callable[[int], EventView]) -> None:
        self.queue.clear()
        for data, seq in state:
            self.add(unpack(data), events(seq))


class Sorted(Accumulator):
    """All events by (criteria, arrival); NULL over nothing."""

    __slots__ = ("entries", "kept")

    def __init__(self, removal: Removal = Removal.ANY) -> None:
        self.entries = OrderedMultiset()
        """(criteria, seq): seq is unique."""
        self.kept: dict[int, tuple[EventView, Any]] = {}
        """The event of each seq, and its arguments."""

    def add(self, value: object, event: EventView) -> None:
        self.entries.add((self._key(value), event.seq))
        self.kept[event.seq] = event, value

    def remove(self, value: object, event: EventView) -> None:
        self.entries.remove((self._key(value), event.seq))
        del self.kept[event.seq]

    def _key(self, value: object) -> Any:
        """The sort key of an entry."""
        return criteria(value)

    def result(self) -> Any:
        return [self.kept[seq][0] for _, seq in self.entries] or None

    def held(self) -> Iterable[EventView]:
        return [event for event, _ in self.kept.values()]

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Sorted)
        for event, value in other.kept.values():
            self.add(value, event)

    def snapshot(self) -> list[tuple[Packed, int]]:
        return [(pack(self.kept[seq][1]), seq) for _, seq in self.entries]

    def restore(self, state: list[tuple[Packed, int]], events: Callable[[int], EventView]) -> None:
        self.kept = {seq: (events(seq), unpack(data)) for data, seq in state}
        self.entries = OrderedMultiset((self._key(value), seq) for seq, (_, value) in self.kept.items())


class SortedBest(Sorted):
    """The first event by (criteria, arrival) if events leave in any order."""

    __slots__ = ("largest",)

    def __init__(self, largest: bool) -> None:
        super().__init__()
        self.largest = largest

    def add(self, value: object, event: EventView) -> None:
        if not _is_null(value):
            super().add(value, event)

    def remove(self, value: object, event: EventView) -> None:
        if not _is_null(value):
            super().remove(value, event)

    def _key(self, value: object) -> Any:
        # The largest is also the earliest of those with the same criteria.
        return Descending(criteria(value)) if self.largest else criteria(value)

    def result(self) -> EventView | None:
        return self.kept[self.entries.lowest()[1]][0] if len(self.entries) else None


class Deduplicate(Accumulator):
    """deduplicate(key, all): the first event of each key; or the newest event if no
    earlier one has its key."""

    __slots__ = ("all_keys", "values")

    def __init__(self, removal: Removal, all_keys: object) -> None:
        if all_keys.__class__ is not bool:
            raise ValueError(f"the second argument of deduplicate() is true or false, not {all_keys!r}")
        self.all_keys = all_keys
        self.values = arrivals(removal)

    def add(self, value: object, event: EventView) -> None:
        self.values.add((value, event), event)

    def remove(self, value: object, event: EventView) -> None:
        self.values.remove((value, event), event)

    def result(self) -> Any:
        first: dict[Any, EventView] = {}
        newest = None
        for value, event in self.values:
            first.setdefault(key_of(value), event)
            newest = (value, event)
        if newest is None:
            return None
        if self.all_keys:
            return list(first.values())
        return newest[1] if first[key_of(newest[0])] is newest[1] else None

    def held(self) -> Iterable[EventView]:
        return [event for _, event in self.values]

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Deduplicate)
        self.values.extend(other.values)

    def snapshot(self) -> list[tuple[Plain, int]]:
        return [(encode(value), event.seq) for value, event in self.values]

    def restore(self, state: list[tuple[Plain, int]], events: Callable[[int], EventView]) -> None:
        self.values = type(self.values)()
        for data, seq in state:
            self.add(decode(data), events(seq))


def _make_by(largest: bool, ever: bool) -> Callable[[Removal], Accumulator]:
    def make(removal: Removal) -> Accumulator:
        if ever or removal is Removal.NEVER:
            return KeptEvent(largest)
        return QueuedEvents(largest) if removal is Removal.FIFO else SortedBest(largest)

    return make


KEYS = (Parameter("key"), Parameter("keys", variadic=True, optional=True))

for _name, _largest in (("minby", False), ("maxby", True)):
    _what = "largest" if _largest else "smallest"
    register(
        Aggregate(
            _name,
            _make_by(_largest, ever=False),
            f"The event with the {_what} criteria, of equal ones the earliest.",
            KEYS,
            Type.OBJECT,
            needs_event=True,
            ordered=True,
            mergeable=True,
            cost=Cost(event=Growth.AMORTISED, any_order=Growth.ROOT),
        )
    )
    register(
        Aggregate(
            f"{_name}ever",
            _make_by(_largest, ever=True),
            f"The event with the {_what} criteria that ever came.",
            KEYS,
            Type.OBJECT,
            needs_event=True,
            ordered=True,
            ever=True,
        )
    )
register(
    Aggregate(
        "sorted",
        Sorted,
        "All events as an array, ordered by criteria (each may be `desc`), then by arrival.",
        KEYS,
        Type.ARRAY,
        needs_event=True,
        ordered=True,
        of_events=True,
        mergeable=True,
        cost=Cost(event=Growth.ROOT, result=Growth.LINEAR),
    )
)
register(
    Aggregate(
        "deduplicate",
        Deduplicate,
        "all = true: the first event of each key, as an array; "
        "false: the newest event if its key is new, else NULL.",
        (Parameter("key"), Parameter("all", Type.BOOLEAN, constant=True)),
        Type.ANY,
        needs_event=True,
        constants=1,
        mergeable=True,
        cost=Cost(result=Growth.LINEAR),
    )
)
