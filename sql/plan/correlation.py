"""Equalities between an event and the partition it may belong to, taken out of a filter
for an index by hash."""

from __future__ import annotations

from sql.plan.bound import Bound, Op, Read, all_of, conjuncts, slot_kinds
from sql.plan.context_plan import Correlation


def correlation_of(condition: Bound | None) -> tuple[Correlation | None, Bound | None]:
    """An equality of the event with a property of the partition, and the rest of the condition."""
    parts = list(conjuncts(condition))
    for index, part in enumerate(parts):
        found = equality_of(part)
        if found is not None:
            return found, all_of([*parts[:index], *parts[index + 1 :]])
    return None, condition


def equality_of(part: Bound) -> Correlation | None:
    """A part of a condition as such an equality."""
    if not isinstance(part, Op) or part.name != "=":
        return None
    left, right = part.args
    if _of_event(left) and _of_partition(right):
        return Correlation(left, right)
    return Correlation(right, left) if _of_event(right) and _of_partition(left) else None


def _of_event(side: Bound) -> bool:
    """A plain column of the event: a computed value may fail, and the failure must be reported."""
    return isinstance(side, Read) and side.column is not None


def _of_partition(side: Bound) -> bool:
    return slot_kinds(side) == {"context"} and not any(isinstance(part, Read) for part in side.walk())
