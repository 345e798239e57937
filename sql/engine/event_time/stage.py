"""The event-time stage: events are put in order of their own time stamps, and the watermark is the clock.

Watermark = highest time stamp − lateTolerance, the minimum over the streams. An event below it is late.
Whatever is at or below it is released in order of (time stamp, arrival); what is due by then is done before
events of that instant.

A stage works for one rule, or for several that treat event time alike (`sql.engine.event_time.shared_stage`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import groupby, repeat
from math import inf
from operator import attrgetter, itemgetter
from typing import Any

from sql.algebra.event_store import pack_row, unpack_row
from sql.codegen.functions import DATA_ERRORS
from sql.emission import Emission
from sql.engine.time_stamps import LAST_MS, time_stamp
from sql.plan.logical import Plan
from sql.rows import MakeRow, as_dict, attribute_name
from sql.types import key_of

Waiting = tuple[int, int, str, Any]
"""An event above the watermark: time stamp, number of its arrival, stream, row."""

SORT_MIN = 16
"""Fewer arrivals than this part of those that wait are not worth sorting all of them."""


class StageRules(ABC):
    """The rules a stage works for."""

    @abstractmethod
    def give(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Events in order of their time stamps; what is due before each is done before it."""

    @abstractmethod
    def table_rows(self, stream: str, rows: Sequence[Any]) -> list[Emission]:
        """Rows of a table, which have no time."""

    @abstractmethod
    def step_to(self, until_ms: int) -> list[Emission]:
        """The clock moves."""

    @abstractmethod
    def refuse(self, row: object, why: str, now_ms: int, *, is_future: bool = False) -> list[Emission]:
        """An event has no time stamp, or one too far ahead."""

    @abstractmethod
    def late(self, row: object, at_ms: int) -> list[Emission]:
        """An event is below the watermark."""

    def deal(self, emissions: list[Emission], due_ms: int) -> list[Emission]:
        """A timer of the stage emitted these: rules that share it find them in their inboxes, the only rule
        has them back."""
        return emissions

    def own_stage(self, name: str, stage: EventTimeStage) -> EventTimeStage:
        """The stage for one rule alone that has seen the same as this one."""
        return stage

    def schedule(self, name: str) -> None:
        """A rule may have something else to do next, though no event has met it."""


def _whole_numbers(rows: Sequence[Any], column: str) -> list[int] | None:
    """The values of a column; None if some are no whole numbers, or no instants."""
    if not rows:
        return []
    read = itemgetter(column) if rows[0].__class__ is dict else attrgetter(attribute_name(column))
    try:
        values = list(map(read, rows))
    except (KeyError, AttributeError, TypeError):
        return None
    return values if set(map(type, values)) == {int} and max(values) <= LAST_MS else None


class EventTimeStage:
    """Orders what comes in and drives the rules behind it by the watermark."""

    def __init__(self, plan: Plan, rules: StageRules, now_ms: int, *, waits: bool) -> None:
        self.plan = plan
        self.zone = plan.options.zone_info()
        self.rules = rules
        self.waits = waits
        """True if order and lateness matter to the rules."""
        self.options = plan.options
        self.tables = {source.stream for source in plan.sources if source.retained_rows is not None}
        self.heap: list[Waiting] = []
        self.arrivals = 0
        streams = [stream for stream in plan.streams if stream not in self.tables]
        self.highest: dict[str, int | None] = dict.fromkeys(streams)
        self.heard_ms = dict.fromkeys(streams, now_ms)
        self.watermark: int | None = None

    # --- arrivals -------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive at `now_ms` of the processing clock."""
        if stream in self.tables:
            return self.rules.table_rows(stream, rows)
        times = self._whole_stamps(stream, rows)
        latest = inf if self.options.max_future_ms is None else now_ms + self.options.max_future_ms
        if times is not None and (latest == inf or max(times, default=0) <= latest):
            return self._take_runs(stream, rows, times, now_ms)
        out: list[Emission] = []
        for row in rows:
            try:
                at_ms = time_stamp(self.plan, stream, row, self.zone)
            except DATA_ERRORS as error:
                out += self.rules.refuse(row, str(error), now_ms)
                continue
            if at_ms > latest:
                ahead = f"maxFuture ({self.options.max_future_ms} ms) ahead of the clock"
                why = f"time stamp {at_ms} is more than {ahead}"
                out += self.rules.refuse(row, why, now_ms, is_future=True)
                continue
            out += self._take_runs(stream, [row], [at_ms], now_ms)
        return out

    def is_stamped(self, stream: str, rows: Sequence[Any]) -> bool:
        """True if each event bears a whole number as its time stamp, so that none is refused.
        The report of a refused one has the time of its arrival."""
        return self._whole_stamps(stream, rows) is not None

    def _whole_stamps(self, stream: str, rows: Sequence[Any]) -> list[int] | None:
        """The time stamps, if all are whole numbers; else each event is read."""
        column, _ = self.plan.timestamps.get(stream, (self.plan.timestamp or "", None))
        return _whole_numbers(rows, column)

    def _take_runs(
        self, stream: str, rows: Sequence[Any], times: Sequence[int], now_ms: int
    ) -> list[Emission]:
        """The events between those that are late together: a late one changes nothing but its count."""
        out: list[Emission] = []
        first = 0
        for place in self._late_places(stream, times, now_ms) if self.waits else ():
            if first < place:
                out += self._take_all(stream, rows[first:place], times[first:place], now_ms)
            out += self.rules.late(rows[place], times[place])
            first = place + 1
        if first:
            self.heard_ms[stream] = now_ms
            rows, times = rows[first:], times[first:]
        return out + self._take_all(stream, rows, times, now_ms) if rows else out

    def _late_places(self, stream: str, times: Sequence[int], now_ms: int) -> list[int]:
        """The places of the events that will be below the watermark when they arrive."""
        mark = -inf if self.watermark is None else self.watermark
        if not times or (mark <= times[0] and times == sorted(times)):
            return []
        others = [mark for other, mark in self._heard(now_ms).items() if other != stream]
        limit = min([inf, *(-inf if mark is None else mark for mark in others)])
        highest = self.highest[stream]
        newest = -inf if highest is None else highest
        found = []
        for place, at_ms in enumerate(times):
            if at_ms < mark:
                found.append(place)
                continue
            newest = max(newest, at_ms)
            mark = max(mark, min(newest, limit) - self.options.late_tolerance_ms)
        return found

    def _take_all(
        self, stream: str, rows: Sequence[Any], times: Sequence[int], now_ms: int
    ) -> list[Emission]:
        """Events of which none is late."""
        self.heard_ms[stream] = now_ms
        if not self.waits:
            return self.rules.give(stream, rows, times)
        first = self.arrivals + 1
        self.arrivals += len(rows)
        highest, newest = self.highest[stream], max(times)
        self.highest[stream] = newest if highest is None else max(highest, newest)
        arrived = zip(times, range(first, self.arrivals + 1), repeat(stream), rows, strict=False)
        if not self._moved(now_ms) or self.watermark is None:
            for entry in arrived:
                heappush(self.heap, entry)
            return []
        waits = self.heap or times[-1] > self.watermark or self.options.late_tolerance_ms
        if waits or len(self.highest) > 1:
            return self._hand_over(self.watermark, arrived, len(rows))
        return self.rules.give(stream, rows, times) + self.rules.step_to(self.watermark)

    # --- the watermark --------------------------------------------------------------------------------------

    def _heard(self, now_ms: int) -> dict[str, int | None]:
        """By stream the highest time stamp, of those that hold the watermark back: a silent one does not."""
        timeout = self.options.idle_timeout_ms
        if timeout is None or len(self.highest) == 1:
            return self.highest
        heard_ms = self.heard_ms
        return {name: mark for name, mark in self.highest.items() if now_ms - heard_ms[name] < timeout}

    def _moved(self, now_ms: int) -> bool:
        """Move the watermark as far as the streams let it; False while one of them has sent nothing."""
        marks = [mark for mark in self._heard(now_ms).values() if mark is not None]
        if not marks or len(marks) < len(self._heard(now_ms)):
            return False
        mark = min(marks) - self.options.late_tolerance_ms
        self.watermark = mark if self.watermark is None else max(self.watermark, mark)
        return True

    def _hand_over(self, until_ms: int, arrived: Iterable[Waiting] = (), count: int = 0) -> list[Emission]:
        """Put so many arrivals to those that wait; hand over, in order, those at or before an instant, and do
        what is due by then."""
        passed, out = self._through(until_ms, arrived, count), list[Emission]()
        runs = [passed] if passed else []
        if len(self.highest) > 1:
            runs = [[*run] for _, run in groupby(passed, key=itemgetter(2))]
        for run in runs:
            out += self.rules.give(run[0][2], [entry[3] for entry in run], [entry[0] for entry in run])
        return out + self.rules.step_to(until_ms)

    def _through(self, until_ms: int, arrived: Iterable[Waiting], count: int) -> list[Waiting]:
        """Put arrivals to those that wait; all at or before an instant, in order."""
        if count * SORT_MIN < len(self.heap):  # few among many: each finds its place by itself
            for entry in arrived:
                heappush(self.heap, entry)
            released = []
            while self.heap and self.heap[0][0] <= until_ms:
                released.append(heappop(self.heap))
            return released
        waiting = sorted([*self.heap, *arrived])  # no two have the same number
        passed = bisect_right(waiting, until_ms, key=itemgetter(0))
        self.heap = waiting[passed:]
        return waiting[:passed]

    def release_all(self) -> list[Emission]:
        """No event is expected any more: hand over all that wait."""
        return self._hand_over(max(entry[0] for entry in self.heap)) if self.heap else []

    def advance(self, now_ms: int) -> list[Emission]:
        """The processing clock moves: a silent stream may stop holding the watermark back."""
        timeout = self.options.idle_timeout_ms
        if timeout is None:
            return []
        if len(self.highest) == 1 and now_ms - max(self.heard_ms.values()) >= timeout:
            # The only stream is silent: nothing older than what was seen is expected any more.
            highest = max((mark for mark in self.highest.values() if mark is not None), default=None)
            if highest is None or (self.watermark is not None and highest <= self.watermark):
                return []
            self.watermark = highest
        elif not self._moved(now_ms):
            return []
        return [] if self.watermark is None else self._hand_over(self.watermark)

    def next_deadline(self) -> int | None:
        """When, on the processing clock, a silent stream stops holding back events that wait."""
        timeout = self.options.idle_timeout_ms
        if timeout is None or not self.heap:
            return None
        return min(self.heard_ms.values()) + timeout

    # --- state ----------------------------------------------------------------------------------------------

    def copied_to(self, rules: StageRules, now_ms: int) -> EventTimeStage:
        """A stage that has seen the same, for other rules."""
        other = EventTimeStage(self.plan, rules, now_ms, waits=self.waits)
        other.heap = self.heap.copy()
        other.arrivals = self.arrivals
        other.highest = self.highest.copy()
        other.heard_ms = self.heard_ms.copy()
        other.watermark = self.watermark
        return other

    def is_like(self, other: EventTimeStage) -> bool:
        """True if this stage and another, of the same settings, will do the same with all that comes."""
        if (
            self.watermark != other.watermark
            or self.highest != other.highest
            or len(self.heap) != len(other.heap)
        ):
            return False
        if self.heap and self.heard_ms != other.heard_ms:
            return False
        pairs = zip(sorted(self.heap, key=_place), sorted(other.heap, key=_place), strict=True)
        return all(mine[0] == theirs[0] and _are_alike(mine[3], theirs[3]) for mine, theirs in pairs)

    def snapshot(self) -> list[Any]:
        heap = [
            [at, number, stream, pack_row(row)] for at, number, stream, row in sorted(self.heap, key=_place)
        ]
        return [heap, self.arrivals, self.highest, self.heard_ms, self.watermark]

    def restore(self, state: list[Any], make_row: MakeRow) -> None:
        heap, self.arrivals, highest, heard_ms, self.watermark = state
        self.highest, self.heard_ms = dict(highest), dict(heard_ms)
        for at, number, stream, packed in heap:
            self.heap.append((at, number, stream, make_row(unpack_row(packed))))


def _are_alike(row: Any, other: Any) -> bool:
    """True if two rows have the same columns, with the same values."""
    return row is other or (
        row.__class__ is other.__class__ and key_of(as_dict(row)) == key_of(as_dict(other))
    )


_place = itemgetter(0, 1)
