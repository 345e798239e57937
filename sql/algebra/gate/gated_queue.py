"""A queue with a gate behind it: `within d every p`, `retain n every m` of stream queries.

    within 1.5 every 1.0     10@0.5 enters at the update point 1.0, and leaves at the first one >= 0.5 + 1.5

The queue runs on while the gate holds its changes. An update point's lot closes with its instant, after the
arrivals of that instant.

    window    r r r r r | h h h        r: released, h: held until the next release
    leaving   r r                      released, gone since: they leave with the next release

Events leave a queue in the order in which they came, so two numbers say what the gate holds:
`shown`, how many events the last release showed, and how many of them are `leaving`.
An event that comes and goes between two releases is never seen.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

from sql.aggregates.base import Removal
from sql.algebra.content_view import ContentView
from sql.algebra.event import Delta, Event
from sql.algebra.gate.gate import Gated
from sql.algebra.operator import FindEvent
from sql.algebra.retain.queues import Queue
from sql.codegen.source import SourceWriter
from sql.errors import CorruptState
from sql.types import Saved


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
        return instant + ((self.origin_ms or 0) - instant) % self.period_ms

    def snapshot(self) -> dict[str, Any]:
        return {"point": self.next_ms, "origin": self.origin_ms}

    def restore(self, state: dict[str, Any]) -> None:
        self.next_ms, self.origin_ms = state["point"], state["origin"]


QueueState = tuple[Saved, dict[str, Any]]
"""The state of the queue; what is held back, and the marks of the gate."""


class GatedQueue(Gated):
    """Base: the subclass decides when the gate releases. A queue that refuses events is called with each."""

    departure = Removal.FIFO
    is_net = True

    def __init__(self, line: Queue) -> None:
        self.line = line
        self.keeps_values = line.keeps_values
        self.is_written = not line.refuses
        self.shown = 0
        self.leaving: list[Event] = []

    def enter(self, event: Event, now: int) -> bool:
        left = self.line.enter(event, now)
        if left is None:
            return False
        self.left(left)
        return True

    def left(self, events: Sequence[Event]) -> None:
        self.leaving += events[: self.shown - len(self.leaving)]

    def release(self) -> list[Delta]:
        """Show the queue as it is."""
        events, left = self.line.events, self.leaving
        came = list(islice(reversed(events), self.held_back))
        came.reverse()
        if not came and not left:
            return []
        self.shown, self.leaving = len(events), []
        return [Delta(came, left)]

    @property
    def held_back(self) -> int:
        """The number of events in the queue that have not been released."""
        return len(self.line.events) - self.shown + len(self.leaving)

    def content(self) -> Iterable[Event]:
        return chain(self.leaving, islice(self.line.events, self.shown - len(self.leaving)))

    def held(self) -> Iterable[Event]:
        return chain(self.leaving, self.line.events)

    def view_from(self, event: Event) -> ContentView:
        return self.line.view_from(event)

    def is_blank(self) -> bool:
        return not self.line.events and not self.leaving

    # --- in the loop ----------------------------------------------------------------------------------------

    def write_load(self, source: SourceWriter) -> None:
        if not self.is_written:
            return
        self.line.write_load(source, "operator.line")
        if self.line.leaves_on_arrival:
            source.line("leaving, shown = operator.leaving, operator.shown")

    def write_enter(self, source: SourceWriter) -> None:
        def leave() -> None:
            with source.block("if len(leaving) < shown:"):
                source.line("leaving.append(y)")

        self.line.write_enter(source, leave)

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> QueueState:
        held, pack = islice(self.line.events, self.shown - len(self.leaving), None), self.line.pack
        gate = {
            "inserted": [pack(event) for event in held],
            "removed": [pack(event) for event in self.leaving],
        }
        return self.line.snapshot(), gate | self.marks()

    @abstractmethod
    def marks(self) -> dict[str, Any]:
        """The state that decides on the next release, as plain data."""

    def restore(self, state: QueueState, find: FindEvent) -> None:
        line, gate = state
        if self.keeps_values and isinstance(line, list):
            raise CorruptState("it holds events that an older version had not evaluated yet")
        self.line.restore(line, find)
        self.leaving = [self.line.unpack(packed, find) for packed in gate["removed"]]
        self.shown = len(self.line.events) - len(gate["inserted"]) + len(self.leaving)


class PeriodicQueue(GatedQueue):
    """Releases at update points alone. What is due to leave does so when events come,
    or at an update point."""

    def __init__(self, line: Queue, points: UpdatePoints) -> None:
        super().__init__(line)
        self.points = points
        self.releases_on_arrival = line.refuses
        self.has_end = self.is_written

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.expire(now)
        for event in delta.inserted:
            self.enter(event, now)
        self.entered(now)
        return []

    def expire(self, now: int) -> None:
        """Remove the events that are due by then from the queue."""
        self.left(self.line.expire(now))

    def entered(self, now: int) -> None:
        """Events have come, perhaps: the next update point shows them."""
        if self.held_back:
            self.points.note(now)

    def next_deadline(self) -> int | None:
        point = self.points.next_ms
        if point is None:
            expiry = self.line.next_deadline()
            if expiry is None:
                return None
            point = self.points.at_or_after(expiry)
        return point + 1

    def advance(self, now: int) -> list[Delta]:
        due = self.next_deadline()
        if due is None or due > now:
            return []
        # The point's own instant is over, and nothing that leaves after it belongs to its lot.
        self.expire(now - 1)
        self.points.next_ms = None
        return self.release()

    def is_blank(self) -> bool:
        return super().is_blank() and self.points.next_ms is None

    def write_load(self, source: SourceWriter) -> None:
        if self.is_written:
            source.line("operator.expire(now)")
        super().write_load(source)

    def write_hold(self, source: SourceWriter) -> None:
        if self.is_written:
            self.write_enter(source)

    def write_end(self, source: SourceWriter) -> None:
        self.line.write_end(source, "operator.line")
        source.line("operator.entered(now)")

    def marks(self) -> dict[str, Any]:
        return self.points.snapshot()

    def restore(self, state: QueueState, find: FindEvent) -> None:
        super().restore(state, find)
        self.points.restore(state[1])


class CountedQueue(GatedQueue):
    """Releases with every so many arrivals. What leaves by time does so with the next release."""

    def __init__(self, line: Queue, count: int) -> None:
        super().__init__(line)
        self.count = count
        self.arrived = 0

    def push(self, delta: Delta, now: int) -> list[Delta]:
        posts: list[Delta] = []
        for event in delta.inserted:
            self.arrived += self.enter(event, now)
            if self.arrived >= self.count:
                self.arrived = 0
                posts += self.release()
        return posts

    def next_deadline(self) -> int | None:
        return self.line.next_deadline()

    def advance(self, now: int) -> list[Delta]:
        self.left(self.line.expire(now))
        return []

    def is_blank(self) -> bool:
        return super().is_blank() and not self.arrived

    def write_hold(self, source: SourceWriter) -> None:
        if not self.is_written:
            return
        with source.block("if operator.arrived + 1 < operator.count:"):
            source.line("operator.arrived += 1")
            self.write_enter(source)
            source.line("continue")

    def marks(self) -> dict[str, Any]:
        return {"arrived": self.arrived}

    def restore(self, state: QueueState, find: FindEvent) -> None:
        super().restore(state, find)
        self.arrived = state[1]["arrived"]
