"""Retain: events enter a relation; a policy makes them leave.

A policy is the whole difference between two windows that let events in at once. This file holds the contract and the
policies whose order of leaving is the order of arrival; `policies_keyed.py` and `policies_ordered.py` hold the others.

         length(3)        a   b   c   d          time(4 s)   a       b
                          |---a-------|                      |---a---|        leaves at arrival + 4 s,
                              |---b---- …                            |---b--- before the events of that instant
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any
from zoneinfo import ZoneInfo

from sql.aggregates.base import Removal
from sql.algebra.event import Event
from sql.algebra.operator import FindEvent
from sql.algebra.sight import ByArrival, Sight
from sql.calendar.period import Period


class Policy(ABC):
    """Decides which events of a relation leave, and when. Holds the relation's events."""

    departure: Removal = Removal.FIFO
    ranked = False
    """Whether `content` is in rank order (sort, rank, time_order) instead of order of arrival."""

    def admits(self, event: Event, now: int) -> bool:
        """Whether the event may enter at all (first-type windows refuse). Raises what `insert` would raise of it, so
        that no other window has it then."""
        return True

    @abstractmethod
    def insert(self, event: Event, now: int) -> list[Event]:
        """The event enters; what leaves because of it, perhaps itself."""

    @abstractmethod
    def discard(self, event: Event) -> bool:
        """The event leaves for another reason; whether it was held."""

    def variable_changed(self) -> list[Event]:
        """A variable has changed: what leaves."""
        return []

    def deadline(self) -> int | None:
        """When the next event leaves by time alone."""
        return None

    def expire(self, now: int) -> list[Event]:
        """What leaves at or before `now` by time alone, in order."""
        return []

    @abstractmethod
    def content(self) -> Iterable[Event]:
        """The events held, in the window's order."""

    @abstractmethod
    def sight(self) -> Sight:
        """What `prev` sees."""

    def is_blank(self) -> bool:
        """Whether the policy remembers nothing."""
        return not any(True for _ in self.content())

    def snapshot(self) -> Any:
        return [event.seq for event in self.content()]

    @abstractmethod
    def restore(self, state: Any, find: FindEvent) -> None: ...


class Arrivals(Policy):
    """Base of policies that hold events in order of arrival."""

    def __init__(self) -> None:
        # An OrderedDict keeps both ends O(1) even after many removals from the front; a plain dict does not.
        self.events: OrderedDict[Event, None] = OrderedDict()

    def insert(self, event: Event, now: int) -> list[Event]:
        self.events[event] = None
        return []

    def discard(self, event: Event) -> bool:
        return self.events.pop(event, self) is None

    def oldest(self) -> Event | None:
        return next(iter(self.events), None)

    def pop_oldest(self) -> Event:
        return self.events.popitem(last=False)[0]

    def content(self) -> Iterable[Event]:
        return self.events

    def sight(self) -> Sight:
        return ByArrival(self.events)

    def is_blank(self) -> bool:
        return not self.events

    def restore(self, state: Any, find: FindEvent) -> None:
        self.events = OrderedDict((find(seq), None) for seq in state)


class Forever(Arrivals):
    """keepall: nothing ever leaves."""

    departure = Removal.NEVER


class Count(Arrivals):
    """length: the newest n stay."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def insert(self, event: Event, now: int) -> list[Event]:
        self.events[event] = None
        return [self.pop_oldest()] if len(self.events) > self.size else []


class Lifetime(Arrivals):
    """time: an event that arrives at a lives during [a, a+d)."""

    def __init__(self, period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.period = period
        self.zone = zone

    def deadline(self) -> int | None:
        oldest = self.oldest()
        return None if oldest is None else self.period.add(oldest.time_ms, self.zone)

    def expire(self, now: int) -> list[Event]:
        # Entry adds months, expiry subtracts them: on the 31st that is not the same (epl.md 1.2).
        edge = self.period.subtract(now, self.zone)
        out = []
        while (oldest := self.oldest()) is not None and oldest.time_ms <= edge:
            out.append(self.pop_oldest())
        return out


class DataClock(Arrivals):
    """ext_timed: the arriving event's own time is the clock; older ones leave from the head."""

    def __init__(self, timestamp: Callable[[Event], int | None], period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.timestamp = timestamp
        self.period = period
        self.zone = zone

    def admits(self, event: Event, now: int) -> bool:
        self._edge(event)
        return True

    def _edge(self, event: Event) -> int | None:
        """What is as old leaves; None: nothing does."""
        clock = self.timestamp(event)
        return None if clock is None or clock == -1 else self.period.subtract(clock, self.zone)

    def insert(self, event: Event, now: int) -> list[Event]:
        edge = self._edge(event)
        out = []
        if edge is not None:
            while (oldest := self.oldest()) is not None and (self.timestamp(oldest) or 0) <= edge:
                out.append(self.pop_oldest())
        self.events[event] = None
        return out


class Gap(Arrivals):
    """time_accum: all leave together once nothing has arrived for d."""

    def __init__(self, period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.period = period
        self.zone = zone

    def deadline(self) -> int | None:
        newest = next(reversed(self.events), None)
        return None if newest is None else self.period.add(newest.time_ms, self.zone)

    def expire(self, now: int) -> list[Event]:
        deadline = self.deadline()
        if deadline is None or deadline > now:
            return []
        out = list(self.events)
        self.events.clear()
        return out


class FirstCount(Arrivals):
    """firstlength: the first n, for good."""

    departure = Removal.NEVER

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def admits(self, event: Event, now: int) -> bool:
        return len(self.events) < self.size


class FirstUntil(Arrivals):
    """firsttime: what arrives before start + d; never reopens."""

    departure = Removal.NEVER

    def __init__(self, end_ms: int) -> None:
        super().__init__()
        self.end_ms = end_ms

    def admits(self, event: Event, now: int) -> bool:
        return now < self.end_ms

    def is_blank(self) -> bool:
        return False

    def snapshot(self) -> Any:
        return {"end_ms": self.end_ms, "events": super().snapshot()}

    def restore(self, state: Any, find: FindEvent) -> None:
        self.end_ms = state["end_ms"]
        super().restore(state["events"], find)
