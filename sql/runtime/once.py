"""Statements without FROM: a row of the partition's properties when it starts, or when it ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sql.errors import CorruptState
from sql.runtime.emission import Emission
from sql.runtime.query import Query
from sql.runtime.state import EventStore
from sql.windows.event import Event


class OnceQuery(Query):
    """Gives out its row at the first advance of time, or at the end with `output … when terminated`."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.row = self.functions.row(self.plan.items, [])
        output = self.plan.output
        self.at_end = None if output is None else output.terminated
        self.test = None
        if self.at_end is not None and self.at_end.condition is not None:
            self.test = self.functions.true(self.at_end.condition)
        self.due_ms: int | None = self.now_ms if self.at_end is None else None

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> list[Emission]:
        return []

    def advance(self, now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = max(self.now_ms, now_ms)
        if self.due_ms is None:
            return []
        self.due_ms = None
        return self._emissions(now_ms)

    def next_deadline(self) -> int | None:
        return self.due_ms

    def terminate(self, now_ms: int) -> list[Emission]:
        self.now_ms = self.context.now_ms = max(self.now_ms, now_ms)
        if self.at_end is None or (self.test is not None and not self.test(Event(None, now_ms, 0))):
            return []
        for name, value in self.at_end.then_set:
            self.catalog.assign(name, self.functions.value(value)(None))
        return self._emissions(now_ms)

    def _emissions(self, now_ms: int) -> list[Emission]:
        self.counts["rows_out"] += 1
        return [Emission(self.name, now_ms, "rows", self.read(now_ms))]

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        self.context.now_ms = now_ms
        return [self.row(Event(None, now_ms, 0))]

    # --- state --------------------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Event]:
        return ()

    def _state(self) -> Any:
        return self.due_ms

    def _put_back(self, state: Any, store: EventStore) -> None:
        if state is not None and not isinstance(state, int):
            raise CorruptState(f"{state!r} is no instant")
        self.due_ms = state
