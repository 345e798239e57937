"""Event time: a rule's query behind the stage that orders its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sql.algebra.event import Delta
from sql.emission import Emission
from sql.engine.event_time.stage import EventTimeStage
from sql.functions.registry import Context
from sql.plan.logical import Plan
from sql.rows import as_dict


class Driven(Protocol):
    """A query in processing time; `push_timed` is for one with `takes_times`."""

    name: str
    plan: Plan
    now_ms: int
    context: Context
    counts: dict[str, int]
    steps_itself: bool
    takes_times: bool

    @property
    def make_row(self) -> Callable[[dict[str, Any]], Any]: ...
    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]: ...
    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]: ...
    def fill(self, *, posts: bool = False) -> list[Emission]: ...
    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]: ...
    def advance(self, now_ms: int) -> list[Emission]: ...
    def next_deadline(self) -> int | None: ...
    def flush(self, now_ms: int) -> list[Emission]: ...
    def leave(self) -> None: ...
    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]: ...
    def unseen(self, emissions: list[Emission]) -> list[Emission]: ...
    def variable_changed(self, name: str) -> None: ...
    def read(self, now_ms: int) -> list[dict[str, Any]]: ...
    def counters(self) -> dict[str, int]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, snapshot: dict[str, Any]) -> None: ...


class EventTime:
    """A rule in event time: its query, and the stage that drives it, which it may share with other rules."""

    steps_itself = False
    takes_lots = False

    def __init__(self, query: Driven, now_ms: int) -> None:
        """`query`: any that runs in processing time, with `takes_times` and, where that holds,
        `push_timed`."""
        self.query = query
        self.plan: Plan = query.plan
        self.name = query.name
        self.takes_batches = query.takes_times
        self.counts = {"late": 0, "refused_future": 0}
        self.stage = EventTimeStage(
            self.plan, query.context.zone, self, now_ms, waits=not is_stateless(self.plan)
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
            or self.plan.insert is not None
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
        if self.stage.behind is not self:
            self.stage.behind.leave(self)  # type: ignore[attr-defined]
            self.stage = self.stage.copied_to(self, self.query.now_ms)

    def take_inbox(self) -> list[Emission]:
        """The emissions for this rule since the last call."""
        out, self.inbox = self.inbox, []
        return out

    # --- driving --------------------------------------------------------------------------------------------

    def arriving(self, stream: str, row: object, now_ms: int) -> None:
        """Filters see relations as they are when the watermark hands the event over."""

    def fill(self, *, posts: bool = False) -> list[Emission]:
        """Start from the present rows of named windows."""
        return self.query.fill(posts=posts)

    def feed(self, changes: Mapping[str, Delta], now_ms: int) -> list[Emission]:
        """Named windows have changed."""
        return self.query.feed(changes, now_ms)

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Events arrive at `now_ms` of the processing clock, for this rule alone."""
        self.leave()
        return self.take_inbox() + self.stage.push(stream, rows, now_ms)

    def push_lot(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        """Rows of another query are ordered by their own time stamps like any others."""
        return self.push(stream, rows, now_ms)

    def advance(self, now_ms: int) -> list[Emission]:
        """The processing clock moves."""
        due_ms = self.stage.next_deadline()
        found = self.stage.advance(now_ms)
        if self.stage.behind is not self:
            self.stage.behind.deal(found, now_ms if due_ms is None else due_ms)  # type: ignore[attr-defined]
            found = []
        return self.take_inbox() + found

    def next_deadline(self) -> int | None:
        return self.inbox_ms if self.inbox else self.stage.next_deadline()

    def flush(self, now_ms: int) -> list[Emission]:
        """The bounded source has ended: everything is released, open windows close at their nominal
        instants."""
        self.leave()
        return self.take_inbox() + self.stage.release_all() + self.query.flush(now_ms)

    # --- behind the stage -----------------------------------------------------------------------------------

    def give(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Released events."""
        if self.takes_batches:
            return self.query.push_timed(rows, times)
        out: list[Emission] = []
        for row, at_ms in zip(rows, times, strict=True):
            out += self.step_to(at_ms) if self.stage.waits else []
            out += self.query.push(stream, [row], at_ms)
        return out

    def table_rows(self, stream: str, rows: Sequence[Any]) -> list[Emission]:
        # A table is what it holds when an event of a stream is handed over.
        return self.query.push(stream, rows, self.query.now_ms)

    def step_to(self, until_ms: int) -> list[Emission]:
        """Every instant at which something is due, in turn."""
        out: list[Emission] = []
        query = self.query
        while (deadline := query.next_deadline()) is not None and deadline <= until_ms:
            out += query.advance(until_ms if query.steps_itself else deadline)
        return out

    def refuse(self, row: object, why: str, now_ms: int, *, is_future: bool = False) -> list[Emission]:
        self.query.counts["errors"] += 1
        self.counts["refused_future"] += is_future
        return [Emission(self.name, now_ms, "error", [dict(as_dict(row))], (), why)]

    def late(self, row: object, at_ms: int) -> list[Emission]:
        self.counts["late"] += 1
        return [Emission(self.name, at_ms, "late", [dict(as_dict(row))])]

    # --- the rest is the query's ----------------------------------------------------------------------------

    def reject(self, row: object, why: str, now_ms: int) -> list[Emission]:
        """An event was refused before it came here."""
        return self.query.reject(row, why, now_ms)

    def unseen(self, emissions: list[Emission]) -> list[Emission]:
        return self.query.unseen(emissions)

    def variable_changed(self, name: str) -> None:
        self.query.variable_changed(name)

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
        self.stage.restore(seen, self.query.make_row)


def is_stateless(plan: Plan) -> bool:
    """True if order and time cannot matter: such rules do not wait for the watermark."""
    return plan.mode == "delta" and plan.context is None and not (
        plan.hits or any(spread.kind in ("changes", "requests") for spread in plan.spreads)
        or plan.aggregates or plan.analytics or plan.prevs or plan.joins or plan.subqueries or plan.output
        or any(source.windows for source in plan.sources)
    )  # fmt: skip
