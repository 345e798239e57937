"""Output limits whose rows are made when they are due, from what is there then; and statements whose state in
a partition of a context is a cell: what they fold, and how far their output limit is.

A cell takes the place of a running instance (`sql.engine.context.bodies.Cell`),
so that a partition costs a few hundred bytes and microseconds. One running statement serves all cells,
and one loop takes the events of many partitions.
"""

from __future__ import annotations

from typing import Literal

from sql.plan.bound import Bound, Const, reads_clock, slot_kinds
from sql.plan.clauses import OutputPlan
from sql.plan.logical import Plan
from sql.plan.walk import variables_in

Deferral = Literal["content", "groups"]
"""The source of rows that are made when an output limit is due: the content, or the groups touched since."""


def deferral(plan: Plan, *, in_cells: bool = False) -> Deferral | None:
    """The source of the rows of an output limit where they can be made when it is due, because they do not
    depend on what was between.

    A snapshot shows the content. `last` shows the last row of only aggregates, or that of each group: the
    present one, as long as nothing else is read that changes. In cells events can be counted, and partitions
    end.
    """
    output = plan.output
    if output is None or output.after is not None or output.after_events is not None:
        return None
    if variables_in(output.every):  # each update asks whether the period has changed
        return None
    if not (counts_alone(output) if in_cells else output.terminated is None and (output.every or output.at)):
        return None
    if output.mode == "snapshot":
        return "content"
    is_plain = plan.selector == "istream" and plan.having is None and not plan.prevs and not plan.hits
    if output.mode != "last" or not is_plain or any(is_fleeting(item.value) for item in plan.items):
        return None
    return "groups" if plan.row_kind == "group" else "content" if plan.row_kind == "aggregate" else None


def is_fleeting(value: Bound) -> bool:
    """True if a value depends on more than its group: on the clock, a variable, a subquery."""
    return reads_clock(value) or not slot_kinds(value) <= {"aggregate", "context", "grouping"}


def counts_alone(output: OutputPlan) -> bool:
    """True if a cell can hold the state of an output limit: a period, a count of events, or the end alone."""
    if output.when is not None or output.at:
        return False
    if output.every_events is not None and events_of(output) < 1:
        return False
    ends = output.terminated
    return ends is None or (ends.condition is None and not ends.then_set)


def events_of(output: OutputPlan) -> int:
    """The number of events that `output every n events` counts; 0 where it is a variable."""
    count = output.every_events
    return count.value if isinstance(count, Const) and count.value.__class__ is int else 0


def fits_cells(plan: Plan) -> bool:
    """True if a statement keeps nothing of a partition but its groups and the state of
    a simple output limit."""
    if len(plan.sources) != 1 or plan.mode != "delta" or not plan.sources[0].is_bare:
        return False
    acts = plan.acts or plan.into_table or plan.joins or plan.sources[0].reclaim_ms
    beside = plan.reads_beside or plan.spreads or plan.relations
    if acts or beside or any(call.group_by is not None for call in plan.aggregates):
        return False
    if plan.output is None:
        return plan.selector == "istream" and not plan.orders_rows
    return not plan.group_by and deferral(plan, in_cells=True) == "content"
