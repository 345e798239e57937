"""Statements in event time: the compiled loop takes each event with its own instant."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from sql.emission import Emission
from sql.engine.running.running_statement import RunningStatement
from sql.engine.time_stamps import time_stamp


class TimedStatement(RunningStatement):
    """A statement over one source in event time: the compiled loop takes each event with its own instant."""

    takes_times = True

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one instant, as a context hands them to its partitions."""
        return self.push_timed(rows, [now_ms] * len(rows))

    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Events with their time stamps, which never decrease; what is due before each is done before it."""
        self.counts["events_in"] += len(rows)
        first = 0
        while first < len(rows):
            self.step_to(times[first])
            last = self._run_end(times, first)
            self.now_ms = max(self.now_ms, times[last - 1])
            self.context.now_ms = times[first]
            self.code["push"](self, rows[first:last], times[first:last])
            first = last
        return self.take()

    def _run_end(self, times: Sequence[int], first: int) -> int:
        """The end of the run of events before which nothing becomes due. Where an event may bring forward
        what is due next, it is a run of its own."""
        clocks = [window for window in self.windows if window.has_timers]
        limit = self.output.limit
        if not clocks and limit is None:
            return len(times)
        steady = all(clock.defers and clock.next_deadline() is not None for clock in clocks)
        if limit is not None:
            steady = steady and limit.condition.defers and limit.next_deadline() is not None
        deadline = self.next_deadline() if steady else None
        return first + 1 if deadline is None else max(first + 1, bisect_left(times, deadline, first))

    def step_to(self, until_ms: int) -> None:
        """Do what is due up to `until_ms`, in turn."""
        while (deadline := self.next_deadline()) is not None and deadline <= until_ms:
            found = self.advance(deadline)
            self.counts["rows_out"] -= sum(
                len(emission.inserted) for emission in found if emission.kind == "rows"
            )
            self.out += found

    def fail(self, row: object, error: BaseException) -> None:
        at_ms = self.now_ms
        if row is not None:
            at_ms = time_stamp(self.plan, self.plan.sources[0].stream, row, self.context.zone)
        why = self.program.functions.failure(error, self.code)
        self.out.append(self.error_of(row, str(why), at_ms))
