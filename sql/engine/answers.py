"""Answers of stores enter the engine, as events do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sql.emission import Emission
from sql.engine.lookups.lookup_query import LookupQuery
from sql.engine.lookups.lookup_table import Rows
from sql.plan.lookup_plan import Refusal, Request

if TYPE_CHECKING:
    from sql.engine.engine import Engine


def answer(engine: Engine, request: Request, found: Rows | Refusal, now_ms: int) -> list[Emission]:
    """A store has answered a request of `Catalog.requests`: the rules that wait for it go on.
    What is due before is done before."""
    out = [*engine.advance(now_ms)] if engine.now_ms is None or now_ms > engine.now_ms else []
    table = engine.catalog.lookup_tables.get(request.table)
    for name in () if table is None else table.answered(request, found, now_ms):
        query = engine.queries.get(name)
        if isinstance(query, LookupQuery):
            out += engine.dispatch.bounded(name, (), now_ms, partial(query.answered, request, found, now_ms))
    return engine.steps.finish(out, now_ms)
