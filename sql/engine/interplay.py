"""Effects between statements that take the same events: by relations, by variables, by rows they insert.
Where there are any, each event is completed before the next.

Where none can, a batch of events is given to one statement after the other, which costs less.
"""

from __future__ import annotations

from collections.abc import Iterable

from sql.catalog.streams import Catalog
from sql.plan.arrival import reads_on_arrival
from sql.plan.logical import Plan, SetPlan, SplitPlan
from sql.plan.relation_plan import changed_by


def interact(plans: Iterable[Plan], catalog: Catalog) -> bool:
    """True if an effect of one of these statements reaches another of them, or any other statement at all."""
    plans = list(plans)
    written: set[str] = set()
    for place, plan in enumerate(plans):
        if plan.insert is not None or _assigns(plan):
            return True
        mine = changed_by(plan)
        if not all(name in catalog.relations and catalog.relations[name].kind == "table" for name in mine):
            return True  # rows move on, or a named window posts to its consumers
        if mine and any(
            mine & (other.relations | changed_by(other)) for at, other in enumerate(plans) if at != place
        ):
            return True
        written |= mine
    # Filters see relations as they are before any statement acts on the event.
    return any(written & plan.relations and reads_on_arrival(plan) for plan in plans)


def groups(plans: Iterable[Plan], moves: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """By stream and relation, a name that those have in common whose events must keep their order: statements
    join them, or effects lead from one to the other. `moves`: pairs of streams of which rows move from the
    first to the second, beside those of `insert into`.

    >>> groups([], [("a", "b"), ("c", "d"), ("b", "e")])
    {'a': 'e', 'b': 'e', 'c': 'd', 'd': 'd', 'e': 'e'}
    """
    plans = list(plans)
    assigned = any(_assigns(plan) for plan in plans)
    leaders: dict[str, str] = {}

    def leader(name: str) -> str:
        while (above := leaders.setdefault(name, name)) != name:
            name = above
        return name

    for names in [*moves, *(_touched(plan, assigned) for plan in plans)]:
        for name in names:
            leaders[leader(names[0])] = leader(name)
    return {name: leader(name) for name in leaders}


def _touched(plan: Plan, assigned: bool) -> tuple[str, ...]:
    """The streams, relations and contexts that a statement reads or changes.

    `assigned`: there are statements that assign variables.
    """
    beside = [] if plan.insert is None else [plan.insert.stream]
    beside += ["variables"] if assigned else []
    context = plan.context
    beside += [] if context is None else [f"context {context.name}", *context.reads]
    return *plan.streams, *sorted(plan.relations), *sorted(changed_by(plan)), *beside


def _assigns(plan: Plan) -> bool:
    """True if a statement assigns variables, or splits a stream."""
    if isinstance(plan.acts, SetPlan | SplitPlan):
        return True
    output = plan.output
    at_end = None if output is None else output.terminated
    sets = () if output is None else (*output.then_set, *(() if at_end is None else at_end.then_set))
    return bool(sets)
