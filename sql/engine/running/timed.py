"""Statements in event time: the compiled loop takes each event with its own instant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.operator import Pass
from sql.emission import Emission
from sql.engine.event_time.stage import time_stamp
from sql.engine.running.running_statement import RunningStatement


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
        """The end of the run of events before the next deadline: windows without timers take all."""
        if self.output.limit is None and all(isinstance(w, Pass) or not w.has_timers for w in self.windows):
            return len(times)
        return first + 1

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
