"""Retention by the events' own time (ext_timed): the arriving event is the clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.algebra.retain.queues import Queue
from sql.calendar.period import Period
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.errors import DataError
from sql.plan.bound import Bound


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
