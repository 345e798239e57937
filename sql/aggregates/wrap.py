"""Accumulators around others: DISTINCT and a filter work with every aggregate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sql.aggregates.base import Accumulator, Aggregate, EventView, Removal
from sql.aggregates.plain_values import decode, encode
from sql.record import Record
from sql.types import Plain, Saved, key_of


class Remaining(Record):
    """An event without columns, for a value that still counts after its event has left."""

    seq: int
    time_ms: int
    row: Any = None


DistinctState = tuple[Saved, list[tuple[int, Plain, int, int]]]
"""The state of the filtered accumulator; of each value its occurrences, itself, and the place and
instant of its first event."""


class Around(Accumulator):
    """Base of accumulators that change one thing about another."""

    __slots__ = ("inner",)

    def __init__(self, inner: Accumulator) -> None:
        self.inner = inner

    def check(self, value: object) -> None:
        self.inner.check(value)

    def add(self, value: object, event: EventView) -> None:
        self.inner.add(value, event)

    def remove(self, value: object, event: EventView) -> None:
        self.inner.remove(value, event)

    def result(self) -> Any:
        return self.inner.result()

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Around)
        self.inner.merge(other.inner)

    def held(self) -> Iterable[EventView]:
        return self.inner.held()

    def snapshot(self) -> Saved:
        return self.inner.snapshot()

    def restore(self, state: Saved, events: Callable[[int], EventView]) -> None:
        self.inner.restore(state, events)


class Counting(Around):
    """Base of filters that add a value at the first occurrence of its key and remove it with the last."""

    __slots__ = ("counts",)

    def __init__(self, inner: Accumulator) -> None:
        super().__init__(inner)
        self.counts: dict[Any, list[Any]] = {}
        """key -> [occurrences, the value that was passed on, the event it came with]"""

    def come(self, key: object, value: object, event: EventView) -> None:
        """The key occurs once more."""
        found = self.counts.get(key)
        if found is not None:
            found[0] += 1
            return
        self.inner.add(value, event)
        self.counts[key] = [1, value, event]

    def go(self, key: object) -> None:
        """An occurrence of the key is gone."""
        found = self.counts[key]
        found[0] -= 1
        if not found[0]:
            del self.counts[key]
            self.inner.remove(found[1], found[2])


class Distinct(Counting):
    """A filter of distinct values."""

    __slots__ = ()

    def add(self, value: object, event: EventView) -> None:
        self.come(key_of(value), value, event)

    def check(self, value: object) -> None:
        if key_of(value) not in self.counts:
            self.inner.check(value)

    def remove(self, value: object, event: EventView) -> None:
        self.go(key_of(value))

    def merge(self, other: Accumulator) -> None:
        assert isinstance(other, Distinct)
        for key, (count, value, event) in other.counts.items():
            if key in self.counts:
                self.counts[key][0] += count
            else:
                self.inner.add(value, event)
                self.counts[key] = [count, value, event]

    def snapshot(self) -> DistinctState:
        counts = [
            (count, encode(value), event.seq, event.time_ms) for count, value, event in self.counts.values()
        ]
        return self.inner.snapshot(), counts

    def restore(self, state: DistinctState, events: Callable[[int], EventView]) -> None:
        self.inner.restore(state[0], events)
        self.counts = {}
        for count, data, seq, time_ms in state[1]:
            value = decode(data)
            # The first event with this value may have left: its place is enough to
            # remove the value.
            self.counts[key_of(value)] = [count, value, Remaining(seq, time_ms)]


def distinct(definition: Aggregate, removal: Removal, *constants: Any) -> Accumulator:
    """The accumulator of `aggregate(DISTINCT x)`.

    A value leaves with its last occurrence, which is not the order in which values first came: the inner
    accumulator needs removals in any order.
    """
    inside = removal if removal is Removal.NEVER else Removal.ANY
    return Distinct(definition.make(inside, *constants))


class Filtered(Around):
    """A filter of (value, condition): it passes the value on if the condition is true."""

    __slots__ = ()

    def add(self, value: object, event: EventView) -> None:
        if isinstance(value, tuple) and value[1] is True:
            self.inner.add(value[0], event)

    def check(self, value: object) -> None:
        if isinstance(value, tuple) and value[1] is True:
            self.inner.check(value[0])

    def remove(self, value: object, event: EventView) -> None:
        if isinstance(value, tuple) and value[1] is True:
            self.inner.remove(value[0], event)


class NotNull(Around):
    """A filter that passes values on unless NULL, for accumulators that would keep a NULL."""

    __slots__ = ()

    def add(self, value: object, event: EventView) -> None:
        if value is not None:
            self.inner.add(value, event)

    def check(self, value: object) -> None:
        if value is not None:
            self.inner.check(value)

    def remove(self, value: object, event: EventView) -> None:
        if value is not None:
            self.inner.remove(value, event)
