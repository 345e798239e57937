"""The expressions that a plan reads, anywhere in it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import astuple

from sql.plan.bound import Bound, Slot
from sql.plan.clauses import PredicatePlan
from sql.plan.context_plan import ContextPlan
from sql.plan.declared import WindowDeclaration
from sql.plan.logical import Plan, SetPlan, SplitPlan, TriggerPlan
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


def read_on_change(plan: Plan) -> frozenset[str]:
    """The variables whose new values may cause something by themselves: windows let go of events, or the
    condition of `output when` holds."""
    acts, sources, parts = plan.acts, [*plan.sources], [*plan.subqueries]
    if isinstance(acts, WindowDeclaration):
        sources.append(acts.source)
    if isinstance(acts, TriggerPlan | SplitPlan | SetPlan):
        parts += acts.subqueries
    windows = [window for source in sources for window in source.windows]
    predicates = [
        part for window in windows for part in window.arguments.values() if isinstance(part, PredicatePlan)
    ]
    when = variables_in(plan.output and plan.output.when)
    return when.union(variables_in(predicates), *(read_on_change(part.plan) for part in parts))


def slots_of(value: object) -> Iterator[Slot]:
    """The slots that a plan, or a part of one, reads, such as variables and properties of partitions."""
    return (bound for bound in bounds_of(value) if isinstance(bound, Slot))
