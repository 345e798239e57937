"""Event time: a rule's query behind the stage that orders its events."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from sql.compiler.shared_code import Environment
from sql.emission import Emission
from sql.engine.event_time.stage import EventTimeStage, StageRules
from sql.engine.query import QueryDecorator, Running
from sql.plan.traces import is_stateless
from sql.rows import as_dict


class EventTime(QueryDecorator):
    """A rule in event time: its query, and the stage that drives it, which it may share with other rules."""

    def __init__(self, query: Running, env: Environment) -> None:
        """`query`: any that runs in processing time."""
        super().__init__(query)
        self.make_row = env.make_row
        self.stage = EventTimeStage(self.plan, SoleRule(self), env.now_ms, waits=not is_stateless(query.plan))
        self.counts = {"late": 0, "refused_future": 0}
        """The events that the stage did not let through."""
        self.inbox: list[Emission] = []
        """Emissions for this rule from a shared stage, found when another rule's timer fired."""
        self.inbox_ms = env.now_ms

    # --- sharing --------------------------------------------------------------------------------------------

    @property
    def signature(self) -> Hashable | None:
        """Equal for rules that treat event time alike; None for a rule of several streams."""
        plan, options = self.plan, self.plan.options
        if len(plan.sources) != 1 or self.stage.tables or not plan.emits_as_made or plan.context:
            return None
        bounds = (options.late_tolerance_ms, options.idle_timeout_ms, options.max_future_ms, options.zone)
        return (plan.streams, plan.timestamp, tuple(plan.timestamps.items()), bounds, self.stage.waits)

    def leave(self) -> None:
        """Have a stage alone from now on, that has seen the same."""
        self.stage = self.stage.rules.own_stage(self.name, self.stage)

    def take_inbox(self) -> list[Emission]:
        """The emissions for this rule since the last call."""
        out, self.inbox = self.inbox, []
        return out

    # --- driving --------------------------------------------------------------------------------------------

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive at `now_ms` of the processing clock, for this rule alone."""
        self.leave()
        return self.take_inbox() + self.stage.push(stream, rows, now_ms)

    def advance(self, now_ms: int) -> list[Emission]:
        """The processing clock moves."""
        due_ms = self.stage.next_deadline()
        found = self.stage.advance(now_ms)
        found = self.stage.rules.deal(found, now_ms if due_ms is None else due_ms)
        return self.take_inbox() + found

    def next_deadline(self) -> int | None:
        return self.inbox_ms if self.inbox else self.stage.next_deadline()

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended: everything is released, open windows close at their nominal
        instants."""
        self.leave()
        return self.take_inbox() + self.stage.release_all() + self.query.flush(now_ms)

    # --- what the stage does not let through ----------------------------------------------------------------

    def refuse(self, row: object, why: str, now_ms: int, *, is_future: bool = False) -> list[Emission]:
        self.query.counts["errors"] += 1
        self.counts["refused_future"] += is_future
        return [Emission(self.name, now_ms, "error", [dict(as_dict(row))], (), why)]

    def late(self, row: object, at_ms: int) -> list[Emission]:
        self.counts["late"] += 1
        return [Emission(self.name, at_ms, "late", [dict(as_dict(row))])]

    # --- state ----------------------------------------------------------------------------------------------

    def variable_changed(self, name: str, now_ms: int) -> None:
        self.query.variable_changed(name, self.stage.watermark or self.query.now_ms)
        self.stage.rules.schedule(self.name)

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return self.query.read(self.query.now_ms if self.stage.watermark is None else self.stage.watermark)

    def counters(self) -> dict[str, int]:
        return {**self.query.counters(), **self.counts, "waiting": len(self.stage.heap)}

    def snapshot(self) -> dict[str, Any]:
        return {**self.query.snapshot(), "event_time": [*self.stage.snapshot(), dict(self.counts)]}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.query.restore(snapshot)
        *seen, counts = snapshot["event_time"]
        self.counts |= counts
        self.stage.restore(seen, self.make_row)


class SoleRule(StageRules):
    """The only rule behind a stage."""

    def __init__(self, member: EventTime) -> None:
        self.member = member

    def give(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        return self.member.query.push_timed(stream, rows, times)

    def table_rows(self, stream: str, rows: Sequence[Any]) -> list[Emission]:
        # A table is what it holds when an event of a stream is handed over.
        return self.member.query.push(stream, rows, self.member.query.now_ms)

    def step_to(self, until_ms: int) -> list[Emission]:
        return self.member.query.step_to(until_ms)

    def refuse(self, row: object, why: str, now_ms: int, *, is_future: bool = False) -> list[Emission]:
        return self.member.refuse(row, why, now_ms, is_future=is_future)

    def late(self, row: object, at_ms: int) -> list[Emission]:
        return self.member.late(row, at_ms)
