"""What statements with windows in FROM share: the windows of their sources, the join, the rows made of changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.runtime.build import WindowBuilder
from sql.runtime.changes import Changes
from sql.runtime.joins import Joined
from sql.runtime.query import Query, in_order, row_limit
from sql.runtime.state import EventStore
from sql.runtime.subquery import Subqueries
from sql.windows.event import Event
from sql.windows.operator import Operator, earliest


class WindowedQuery(Query):
    """Base of EPL statements and stream queries."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan = self.plan
        self.builders = [
            WindowBuilder(source, plan.options, self.catalog, self.context, self.warnings, self.shape, self.new_event)
            for source in plan.sources
        ]
        self.windows: list[Operator] = [builder.build(self.now_ms) for builder in self.builders]
        self.joined = Joined(plan, self.functions, self.new_event) if plan.joins else None
        self.subqueries: Subqueries | None = None
        if plan.subqueries:
            self.subqueries = Subqueries(plan, self.catalog, self.context, self.warnings, self.now_ms, self.shape)
        values = self.subqueries.values if self.subqueries else None
        self.changes = Changes(plan, self.functions, self.windows[0], self.windows, values, self.on_error)
        self.row_limit = row_limit(plan, self.functions)

    def next_deadline(self) -> int | None:
        deadlines = [window.next_deadline() for window in self.windows]
        if self.subqueries is not None:
            deadlines.append(self.subqueries.next_deadline())
        return earliest(deadlines)

    def content(self) -> Iterable[Event]:
        """The present content of the window, or of the join."""
        return self.windows[0].content() if self.joined is None else self.joined.content()

    def read(self, now_ms: int) -> list[dict[str, Any]]:
        for window in self.windows:
            window.settle()
        with self.reading():
            return self.present()

    def present(self) -> list[dict[str, Any]]:
        """The rows of the present content; while a batch is being released, that is this batch."""
        return in_order(self.changes.present(self.content()), self.plan, (None, 0), self.spreads)

    def held(self) -> Iterable[Event]:
        for window in self.windows:
            yield from window.held()
        yield from self.beside()

    def beside(self) -> Iterable[Event]:
        """What the state refers to beside the windows: mostly events that are in them as well."""
        if self.joined is not None:
            yield from self.joined.held()
        yield from self.changes.held()

    def retained(self) -> int:
        beside = {event.seq for event in self.beside()}
        count = 0
        for window in self.windows:
            for event in window.held():
                count += 1
                beside.discard(event.seq)
        return count + len(beside)

    def _state(self) -> dict[str, Any]:
        return {
            "windows": [window.snapshot() for window in self.windows],
            "joined": None if self.joined is None else self.joined.snapshot(),
            "changes": self.changes.snapshot(),
            "subqueries": None if self.subqueries is None else self.subqueries.snapshot(),
        }

    def _put_back(self, state: Any, store: EventStore) -> None:
        for window, part in zip(self.windows, state["windows"], strict=True):
            window.restore(part, store.find)
        if self.joined is not None:
            self.joined.restore(state["joined"], store.find)
        self.changes.restore(state["changes"], store.find)
        if self.subqueries is not None:
            self.subqueries.restore(state["subqueries"])
