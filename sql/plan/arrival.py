"""Filters that are evaluated when the event arrives, before any statement acts on it."""

from __future__ import annotations

from sql.plan.bound import TableRead, all_of, reads_subquery, slot_kinds
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan
from sql.record import replace


def reads_on_arrival(plan: Plan) -> bool:
    """True if filters of a statement read relations, or rows of subqueries."""
    return any(waits_for_filters(source) for source in plan.sources)


def waits_for_filters(source: SourcePlan) -> bool:
    """True if the filter of a stream reads relations, or rows of subqueries."""
    if source.filter is None or source.relation is not None:
        return False
    return reads_subquery([source.filter]) or any(
        isinstance(node, TableRead) for node in source.filter.walk()
    )


def with_filter_for_prior(plan: Plan) -> Plan:
    """The plan with WHERE as the filter of its stream, where `prior` counts the events that pass it: in a
    statement without a window. A WHERE that itself reads earlier events or a subquery stays behind them."""
    if not plan.prevs or len(plan.sources) != 1 or plan.where is None:
        return plan
    source = plan.sources[0]
    if not source.is_bare or not slot_kinds(plan.where) <= {"arrived", "context"}:
        return plan
    passing = all_of(part for part in (source.filter, plan.where) if part is not None)
    return replace(plan, sources=(replace(source, filter=passing),), where=None)
