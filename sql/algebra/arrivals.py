"""Single windows with inline statements: length, time, ext_timed, keepall, unique.

Each is an operator like any other; a statement with one window alone writes its entering and leaving into the loop.
`window` is its container in the text, `x` the event that enters, `y` one that leaves.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any
from zoneinfo import ZoneInfo

from sql.aggregates.base import Removal
from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent, Operator
from sql.algebra.sight import ByArrival, Nothing, Sight
from sql.algebra.state import pack_key, unpack_key
from sql.calendar.period import Period
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.errors import DataError

WriteLeaving = Callable[[], None]
"""Writes the statements for the event `y`, which leaves."""


class Inline(Operator):
    """An operator that can write itself into a loop."""

    has_timers = False
    leaves_on_arrival = True
    """Whether an event may leave in the step in which another enters."""

    def write_load(self, source: SourceWriter, place: str) -> None:
        """Before the loop: what the statements use; `place` is the text of the window."""
        source.line(f"window = {place}.events")

    def write_prepare(self, loop: LoopWriter) -> None:
        """What may fail, before anything changes."""

    @abstractmethod
    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        """The event `x` enters; whatever leaves because of it."""


class Line(Inline):
    """Events in order of arrival."""

    departure = Removal.FIFO

    def __init__(self) -> None:
        self.events: deque[Event] = deque()

    def content(self) -> Iterable[Event]:
        return self.events

    def sight(self, event: Event) -> Sight:
        return ByArrival(self.events)

    def is_blank(self) -> bool:
        return not self.events

    def snapshot(self) -> Any:
        return [event.seq for event in self.events]

    def restore(self, state: Any, find: FindEvent) -> None:
        self.events = deque(find(seq) for seq in state)


class Newest(Line):
    """length(n), lastevent: the newest n events."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.events.extend(delta.inserted)
        removed = [self.events.popleft() for _ in range(len(self.events) - self.size)]
        return [Delta(delta.inserted, removed)]

    def write_load(self, source: SourceWriter, place: str) -> None:
        super().write_load(source, place)
        source.line(f"size = {place}.size")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("window.append(x)")
        with source.block("if len(window) > size:"):
            source.line("y = window.popleft()")
            leave()


class Everything(Line):
    """keepall: nothing leaves."""

    departure = Removal.NEVER
    leaves_on_arrival = False

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.events.extend(delta.inserted)
        return [Delta(delta.inserted)]

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("window.append(x)")


class Recent(Line):
    """time(d): an event that arrives at a lives during [a, a + d)."""

    has_timers = True
    leaves_on_arrival = False

    def __init__(self, period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.period = period
        self.zone = zone

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.events.extend(delta.inserted)
        return [Delta(delta.inserted)]

    def next_deadline(self) -> int | None:
        return self.period.add(self.events[0].time_ms, self.zone) if self.events else None

    def advance(self, now: int) -> list[Delta]:
        # Entry adds months and expiry subtracts them; on the 31st that is not the same.
        edge = self.period.subtract(now, self.zone)
        events, removed = self.events, []
        while events and events[0].time_ms <= edge:
            removed.append(events.popleft())
        return [Delta((), removed)] if removed else []

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("window.append(x)")


class UntilGap(Line):
    """time_accum(d): all leave together once nothing has arrived for d."""

    has_timers = True
    leaves_on_arrival = False

    def __init__(self, period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.period = period
        self.zone = zone

    def push(self, delta: Delta, now: int) -> list[Delta]:
        self.events.extend(delta.inserted)
        return [Delta(delta.inserted)]

    def next_deadline(self) -> int | None:
        return self.period.add(self.events[-1].time_ms, self.zone) if self.events else None

    def advance(self, now: int) -> list[Delta]:
        deadline = self.next_deadline()
        if deadline is None or deadline > now:
            return []
        removed = list(self.events)
        self.events.clear()
        return [Delta((), removed)]

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("window.append(x)")


class RecentByData(Line):
    """ext_timed(ts, d): the arriving event's own time is the clock; older events leave from the head.

    stamp  an event's own time; d is a fixed number of ms
    """

    def __init__(self, node: Any, stamp: Callable[[Event], int | float | None], length_ms: int) -> None:
        super().__init__()
        self.node = node
        self.stamp = stamp
        self.length_ms = length_ms
        self.stamps: deque[int | float] = deque()

    def push(self, delta: Delta, now: int) -> list[Delta]:
        out = []
        for event in delta.inserted:
            clock = self.stamp(event)
            removed = []
            if clock is not None and clock != -1:
                while self.stamps and self.stamps[0] <= clock - self.length_ms:
                    self.stamps.popleft()
                    removed.append(self.events.popleft())
            self.events.append(event)
            self.stamps.append(clock or 0)
            out.append(Delta([event], removed))
        return out

    def write_load(self, source: SourceWriter, place: str) -> None:
        super().write_load(source, place)
        source.line(f"stamps = {place}.stamps")
        source.line(f"length_ms = {place}.length_ms")

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.line(f"stamp = {loop.value(self.node)}", self.node.span)
        with loop.source.block("if stamp.__class__ is not int and stamp is not None:"):
            name = loop.expressions.names.bind(check_stamp, "check_stamp")
            loop.source.line(f"{name}(stamp)", self.node.span)

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        with source.block("if stamp is not None and stamp != -1:"):
            source.line("edge = stamp - length_ms")
            with source.block("while stamps and stamps[0] <= edge:"):
                source.line("stamps.popleft()")
                source.line("y = window.popleft()")
                leave()
        source.line("window.append(x)")
        source.line("stamps.append(stamp or 0)")

    def restore(self, state: Any, find: FindEvent) -> None:
        super().restore(state, find)
        self.stamps = deque(self.stamp(event) or 0 for event in self.events)


def check_stamp(value: Any) -> None:
    """Refuse a time stamp that is no finite number."""
    from math import isfinite

    from sql.errors import DataError

    if value.__class__ is not float or not isfinite(value):
        raise DataError(f"a time stamp is a number of milliseconds, not {value!r}")


class NewestPerKey(Inline):
    """unique(k, …): the newest event of each key."""

    departure = Removal.ANY

    def __init__(self, nodes: Any, key: Callable[[Event], Hashable]) -> None:
        self.nodes = nodes
        self.key = key
        self.events: dict[Hashable, Event] = {}

    def push(self, delta: Delta, now: int) -> list[Delta]:
        out = []
        for event in delta.inserted:
            key = self.key(event)
            replaced = self.events.pop(key, None)
            self.events[key] = event
            out.append(Delta([event], [] if replaced is None else [replaced]))
        return out

    def content(self) -> Iterable[Event]:
        return self.events.values()

    def sight(self, event: Event) -> Sight:
        return ByArrival(self.events.values())

    def is_blank(self) -> bool:
        return not self.events

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.key(self.nodes, "unique")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("y = window.pop(unique, None)")
        source.line("window[unique] = x")
        with source.block("if y is not None:"):
            leave()

    def snapshot(self) -> Any:
        return [event.seq for event in self.events.values()]

    def restore(self, state: Any, find: FindEvent) -> None:
        self.events = {self.key(event): event for event in map(find, state)}


class PerKey(Inline):
    """groupwin(k, …): one window per key. Each posts updates of its own; empty ones are dropped.

    make  makes the window of one more key; all are of one kind
    """

    departure = Removal.ANY

    def __init__(self, nodes: Any, key: Callable[[Event], Hashable], make: Callable[[], Line], keys_max: int) -> None:
        self.nodes = nodes
        self.key = key
        self.make = make
        self.keys_max = keys_max
        self.template = make()
        self.has_timers = self.template.has_timers
        self.leaves_on_arrival = self.template.leaves_on_arrival
        self.instances: dict[Hashable, Line] = {}
        self.arrivals: deque[tuple[Event, Hashable]] = deque()
        """In order, where time lets events leave: what has left another way is skipped."""

    def open(self, key: Hashable) -> Line:
        """The window of a new key; DataError where there are too many."""
        if len(self.instances) >= self.keys_max:
            self._drop_empty()
        if len(self.instances) >= self.keys_max:
            raise DataError(f"more than {self.keys_max} keys of groupwin; raise maxGroups or reclaim idle ones")
        window = self.instances[key] = self.make()
        return window

    def _drop_empty(self) -> None:
        self.instances = {key: window for key, window in self.instances.items() if window.events}

    def push(self, delta: Delta, now: int) -> list[Delta]:
        out = []
        for event in delta.inserted:
            key = self.key(event)
            window = self.instances.get(key) or self.open(key)
            if self.has_timers:
                self.arrivals.append((event, key))
            out += window.push(Delta((event,)), now)
        return out

    # --- in the loop --------------------------------------------------------------------------------------------------

    def write_load(self, source: SourceWriter, place: str) -> None:
        self.template.write_load(source, f"{place}.template")
        source.line(f"parts = {place}")
        if self.has_timers:
            source.line("arrivals = parts.arrivals")

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.key(self.nodes, "part")
        loop.line("window = parts.instances.get(part)")
        with loop.source.block("if window is None:"):
            loop.line("window = parts.open(part)")
        loop.line("window = window.events")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        if self.has_timers:
            source.line("arrivals.append((x, part))")
        self.template.write_enter(source, leave)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _oldest(self) -> tuple[Event, Hashable] | None:
        """The event that leaves next, and its key."""
        while self.arrivals:
            event, key = self.arrivals[0]
            window = self.instances.get(key)
            if window is not None and window.events and window.events[0].seq <= event.seq:
                return self.arrivals[0]
            self.arrivals.popleft()
        return None

    def next_deadline(self) -> int | None:
        oldest = self._oldest()
        return None if oldest is None else self.instances[oldest[1]].next_deadline()

    def advance(self, now: int) -> list[Delta]:
        """What leaves the window that is due first; the caller goes on while one is."""
        oldest = self._oldest()
        if oldest is None:
            return []
        key = oldest[1]
        window = self.instances[key]
        out = window.advance(now)
        if not window.events:
            del self.instances[key]
        return out

    # --- content and state --------------------------------------------------------------------------------------------

    def content(self) -> Iterable[Event]:
        return (event for window in self.instances.values() for event in window.content())

    def sight(self, event: Event) -> Sight:
        window = self.instances.get(self.key(event))
        return Nothing() if window is None else window.sight(event)

    def is_blank(self) -> bool:
        return not any(window.events for window in self.instances.values())

    def snapshot(self) -> Any:
        return [[pack_key(key), window.snapshot()] for key, window in self.instances.items()]

    def restore(self, state: Any, find: FindEvent) -> None:
        for packed, part in state:
            key = unpack_key(packed)
            window = self.instances[key] = self.make()
            window.restore(part, find)
        if self.has_timers:
            held = [(event, key) for key, window in self.instances.items() for event in window.events]
            self.arrivals = deque(sorted(held, key=lambda entry: entry[0].seq))
