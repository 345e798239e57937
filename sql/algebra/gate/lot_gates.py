"""The two stages that make Apama's batched windows of the common policies: a gate
*behind* a Retain, and UniqueLots.

         within 1.5 every 1.0     10@0.5 enters at the update point 1.0
                                  and leaves at the first one >= 0.5 + 1.5

The retention runs on while the gate holds its deltas; `net` cancels an item that came and went in between, so
it never appears. An update point's lot closes with its instant, after the arrivals of that instant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.operator import Chain, FindEvent, Operator
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.sight import Sight
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.types import Saved


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


class UpdatePoints:
    """The instants `origin + k * period`, and which of them is the next at which a gate releases."""

    def __init__(self, period_ms: int, origin_ms: int | None) -> None:
        """`origin_ms`: None: the first arrival."""
        self.period_ms = period_ms
        self.origin_ms = origin_ms
        self.next_ms: int | None = None

    def note(self, now: int) -> None:
        """Something is held; an arrival exactly at an update point belongs to that point's lot."""
        if self.origin_ms is None:
            self.origin_ms = now
        if self.next_ms is None:
            self.next_ms = self.at_or_after(now)

    def at_or_after(self, instant: int) -> int:
        """The first update point that is not before an instant."""
        return instant + ((self.origin_ms or 0) - instant) % self.period_ms

    def snapshot(self) -> dict[str, Any]:
        return {"point": self.next_ms, "origin": self.origin_ms}

    def restore(self, state: dict[str, Any]) -> None:
        self.next_ms, self.origin_ms = state["point"], state["origin"]


class Hold(Operator):
    """Gate(…, net): holds the deltas of a Retain. The subclass decides when it releases them."""

    departure = Removal.FIFO

    def __init__(self) -> None:
        self.entering: dict[Event, None] = {}
        self.leaving: dict[Event, None] = {}

    def take(self, delta: Delta) -> None:
        """Hold a delta."""
        self.entering.update(dict.fromkeys(delta.inserted))
        for event in delta.removed:
            # What comes and goes before the update point is never seen.
            if self.entering.pop(event, self) is self:
                self.leaving[event] = None

    def release(self) -> list[Delta]:
        """The held changes as one delta."""
        out = Delta(list(self.entering), list(self.leaving))
        self.entering, self.leaving = {}, {}
        return [out] if out.inserted or out.removed else []

    def held(self) -> Iterable[Event]:
        yield from self.entering
        yield from self.leaving

    def snapshot(self) -> Saved:
        return {
            "inserted": [event.seq for event in self.entering],
            "removed": [event.seq for event in self.leaving],
        }

    def restore(self, state: Saved, find: FindEvent) -> None:
        self.entering = dict.fromkeys(map(find, state["inserted"]))
        self.leaving = dict.fromkeys(map(find, state["removed"]))


class HoldUntil(Hold):
    """Gate(every period, net): releases at update points."""

    def __init__(self, points: UpdatePoints) -> None:
        super().__init__()
        self.points = points

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.take(delta)
        self.points.note(now)
        return []

    def next_deadline(self) -> int | None:
        return None if self.points.next_ms is None else self.points.next_ms + 1

    def advance(self, now: int) -> list[Delta]:
        if self.points.next_ms is None or now <= self.points.next_ms:
            return []
        self.points.next_ms = None
        return self.release()

    def is_blank(self) -> bool:
        return self.points.next_ms is None

    def snapshot(self) -> Saved:
        return super().snapshot() | self.points.snapshot()

    def restore(self, state: Saved, find: FindEvent) -> None:
        super().restore(state, find)
        self.points.restore(state)


class HeldBack(Chain):
    """A Retain and the gate behind it.
    What is due to leave after an update point does not belong to its lot."""

    def __init__(self, line: Operator, hold: HoldUntil) -> None:
        super().__init__(line, hold)
        self.line = line
        self.hold = hold

    def advance(self, now: int) -> list[Delta]:
        point = self.hold.points.next_ms
        if point is None or now <= point:
            return super().advance(now)
        for delta in self.line.advance(now - 1):
            self.hold.push(delta, now)
        return self.hold.advance(now)


class HoldCount(Hold):
    """Gate(count n, net): releases with every so many arrivals."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.arrived = 0

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.take(delta)
        self.arrived += len(delta.inserted)
        if self.arrived < self.count:
            return []
        self.arrived = 0
        return self.release()

    def is_blank(self) -> bool:
        return not self.arrived

    def snapshot(self) -> Saved:
        return super().snapshot() | {"arrived": self.arrived}

    def restore(self, state: Saved, find: FindEvent) -> None:
        super().restore(state, find)
        self.arrived = state["arrived"]


class UniqueLots(Operator):
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

    def snapshot(self) -> Saved:
        return [event.seq for event in self.visible.values()]

    def restore(self, state: Saved, find: FindEvent) -> None:
        self.visible = {self.key(event): event for event in map(find, state)}


class LatestOf(Policy):
    """A queue of which only the newest item per key counts."""

    departure = Removal.ANY

    def __init__(self, line: Policy, latest: UniqueLots) -> None:
        self.line = line
        self.latest = latest
        self.has_timers = line.has_timers

    @property
    def needs_event(self) -> bool:
        return self.line.needs_event

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

    def snapshot(self) -> Saved:
        return [self.line.snapshot(), self.latest.snapshot()]

    def restore(self, state: Saved, find: FindEvent) -> None:
        self.line.restore(state[0], find)
        self.latest.restore(state[1], find)
