"""The expressions that a plan reads, anywhere in it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import astuple

from sql.plan.bound import Bound, Slot
from sql.plan.context_plan import ContextPlan
from sql.plan.logical import Plan
from sql.record import Record


def bounds_of(value: object) -> Iterator[Bound]:
    """The expressions of a plan, or of a part of one, and their parts; an expression precedes its parts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for part in value:
            yield from bounds_of(part)
    elif isinstance(value, Record) and not isinstance(value, ContextPlan):
        if isinstance(value, Bound):
            yield value
        yield from bounds_of(astuple(value))


def slots_of(plan: Plan) -> Iterator[Slot]:
    """The slots that a plan reads, such as variables and properties of partitions."""
    return (bound for bound in bounds_of(plan) if isinstance(bound, Slot))
