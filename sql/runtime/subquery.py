"""Scalar subqueries: `(select count(*) from E#length(2))`. Each keeps its own window; it holds the arriving event
already."""

from __future__ import annotations

from typing import Any

from sql.catalog.streams import Catalog
from sql.codegen.support import Warnings
from sql.functions.registry import Context
from sql.plan.logical import Plan
from sql.rows import Shape
from sql.windows.event import Event
from sql.windows.operator import earliest


class Subqueries:
    """All subqueries of a statement."""

    def __init__(self, plan: Plan, catalog: Catalog, context: Context, warnings: Warnings, now_ms: int, shape: Shape):
        from sql.runtime.delta_query import DeltaQuery

        self.plans = plan.subqueries
        self.queries = [
            DeltaQuery(f"subquery {i}", part.plan, catalog, now_ms=now_ms, shape=shape)
            for i, part in enumerate(plan.subqueries)
        ]

    def push(self, stream: str, row: Any, now_ms: int) -> None:
        """An event arrives, before the statement itself sees it."""
        for query in self.queries:
            if stream in query.plan.streams:
                query.push(stream, [row], now_ms)

    def advance(self, now_ms: int) -> None:
        for query in self.queries:
            query.advance(now_ms)

    def next_deadline(self) -> int | None:
        return earliest(query.next_deadline() for query in self.queries)

    def values(self, event: Event) -> list[Any]:
        """The value of each subquery now: of its first row, NULL without one; TRUE or FALSE for EXISTS."""
        out: list[Any] = []
        for part, query in zip(self.plans, self.queries, strict=True):
            rows = query.present()
            if part.exists:
                out.append(bool(rows))
            else:
                out.append(next(iter(rows[0].values())) if rows else None)
        return out

    def snapshot(self) -> Any:
        return [query.snapshot() for query in self.queries]

    def restore(self, state: Any) -> None:
        for query, part in zip(self.queries, state, strict=True):
            query.restore(part)
