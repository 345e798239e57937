"""Filters that are evaluated when the event arrives, before any statement acts on it."""

from __future__ import annotations

from sql.plan.bound import TableRead, reads_subquery
from sql.plan.clauses import SourcePlan
from sql.plan.logical import Plan


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
