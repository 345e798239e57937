"""Retention in order of arrival: what leaves is always the oldest.

length(3)        a   b   c   d          time(4 s)   a       b
                 |---a-------|                      |---a---|        leaves at arrival + 4 s,
                     |---b---- …                            |---b--- before the events of that instant
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.retain.values import GapValues, LifetimeValues, NewestValues, ValueQueue
from sql.algebra.sight import Sight
from sql.calendar.period import Period
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.errors import DataError
from sql.plan.bound import Bound
from sql.types import Saved


class Held(Collection[Event]):
    """A queue from whose middle events may be taken: what a `deque` does, and `remove` in O(1)."""

    __slots__ = ("_events",)

    def __init__(self, events: Iterable[Event] = ()) -> None:
        # An OrderedDict keeps both ends O(1) even after many removals from the front; a plain dict does not.
        self._events: OrderedDict[Event, None] = OrderedDict.fromkeys(events)

    def append(self, event: Event) -> None:
        self._events[event] = None

    def popleft(self) -> Event:
        return self._events.popitem(last=False)[0]

    def remove(self, event: Event) -> None:
        """Take the event out; ValueError if it is not there."""
        if self._events.pop(event, self) is self:
            raise ValueError("the event is not in the queue")

    def clear(self) -> None:
        self._events.clear()

    def __getitem__(self, place: int) -> Event:
        """The oldest (0) or the newest (-1)."""
        return next(iter(self._events) if place == 0 else reversed(self._events))

    def __contains__(self, event: object) -> bool:
        return event in self._events

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __reversed__(self) -> Iterator[Event]:
        return reversed(self._events)


class Queue(Policy):
    """Base: events in order of arrival; the subclass decides when the oldest leave."""

    is_queue = True
    queue: type[deque[Event]] | type[Held] = deque
    window = "window"
    """The name of the queue in the text."""

    mark = ""
    """The suffix of other names in the text, where several windows share one loop."""

    loads: tuple[str, ...] = ()
    """The attributes that its statements read, as locals of these names."""

    refusal = ""
    """The text of the condition on which an event is refused; empty: `admits` is called."""

    def __init__(self) -> None:
        self.events: deque[Event] | Held = self.queue()

    def allow_gaps(self) -> None:
        """Events will be taken out of the middle: use a queue in which that is cheap.
        Before the first event."""
        self.queue = Held
        self.events = Held()

    def insert(self, event: Event, now: int) -> list[Event]:
        self.events.append(event)
        return self.evict(event)

    def evict(self, event: Event) -> list[Event]:
        """The events that leave because the event has been appended."""
        return []

    def discard(self, event: Event) -> bool:
        try:
            self.events.remove(event)
        except ValueError:
            return False
        return True

    def content(self) -> Iterable[Event]:
        return self.events

    def sight(self, event: Event) -> Sight:
        return Sight(self.events)

    def is_blank(self) -> bool:
        return not self.events

    def pack(self, event: Event) -> int:
        """An event of the queue as plain data."""
        return event.seq

    def unpack(self, packed: int, find: FindEvent) -> Event:
        """The event that was packed."""
        return find(packed)

    def restore(self, state: list[int], find: FindEvent) -> None:
        self.events = self.queue(find(seq) for seq in state)

    @property
    def needs_event(self) -> bool:
        return self.refuses and not self.refusal and type(self).write_prepare is Queue.write_prepare

    @property
    def _calls_evict(self) -> bool:
        return type(self).evict is not Queue.evict and type(self).write_evict is Queue.write_evict

    def write_load(self, source: SourceWriter, place: str) -> None:
        source.line(f"{self.window} = {place}.events")
        if self.refuses and not self.refusal:
            source.line(f"admits{self.mark} = {place}.admits")
        if self._calls_evict:
            source.line(f"evict{self.mark} = {place}.evict")
        for name in self.loads:
            source.line(f"{name}{self.mark} = {place}.{name}")

    def write_prepare(self, loop: LoopWriter) -> None:
        if self.refuses:
            refused = self.refusal.format(window=self.window, mark=self.mark)
            with loop.source.block(f"if {refused or f'not admits{self.mark}(x, now)'}:"):
                loop.line("continue")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line(f"{self.window}.append(x)")
        self.write_evict(source, leave)

    def write_evict(self, source: SourceWriter, leave: WriteLeaving) -> None:
        """Write `evict` into the loop: a call, unless the window has statements for it."""
        if self._calls_evict:
            with source.block(f"for y in evict{self.mark}(x):"):
                leave()


class Newest(Queue):
    """length(n), lastevent: the newest n stay."""

    loads = ("size",)

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def evict(self, event: Event) -> list[Event]:
        return [self.events.popleft()] if len(self.events) > self.size else []

    def write_evict(self, source: SourceWriter, leave: WriteLeaving) -> None:
        with source.block(f"if len({self.window}) > size{self.mark}:"):
            source.line(f"y = {self.window}.popleft()")
            leave()


class Forever(Queue):
    """keepall: nothing leaves."""

    departure = Removal.NEVER
    leaves_on_arrival = False


class Lifetime(Queue):
    """time(d): an event that arrives at a lives during [a, a + d).

    One queue serves groupwin(k, time(d)) under `group by k` too, with `departure` ANY: age depends on no key.
    """

    has_timers = defers = True
    leaves_on_arrival = False

    def __init__(self, period: Period, zone: ZoneInfo, departure: Removal = Removal.FIFO) -> None:
        super().__init__()
        self.period = period
        self.zone = zone
        self.departure = departure

    def restore(self, state: Saved, find: FindEvent) -> None:
        is_by_key = bool(state) and isinstance(state[0], list)  # stored by a version with a queue per key
        super().restore(sorted(seq for _, part in state for seq in part) if is_by_key else state, find)

    def next_deadline(self) -> int | None:
        return self.period.reaches(self.events[0].time_ms, self.zone) if self.events else None

    def expire(self, now: int) -> list[Event]:
        # Entry adds months, expiry subtracts them: on the 31st that is not the same.
        edge = self.period.subtract(now, self.zone)
        events = self.events
        out: list[Event] = []
        leave, pop = out.append, events.popleft
        while events and events[0].time_ms <= edge:
            leave(pop())
        return out


class Gap(Queue):
    """time_accum(d): all leave together once nothing has arrived for d."""

    has_timers = defers = True
    leaves_on_arrival = False

    def __init__(self, period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.period = period
        self.zone = zone

    def next_deadline(self) -> int | None:
        return self.period.add(self.events[-1].time_ms, self.zone) if self.events else None

    def expire(self, now: int) -> list[Event]:
        deadline = self.next_deadline()
        if deadline is None or deadline > now:
            return []
        out = list(self.events)
        self.events.clear()
        return out


class DataClock(Queue):
    """ext_timed(ts, d): the arriving event's own time is the clock; older ones leave from the head.

    node, stamp  an event's own time in ms, as bound expression and as function that refuses what is no time
    """

    def __init__(self, node: Bound, stamp: Callable[[Event], Any], period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.node = node
        self.stamp = stamp
        self.period = period
        self.zone = zone

    def admits(self, event: Event, now: int) -> bool:
        self.stamp(event)
        return True

    def lone(self) -> Policy:
        return self if self.period.is_calendar else Stamped(self.node, self.stamp, self.period.millis)

    def evict(self, event: Event) -> list[Event]:
        clock, out = self.stamp(event), []
        if clock is not None and clock != -1:
            edge = self.period.subtract(clock, self.zone)
            while (self.stamp(self.events[0]) or 0) <= edge:
                out.append(self.events.popleft())
        return out


class Stamped(Queue):
    """ext_timed(ts, d) alone, d a fixed number of ms: the events' own times are kept beside them."""

    loads = ("stamps", "length_ms")

    def __init__(self, node: Bound, stamp: Callable[[Event], Any], length_ms: int) -> None:
        super().__init__()
        self.node = node
        self.stamp = stamp
        self.length_ms = length_ms
        self.stamps: deque[int | float] = deque()

    def insert(self, event: Event, now: int) -> list[Event]:
        clock = self.stamp(event)
        self.events.append(event)
        self.stamps.append(clock or 0)
        out = []
        if clock is not None and clock != -1:
            while self.stamps[0] <= clock - self.length_ms:
                self.stamps.popleft()
                out.append(self.events.popleft())
        return out

    def write_prepare(self, loop: LoopWriter) -> None:
        loop.line(f"stamp = {loop.value(self.node)}", self.node.span)
        with loop.source.block("if stamp.__class__ is not int and stamp is not None:"):
            name = loop.expressions.names.bind(check_stamp, "check_stamp")
            loop.source.line(f"{name}(stamp)", self.node.span)

    def write_evict(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("stamps.append(stamp or 0)")
        with source.block("if stamp is not None and stamp != -1:"):
            source.line("edge = stamp - length_ms")
            with source.block("while stamps[0] <= edge:"):
                source.line("stamps.popleft()")
                source.line(f"y = {self.window}.popleft()")
                leave()

    def restore(self, state: list[int], find: FindEvent) -> None:
        super().restore(state, find)
        self.stamps = deque(self.stamp(event) or 0 for event in self.events)


def check_stamp(value: object) -> None:
    """Refuse a time stamp that is no finite number."""
    if value.__class__ is not int and (value.__class__ is not float or not isfinite(value)):
        raise DataError(f"a time stamp is a number of milliseconds, not {value!r}")


class FirstCount(Queue):
    """firstlength: the first n, for good."""

    departure = Removal.NEVER
    leaves_on_arrival = False
    loads = ("size",)
    refusal = "len({window}) >= size{mark}"

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def admits(self, event: Event, now: int) -> bool:
        return len(self.events) < self.size


class FirstUntil(Queue):
    """firsttime: what arrives before start + d; never reopens."""

    departure = Removal.NEVER
    leaves_on_arrival = False
    loads = ("end_ms",)
    refusal = "now >= end_ms{mark}"

    def __init__(self, end_ms: int) -> None:
        super().__init__()
        self.end_ms = end_ms

    def admits(self, event: Event, now: int) -> bool:
        return now < self.end_ms

    def is_blank(self) -> bool:
        return False

    def snapshot(self) -> dict[str, Any]:
        return {"end_ms": self.end_ms, "events": super().snapshot()}

    def restore(self, state: Saved, find: FindEvent) -> None:
        self.end_ms = state["end_ms"]
        super().restore(state["events"], find)


def of_values(window: Policy) -> Policy | None:
    """The same window, empty, of what events contribute in the place of the events;
    None where it reads the events. A class that is derived from one of these reads them:
    events may leave it in another way."""
    if type(window) is Newest:
        return NewestValues(window.size)
    if type(window) is Forever:
        return ValueQueue()
    if type(window) is Lifetime:
        return LifetimeValues(window.period, window.zone)
    if type(window) is Gap:
        return GapValues(window.period, window.zone)
    return None
