"""Retention by the events' own time (ext_timed): the arriving event is the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import WriteLeaving
from sql.algebra.retain.queues import Queue
from sql.calendar.period import Period
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.errors import DataError
from sql.plan.bound import Bound
from sql.types import Saved, describe


class DataClock(Queue):
    """ext_timed(ts, d): the arriving event's own time is the clock; older ones leave from the head.

    node   an event's own time in ms, as bound expression
    read   the same as function
    stamp  the same as function that refuses what is no time
    stamps what events came with, where it reads the clock or a variable: later it is another one
    """

    def __init__(
        self,
        node: Bound,
        read: Callable[[Event], Any],
        stamp: Callable[[Event], Any],
        period: Period,
        zone: ZoneInfo,
        *,
        lasts: bool,
    ) -> None:
        super().__init__()
        self.node = node
        self.read = read
        self.stamp = stamp
        self.period = period
        self.zone = zone
        self.stamps = None if lasts else Stamps(stamp)
        self.loads = ("read", "edge") if lasts else ("evict",)

    def edge(self, clock: int) -> int:
        """The time of events that leave when the clock shows this one, or before it."""
        return self.period.subtract(clock, self.zone)

    def admits(self, event: Event, now: int) -> bool:
        self.stamp(event)
        return True

    def evict(self, event: Event) -> list[Event]:
        stamps = self.stamps
        read, clock = (self.read, self.stamp(event)) if stamps is None else (stamps.of, stamps.note(event))
        out: list[Event] = []
        if clock is not None and clock != -1:
            edge = self.edge(clock)
            while (read(self.events[0]) or 0) <= edge:
                out.append(self.events.popleft())
        if stamps is not None:
            for gone in out:
                stamps.forget(gone)
        return out

    def discard(self, event: Event) -> bool:
        if self.stamps is not None:
            self.stamps.forget(event)
        return super().discard(event)

    def snapshot(self) -> Saved:
        events = super().snapshot()
        return events if self.stamps is None else {"events": events, "stamps": self.stamps.snapshot()}

    def restore(self, state: Saved, find: FindEvent) -> None:
        is_stamped = isinstance(state, dict)
        super().restore(state["events"] if is_stamped else state, find)
        if self.stamps is not None:
            self.stamps.restore(state["stamps"] if is_stamped else [], self.events)

    def write_prepare(self, loop: LoopWriter) -> None:
        clock = f"clock{self.mark}"
        loop.line(f"{clock} = {loop.value(self.node)}", self.node.span)
        with loop.source.block(f"if {clock}.__class__ is not int and {clock} is not None:"):
            name = loop.expressions.names.bind(check_stamp, "check_stamp")
            loop.source.line(f"{name}({clock})", self.node.span)

    def write_evict(self, source: SourceWriter, leave: WriteLeaving) -> None:
        clock, mark = f"clock{self.mark}", self.mark
        if self.stamps is not None:
            with source.block(f"for y in evict{mark}(x):"):
                leave()
            return
        with source.block(f"if {clock} is not None and {clock} != -1:"):
            edge = f"edge{mark}({clock})" if self.period.is_calendar else f"{clock} - {self.period.millis}"
            source.line(f"oldest{mark} = {edge}")
            with source.block(f"while (read{mark}({self.window}[0]) or 0) <= oldest{mark}:"):
                source.line(f"y = {self.window}.popleft()")
                leave()


class Stamps:
    """The time stamps of events as they came, by number."""

    def __init__(self, stamp: Callable[[Event], Any]) -> None:
        self.stamp = stamp
        self.kept: dict[int, Any] = {}

    def note(self, event: Event) -> Any:
        """The time stamp of an event that has come."""
        found = self.kept[event.seq] = self.stamp(event)
        return found

    def of(self, event: Event) -> Any:
        """The time stamp that the event came with."""
        return self.kept[event.seq]

    def forget(self, event: Event) -> None:
        """The event has left."""
        self.kept.pop(event.seq, None)

    def keep(self, events: Iterable[Event]) -> None:
        """All events but these have left."""
        self.kept = {event.seq: self.kept[event.seq] for event in events}

    def snapshot(self) -> list[list[Any]]:
        return [[seq, stamp] for seq, stamp in self.kept.items()]

    def restore(self, state: list[list[Any]], held: Iterable[Event]) -> None:
        """Put a snapshot back; events without a time stamp were saved by a version that kept none."""
        self.kept = dict(map(tuple, state))
        for event in held:
            if event.seq not in self.kept:
                self.note(event)


def check_stamp(value: object) -> None:
    """Refuse a time stamp that is no finite number."""
    if value.__class__ is not int and (value.__class__ is not float or not isfinite(value)):
        raise DataError(f"a time stamp is a number of milliseconds, not {describe(value)}")
