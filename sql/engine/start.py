"""Start the query of a plan: a rule without a window, a statement, or a sampled rule;
in event time behind a stage.

Statements, patterns, contexts and stores are imported for the first plan that has one: most gateways run few
kinds of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sql.catalog.streams import Catalog
from sql.compiler.rowwise_text import is_rowwise
from sql.engine.event_time.event_time_query import EventTime
from sql.engine.query import CompiledStatement, Running
from sql.engine.running.rowwise_query import Rowwise
from sql.engine.sampled.sampled_query import SampledCode
from sql.plan.declared import AskedDeclaration
from sql.plan.logical import Plan
from sql.rows import Shape

if TYPE_CHECKING:
    pass

MakeRow = Callable[[dict[str, Any]], Any]


def start(
    name: str,
    plan: Plan,
    catalog: Catalog,
    now_ms: int,
    *,
    shape: Shape = "dict",
    make_row: MakeRow | None = None,
    by_instants: bool = False,
) -> Running:
    """A running query for a plan; `by_instants`: sampled rules take events with an instant each."""
    if isinstance(plan.acts, AskedDeclaration):
        from sql.engine.asking.asked_table import AskedStatement

        return AskedStatement(name, plan, catalog, now_ms)
    query: Running
    if plan.acts is not None or not plan.sources:
        query = code_of(name, plan, catalog, now_ms).instance(name, catalog, now_ms)
    else:
        query = _query(name, plan, catalog, now_ms, shape, make_row, by_instants=by_instants)
    if not plan.asks:
        return query
    from sql.engine.asking.asking_query import Asking

    return Asking(name, query, catalog, now_ms)


def _query(
    name: str,
    plan: Plan,
    catalog: Catalog,
    now_ms: int,
    shape: Shape,
    make_row: MakeRow | None,
    *,
    by_instants: bool,
) -> Running:
    """The query of a plan that reads streams."""
    query: Running
    if plan.mode == "sample":
        code = SampledCode(
            name, plan, catalog, now_ms, shape=shape, make_row=make_row, by_instants=by_instants
        )
        query = code.instance(name, catalog, now_ms)
    elif is_rowwise(plan):
        query = Rowwise(name, plan, catalog, now_ms, shape, make_row)
    else:
        from sql.compiler.program import Program
        from sql.engine.running.statement_instances import instance_of

        query = instance_of(name, Program(plan, catalog, shape, now_ms, name), now_ms, make_row)
    return query if plan.timestamp is None else EventTime(query, now_ms, make_row)


def code_of(
    name: str, plan: Plan, catalog: Catalog, now_ms: int, partition: Sequence[Any] | None = None
) -> CompiledStatement:
    """The code of a statement that is no query, or of any in a context; `partition` is that of the first
    instance."""
    if plan.acts is not None:
        from sql.engine.relations.acting_code import ACTING

        return ACTING[type(plan.acts)](name, plan, catalog, now_ms, partition)
    if not plan.sources:
        from sql.engine.running.once import OnceCode

        return OnceCode(name, plan, catalog, now_ms, partition)
    if plan.mode == "sample":
        return SampledCode(name, plan, catalog, now_ms, partition)
    from sql.compiler.program import Program
    from sql.engine.running.statement_instances import QueryCode

    return QueryCode(Program(plan, catalog, "dict", now_ms, name, partition or ()))
