"""Events and deltas: the data that operators exchange.

A relation that changes with time is represented by its changes. A `Delta` is one partial update: the events
that entered, in order, and those that left. Rows may be any object the compiled expressions can read (a
dict, a struct, a tuple of rows for joins); operators never read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec


class Event(msgspec.Struct, eq=False):
    """One event inside a query. Compared by identity: two equal messages are two events.

    row      its columns
    time_ms  its instant on the query's clock
    seq      its place in the order of arrival within the query
    extra    values fixed when it arrived: results of analytic functions and of `prior`
    group    the group it counts in; None while it counts in none
    values   what it contributed to the group's aggregates, as the compiled fold wrote it
    """

    row: Any
    time_ms: int
    seq: int
    extra: Any = None
    group: Any = None
    values: Any = None

    def __repr__(self) -> str:
        return f"Event({self.seq}@{self.time_ms} {self.row!r})"


class Delta(NamedTuple):
    """One partial update of a relation: what entered and what left, both in order."""

    inserted: Sequence[Event] = ()
    removed: Sequence[Event] = ()


def merged(deltas: Sequence[Delta]) -> Delta:
    """Several changes as one: inserts appended, removes appended."""
    if len(deltas) == 1:
        return deltas[0]
    inserted = [event for delta in deltas for event in delta.inserted]
    return Delta(inserted, [event for delta in deltas for event in delta.removed])


def net(deltas: Iterable[Delta]) -> Delta:
    """One delta for several, in order of arrival, without the events that entered and left inside them."""
    inserted: dict[Event, None] = {}
    removed: dict[Event, None] = {}
    for delta in deltas:
        inserted.update(dict.fromkeys(delta.inserted))
        for event in delta.removed:
            if event in inserted:
                del inserted[event]
            else:
                removed[event] = None
    return Delta(sorted(inserted, key=_arrival), sorted(removed, key=_arrival))


_arrival = attrgetter("seq")


NOTHING = Event(None, 0, -1)
"""The event of rows that no event has caused."""

UNSEEN: Any = object()
"""The group of a row that is taken out although it never came in."""


class FixedValues(list[Any]):
    """Values fixed when an event arrived: analytic functions by index, and the events
    before it for `prior`."""

    __slots__ = ("priors",)

    def __init__(self, values: Iterable[Any] = (), priors: Sequence[Event] = ()) -> None:
        super().__init__(values)
        self.priors = priors
