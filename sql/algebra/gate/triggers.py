"""Triggers: when a gate releases what it holds. One class per condition; a window names the one it needs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from zoneinfo import ZoneInfo

from sql.algebra.event import Event
from sql.algebra.gate.batch import Decision, Trigger
from sql.calendar.period import Period
from sql.types import Saved


class AfterCount(Trigger):
    """length_batch: at the n-th event."""

    surely_holds = "len(held) + 1 < trigger.size"

    def __init__(self, size: int) -> None:
        self.size = size

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        return "after" if len(held) + 1 >= self.size else "hold"


class EveryTrigger(Trigger):
    """time_batch: at the grid reference + k·d. Without a reference the first event ever sets it, for good.

    force     posts at empty grid points too, once the grid is known
    start_ms  the grid is known from the start (START_EAGER)
    """

    surely_holds = "trigger.due_ms is not None"

    def __init__(
        self,
        period: Period,
        zone: ZoneInfo,
        *,
        reference_ms: int | None = None,
        force: bool = False,
        start_ms: int | None = None,
    ) -> None:
        self.period = period
        self.zone = zone
        self.reference_ms = start_ms if reference_ms is None else reference_ms
        self.force = force or start_ms is not None
        self.due_ms = None if start_ms is None else self._next(start_ms)

    def _next(self, now: int) -> int:
        assert self.reference_ms is not None
        return self.period.next_after(now, self.reference_ms, self.zone)

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        if self.reference_ms is None:
            self.reference_ms = now
        if self.due_ms is None:
            self.due_ms = self._next(now)
        return "hold"

    def deadline(self) -> int | None:
        return self.due_ms

    def released(self, held: OrderedDict[Event, None], now: int) -> None:
        self.due_ms = self._next(now)

    def rest(self) -> None:
        if not self.force:
            self.due_ms = None

    def snapshot(self) -> Saved:
        return [self.reference_ms, self.due_ms]

    def restore(self, state: Saved) -> None:
        self.reference_ms, self.due_ms = state


class CountOrSince(Trigger):
    """time_length_batch: at n events, or d after the first event or the last release,
    whichever comes first."""

    surely_holds = "len(held) + 1 < trigger.size and trigger.due_ms is not None"

    def __init__(
        self, period: Period, zone: ZoneInfo, size: int, *, force: bool = False, start_ms: int | None = None
    ) -> None:
        self.period = period
        self.zone = zone
        self.size = size
        self.force = force or start_ms is not None
        self.due_ms = None if start_ms is None else period.add(start_ms, zone)

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        if self.due_ms is None:
            self.due_ms = self.period.add(now, self.zone)
        return "after" if len(held) + 1 >= self.size else "hold"

    def deadline(self) -> int | None:
        return self.due_ms

    def released(self, held: OrderedDict[Event, None], now: int) -> None:
        self.due_ms = self.period.add(now, self.zone)

    def rest(self) -> None:
        if not self.force:
            self.due_ms = None

    def snapshot(self) -> Saved:
        return self.due_ms

    def restore(self, state: Saved) -> None:
        self.due_ms = state


class DataBoundary(Trigger):
    """ext_timed_batch: when an event's own time reaches the boundary after the batch's first event; it starts
    the next."""

    def __init__(
        self,
        timestamp: Callable[[Event], int | None],
        period: Period,
        zone: ZoneInfo,
        reference_ms: int | None,
    ) -> None:
        self.timestamp = timestamp
        self.period = period
        self.zone = zone
        self.reference_ms = reference_ms

    def admits(self, event: Event, now: int) -> bool:
        clock = self.timestamp(event)
        if clock is not None:
            self._boundary_after(clock, clock if self.reference_ms is None else self.reference_ms)
        return True

    def _boundary_after(self, first: int, reference_ms: int) -> int:
        """When the batch that begins with an event of that time ends."""
        return self.period.next_after(first, reference_ms, self.zone)

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        clock = self.timestamp(event)
        if clock is None:
            return "hold"
        if self.reference_ms is None:
            self.reference_ms = clock
        first = next(iter(held), None)
        if first is None:
            return "hold"
        boundary = self._boundary_after(self.timestamp(first) or 0, self.reference_ms)
        return "before" if clock >= boundary else "hold"

    def snapshot(self) -> Saved:
        return self.reference_ms

    def restore(self, state: Saved) -> None:
        self.reference_ms = state
