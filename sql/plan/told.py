"""Subqueries whose values are stored with each event, so that the removed row equals the inserted one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sql.plan.bound import Slot

if TYPE_CHECKING:
    from sql.plan.logical import Plan


def told_of(plan: Plan) -> list[Slot]:
    """The subqueries in rows of single events, if the rows of events that leave are emitted as well."""
    if plan.selector == "istream" or plan.row_kind in ("group", "aggregate"):
        return []
    shown = [item.value for item in plan.items] + ([] if plan.having is None else [plan.having])
    slots = (node for value in shown for node in value.walk() if isinstance(node, Slot))
    return list({slot.key: slot for slot in slots if slot.kind == "subquery"}.values())
