"""The two stages that make Apama's batched windows of the common policies: a gate
*behind* a Retain, and Latest.

         within 1.5 every 1.0     10@0.5 enters at the update point 1.0 and leaves at the first one >= 0.5 + 1.5

The retention runs on while the gate holds its deltas; `net` cancels an item that came and went in between, so
it never appears. An update point's lot closes with its instant, after the arrivals of that instant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.gate.gated import Gated
from sql.algebra.operator import Chain, FindEvent, Operator
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.retain.queues import Queue
from sql.algebra.sight import Sight
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter


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

    def __init__(
        self, *, period_ms: int | None = None, origin_ms: int | None = 0, count: int | None = None
    ) -> None:
        self.period_ms = period_ms
        self.origin_ms = origin_ms
        self.count = count
        self.entering: dict[Event, None] = {}
        self.leaving: dict[Event, None] = {}
        self.arrived = 0
        self.point_ms: int | None = None

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.entering.update(dict.fromkeys(delta.inserted))
        if self.entering.keys().isdisjoint(delta.removed):
            self.leaving.update(dict.fromkeys(delta.removed))
        else:
            for event in delta.removed:
                # What came and goes before the update point is never seen.
                if self.entering.pop(event, self) is self:
                    self.leaving[event] = None
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
        out = Delta(list(self.entering), list(self.leaving))
        self.entering, self.leaving = {}, {}
        return [out] if out.inserted or out.removed else []

    def next_deadline(self) -> int | None:
        return None if self.point_ms is None else self.point_ms + 1

    def advance(self, now: int) -> list[Delta]:
        if self.point_ms is None or now <= self.point_ms:
            return []
        self.point_ms = None
        return self._release()

    def held(self) -> Iterable[Event]:
        yield from self.entering
        yield from self.leaving

    def is_blank(self) -> bool:
        return self.point_ms is None and not self.arrived

    def snapshot(self) -> Any:
        return {
            "inserted": [event.seq for event in self.entering],
            "removed": [event.seq for event in self.leaving],
            "arrived": self.arrived,
            "point": self.point_ms,
            "origin": self.origin_ms,
        }

    def restore(self, state: Any, find: FindEvent) -> None:
        self.entering = dict.fromkeys(map(find, state["inserted"]))
        self.leaving = dict.fromkeys(map(find, state["removed"]))
        self.arrived = state["arrived"]
        self.point_ms = state["point"]
        self.origin_ms = state["origin"]


class GatedQueue(Chain, Gated):
    """A queue with a gate behind it, in a loop."""

    def __init__(self, line: Queue, hold: Hold) -> None:
        super().__init__(line, hold)
        self.line = line
        self.hold = hold

    def write_load(self, source: SourceWriter) -> None:
        source.line("hold = operator.hold")
        source.line("entering, leaving = hold.entering, hold.leaving")
        self.line.write_load(source, "operator.line")

    def write_hold(self, source: SourceWriter) -> None:
        holds = "hold.point_ms is not None" if self.hold.count is None else "hold.arrived + 1 < hold.count"
        with source.block(f"if {holds}:"):
            if self.hold.count is not None:
                source.line("hold.arrived += 1")
            source.line("entering[x] = None")
            self.line.write_enter(source, lambda: _write_leaving(source))
            source.line("continue")


def _write_leaving(source: SourceWriter) -> None:
    with source.block("if entering.pop(y, hold) is hold:"):
        source.line("leaving[y] = None")


class Latest(Operator):
    """`with unique k`: of the items the window shows only the newest per key counts; the
    older keep their places."""

    departure = Removal.ANY

    def __init__(self, nodes: Any, key: Callable[[Event], Hashable]) -> None:
        self.nodes = nodes
        self.key = key
        self.visible: dict[Hashable, Event] = {}

    def push(self, delta: Delta, now: int) -> list[Delta]:
        removed: list[Event] = []
        for event in delta.inserted:
            removed += self.show(event)
        for event in delta.removed:
            removed += self.hide(event)
        out = net((Delta(delta.inserted, removed),))
        return [out] if out.inserted or out.removed else []

    def show(self, event: Event) -> tuple[Event, ...]:
        """The item is the newest of its key; the one it hides, if any."""
        key = self.key(event)
        hidden = self.visible.pop(key, None)
        self.visible[key] = event
        return () if hidden is None else (hidden,)

    def hide(self, event: Event) -> tuple[Event, ...]:
        """The item leaves; itself, if it was visible."""
        key = self.key(event)
        if self.visible.get(key) is not event:
            return ()
        del self.visible[key]
        return (event,)

    def content(self) -> Iterable[Event]:
        return self.visible.values()

    def is_blank(self) -> bool:
        return not self.visible

    def snapshot(self) -> Any:
        return [event.seq for event in self.visible.values()]

    def restore(self, state: Any, find: FindEvent) -> None:
        self.visible = {self.key(event): event for event in map(find, state)}


class LatestOf(Policy):
    """A queue of which only the newest item per key counts."""

    departure = Removal.ANY

    def __init__(self, line: Policy, latest: Latest) -> None:
        self.line = line
        self.latest = latest
        self.has_timers = line.has_timers
        self.needs_event = line.needs_event

    def insert(self, event: Event, now: int) -> list[Event]:
        left = [*self.latest.show(event)]
        for gone in self.line.insert(event, now):
            left += self.latest.hide(gone)
        return left

    def write_load(self, source: SourceWriter, place: str) -> None:
        self.line.write_load(source, f"{place}.line")
        source.line(f"visible, hide = {place}.latest.visible, {place}.latest.hide")

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.key(self.latest.nodes, "unique")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("y = visible.pop(unique, None)")
        source.line("visible[unique] = x")
        with source.block("if y is not None:"):
            leave()

        def evicted() -> None:
            with source.block("if hide(y):"):
                leave()

        self.line.write_enter(source, evicted)

    def next_deadline(self) -> int | None:
        return self.line.next_deadline()

    def expire(self, now: int) -> list[Event]:
        return [event for gone in self.line.expire(now) for event in self.latest.hide(gone)]

    def discard(self, event: Event) -> bool:
        return self.line.discard(event) and bool(self.latest.hide(event))

    def content(self) -> Iterable[Event]:
        return self.latest.content()

    def held(self) -> Iterable[Event]:
        return self.line.content()

    def sight(self, event: Event) -> Sight:
        return self.line.sight(event)

    def is_blank(self) -> bool:
        return self.line.is_blank()

    def snapshot(self) -> Any:
        return [self.line.snapshot(), self.latest.snapshot()]

    def restore(self, state: Any, find: FindEvent) -> None:
        self.line.restore(state[0], find)
        self.latest.restore(state[1], find)
