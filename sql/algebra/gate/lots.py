"""The two stages that make Apama's batched windows of the common policies: a gate *behind* a Retain, and Latest.

         within 1.5 every 1.0     10@0.5 enters at the update point 1.0 and leaves at the first one >= 0.5 + 1.5

The retention runs on while the gate holds its deltas; `net` cancels an item that came and went in between, so it never
appears. An update point's lot closes with its instant, after the arrivals of that instant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent, Operator


def net(deltas: Iterable[Delta]) -> Delta:
    """One delta for several, without the events that entered and left inside them."""
    inserted: dict[Event, None] = {}
    removed: dict[Event, None] = {}
    for delta in deltas:
        inserted.update(dict.fromkeys(delta.inserted))
        for event in delta.removed:
            if event in inserted:
                del inserted[event]
            else:
                removed[event] = None
    return Delta(list(inserted), list(removed))


class Hold(Operator):
    """Gate(every period | count m, net): holds the deltas of a Retain until the update point."""

    departure = Removal.FIFO

    def __init__(self, *, period_ms: int | None = None, origin_ms: int | None = 0, count: int | None = None) -> None:
        self.period_ms = period_ms
        self.origin_ms = origin_ms
        self.count = count
        self.pending = Delta()
        self.arrived = 0
        self.point_ms: int | None = None

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.pending = net((self.pending, delta))
        if self.period_ms is not None:
            if self.origin_ms is None:
                self.origin_ms = now
            if self.point_ms is None:
                # An arrival exactly at an update point belongs to that point's lot.
                self.point_ms = now + (self.origin_ms - now) % self.period_ms
            return []
        self.arrived += len(delta.inserted)
        if self.count is None or self.arrived < self.count:
            return []
        self.arrived = 0
        return self._release()

    def _release(self) -> list[Delta]:
        out, self.pending = self.pending, Delta()
        return [out] if out.inserted or out.removed else []

    def next_deadline(self) -> int | None:
        return None if self.point_ms is None else self.point_ms + 1

    def advance(self, now: int) -> list[Delta]:
        if self.point_ms is None or now <= self.point_ms:
            return []
        self.point_ms = None
        return self._release()

    def held(self) -> Iterable[Event]:
        yield from self.pending.inserted
        yield from self.pending.removed

    def is_blank(self) -> bool:
        return self.point_ms is None and not self.arrived

    def snapshot(self) -> Any:
        return {
            "inserted": [event.seq for event in self.pending.inserted],
            "removed": [event.seq for event in self.pending.removed],
            "arrived": self.arrived,
            "point": self.point_ms,
            "origin": self.origin_ms,
        }

    def restore(self, state: Any, find: FindEvent) -> None:
        self.pending = Delta([find(seq) for seq in state["inserted"]], [find(seq) for seq in state["removed"]])
        self.arrived = state["arrived"]
        self.point_ms = state["point"]
        self.origin_ms = state["origin"]


class Latest(Operator):
    """`with unique k`: of the items the window shows only the newest per key counts; the older keep their places."""

    departure = Removal.ANY

    def __init__(self, key: Callable[[Event], Hashable]) -> None:
        self.key = key
        self.visible: dict[Hashable, Event] = {}

    def push(self, delta: Delta, now: int) -> list[Delta]:
        removed: list[Event] = []
        for event in delta.inserted:
            key = self.key(event)
            hidden = self.visible.pop(key, None)
            if hidden is not None:
                removed.append(hidden)
            self.visible[key] = event
        for event in delta.removed:
            key = self.key(event)
            if self.visible.get(key) is event:
                del self.visible[key]
                removed.append(event)
        out = net((Delta(delta.inserted, removed),))
        return [out] if out.inserted or out.removed else []

    def content(self) -> Iterable[Event]:
        return self.visible.values()

    def is_blank(self) -> bool:
        return not self.visible

    def snapshot(self) -> Any:
        return [event.seq for event in self.visible.values()]

    def restore(self, state: Any, find: FindEvent) -> None:
        self.visible = {self.key(event): event for event in map(find, state)}
