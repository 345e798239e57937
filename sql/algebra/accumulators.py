"""Groups and their aggregates: what both kinds of row making, by changes and by looks, are built on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any

from sql.aggregates.base import Accumulator, EventView, Removal
from sql.aggregates.byorder import Packed, pack, unpack
from sql.aggregates.wrap import Around, Counting, Remaining, distinct
from sql.algebra.event import Event
from sql.codegen.functions import EventFunction, FunctionSet
from sql.errors import DataError, over_max_groups
from sql.plan.bound import AggregateCall
from sql.rows import columns_of, match_of
from sql.types import Saved

SKIP = object()
"""The argument of an aggregate whose FILTER keeps the event out."""


def maker_of(call: AggregateCall, removal: Removal) -> Callable[[], Accumulator]:
    """A factory of a call's accumulators, one per group, for values that leave in this way."""
    definition, constants = call.definition, call.constants
    removal = Removal.NEVER if definition.ever else removal
    plain = partial(distinct, definition) if call.distinct else definition.make
    source = call.once_of
    if source is not None and removal is not Removal.NEVER:
        removal = Removal.ANY  # an event leaves with the last of its joined rows

    def make() -> Accumulator:
        inner = plain(removal, *constants)
        inner = inner if source is None else OncePerEvent(inner, source)
        inner = AsRows(inner, call.shows) if definition.needs_event else inner
        return Ever(inner) if definition.ever else inner

    return make


def is_checked(call: AggregateCall) -> bool:
    """True if there are values that the call's aggregate refuses."""
    accumulator: Accumulator = maker_of(call, Removal.NEVER)()
    while isinstance(accumulator, Around):
        accumulator = accumulator.inner
    return type(accumulator).check is not Accumulator.check


def argument_of(call: AggregateCall, functions: FunctionSet) -> EventFunction:
    """The value that an event contributes to a call; SKIP where its FILTER keeps the event out."""
    argument = functions.argument(call.definition, call.args)
    if call.filter is None:
        return argument
    passes = functions.true(call.filter)
    return lambda event: argument(event) if passes(event) else SKIP


def check_at(accumulator: Accumulator, value: object, call: AggregateCall) -> None:
    """Raise the DataError of an accumulator that cannot take the value, with the place of its argument."""
    try:
        accumulator.check(value)
    except DataError as error:
        raise error.at(call.place) from error


class AsRows(Around):
    """Shows the rows of the events that minby, maxby, sorted and their like result in; `shows`: as in the
    call."""

    __slots__ = ("shows",)

    def __init__(self, inner: Accumulator, shows: int | tuple[str, ...] | None) -> None:
        super().__init__(inner)
        self.shows = shows

    def result(self) -> Any:
        found = self.inner.result()
        if isinstance(found, list):
            return [self._value(event.row) for event in found]
        return None if found is None else self._value(found.row)

    def _value(self, row: object) -> Any:
        shows = self.shows
        if not isinstance(row, tuple):
            return columns_of(row)
        if shows is None:
            return columns_of(*row)
        return columns_of(row[shows]) if isinstance(shows, int) else match_of(shows, row)


def _arguments(data: Packed) -> Any:
    """The value that was given to an accumulator: several arguments as a tuple, one as it is."""
    parts = unpack(data)
    return parts if len(parts) > 1 else parts[0]


class OncePerEvent(Counting):
    """Takes the events of one source of a join, by their numbers: each with the first of the joined rows that
    hold it, until the last has left. A row beside NULL brings none."""

    __slots__ = ("source",)

    def __init__(self, inner: Accumulator, source: int) -> None:
        super().__init__(inner)
        self.source = source

    def _number(self, event: EventView) -> int | None:
        assert isinstance(event, Event)
        number: int | None = event.extra[self.source]
        return number

    def add(self, value: object, event: EventView) -> None:
        number = self._number(event)
        if number is not None:
            self.come(number, value, event)

    def remove(self, value: object, event: EventView) -> None:
        number = self._number(event)
        if number is not None:
            self.go(number)

    def snapshot(self) -> tuple[Saved, list[tuple[int, int, Packed, int, int]]]:
        taken = [
            (number, rows, pack(value), event.seq, event.time_ms)
            for number, (rows, value, event) in self.counts.items()
        ]
        return self.inner.snapshot(), taken

    def restore(self, state: Saved, events: Callable[[int], EventView]) -> None:
        self.inner.restore(state[0], events)
        # The row it came with may have left: its place is enough to take the event out.
        self.counts = {
            number: [rows, _arguments(data), Remaining(seq, time_ms)]
            for number, rows, data, seq, time_ms in state[1]
        }


class Ever(Around):
    """countever, firstever and their like: what leaves the window still counts."""

    def remove(self, value: object, event: EventView) -> None:
        return None


class LocalGroups:
    """An aggregate with its own `group_by:` dimensions: one accumulator per key, read at an event's key."""

    __slots__ = ("by_key", "current", "key", "make", "max_groups")

    def __init__(self, key: EventFunction, make: Callable[[], Accumulator], max_groups: int) -> None:
        self.key = key
        self.make = make
        self.max_groups = max_groups
        self.by_key: dict[Hashable, list[Any]] = {}
        self.current: Event | None = None

    def add(self, key: Hashable, value: object, event: Event) -> None:
        """An event comes, of which the key is known."""
        entry = self.by_key.get(key)
        if entry is None:
            entry = self.by_key[key] = [0, self.make(), event.seq, event]
        entry[1].add(value, event)
        entry[0] += 1

    def remove(self, value: object, event: Event) -> None:
        key = self.key(event)
        entry = self.by_key[key]
        entry[1].remove(value, event)
        entry[0] -= 1
        if not entry[0]:
            del self.by_key[key]

    def reset(self) -> None:
        """Begin without any event."""
        self.by_key = {}

    def check(self, value: object) -> None:
        self.make().check(value)

    def make_room(self, key: Hashable) -> None:
        """An event of this key is to come. Raises DataError for a key beyond `maxGroups`."""
        if key not in self.by_key and len(self.by_key) >= self.max_groups:
            raise over_max_groups(self.max_groups)

    def held(self) -> Iterable[Any]:
        return (event for entry in self.by_key.values() for event in (entry[3], *entry[1].held()))

    def at(self, event: Event) -> LocalGroups:
        """Read at this event's key from now on."""
        self.current = event
        return self

    def result(self) -> Any:
        entry = None if self.current is None else self.by_key.get(self.key(self.current))
        return (self.make() if entry is None else entry[1]).result()

    def snapshot(self) -> list[tuple[int, Saved, int]]:
        return [(entry[0], entry[1].snapshot(), entry[2]) for entry in self.by_key.values()]

    def restore(self, state: list[tuple[int, Saved, int]], events: Callable[[int], Any]) -> None:
        self.by_key = {}
        for count, part, seq in state:
            accumulator = self.make()
            accumulator.restore(part, events)
            self.by_key[self.key(events(seq))] = [count, accumulator, seq, events(seq)]
