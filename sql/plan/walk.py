"""The expressions that a plan reads, anywhere in it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import astuple

from sql.plan.bound import Bound, Slot
from sql.plan.context_plan import ContextPlan
from sql.plan.declared import WindowDeclaration
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


def variables_in(value: object) -> frozenset[str]:
    """The names of the variables that a part of a plan reads."""
    return frozenset(str(slot.key) for slot in slots_of(value) if slot.kind == "variable")


def read_at_start(plan: Plan) -> frozenset[str]:
    """The variables that the windows and the output limit of a plan read when they start."""
    acts = [plan.acts.source] if isinstance(plan.acts, WindowDeclaration) else []
    own = variables_in([(source.windows, source.lot) for source in (*plan.sources, *acts)])
    limit = plan.output and (plan.output.every, plan.output.every_events, plan.output.after)
    return own.union(variables_in(limit), *(read_at_start(part.plan) for part in plan.subqueries))


def slots_of(value: object) -> Iterator[Slot]:
    """The slots that a plan, or a part of one, reads, such as variables and properties of partitions."""
    return (bound for bound in bounds_of(value) if isinstance(bound, Slot))
