"""Event time: events are put in order of their own time stamps, and the watermark is the clock.

Watermark = highest time stamp − lateTolerance, the minimum over the query's streams. An event below it is late.
Whatever is at or below it is released in order of (time stamp, arrival); timers due by then fire before the events of
their instant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, repeat
from operator import itemgetter, sub
from typing import Any

from sql.codegen.functions import DATA_ERRORS
from sql.errors import DataError
from sql.plan.plan import Plan
from sql.rows import as_dict, attribute_name
from sql.runtime.emission import Emission
from sql.runtime.query import Query

Lane = Callable[[Sequence[Any], Sequence[int]], list[Emission]]
"""Takes events with their time stamps, in order, and does what is due before each by itself."""


class EventTime:
    """Wraps a query: orders what comes in, drives it by the watermark."""

    steps_itself = False
    takes_lots = False

    def __init__(self, query: Query, now_ms: int) -> None:
        self.query = query
        self.plan: Plan = query.plan
        self.name = query.name
        self.options = query.plan.options
        self.column = query.plan.timestamp or ""
        self.stamps = query.plan.timestamps
        self.tables = {source.stream for source in query.plan.sources if source.retained_rows is not None}
        self.heap: list[tuple[int, int, str, Any]] = []
        self.arrivals = 0
        streams = [stream for stream in query.plan.streams if stream not in self.tables]
        self.highest: dict[str, int | None] = dict.fromkeys(streams)
        self.heard_ms = dict.fromkeys(streams, now_ms)
        self.watermark: int | None = None
        self.waits = not is_stateless(query.plan)
        self.lane: Lane | None = getattr(query, "push_timed", None)
        self.counts = {"late": 0, "refused_future": 0}

    # --- driving ------------------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Any, now_ms: int) -> list[Emission]:
        """Events arrive at `now_ms` of the processing clock."""
        if self.lane is not None and rows:
            times = self._whole_stamps(rows, now_ms)
            if times is not None:
                return self._take_all(stream, rows, times, now_ms)
        if stream in self.tables:
            # A table is what it holds when an event of a stream is handed over; its rows have no time.
            return self.query.push(stream, rows, self.query.now_ms)
        out: list[Emission] = []
        for row in rows:
            try:
                at_ms = self._timestamp(stream, row)
            except DATA_ERRORS as error:
                out += self._refuse(row, now_ms, str(error))
                continue
            future = self.options.max_future_ms
            if future is not None and at_ms > now_ms + future:
                self.counts["refused_future"] += 1
                out += self._refuse(
                    row, now_ms, f"time stamp {at_ms} is more than maxFuture ({future} ms) ahead of the clock"
                )
                continue
            out += self._take(stream, row, at_ms, now_ms)
        return out

    def push_lot(self, stream: str, rows: Any, now_ms: int) -> list[Emission]:
        """Rows of another query are ordered by their own time stamps like any others."""
        return self.push(stream, rows, now_ms)

    def _take(self, stream: str, row: Any, at_ms: int, now_ms: int) -> list[Emission]:
        self.heard_ms[stream] = now_ms
        if not self.waits:
            return self._give(stream, row, at_ms)
        if self.watermark is not None and at_ms < self.watermark:
            self.counts["late"] += 1
            return [Emission(self.name, at_ms, "late", [dict(as_dict(row))])]
        highest = self.highest[stream]
        self.highest[stream] = at_ms if highest is None else max(highest, at_ms)
        self.arrivals += 1
        heappush(self.heap, (at_ms, self.arrivals, stream, row))
        return self._release(now_ms)

    def _give(self, stream: str, row: Any, at_ms: int) -> list[Emission]:
        return self.query.push(stream, [row], at_ms) if self.lane is None else self.lane([row], [at_ms])

    # --- batches: what a generated loop takes in one go --------------------------------------------------------------

    def _whole_stamps(self, rows: Any, now_ms: int) -> list[int] | None:
        """The time stamps, if all are whole numbers and none is late or too far ahead; else each event is looked at."""
        name = attribute_name(self.column)
        try:
            times = [row[self.column] if row.__class__ is dict else getattr(row, name) for row in rows]
        except (KeyError, AttributeError):
            return None
        if set(map(type, times)) != {int}:
            return None
        future = self.options.max_future_ms
        if future is not None and max(times) > now_ms + future:
            return None
        if self.waits and self.watermark is not None and min(times) < self.watermark:
            return None
        if self.waits and any(map(sub, accumulate(times, max), times)):
            behind = max(map(sub, accumulate(times, max), times))
            return times if behind <= self.options.late_tolerance_ms else None
        return times

    def _take_all(self, stream: str, rows: Any, times: list[int], now_ms: int) -> list[Emission]:
        assert self.lane is not None
        self.heard_ms[stream] = now_ms
        if not self.waits:
            return self.lane(rows, times)
        first = self.arrivals + 1
        self.arrivals += len(rows)
        highest = self.highest[stream]
        self.highest[stream] = newest = max(times) if highest is None else max(highest, *times)
        mark = newest - self.options.late_tolerance_ms
        if self.watermark is None or mark > self.watermark:
            self.watermark = mark
        if self.heap or times[-1] > self.watermark or self.options.late_tolerance_ms:
            arrived = zip(times, range(first, self.arrivals + 1), repeat(stream), rows, strict=False)
            waiting = sorted([*self.heap, *arrived], key=itemgetter(0, 1))
            released = bisect_right(waiting, self.watermark, key=itemgetter(0))
            self.heap = waiting[released:]
            times = [entry[0] for entry in waiting[:released]]
            rows = [entry[3] for entry in waiting[:released]]
        out = self.lane(rows, times) if rows else []
        return out + step_to(self.query, self.watermark)

    def _timestamp(self, stream: str, row: Any) -> int:
        column, pattern = self.stamps.get(stream, (self.column, None))
        value = row.get(column) if row.__class__ is dict else getattr(row, attribute_name(column), None)
        if value.__class__ is int:
            return value
        if value.__class__ is float:
            return int(value)
        if value.__class__ is str:
            return self._parse(value, pattern)
        raise DataError(f"the timestamp column '{column}' holds {value!r}, which is no instant")

    def _parse(self, text: str, pattern: str | None) -> int:
        from sql.functions.instants import epoch_ms, instant_ms
        from sql.functions.time_pattern import parse_moment

        zone = self.query.context.zone
        return instant_ms(text, zone) if pattern is None else epoch_ms(parse_moment(text, pattern, zone))

    def reject(self, row: Any, why: str, now_ms: int) -> list[Emission]:
        """An event was refused before it came here."""
        return self.query.reject(row, why, now_ms)

    def _refuse(self, row: Any, now_ms: int, why: str) -> list[Emission]:
        self.query.counts["errors"] += 1
        return [Emission(self.name, now_ms, "error", [dict(as_dict(row))], (), why)]

    def _release(self, now_ms: int) -> list[Emission]:
        """Move the watermark and hand over what it has passed."""
        marks = [mark for stream, mark in self.highest.items() if not self._is_idle(stream, now_ms)]
        if not marks or None in marks:
            return []
        mark = min(marks) - self.options.late_tolerance_ms  # type: ignore[type-var, operator]
        if self.watermark is None or mark > self.watermark:
            self.watermark = mark
        return self._hand_over(self.watermark)

    def _hand_over(self, until_ms: int) -> list[Emission]:
        out: list[Emission] = []
        while self.heap and self.heap[0][0] <= until_ms:
            at_ms, _, stream, row = heappop(self.heap)
            out += step_to(self.query, at_ms)
            out += self._give(stream, row, at_ms)
        return out + step_to(self.query, until_ms)

    def _is_idle(self, stream: str, now_ms: int) -> bool:
        timeout = self.options.idle_timeout_ms
        if timeout is None or len(self.highest) == 1:
            return False
        return now_ms - self.heard_ms[stream] >= timeout

    def advance(self, now_ms: int) -> list[Emission]:
        """The processing clock moves: a silent stream may stop holding the watermark back."""
        if self.options.idle_timeout_ms is None:
            return []
        if len(self.highest) == 1 and now_ms - max(self.heard_ms.values()) >= self.options.idle_timeout_ms:
            # The only stream is silent: nothing older than what was seen is expected any more.
            highest = max((mark for mark in self.highest.values() if mark is not None), default=None)
            if highest is not None and (self.watermark is None or highest > self.watermark):
                self.watermark = highest
                return self._hand_over(highest)
            return []
        return self._release(now_ms)

    def next_deadline(self) -> int | None:
        timeout = self.options.idle_timeout_ms
        if timeout is None or not self.heap:
            return None
        return min(self.heard_ms.values()) + timeout

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended: everything is released, open windows close at their nominal instants."""
        out = self._hand_over(max(entry[0] for entry in self.heap)) if self.heap else []
        return out + self.query.flush(now_ms)

    # --- the rest is the query's --------------------------------------------------------------------------------------

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        return self.query.unseen(emissions)

    def variable_changed(self, name: str) -> None:
        self.query.variable_changed(name)

    def read(self) -> list[dict[str, Any]]:
        return self.query.read()

    def counters(self) -> dict[str, int]:
        return {**self.query.counters(), **self.counts, "waiting": len(self.heap)}

    def snapshot(self) -> dict[str, Any]:
        from sql.runtime.state import pack_row

        heap = [
            [at, number, stream, pack_row(row)] for at, number, stream, row in sorted(self.heap, key=lambda e: e[:2])
        ]
        own = [heap, self.arrivals, self.highest, self.heard_ms, self.watermark, dict(self.counts)]
        return {**self.query.snapshot(), "event_time": own}

    def restore(self, snapshot: dict[str, Any]) -> None:
        from sql.aggregates.state import decode

        self.query.restore(snapshot)
        heap, self.arrivals, self.highest, self.heard_ms, self.watermark, counts = snapshot["event_time"]
        self.counts |= counts
        for at, number, stream, packed in heap:
            row = self.query.make_row({name: decode(value) for name, value in packed.items()})
            self.heap.append((at, number, stream, row))


def is_stateless(plan: Plan) -> bool:
    """Whether order and time cannot matter: such rules do not wait for the watermark."""
    return plan.mode == "delta" and not (
        plan.hits or any(spread.kind in ("changes", "requests") for spread in plan.spreads)
        or plan.aggregates or plan.analytics or plan.prevs or plan.joins or plan.subqueries or plan.output
        or any(source.windows for source in plan.sources)
    )  # fmt: skip


def step_to(query: Query, until_ms: int) -> list[Emission]:
    """Every instant at which something is due, in turn."""
    out: list[Emission] = []
    while (deadline := query.next_deadline()) is not None and deadline <= until_ms:
        out += query.advance(until_ms if query.steps_itself else deadline)
    return out
