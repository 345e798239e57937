"""Statements whose state in a partition of a context is a cell: what they fold, and how
far their output limit is.

A cell takes the place of a running instance (`sql.engine.context.bodies.Cell`),
so that a partition costs a few hundred bytes and microseconds. One running statement serves all cells,
and one loop takes the events of many partitions.
"""

from __future__ import annotations

from sql.compiler.deferral import deferral
from sql.plan.logical import Plan


def fits_cells(plan: Plan) -> bool:
    """True if a statement keeps nothing of a partition but its groups and the state of
    a simple output limit."""
    source = plan.sources[0] if len(plan.sources) == 1 else None
    if source is None or plan.mode != "delta":
        return False
    holds = (
        source.keeps
        or source.lot
        or source.keeps_last
        or source.pattern
        or source.recognize
        or source.reclaim_ms
    )
    beside = plan.prevs or plan.analytics or plan.subqueries or plan.hits or plan.spreads or plan.relations
    acts = plan.acts or plan.into_table or plan.joins
    if holds or beside or acts or any(call.group_by is not None for call in plan.aggregates):
        return False
    if plan.output is None:
        return plan.selector == "istream" and not plan.orders_rows
    return not plan.group_by and deferral(plan, in_cells=True) == "content"
