"""Retention in order of arrival: what leaves is always the oldest.

length(3)        a   b   c   d          time(4 s)   a       b
                 |---a-------|                      |---a---|        leaves at arrival + 4 s,
                     |---b---- …                            |---b--- before the events of that instant
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from sql.aggregates.base import Removal
from sql.algebra.content_view import ContentView
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.retain.values import ABSENT, pack_value, unpack_value
from sql.calendar.period import Period
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.errors import CorruptState
from sql.types import Plain, Saved


class Held(Collection[Event]):
    """A queue from whose middle events are taken: what a `deque` does, and `discard` in O(1)."""

    __slots__ = ("_events",)

    def __init__(self, events: Iterable[Event] = ()) -> None:
        # An OrderedDict keeps both ends O(1) even after many removals from the front; a plain dict does not.
        self._events: OrderedDict[Event, None] = OrderedDict.fromkeys(events)

    def append(self, event: Event) -> None:
        self._events[event] = None

    def popleft(self) -> Event:
        return self._events.popitem(last=False)[0]

    def discard(self, event: Event) -> bool:
        """Take the event out; whether it was there."""
        return self._events.pop(event, self) is None

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


QueueState: TypeAlias = "list[Any] | dict[str, Any]"
"""The numbers of the events; of values a dictionary."""


class Queue(Policy):
    """Base: events in order of arrival; the subclass decides when the oldest leave.

    Where no one reads an event again, it keeps of each only what it contributed to the aggregates: the
    event's row is freed at once.
    """

    is_queue = True
    keeps_values = False
    """True if `events` has what each event contributed; when is known of all values of one push together.
    Set before the first event."""
    window = "window"
    """The name of the queue in the text."""

    mark = ""
    """The suffix of other names in the text, where several windows share one loop."""

    loads: tuple[str, ...] = ()
    """The attributes that its statements read, as locals of these names."""

    refusal = ""
    """The text of the condition on which an event is refused; empty: `admits` is called."""

    def __init__(self) -> None:
        self.events: deque[Event] | Held = deque()

    def hold(self, events: deque[Event] | Held) -> None:
        """Have these events from now on."""
        self.events = events

    def insert(self, event: Event, now: int) -> list[Event]:
        self.events.append(event)
        if self.keeps_values:
            self.came(1, now)
        return self.evict(event)

    def came(self, count: int, now: int) -> None:  # only time lets go of some
        """So many values have come at `now`."""

    def evict(self, event: Event) -> list[Event]:
        """The events that leave because the event has been appended."""
        return []

    def discard(self, event: Event) -> bool:
        if isinstance(self.events, deque):
            if self.events and self.events[0] is event:
                self.events.popleft()
                return True
            # Once one has been taken out of the middle, others are.
            self.hold(Held(self.events))
        assert isinstance(self.events, Held)
        return self.events.discard(event)

    def content(self) -> Iterable[Event]:
        return self.events

    def view_from(self, event: Event) -> ContentView:
        return ContentView(self.events)

    def is_blank(self) -> bool:
        return not self.events

    def pack(self, item: Any) -> Plain:
        """An event of the queue, or a value, as plain data."""
        return pack_value(item) if self.keeps_values else item.seq

    def unpack(self, packed: Plain, find: FindEvent) -> Any:
        """The event or value behind plain data of `pack`."""
        return find(packed) if isinstance(packed, int) and not self.keeps_values else unpack_value(packed)

    def snapshot(self) -> Saved:
        items = [self.pack(item) for item in self.events]
        return {"values": items} if self.keeps_values else items

    def restore(self, state: Saved, find: FindEvent) -> None:
        if self.keeps_values and isinstance(state, list):  # stored by a version that kept the events
            for event in map(find, state):
                self.events.append(ABSENT if event.group is None else event.values)
                self.came(1, event.time_ms)
            return
        if isinstance(state, dict) and not self.keeps_values:
            raise CorruptState("a version that could not read them again kept events as values")
        packed = state["values"] if isinstance(state, dict) else state
        self.events = deque(self.unpack(item, find) for item in packed)

    @property
    def needs_event(self) -> bool:
        return self.refuses and not self.refusal and type(self).write_prepare is Queue.write_prepare

    @property
    def _calls_evict(self) -> bool:
        return type(self).evict is not Queue.evict and type(self).write_evict is Queue.write_evict

    def write_load(self, source: SourceWriter, place: str) -> None:
        source.line(f"{self.window} = {place}.events")
        if self.keeps_values and self.has_timers:
            source.line("held = len(window)")
        if self.needs_event:
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

    def write_end(self, source: SourceWriter, place: str) -> None:
        if self.keeps_values and self.has_timers:
            with source.block("if len(window) > held:"):
                source.line(f"{place}.came(len(window) - held, now)")


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
        self.arrivals: deque[tuple[int, int]] = deque()
        """Of values: instants, and how many came at each."""

    def came(self, count: int, now: int) -> None:
        self.arrivals.append((now, count))

    def restore(self, state: QueueState, find: FindEvent) -> None:
        if isinstance(state, list) and state and isinstance(state[0], list):
            state = sorted(seq for _, part in state for seq in part)  # of a version with a queue per key
        super().restore(state, find)
        if isinstance(state, dict):
            self.arrivals.extend((at, count) for at, count in state["arrivals"])

    def snapshot(self) -> Saved:
        arrivals = {"arrivals": [list(arrival) for arrival in self.arrivals]}
        return super().snapshot() | arrivals if self.keeps_values else super().snapshot()

    def next_deadline(self) -> int | None:
        if not self.events:
            return None
        oldest_ms = self.arrivals[0][0] if self.keeps_values else self.events[0].time_ms
        return self.period.reaches(oldest_ms, self.zone)

    def expire(self, now: int) -> list[Event]:
        # Entry adds months, expiry subtracts them: on the 31st that is not the same.
        edge = self.period.subtract(now, self.zone)
        events, arrivals = self.events, self.arrivals
        out: list[Event] = []
        leave, pop = out.append, events.popleft
        while arrivals and arrivals[0][0] <= edge:
            for _ in range(arrivals.popleft()[1]):
                leave(pop())
        while not self.keeps_values and events and events[0].time_ms <= edge:
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
        self.newest_ms = 0
        """Of values: when the newest came."""

    def came(self, count: int, now: int) -> None:
        self.newest_ms = now

    def next_deadline(self) -> int | None:
        if not self.events:
            return None
        newest_ms = self.newest_ms if self.keeps_values else self.events[-1].time_ms
        return self.period.add(newest_ms, self.zone)

    def expire(self, now: int) -> list[Event]:
        deadline = self.next_deadline()
        if deadline is None or deadline > now:
            return []
        out = list(self.events)
        self.events.clear()
        return out

    def snapshot(self) -> Saved:
        return super().snapshot() | {"newest": self.newest_ms} if self.keeps_values else super().snapshot()

    def restore(self, state: QueueState, find: FindEvent) -> None:
        super().restore(state, find)
        if isinstance(state, dict):
            self.newest_ms = state["newest"]


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


READ_NO_EVENT = (Newest, Forever, Lifetime, Gap)
"""The windows that may keep values. A class that is derived from one of these reads events: they may leave it
in another way."""
