"""Queues that keep of each event only what it contributed to the aggregates of a statement.

Where a statement shows aggregates and nothing else, no one reads an event again: its row is freed at once.
Under `departure` FIFO a value leaves as it came; when, is known of all values of one push together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from sql.aggregates.base import Removal
from sql.aggregates.plain_values import decode, encode
from sql.algebra.event import Delta, Event
from sql.algebra.operator import FindEvent
from sql.algebra.retain.policies import Policy, WriteLeaving
from sql.calendar.period import Period
from sql.codegen.loop import LoopWriter
from sql.codegen.source import SourceWriter
from sql.types import Plain

ABSENT: Final[Any] = object()
"""The value of an event that contributes nothing: WHERE drops it, or it could not be evaluated."""


class ValueQueue(Policy):
    """keepall: nothing leaves."""

    departure = Removal.NEVER
    leaves_on_arrival = False
    window = "window"

    def __init__(self) -> None:
        self.events: deque[Any] = deque()
        """What each event contributed, the oldest first."""

    @property
    def needs_event(self) -> bool:
        return False

    def insert(self, event: Event, now: int) -> list[Any]:
        self.events.append(event)
        self.came(1, now)
        return self.evict()

    def came(self, count: int, now: int) -> None:  # only time lets go of some
        """So many values have come at `now`."""

    def evict(self) -> list[Any]:
        """The values that leave because one has come."""
        return []

    def discard(self, event: Event) -> bool:
        raise AssertionError("values leave in the order in which they came")

    def content(self) -> Iterable[Any]:
        return self.events

    # --- in the loop ----------------------------------------------------------------------------------------

    def write_load(self, source: SourceWriter, place: str) -> None:
        source.line(f"window = {place}.events")
        if self.has_timers:
            source.line("held = len(window)")

    def write_prepare(self, loop: LoopWriter) -> None:
        """Every event enters."""

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        source.line("window.append(x)")

    def write_end(self, source: SourceWriter, place: str) -> None:
        if self.has_timers:
            with source.block("if len(window) > held:"):
                source.line(f"{place}.came(len(window) - held, now)")

    # --- state ----------------------------------------------------------------------------------------------

    def pack(self, value: object) -> Plain:
        """A value as plain data, which is no list but for ABSENT."""
        return [] if value is ABSENT else encode(value)

    def unpack(self, packed: Plain, find: FindEvent) -> Any:
        """The value that was packed."""
        return ABSENT if packed == [] else decode(packed)

    def snapshot(self) -> dict[str, Any]:
        return {"values": [self.pack(value) for value in self.events], **self.marks()}

    def marks(self) -> dict[str, Any]:
        """The part of the state that decides which value leaves next, as plain data."""
        return {}

    def restore(self, state: list[int] | dict[str, Any], find: FindEvent) -> None:
        if isinstance(state, list):  # stored by a version that kept the events
            for event in map(find, state):
                self.events.append(ABSENT if event.group is None else event.values)
                self.came(1, event.time_ms)
        else:
            self.events.extend(self.unpack(packed, find) for packed in state["values"])
            self.restore_marks(state)

    def restore_marks(self, state: dict[str, Any]) -> None:
        """Put `marks` back."""


class NewestValues(ValueQueue):
    """length(n), lastevent: the newest n stay."""

    departure = Removal.FIFO
    leaves_on_arrival = True

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def evict(self) -> list[Any]:
        return [self.events.popleft()] if len(self.events) > self.size else []

    def write_load(self, source: SourceWriter, place: str) -> None:
        super().write_load(source, place)
        source.line(f"size = {place}.size")

    def write_enter(self, source: SourceWriter, leave: WriteLeaving) -> None:
        super().write_enter(source, leave)
        with source.block("if len(window) > size:"):
            source.line("y = window.popleft()")
            leave()


class LifetimeValues(ValueQueue):
    """time(d): a value that arrives at a lives during [a, a + d)."""

    departure = Removal.FIFO
    has_timers = defers = True

    def __init__(self, period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.period = period
        self.zone = zone
        self.arrivals: deque[tuple[int, int]] = deque()
        """Instants, and how many values came at each."""

    def came(self, count: int, now: int) -> None:
        self.arrivals.append((now, count))

    def next_deadline(self) -> int | None:
        return self.period.reaches(self.arrivals[0][0], self.zone) if self.arrivals else None

    def expire(self, now: int) -> list[Any]:
        # Entry adds months, expiry subtracts them: on the 31st that is not the same.
        edge, arrivals, count = self.period.subtract(now, self.zone), self.arrivals, 0
        while arrivals and arrivals[0][0] <= edge:
            count += arrivals.popleft()[1]
        pop = self.events.popleft
        return [pop() for _ in range(count)]

    def marks(self) -> dict[str, Any]:
        return {"arrivals": [list(arrival) for arrival in self.arrivals]}

    def restore_marks(self, state: dict[str, Any]) -> None:
        self.arrivals.extend((at, count) for at, count in state["arrivals"])


class GapValues(ValueQueue):
    """time_accum(d): all leave together once nothing has arrived for d."""

    departure = Removal.FIFO
    has_timers = defers = True

    def __init__(self, period: Period, zone: ZoneInfo) -> None:
        super().__init__()
        self.period = period
        self.zone = zone
        self.newest_ms = 0

    def came(self, count: int, now: int) -> None:
        self.newest_ms = now

    def next_deadline(self) -> int | None:
        return self.period.add(self.newest_ms, self.zone) if self.events else None

    def expire(self, now: int) -> list[Any]:
        deadline = self.next_deadline()
        if deadline is None or deadline > now:
            return []
        out = list(self.events)
        self.events.clear()
        return out

    def marks(self) -> dict[str, Any]:
        return {"newest": self.newest_ms}

    def restore_marks(self, state: dict[str, Any]) -> None:
        self.newest_ms = state["newest"]


def net_of_values(deltas: Sequence[Delta], shown: int) -> Delta:
    """One delta for several, after which so many values are `shown`: without those that came and went inside
    them, which are the first that came and the last that went."""
    inserted = [value for delta in deltas for value in delta.inserted]
    removed = [value for delta in deltas for value in delta.removed]
    passing = max(0, len(inserted) - shown)
    return Delta(inserted[passing:], removed[: len(removed) - passing])
