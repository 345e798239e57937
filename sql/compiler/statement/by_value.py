"""Windows whose events need not be kept."""

from __future__ import annotations

from sql.aggregates.base import Removal
from sql.algebra.kept import inline_form
from sql.compiler.statement.deferral import deferral
from sql.plan.bound import Bound, TableRead, reads_clock, slot_kinds
from sql.plan.logical import Plan

OF_GROUPS = {"aggregate", "variable", "context", "hit"}
"""The kinds of values that do not depend on the event that causes a row."""


def keeps_values(plan: Plan) -> bool:
    """True if the statement reads of its events only what they contributed: its window need not keep them.

    It shows aggregates of one window and nothing else, and all of these are statements of the loop.
    A value is computed as its event arrives. Behind a gate, or in a lot, that is earlier than it counts:
    there it may not depend on anything that changes between,
    nor be one that is compared with the values before it.
    """
    if plan.row_kind != "aggregate" or len(plan.sources) != 1 or plan.selector != "istream":
        return False
    beside = plan.analytics or plan.subqueries or plan.prevs or plan.into_table is not None
    is_shown_later = plan.output is not None and deferral(plan) != "content"
    reads_event = not slot_kinds(plan.having, *(item.value for item in plan.items)) <= OF_GROUPS
    if beside or plan.orders_rows or is_shown_later or reads_event:
        return False
    forms = [inline_form(call, Removal.FIFO) for call in plan.aggregates]
    if any(form is None or (form.is_in_order and plan.mode == "lots") for form in forms):
        return False
    lot, where = plan.sources[0].lot, [] if plan.where is None else [plan.where]
    of_events = [*(argument for call in plan.aggregates for argument in call.args), *where]
    return lot is None or not lot.is_gated or not any(map(_changes, of_events))


def _changes(value: Bound) -> bool:
    """True if a value of an event depends on when it is computed."""
    return (
        reads_clock(value)
        or not slot_kinds(value) <= {"context"}
        or any(isinstance(node, TableRead) for node in value.walk())
    )
