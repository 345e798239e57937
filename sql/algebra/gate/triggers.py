"""Triggers: when a batch is released. One class per condition; a window names the one it needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal
from zoneinfo import ZoneInfo

from sql.algebra.event import Event
from sql.algebra.retain.data_clock import Stamps
from sql.algebra.retain.predicate import Builtins, Predicate
from sql.algebra.stored import PLAIN, Stored
from sql.calendar.period import Period
from sql.codegen.functions import DATA_ERRORS
from sql.types import Saved

Decision = Literal["hold", "before", "after"]
"""On an arriving event: hold it, release without it (it starts the next batch), or release with it."""


class Trigger(Stored, ABC):
    """Decides when a gate releases."""

    @abstractmethod
    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        """The action for an arriving event; `held` does not contain it yet."""

    def admits(self, event: Event, now: int) -> bool:
        """Raise what `on_event` would raise of the event, so that no other window has it then."""
        return True

    surely_holds = ""
    """When an arriving event is held and nothing else changes: a condition in the text of a loop, over
    `trigger` and `held`. Empty: `on_event` must say."""

    force = False
    """True if an empty release is posted all the same."""

    def deadline(self) -> int | None:
        """When time alone releases next."""
        return None

    def released(self, held: OrderedDict[Event, None], now: int) -> None:
        """Called after each release; `held` is what the next batch begins with."""

    def rest(self) -> None:
        """Called when a release was empty, and so is what is held."""

    def depends_on(self, variable: str) -> bool:
        """True if a change of this variable may release."""
        return False

    def changed(self, held: OrderedDict[Event, None], now: int) -> bool:
        """Called when a variable the trigger depends on has changed, or an event was deleted: whether to
        release now."""
        return False

    def discarded(self, event: Event) -> None:
        """Called when an event left the forming batch silently."""

    def resumed(self, held: OrderedDict[Event, None]) -> None:
        """Called after a restore with the forming batch, for triggers that derive state from it."""


class AfterCount(Trigger):
    """length_batch: at the n-th event."""

    surely_holds = "len(held) + 1 < trigger.size"

    def __init__(self, size: int) -> None:
        self.size = size

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        return "after" if len(held) + 1 >= self.size else "hold"


class TimedTrigger(Trigger):
    """Base of triggers that time lets release.

    force     posts empty releases too, once the first one is due
    start_ms  what is due is known from the start (START_EAGER)
    """

    def __init__(self, period: Period, zone: ZoneInfo, *, force: bool, start_ms: int | None) -> None:
        self.period = period
        self.zone = zone
        self.force = force or start_ms is not None
        self.due_ms = None if start_ms is None else self.next_due(start_ms)

    @abstractmethod
    def next_due(self, now: int) -> int:
        """The next release, seen from now."""

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        if self.due_ms is None:
            self.due_ms = self.next_due(now)
        return "hold"

    def deadline(self) -> int | None:
        return self.due_ms

    def released(self, held: OrderedDict[Event, None], now: int) -> None:
        self.due_ms = self.next_due(now)

    def rest(self) -> None:
        if not self.force:
            self.due_ms = None


class EveryTrigger(TimedTrigger):
    """time_batch: at the grid reference + k·d. Without a reference the first event ever sets it, for good."""

    surely_holds = "trigger.due_ms is not None"
    stored = (("reference_ms", PLAIN), ("due_ms", PLAIN))

    def __init__(
        self, period: Period, zone: ZoneInfo, reference_ms: int | None, *, force: bool, start_ms: int | None
    ) -> None:
        self.reference_ms = reference_ms
        super().__init__(period, zone, force=force, start_ms=start_ms)

    def next_due(self, now: int) -> int:
        if self.reference_ms is None:
            self.reference_ms = now
        return self.period.next_after(now, self.reference_ms, self.zone)


class CountOrSince(TimedTrigger):
    """time_length_batch: at n events, or d after the last release, whichever comes first; after an
    empty release d after the first event."""

    surely_holds = "len(held) + 1 < trigger.size and trigger.due_ms is not None"
    stored = (("due_ms", PLAIN),)

    def __init__(
        self, period: Period, zone: ZoneInfo, size: int, *, force: bool, start_ms: int | None
    ) -> None:
        self.size = size
        super().__init__(period, zone, force=force, start_ms=start_ms)

    def next_due(self, now: int) -> int:
        return self.period.add(now, self.zone)

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        super().on_event(event, held, now)
        return "after" if len(held) + 1 >= self.size else "hold"


class DataBoundary(Trigger):
    """ext_timed_batch: when an event's own time reaches the boundary after the batch's first event; it starts
    the next."""

    def __init__(
        self,
        timestamp: Callable[[Event], int | None],
        period: Period,
        zone: ZoneInfo,
        reference_ms: int | None,
        *,
        lasts: bool,
    ) -> None:
        """`lasts`: False where time stamps read the clock or a variable: each event keeps its own then."""
        self.stamps = None if lasts else Stamps(timestamp)
        self.timestamp = timestamp
        self.period = period
        self.zone = zone
        self.reference_ms = reference_ms

    def admits(self, event: Event, now: int) -> bool:
        clock = self.timestamp(event)
        if clock is not None:
            reference_ms = clock if self.reference_ms is None else self.reference_ms
            self.period.next_after(clock, reference_ms, self.zone)
        return True

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        stamps = self.stamps
        clock = self.timestamp(event) if stamps is None else stamps.note(event)
        if clock is None:
            return "hold"
        if self.reference_ms is None:
            self.reference_ms = clock
        first = next(iter(held), None)
        if first is None:
            return "hold"
        oldest = self.timestamp(first) if stamps is None else stamps.of(first)
        boundary = self.period.next_after(oldest or 0, self.reference_ms, self.zone)
        return "before" if clock >= boundary else "hold"

    def released(self, held: OrderedDict[Event, None], now: int) -> None:
        if self.stamps is not None:
            self.stamps.keep(held)

    def discarded(self, event: Event) -> None:
        if self.stamps is not None:
            self.stamps.forget(event)

    def resumed(self, held: OrderedDict[Event, None]) -> None:
        if self.stamps is not None:
            self.stamps.restore(self.saved, held)

    def snapshot(self) -> Saved:
        return self.reference_ms if self.stamps is None else [self.reference_ms, self.stamps.snapshot()]

    def restore(self, state: Saved) -> None:
        self.reference_ms, self.saved = state if isinstance(state, list) else (state, [])


class WhenTrue(Trigger):
    """expr_batch: releases when the predicate is true for the arriving event, with it or (include false)
    without it."""

    def __init__(self, predicate: Predicate, include: bool) -> None:
        self.predicate = predicate
        self.include = include

    def admits(self, event: Event, now: int) -> bool:
        self.predicate.check(event)
        self.predicate.holds(event, Builtins(1, 0, event, event, self))
        return True

    def on_event(self, event: Event, held: OrderedDict[Event, None], now: int) -> Decision:
        predicate, oldest = self.predicate, next(iter(held), event)
        predicate.add(event)
        try:
            holds = predicate.holds(event, Builtins(len(held) + 1, 0, oldest, event, self))
        except DATA_ERRORS:
            predicate.remove(event)
            raise
        if not holds:
            return "hold"
        return "after" if self.include else "before"

    def released(self, held: OrderedDict[Event, None], now: int) -> None:
        self.predicate.clear()
        for event in held:
            self.predicate.add(event)

    def resumed(self, held: OrderedDict[Event, None]) -> None:
        for event in held:
            self.predicate.add(event)

    def discarded(self, event: Event) -> None:
        self.predicate.remove(event)

    def changed(self, held: OrderedDict[Event, None], now: int) -> bool:
        ends = list(held)[:1] + list(held)[-1:]
        builtins = Builtins(len(held), 0, ends[0] if ends else None, ends[-1] if ends else None, self)
        return self.predicate.holds_alone(builtins)

    def depends_on(self, variable: str) -> bool:
        return variable in self.predicate.variables
