"""Event time: a rule's query behind the stage that orders its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.emission import Emission
from sql.engine.event_time.single import Driven, Single
from sql.engine.event_time.stage import EventTimeStage
from sql.engine.query import QueryDecorator


class EventTime(QueryDecorator):
    """A rule in event time: its query, and the stage that drives it, which it may share with other rules."""

    query: Driven

    def __init__(self, query: Driven, now_ms: int) -> None:
        """`query`: any that runs in processing time, with `takes_times` and, where that holds,
        `push_timed`."""
        super().__init__(query)
        self.name = query.name
        self.single = Single(query)
        """What is behind a stage that this rule has alone."""
        self.stage = EventTimeStage(
            self.plan, query.context.zone, self.single, now_ms, waits=self.single.waits
        )
        self.inbox: list[Emission] = []
        """Emissions for this rule from a shared stage, found when another rule's timer fired."""
        self.inbox_ms = now_ms

    # --- sharing --------------------------------------------------------------------------------------------

    @property
    def signature(self) -> Any:
        """Equal for rules that treat event time alike; None for a rule of several streams."""
        if (
            len(self.plan.sources) != 1
            or self.stage.tables
            or not self.plan.emits_as_made
            or self.plan.context
        ):
            return None
        options = self.plan.options
        bounds = (options.late_tolerance_ms, options.idle_timeout_ms, options.max_future_ms, options.zone)
        return (
            self.plan.streams,
            self.plan.timestamp,
            tuple(self.plan.timestamps.items()),
            bounds,
            self.stage.waits,
        )

    def leave(self) -> None:
        """Have a stage alone from now on, that has seen the same."""
        self.stage = self.stage.behind.own_stage(self.name, self.stage)

    def take_inbox(self) -> list[Emission]:
        """The emissions for this rule since the last call."""
        out, self.inbox = self.inbox, []
        return out

    # --- driving --------------------------------------------------------------------------------------------

    def is_stamped(self, stream: str, rows: Sequence[Any]) -> bool:
        """True if each event bears a whole number as its time stamp, so that none is refused.
        The report of a refused one tells when it arrived."""
        return self.stage.is_stamped(stream, rows)

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive at `now_ms` of the processing clock, for this rule alone."""
        self.leave()
        return self.take_inbox() + self.stage.push(stream, rows, now_ms)

    def advance(self, now_ms: int) -> list[Emission]:
        """The processing clock moves."""
        due_ms = self.stage.next_deadline()
        found = self.stage.advance(now_ms)
        found = self.stage.behind.deal(found, now_ms if due_ms is None else due_ms)
        return self.take_inbox() + found

    def next_deadline(self) -> int | None:
        return self.inbox_ms if self.inbox else self.stage.next_deadline()

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended: everything is released, open windows close at their nominal
        instants."""
        self.leave()
        return self.take_inbox() + self.stage.release_all() + self.query.flush(now_ms)

    # --- state ----------------------------------------------------------------------------------------------

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        return self.query.read(self.query.now_ms if self.stage.watermark is None else self.stage.watermark)

    def counters(self) -> dict[str, int]:
        return {**self.query.counters(), **self.single.counts, "waiting": len(self.stage.heap)}

    def snapshot(self) -> dict[str, Any]:
        return {**self.query.snapshot(), "event_time": [*self.stage.snapshot(), dict(self.single.counts)]}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.query.restore(snapshot)
        *seen, counts = snapshot["event_time"]
        self.single.counts |= counts
        self.stage.restore(seen, self.query.make_row)
