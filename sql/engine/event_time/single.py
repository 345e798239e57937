"""The query behind the event-time stage of one rule: released events drive it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sql.emission import Emission
from sql.engine.event_time.stage import EventTimeStage
from sql.engine.query import Query
from sql.functions.definition import Context
from sql.plan.traces import is_stateless
from sql.rows import as_dict


class Driven(Query, Protocol):
    """A query in processing time; `push_timed` is for one with `takes_times`."""

    name: str
    now_ms: int
    context: Context
    counts: dict[str, int]
    takes_times: bool

    @property
    def make_row(self) -> Callable[[dict[str, Any]], Any]: ...
    def push_timed(self, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]: ...
    def leave(self) -> None: ...


class Single:
    """The query of one rule behind a stage, with the counts of what the stage did not let through."""

    def __init__(self, query: Driven) -> None:
        self.query = query
        self.name = query.name
        self.takes_batches = query.takes_times
        self.waits = not is_stateless(query.plan)
        """True if order and lateness matter to the rule."""
        self.counts = {"late": 0, "refused_future": 0}

    def give(self, stream: str, rows: Sequence[Any], times: Sequence[int]) -> list[Emission]:
        """Released events."""
        if self.takes_batches:
            return self.query.push_timed(rows, times)
        out: list[Emission] = []
        for row, at_ms in zip(rows, times, strict=True):
            out += self.step_to(at_ms) if self.waits else []
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

    def deal(self, emissions: list[Emission], due_ms: int) -> list[Emission]:
        return emissions

    def own_stage(self, name: str, stage: EventTimeStage) -> EventTimeStage:
        return stage
