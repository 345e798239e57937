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
    """

    loads: tuple[str, ...] = ("read", "edge")

    def __init__(
        self,
        node: Bound,
        read: Callable[[Event], Any],
        stamp: Callable[[Event], Any],
        period: Period,
        zone: ZoneInfo,
    ) -> None:
        super().__init__()
        self.node = node
        self.read = read
        self.stamp = stamp
        self.period = period
        self.zone = zone

    def edge(self, clock: int) -> int:
        """The time of events that leave when the clock shows this one, or before it."""
        return self.period.subtract(clock, self.zone)

    def admits(self, event: Event, now: int) -> bool:
        self.stamp(event)
        return True

    def evict(self, event: Event) -> list[Event]:
        clock, out = self.stamp(event), []
        if clock is not None and clock != -1:
            edge = self.edge(clock)
            while (self.read(self.events[0]) or 0) <= edge:
                out.append(self.events.popleft())
        return out

    def write_prepare(self, loop: LoopWriter) -> None:
        clock = f"clock{self.mark}"
        loop.line(f"{clock} = {loop.value(self.node)}", self.node.span)
        with loop.source.block(f"if {clock}.__class__ is not int and {clock} is not None:"):
            name = loop.expressions.names.bind(check_stamp, "check_stamp")
            loop.source.line(f"{name}({clock})", self.node.span)

    def write_evict(self, source: SourceWriter, leave: WriteLeaving) -> None:
        clock, mark = f"clock{self.mark}", self.mark
        with source.block(f"if {clock} is not None and {clock} != -1:"):
            edge = f"edge{mark}({clock})" if self.period.is_calendar else f"{clock} - {self.period.millis}"
            source.line(f"oldest{mark} = {edge}")
            with source.block(f"while (read{mark}({self.window}[0]) or 0) <= oldest{mark}:"):
                source.line(f"y = {self.window}.popleft()")
                leave()


class StampedClock(DataClock):
    """ext_timed by the clock or a variable: each event keeps the time stamp that it came with."""

    loads = ()
    write_prepare = Queue.write_prepare
    write_evict = Queue.write_evict

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.stamps = Stamps(self.stamp)

    def evict(self, event: Event) -> list[Event]:
        clock, out = self.stamps.note(event), []
        if clock is not None and clock != -1:
            edge = self.edge(clock)
            while (self.stamps.of(self.events[0]) or 0) <= edge:
                out.append(self.events.popleft())
                self.stamps.forget(out[-1])
        return out

    def discard(self, event: Event) -> bool:
        self.stamps.forget(event)
        return super().discard(event)

    def snapshot(self) -> Saved:
        return {"events": super().snapshot(), "stamps": self.stamps.snapshot()}

    def restore(self, state: Saved, find: FindEvent) -> None:
        is_stamped = isinstance(state, dict)
        super().restore(state["events"] if is_stamped else state, find)
        if is_stamped:
            self.stamps.restore(state["stamps"])
        else:  # saved by a version that evaluated them again
            for event in self.events:
                self.stamps.note(event)


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

    def restore(self, state: list[list[Any]]) -> None:
        self.kept = dict(map(tuple, state))


def check_stamp(value: object) -> None:
    """Refuse a time stamp that is no finite number."""
    if value.__class__ is not int and (value.__class__ is not float or not isfinite(value)):
        raise DataError(f"a time stamp is a number of milliseconds, not {describe(value)}")
