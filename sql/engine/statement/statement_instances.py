"""The kinds of running statements.

A stream query posts one net lot per activation, over all partitions of the window. An activation is what one
message, or the rows that another query gave out together, cause; or what is due at one instant. Its deltas
are netted, and aggregates are evaluated once for the whole lot.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from sql.algebra.event import Delta, Event, net
from sql.algebra.operator import Pass
from sql.algebra.retain.values import net_of_values
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.program import Program
from sql.compiler.shared_code import Environment
from sql.compiler.statement.driving import takes_times
from sql.emission import Emission
from sql.engine.statement.running_statement import RunningStatement
from sql.engine.statement.statement_sources import Posts
from sql.engine.time_stamps import time_stamp


class StreamQuery(RunningStatement):
    """A `from … select …` query."""

    takes_lots = True
    begins = True
    """True if what comes next is not of the activation before. In a join what several queries give out at one
    instant is one activation: a query over a stream and over what another one made of it meets both."""

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Messages from outside are an activation each, however they were batched."""
        if self.program.text.is_driven:
            return super().push(stream, rows, now_ms)
        for row in rows:
            self.begins = True
            self._activation(stream, [row], now_ms)
        return self.take()

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """One activation: the rows that another query gave out together."""
        self._activation(stream, rows, now_ms)
        return self.take()

    def _activation(self, stream: str, rows: Sequence[Any], now_ms: int) -> None:
        self.begins = self.begins or now_ms > self.now_ms
        self.now_ms = now_ms
        self.begin(now_ms)
        self.counts["events_in"] += len(rows)
        for index, source in enumerate(self.plan.sources):
            if source.stream == stream:
                self._activate(index, self._admitted(index, rows, now_ms), now_ms)

    def _admitted(self, index: int, rows: Sequence[Any], now_ms: int) -> list[Delta]:
        """The updates of a source's window as a lot enters. An item whose key cannot be evaluated is sorted
        out before: a lot enters as a whole, perhaps later."""
        window, admitted = self.windows[index], []
        if self.program.text.keeps_values:
            if self.program.filters[index] is not None:
                rows = [row for row in rows if self.arrival(index, row, now_ms) is not None]
            values = self.code["values"](self, rows, now_ms)
            return window.push(Delta(values), now_ms) if values else []
        for row in rows:
            event = self.arrival(index, row, now_ms)
            if event is None:
                continue
            try:
                for key in self.program.item_keys[index]:
                    key(event)
                if not isinstance(window, Pass):
                    self.budget.admit()
                admitted.append(event)
            except DATA_ERRORS as error:
                self.fail(row, error)
        return window.push(Delta(admitted), now_ms) if admitted else []

    def _net(self, index: int, deltas: list[Delta]) -> Delta:
        """The changes of one activation as one, without what came and went in it."""
        if self.program.text.keeps_values:
            return net_of_values(deltas, sum(1 for _ in self.windows[index].content()))
        return net(deltas)

    def _activate(self, index: int, deltas: list[Delta], at_ms: int) -> None:
        is_net = len(deltas) == 1 and (self.windows[index].is_net or len(deltas[0].inserted) < 2)
        lot = deltas[0] if is_net else self._net(index, deltas)
        if not (lot.inserted or lot.removed or self._leaving()):
            return
        new: list[Any] = []
        old: list[Any] = []
        for delta in self.sources.changes(self._with_items(index, lot)):
            self.change(delta, new, old)
        rows = old if self.plan.selector == "rstream" else new
        inserted = self.output.ordered(rows) if rows else []
        if inserted:
            self.out.append(Emission(self.name, at_ms, "rows", inserted))

    def _leaving(self) -> list[tuple[int, Event]]:
        """The items without window of an activation that is over, with their sources."""
        return self.sources.items if self.begins or self.joined is None else []

    def _with_items(self, index: int, lot: Delta) -> Posts:
        """The changes of the sources by a lot of one of them: items of an activation that is over leave."""
        posts = {index: lot}
        for place, event in self._leaving():
            before = posts.get(place, Delta())
            posts[place] = Delta(before.inserted, (*before.removed, event))
        if self._leaving():
            self.sources.items = []
        self.begins = False
        if isinstance(self.windows[index], Pass):
            self.sources.items += [(index, event) for event in lot.inserted]
        return {place: [delta] for place, delta in posts.items()}

    def advance(self, now_ms: int) -> list[Emission]:
        """Do what is due at or before `now_ms`: the expiries of all partitions are one lot."""
        self.begins = self.begins or now_ms > self.now_ms
        self.now_ms = max(self.now_ms, now_ms)
        self.begin(self.now_ms)
        for index, window in enumerate(self.windows):
            lot = self.plan.sources[index].lot
            is_batched = lot is not None and lot.every_period is not None
            deltas: list[Delta] = []
            while (due := window.next_deadline()) is not None and due <= now_ms:
                deltas += window.advance(now_ms)
            # A gate's deadline lies one ms behind its update point, so that the lot holds the
            # arrivals of the point.
            self._activate(index, deltas, now_ms - 1 if is_batched else now_ms)
        return self.take()

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended: what is due later happens at its own instants."""
        out: list[Emission] = []
        while (deadline := self.next_deadline()) is not None:
            out += self.advance(deadline)
        return out


class TimedStatement(RunningStatement):
    """A statement over one source in event time: the compiled loop takes each event with its own instant."""

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events of one instant, as a context hands them to its partitions."""
        return self.push_timed(stream, rows, [now_ms] * len(rows))

    def push_timed(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        self.counts["events_in"] += len(rows)
        out: list[Emission] = []
        first = 0
        while first < len(rows):
            deadline = self.next_deadline()
            if deadline is not None and deadline <= times[first]:
                out += self.take() + self.step_to(times[first])
            last = self._run_end(times, first)
            self.now_ms = max(self.now_ms, times[last - 1])
            self.begin(times[first])
            self.code["push"](self, rows[first:last], times[first:last])
            first = last
        return out + self.take()

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

    def fail(self, row: object, error: BaseException) -> None:
        at_ms = self.now_ms
        if row is not None:
            at_ms = time_stamp(self.plan, self.plan.sources[0].stream, row, self.context.zone)
        why = self.program.functions.failure(error, self.code)
        self.out.append(self.error_of(row, str(why), at_ms))


def instance_of(program: Program, env: Environment) -> RunningStatement:
    """A running instance of a compiled plan."""
    plan = program.plan
    kind = StreamQuery if plan.mode == "lots" else TimedStatement if takes_times(plan) else RunningStatement
    return kind(program, env)
