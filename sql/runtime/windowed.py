"""What statements with windows in FROM share: the windows of their sources, the join, the rows made of changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sql.algebra.join.joined import Joined
from sql.algebra.join.store import Pulled
from sql.algebra.table.feed import Feed, Looked
from sql.algebra.table.into import TableChanges
from sql.algebra.table.subquery import as_seen
from sql.plan.logical import SourcePlan
from sql.runtime.build import WindowBuilder
from sql.runtime.changes import Changes
from sql.runtime.query import Query, in_order, row_limit
from sql.runtime.state import EventStore
from sql.windows.event import Event
from sql.windows.operator import Operator, earliest


class WindowedQuery(Query):
    """Base of EPL statements and stream queries."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        plan = self.plan
        self.builders = [
            WindowBuilder(source, plan.options, self.catalog, self.context, self.warnings, self.shape, self.new_event,
                          self.answers)
            for source in plan.sources
        ]  # fmt: skip
        self.windows: list[Operator] = [self._operator(source, i) for i, source in enumerate(plan.sources)]
        self.joined: Joined | None = None
        if plan.joins:
            pulled = {i: window.rows for i, window in enumerate(self.windows) if isinstance(window, Looked)}
            self.joined = Joined(plan, self.functions, self.new_event, self.shape, pulled)
        self.changes = self._changes()
        self.row_limit = row_limit(plan, self.functions)

    def _changes(self) -> Changes:
        if self.plan.into_table is not None:
            return TableChanges(self.plan, self.functions, self.windows[0], self.windows, self.on_error, self.catalog)
        return Changes(self.plan, self.functions, self.windows[0], self.windows, self.on_error)

    def _operator(self, source: SourcePlan, index: int) -> Operator:
        """The windows of a source; a relation feeds it, or is looked into where nothing of it makes rows."""
        if source.relation is None:
            return self.builders[index].build(self.now_ms)
        passes = None if source.filter is None else self.builders[index].functions.true(source.filter)
        driven = any(other.unidirectional for other in self.plan.sources)
        if source.relation == "table" or self.pulls or (driven and not source.unidirectional):
            relation = self.catalog.relations[source.stream]
            return Looked(Pulled(relation if self.pulls else as_seen(source, self.catalog, self.name), passes))
        return Feed(self.catalog.relations[source.stream], self.arrive, passes)

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
