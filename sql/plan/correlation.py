"""Equalities between an event and the partition it may belong to, taken out of a filter
for an index by hash."""

from __future__ import annotations

from sql.plan.bound import Bound, Read, all_of, both_ways, conjuncts, slot_kinds
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
    sides = ((event, own) for _, event, own in both_ways(part, ("=",)))
    return next(
        (Correlation(event, own) for event, own in sides if _of_event(event) and _of_partition(own)), None
    )


def _of_event(side: Bound) -> bool:
    """A plain column of the event: a computed value may fail, and the failure must be reported."""
    return isinstance(side, Read) and side.column is not None


def _of_partition(side: Bound) -> bool:
    return slot_kinds(side) == {"context"} and not any(isinstance(part, Read) for part in side.walk())
