"""Columns of earlier events without their name: `a=Order -> Payment(of = orderId)` reads `a.orderId`."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.expressions.partition_properties import below
from sql.plan.bound import Bound
from sql.plan.context_plan import Property
from sql.types import Type


def column_of_a_tag(binder: Binding, node: ast.Column) -> Bound | None:
    """The column of the one event that has it, among the tags of a pattern that may be read so and the events
    that started a partition; None where no event has it. Several that have it are a problem: the name could
    mean either."""
    scope, places = binder.scope, binder.site.places
    tags = [index for index in scope.bare if node.name in (scope.sources[index].columns or ())]
    starts = [name for name, (_, held) in places.items() if _has(held, node.name)]
    if len(tags) + len(starts) > 1:
        owners = [*(scope.sources[index].alias for index in tags), *starts]
        message = f"column '{node.name}' is in {' and '.join(map(repr, owners))}"
        hint = f"write {' or '.join(f'{owner}.{node.name}' for owner in owners)}"
        binder.problems.error("B203", message, node.span, hint)
    if tags:
        return scope.read(tags[0], node.name, node.span)
    if starts:
        slot, held = places[starts[0]]
        return below(binder.site, slot, held, (node.name,), node.span)
    return None


def _has(held: Property, name: str) -> bool:
    """True if a place holds one event that has the column."""
    return held.type is Type.OBJECT and name in (held.columns or ())
